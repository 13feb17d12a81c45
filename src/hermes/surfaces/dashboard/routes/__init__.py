"""The dashboard's routes, by subject. Each module provides a list of endpoints."""
