"""Shows where a resumed session stopped: the end of its conversation, and a turn that still runs or was cut off."""

import asyncio
from collections.abc import Sequence

from hermes.app import App
from hermes.app.feed import SessionCursor
from hermes.app.log_follower import LOG_POLL_INTERVAL_S
from hermes.core.history import UndoneRows
from hermes.schema.events import (
    ApprovalRequested,
    QuestionAsked,
    TurnEnded,
    TurnStarted,
)
from hermes.schema.messages import UserMessage
from hermes.store.log_row import Row
from hermes.surfaces.terminal.interrupts import is_elsewhere
from hermes.surfaces.tui.plain_screen import ChatScreen
from hermes.surfaces.tui.replay import replay
from hermes.surfaces.tui.session_view import ChatView

_SUMMARY_ROWS_PER_READ = 200
_SHOWN_TURNS = 6
_MAX_ROWS = 2_000


async def follow_elsewhere(app: App, session: str, last: int) -> None:
    """Publishes the rows that another process writes to the session, until that process is done or gone."""
    while True:
        runs = is_elsewhere(app, session)
        for row in await asyncio.to_thread(app.store.log.events, session, after=last):
            app.writer.publish(row, foreign=True)
            last = row.seq
        if not runs:
            return
        await asyncio.sleep(LOG_POLL_INTERVAL_S)


def cursor_at_end(app: App, session: str) -> SessionCursor:
    """Returns a cursor after the last row of a session."""
    return SessionCursor(app, session, seq=app.store.sessions.find(session).head)


def show_summary(app: App, view: ChatView, screen: ChatScreen) -> bool:
    """Shows the end of the conversation. Returns whether something is unfinished: an open turn, or an unanswered
    message.
    """
    rows, is_whole = _last_rows(app, view.session)
    settled, open_rows = _split_at_last_end(rows)
    if not is_whole:
        note = f"{screen.marks.runs} earlier messages: /history 50"
        screen.line(screen.style.dim(note))
    replay([app.envelope(row) for row in settled], view, screen)
    runs = is_elsewhere(app, view.session)
    for row in open_rows:
        if runs or not isinstance(
            row.event, ApprovalRequested | QuestionAsked
        ):  # it is asked again
            view.on_event(app.envelope(row))
    return bool(open_rows)


def _last_rows(app: App, session: str) -> tuple[list[Row], bool]:
    """Returns the last rows without undone turns, enough for some screens, and whether that is all of them."""
    end = app.store.sessions.find(session).head
    taken_back = UndoneRows()
    rows: list[Row] = []
    while end > 0 and not _is_enough(rows):
        start = max(0, end - _SUMMARY_ROWS_PER_READ)
        page = app.store.log.events(session, after=start, limit=end - start)
        rows = [
            row
            for row in reversed(page)
            if not taken_back.covers(row.seq, row.event, row.turn)
        ][::-1] + rows
        end = start
    if end == 0:
        return rows, True
    first = next(
        (
            index
            for index, row in enumerate(rows)
            if isinstance(row.event, UserMessage) and row.event.origin == "user"
        ),
        0,
    )
    return rows[first:], False


def _is_enough(rows: Sequence[Row]) -> bool:
    """Returns whether rows fill some screens: several turns, or very many rows."""
    turns = sum(isinstance(row.event, TurnEnded) for row in rows)
    return turns >= _SHOWN_TURNS or len(rows) >= _MAX_ROWS


def _split_at_last_end(rows: Sequence[Row]) -> tuple[Sequence[Row], Sequence[Row]]:
    """Splits rows into finished ones and those after the last turn's end that still need an answer."""
    ends = [index for index, row in enumerate(rows) if isinstance(row.event, TurnEnded)]
    start = ends[-1] + 1 if ends else 0
    wants = any(
        isinstance(row.event, TurnStarted | UserMessage) for row in rows[start:]
    )
    if wants:
        return (rows[:start], rows[start:])
    return (rows, ())
