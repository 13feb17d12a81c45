"""The databases of the store: each test that asks for one runs on SQLite and on PostgreSQL."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.fakes.nats_server import LocalNats, running_nats
from tests.fakes.postgres_server import LocalPostgres, running_postgres
from tests.fakes.store_engines import (
    OpenStore,
    PostgresEngine,
    SqliteEngine,
    StoreEngine,
)

from hermes.testing.fetched import NotFetched


@pytest.fixture(scope="session")
def postgres() -> Iterator[LocalPostgres]:
    """A running PostgreSQL server."""
    with ExitStack() as stack:
        try:
            server = stack.enter_context(running_postgres())
        except NotFetched as why:
            text = f"Tests with PostgreSQL are left out. {why}"
            if os.environ.get("CI") == "true":
                pytest.fail(text)
            pytest.skip(text)
        yield server


@pytest.fixture(scope="session")
def nats() -> Iterator[LocalNats]:
    """A running NATS server."""
    with ExitStack() as stack:
        try:
            server = stack.enter_context(running_nats())
        except NotFetched as why:
            text = f"Tests with NATS are left out. {why}"
            if os.environ.get("CI") == "true":
                pytest.fail(text)
            pytest.skip(text)
        yield server


@pytest.fixture(scope="session", params=["SQLite", "PostgreSQL"])
def engine(request: pytest.FixtureRequest) -> StoreEngine:
    """One kind of database after the other."""
    if request.param == "SQLite":
        return SqliteEngine()
    return PostgresEngine(request.getfixturevalue("postgres"))


@pytest.fixture
def open_database(engine: StoreEngine, tmp_path: Path) -> Iterator[OpenStore]:
    """Opens a new database, as often as it is called."""
    with engine.database(tmp_path) as opened:
        yield opened


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def store_url(request: pytest.FixtureRequest) -> str:
    """`store.url` of an app: none, and that of a new database."""
    if request.param == "SQLite":
        return ""
    return request.getfixturevalue("postgres").new_url()
