"""What both databases offer inside a transaction: statements in SQL, and their results."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

MAX_QUERY_VALUES = 1_000
"""How many values one query may take."""


class SqlCursor(Protocol):
    """The result of a statement. Values are read once."""

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
