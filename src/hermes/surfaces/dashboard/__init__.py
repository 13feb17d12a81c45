"""Hermes in a browser: an ASGI server that checks every request. Loaded only by `hermes dashboard`."""
