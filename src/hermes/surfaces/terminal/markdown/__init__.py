"""Streams Markdown to a terminal: split into blocks, each drawn once when it is complete."""
