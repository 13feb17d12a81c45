"""Follows a resumed session: from its last row on, and with a turn that runs in another process or was cut off."""

import asyncio
from collections.abc import Sequence

from hermes.app import App
from hermes.app.feed import SessionCursor
from hermes.app.log_follower import LOG_POLL_INTERVAL_S
from hermes.schema.events import ApprovalRequested, QuestionAsked
from hermes.store.log_row import Row
from hermes.surfaces.terminal.interrupts import is_elsewhere
from hermes.surfaces.tui.session_view import ChatView


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


def show_unfinished(app: App, view: ChatView, rows: Sequence[Row]) -> None:
    """Shows an open turn, or an unanswered message. What it asked is asked again, unless it runs elsewhere."""
    runs = is_elsewhere(app, view.session)
    for row in rows:
        if runs or not isinstance(row.event, ApprovalRequested | QuestionAsked):
            view.on_event(app.envelope(row))
