"""Hermes in a browser: an ASGI server with one gate in front of everything. Loaded by `hermes dashboard` alone."""
