"""The dashboard's routes, by subject. Each module gives a list of endpoints."""
