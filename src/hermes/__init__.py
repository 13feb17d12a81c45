"""Hermes: an AI agent that belongs to its user."""

__version__ = "0.1.0"
