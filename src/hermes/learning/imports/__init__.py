"""Imports conversations of other agents. Never writes to a source."""
