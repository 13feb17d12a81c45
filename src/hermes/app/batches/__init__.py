"""Batches: a dataset of prompts, each answered by a session of its own."""
