"""The session log, its projections and search, on SQLite. `open_store` is the door."""

from hermes.store.store import Store, open_store

__all__ = ["Store", "open_store"]
