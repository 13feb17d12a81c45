"""Scheduled jobs: creating, running and delivering them."""
