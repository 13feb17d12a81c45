"""Hermes in chat apps: adapters behind one port (`port.py`), and the house that they bring messages to."""
