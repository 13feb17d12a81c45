"""Images: what a file is, and how to make it smaller."""
