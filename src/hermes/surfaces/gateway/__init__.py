"""Hermes in chat apps: an adapter for each platform (`adapters`) and what they share."""
