"""Lets a synchronous job use an asyncpg connection: statements with `?`, rows as tuples."""

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import asyncpg

_PLACEHOLDER = re.compile(r"\?(\d*)")


@lru_cache(maxsize=512)
def numbered(query: str) -> str:
    """Returns the statement with PostgreSQL's placeholders: `?` and `?1` become `$1`."""
    count = 0

    def number(found: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return f"${found[1] or count}"

    return _PLACEHOLDER.sub(number, query)


def storable(values: Sequence[Any]) -> list[Any]:
    """Returns the values without NUL characters, which PostgreSQL can't hold in text."""
    return [
        value.replace("\0", "\ufffd")
        if isinstance(value, str) and "\0" in value
        else value
        for value in values
    ]


class FetchedRows:
    """The rows of a statement."""

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        self._rows = rows

    @property
    def get(self) -> Any:
        """The only column of the first row, the first row if it has several columns, or None."""
        if not self._rows:
            return None
        first = self._rows[0]
        return first[0] if len(first) == 1 else first

    def fetchone(self) -> tuple[Any, ...] | None:
        """Returns the first row."""
        return self._rows[0] if self._rows else None

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Returns all rows."""
        return self._rows

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self._rows)


class QueryConnection:
    """The connection of a job with a single query: the query runs on any connection of the pool."""

    def __init__(
        self, select: Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]
    ) -> None:
        self._select = select

    def execute(self, query: str, values: Sequence[Any] = ()) -> FetchedRows:
        """Runs a query and fetches its rows."""
        return FetchedRows(self._select(query, values))


class JobConnection:
    """An asyncpg connection as a job sees it. Used by one thread, which is not the event loop's."""

    def __init__(
        self, connection: "asyncpg.Connection", loop: asyncio.AbstractEventLoop
    ) -> None:
        self._connection = connection
        self._loop = loop

    def execute(self, query: str, values: Sequence[Any] = ()) -> FetchedRows:
        """Runs a statement and fetches its rows."""
        fetching = self._connection.fetch(numbered(query), *storable(values))
        rows = asyncio.run_coroutine_threadsafe(fetching, self._loop).result()
        return FetchedRows([tuple(row) for row in rows])
