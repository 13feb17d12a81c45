"""Copies a whole store into another one, and compares both row by row."""

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import msgspec

from hermes.errors import StoreError
from hermes.store.log_row import STORED, Row, checked
from hermes.store.sql import SqlConnection
from hermes.store.store import Store
from hermes.text.translation import translator

t = translator(__name__)


_PAGE_ROWS = 500
_EVENTS = f"SELECT {STORED} FROM events WHERE id > ? ORDER BY id LIMIT {_PAGE_ROWS}"  # noqa: S608 - our own names

_Select = Callable[[str, Sequence[Any]], list[Any]]


class _Table(NamedTuple):
    name: str
    key: str
    columns: str


_USAGE = (
    "session, day, provider, model, calls, input_tokens, output_tokens, cache_read_tokens, "
    "cache_write_tokens, reasoning_tokens, cost_usd, unpriced_calls"
)
_SESSIONS = (
    "id, epoch, head, created, updated, kind, parent, parent_seq, root, "
    "surface, cwd, place, title, model, messages, turns"
)
_INSTANTS = "job, due, starts, cause, state, reason, repeats, session, owner, expires, began, ended, delivery"
_CARDS = (
    "id, board, status, priority, assignee, reviewer, due, created, unique_key, data"
)
_CARD_RUNS = (
    "id, card, board, number, agent, phase, outcome, reason, summary, closing, session, "
    "workspace, owner, expires, started, ended, beat, note, stop"
)
TABLES = (
    _Table("sessions", "id", _SESSIONS),
    _Table("usage", "session, day, provider, model", _USAGE),
    _Table("jobs", "id", "id, data"),
    _Table("instants", "job, due", _INSTANTS),
    _Table("gateway_chats", "key", "key, session, chat, person, seq, busy, model, updated"),
    _Table("gateway_inbox", "platform, id", "platform, id, received, data"),
    _Table("gateway_outbox", "id", "id, chat, session, seq, part, state, message, ts"),
    _Table("gateway_people", "platform, id", "platform, id, name, role, since"),
    _Table("boards", "slug", "slug, data"),
    _Table("cards", "id", _CARDS),
    _Table("card_links", "parent, child", "parent, child"),
    _Table("card_runs", "id", _CARD_RUNS),
    _Table("card_events", "id", "id, board, card, ts, topic, data"),
    _Table("card_attachments", "id", "id, card, name, size, who, added, data"),
    _Table("card_notices", "id", "id, card, target, text, made, delivery"),
    _Table("gateway_sends", "id", "id, target, body, files, made, until, state, reason"),
    _Table("session_marks", "session", "session, pinned, folder, archived, seen"),
)  # fmt: skip
"""The tables to copy besides the log. Leases, claims and pairing codes are short-lived and not copied."""


class CopyReport(msgspec.Struct, frozen=True):
    """What was copied and compared."""

    rows: int
    """Rows of the log."""
    others: dict[str, int]
    """Rows of each other table."""


def copy_store(
    source: Store, target: Store, tell: Callable[[int], None] = lambda _: None
) -> CopyReport:
    """Copies everything into an empty store and compares both. `tell` receives the number of log rows copied so far."""
    if held := source.leases.held():
        hint = t.later(
            "Nothing was changed. Stop every Hermes that uses the source, then copy."
        )
        raise StoreError(
            t.later(
                "session {session} of the source is being run", session=held[0].session
            ),
            hint=hint,
        )
    return copy_snapshot(source, target, tell)


def copy_snapshot(
    source: Store, target: Store, tell: Callable[[int], None] = lambda _: None
) -> CopyReport:
    """Copies one consistent state, even of a store in use, and compares both."""
    if (
        target.sessions.recent(limit=1)
        or target.has_jobs
        or target.has_cards
        or target.chats.recent(1)
    ):
        hint = t.later("Nothing was changed. Copy into a database that is empty.")
        raise StoreError(
            t.later("the target holds sessions, jobs, cards or chats already"),
            hint=hint,
        )
    attempts: list[None] = []

    def job(connection: SqlConnection) -> CopyReport:
        attempts.append(None)
        if len(attempts) > 1:  # after an outage, the consistent state is gone
            hint = t.later(
                "The source is unchanged. Try again with another, empty target."
            )
            raise StoreError(
                t.later("the source was lost while it was copied"), hint=hint
            )
        return _copy(_Reader(connection), target, tell)

    return source.database.read(job)


class _Reader:
    """One consistent state of a store."""

    def __init__(self, connection: SqlConnection) -> None:
        self._connection = connection

    def select(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Returns the rows of one query."""
        return list(self._connection.execute(query, values).fetchall())


def _copy(source: _Reader, target: Store, tell: Callable[[int], None]) -> CopyReport:
    rows = 0
    for page in _pages(source.select):
        target.database.write(
            lambda connection, page=page: _insert(target, connection, page)
        )
        rows += len(page)
        tell(rows)
    select = source.select
    others = {table.name: _copy_table(select, target, table) for table in TABLES}
    _repair_numbers(target)
    _compare(select, target.database.select)
    return CopyReport(rows, others)


def _pages(select: _Select) -> Iterator[list[Row]]:
    after = -1
    while page := checked(select(_EVENTS, (after,))):
        yield page
        after = page[-1].id


def _insert(target: Store, connection: SqlConnection, page: list[Row]) -> None:
    for row in page:
        target.database.insert_row(connection, row, row.event)


def _rows(select: _Select, table: _Table) -> list[tuple[Any, ...]]:
    query = f"SELECT {table.columns} FROM {table.name}"  # noqa: S608 - our own names
    return sorted(tuple(map(_storable, row)) for row in select(query, ()))


def _storable(value: Any) -> Any:
    """Returns a value in a form that PostgreSQL can store: text without NUL."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    return value


def _copy_table(select: _Select, target: Store, table: _Table) -> int:
    found = _rows(select, table)
    places = ", ".join("?" for _ in table.columns.split(", "))
    query = f"INSERT INTO {table.name} ({table.columns}) VALUES ({places})"  # noqa: S608 - our own names

    def job(connection: SqlConnection) -> None:
        for row in found:
            connection.execute(query, row).fetchall()

    target.database.write(job)
    return len(found)


def _repair_numbers(target: Store) -> None:
    """Makes the database's sequences continue after the copied numbers."""
    if target.engine == "PostgreSQL":
        for table in ("gateway_outbox", "card_events"):
            name = f"pg_get_serial_sequence('{table}', 'id')"
            query = (
                f"SELECT setval({name}, coalesce(max(id), 0) + 1, false) FROM {table}"  # noqa: S608 - our own names
            )
            target.database.write(
                lambda connection, query=query: connection.execute(query).fetchall()
            )


def _compare(source: _Select, target: _Select) -> None:
    """Raises unless both stores have the same contents."""
    for ours, theirs in zip_longest(_every_row(source), _every_row(target)):
        if ours != theirs:
            session, seq = (ours or theirs)[1:3]
            raise _differs(f"row {seq} of session {session}")
    for table in TABLES:
        if _rows(source, table) != _rows(target, table):
            raise _differs(f"the table {table.name}")


def _every_row(select: _Select) -> Iterator[Row]:
    for page in _pages(select):
        for row in page:
            yield row._replace(id=0)  # ids are assigned anew


def _differs(what: str) -> StoreError:
    hint = t.later(
        "The source is unchanged. Stop every Hermes that uses it, empty the target, and copy again."
    )
    return StoreError(
        t.later("the copy differs from its source: {what}", what=what), hint=hint
    )
