"""The chat platforms. Each module implements the port; only the ones that run are imported."""
