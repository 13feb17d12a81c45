"""The session log, its projections and search, on SQLite. Start with `open_store`."""

from hermes.store.store import Store, exists, open_store

__all__ = ["Store", "exists", "open_store"]
