"""Maintains the tables derived from the log: `sessions` and `usage`. Runs in the transaction that
writes the row.

Rebuilding a projection means replaying the log through the same functions.
"""

import math
from datetime import UTC, datetime

from hermes.schema.event_base import Event
from hermes.schema.events import (
    AuxiliaryCalled,
    SessionCompacted,
    SessionCreated,
    SessionTitled,
    TurnEnded,
)
from hermes.schema.messages import AssistantMessage, Usage
from hermes.store.log_row import Row
from hermes.store.sql import SqlConnection

_MAX_CALL_TOKENS = 10**12  # of one call

_ADVANCE = """
UPDATE sessions SET head = ?, updated = ?, messages = messages + ?, turns = turns + ? WHERE id = ?
"""
_INSERT = """
INSERT INTO sessions (id, epoch, head, created, updated, kind, parent, parent_seq, root, surface, cwd, place)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_ADD_USAGE = """
INSERT INTO usage VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (session, day, provider, model) DO UPDATE SET
  calls = usage.calls + 1,
  input_tokens = usage.input_tokens + excluded.input_tokens,
  output_tokens = usage.output_tokens + excluded.output_tokens,
  cache_read_tokens = usage.cache_read_tokens + excluded.cache_read_tokens,
  cache_write_tokens = usage.cache_write_tokens + excluded.cache_write_tokens,
  reasoning_tokens = usage.reasoning_tokens + excluded.reasoning_tokens,
  cost_usd = usage.cost_usd + excluded.cost_usd,
  unpriced_calls = usage.unpriced_calls + excluded.unpriced_calls
"""


def project(connection: SqlConnection, row: Row, event: Event | None) -> None:
    """Applies one new row to the projections."""
    if row.seq == 1:
        _begin_session(
            connection,
            row,
            event if isinstance(event, SessionCreated) else SessionCreated(),
        )
        return
    ended = 1 if isinstance(event, TurnEnded) else 0
    connection.execute(
        _ADVANCE, (row.seq, row.ts, 1 if row.role else 0, ended, row.session)
    )
    if isinstance(event, SessionTitled):
        connection.execute(
            "UPDATE sessions SET title = ? WHERE id = ?", (event.title, row.session)
        )
    elif isinstance(event, AssistantMessage):
        if event.model:
            connection.execute(
                "UPDATE sessions SET model = ? WHERE id = ?", (event.model, row.session)
            )
        _count_call(connection, row, event)
    elif isinstance(event, AuxiliaryCalled | SessionCompacted):
        _count_call(connection, row, event)


def _begin_session(connection: SqlConnection, row: Row, event: SessionCreated) -> None:
    values = (
        event.kind,
        event.parent,
        event.parent_seq,
        event.root or row.session,
        event.surface,
        event.cwd,
        event.place,
    )
    connection.execute(
        _INSERT, (row.session, row.epoch, row.seq, row.ts, row.ts, *values)
    )


def _count_call(connection: SqlConnection, row: Row, event: Event) -> None:
    used = usage_of(event, row.ts)
    if used is not None and not _is_copy(connection, row):
        connection.execute(_ADD_USAGE, (row.session, *used))


def usage_of(event: Event, ts: float) -> tuple[str | int | float, ...] | None:
    """Returns the day, provider, model and amounts of a model call; None if the event is not one."""
    if not isinstance(event, AssistantMessage | AuxiliaryCalled | SessionCompacted):
        return None
    if event.usage is None:
        return None
    day = datetime.fromtimestamp(ts, UTC).date().isoformat()
    return (day, event.provider, event.model, *_amounts(event.usage))


def _is_copy(connection: SqlConnection, row: Row) -> bool:
    """Returns whether a branch copied this row from its parent, where it is already counted."""
    query = (
        "SELECT 1 FROM sessions WHERE id = ? AND kind = 'branch' AND parent_seq >= ?"
    )
    return connection.execute(query, (row.session, row.seq)).get is not None


def _amounts(usage: Usage) -> tuple[int | float, ...]:
    tokens = (
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
    )
    price = (
        usage.cost_usd
        if usage.cost_usd is not None and math.isfinite(usage.cost_usd)
        else None
    )
    return (
        *map(_countable, (*tokens, usage.reasoning_tokens)),
        price or 0.0,
        1 if price is None else 0,
    )


def _countable(tokens: int) -> int:
    """Returns a number whose sums can't overflow, whatever value a provider or an imported file gives."""
    return max(0, min(tokens, _MAX_CALL_TOKENS))
