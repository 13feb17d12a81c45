"""The turn: history, requests, replies, calls, caps and compaction, and the ports to collaborators."""
