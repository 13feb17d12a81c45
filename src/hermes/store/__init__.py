"""The session log, its projections and search, on SQLite or PostgreSQL. Start with `open_store`."""

from hermes.store.open_configured import open_configured
from hermes.store.sqlite.opener import exists, open_store
from hermes.store.store import Store

__all__ = ["Store", "exists", "open_configured", "open_store"]
