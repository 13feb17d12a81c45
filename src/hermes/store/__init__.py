"""The session log, its projections and search, on SQLite. `open_store` is the door."""

from hermes.store.store import Store, exists, open_store

__all__ = ["Store", "exists", "open_store"]
