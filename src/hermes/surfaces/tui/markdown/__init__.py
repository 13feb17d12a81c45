"""Markdown as a terminal shows it while it is being written: cut into blocks, each drawn once it has ended."""
