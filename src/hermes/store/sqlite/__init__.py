"""The store in one SQLite file, `state.db`."""
