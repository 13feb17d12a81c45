"""The interface of both databases inside a transaction: SQL statements and their results."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

MAX_QUERY_VALUES = 1_000
"""The maximum number of values in one query."""


class SqlCursor(Protocol):
    """The result of a statement. Values can be read once."""

    @property
    def get(self) -> Any:
        """The only column of the first row, the first row if it has several columns, or None."""
        ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class SqlConnection(Protocol):
    """A connection inside a transaction. Placeholders are `?`, or `?1` for a value used twice."""

    def execute(self, query: str, values: Sequence[Any] = (), /) -> SqlCursor: ...
