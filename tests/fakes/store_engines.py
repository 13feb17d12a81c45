"""The databases that a store can use, so that one test runs on each of them."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from tests.fakes.postgres_server import LocalPostgres

from hermes.core.ports import Clock
from hermes.store import Store, open_store
from hermes.store.sqlite.database import Database
from hermes.store.sqlite.opener import SqliteStore

OpenStore = Callable[..., Store]
"""Opens the same database again and again, as several processes do; takes a `clock`."""


def sqlite_database(store: Store) -> Database:
    """The database of a store in a file, for tests of what only SQLite does."""
    assert isinstance(store, SqliteStore)
    return store._database


class StoreEngine(Protocol):
    """One kind of database."""

    name: str

    def database(self, folder: Path) -> AbstractContextManager[OpenStore]:
        """A new database, as long as the context is open."""
        ...


class SqliteEngine:
    """Files in a folder."""

    name = "SQLite"

    @contextmanager
    def database(self, folder: Path) -> Iterator[OpenStore]:
        yield lambda clock=None: open_store(
            folder / "state.db", clock=clock, busy_timeout=5
        )


class PostgresEngine:
    """Databases of one server."""

    name = "PostgreSQL"

    def __init__(self, server: LocalPostgres) -> None:
        self._server = server

    @contextmanager
    def database(self, folder: Path) -> Iterator[OpenStore]:
        from hermes.store.postgres.options import PostgresOptions
        from hermes.store.postgres.postgres_store import open_postgres

        def opened(clock: Clock | None = None) -> Store:
            return open_postgres(PostgresOptions(url), clock=clock)

        url = self._server.new_url()
        yield opened
