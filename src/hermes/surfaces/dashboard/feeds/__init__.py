"""Feeds: replay from a cursor, then live. The log is the truth; the bus says when to look, and carries what passes."""
