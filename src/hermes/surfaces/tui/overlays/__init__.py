"""Lists and texts that take the whole window for a while, above a running chat."""
