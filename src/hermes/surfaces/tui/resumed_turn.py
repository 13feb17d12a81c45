"""Follows a resumed session: from its last row on, and with a turn that runs in another process or was cut off."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeAlias

from hermes.app import App
from hermes.app.feed import SessionCursor
from hermes.app.log_follower import LOG_POLL_INTERVAL_S
from hermes.errors import HermesError
from hermes.schema.events import ApprovalRequested, QuestionAsked
from hermes.store.log_row import Row
from hermes.surfaces.terminal.interrupts import is_elsewhere
from hermes.surfaces.tui.session_view import ChatView

_IDLE_LOOK_INTERVAL_S = 1.0
SeenRows: TypeAlias = Callable[[], tuple[str, int] | None]
"""Returns a session and its last row that was shown; None while its turn is shown anyway."""


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


class NewsFromElsewhere:
    """Waits for what another process, such as the dashboard, writes to a session that is idle here."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._watch = app.store.watch()

    def close(self) -> None:
        """Ends the watch."""
        self._watch.close()

    async def wait(self, seen: SeenRows) -> None:
        """Returns when the session has rows that were not shown. Rows of this process are shown a moment later, so it
        looks twice.
        """
        while True:
            await self._watch.wait(_IDLE_LOOK_INTERVAL_S)
            if not self._watch.changed():
                continue
            if seen() is None:  # look again when the turn has ended
                self._watch.forget()
                await asyncio.sleep(_IDLE_LOOK_INTERVAL_S)
            elif await self._has_news(seen):
                await asyncio.sleep(LOG_POLL_INTERVAL_S)
                if await self._has_news(seen):
                    return

    async def _has_news(self, seen: SeenRows) -> bool:
        shown = seen()
        if shown is None:
            return False
        session, last = shown
        return await asyncio.to_thread(self._head, session) > last

    def _head(self, session: str) -> int:
        """The last row of a session; 0 if there is none."""
        try:
            return self._app.store.sessions.find(session).head
        except HermesError:
            return 0


def cursor_at_end(app: App, session: str) -> SessionCursor:
    """Returns a cursor after the last row of a session."""
    return SessionCursor(app, session, seq=app.store.sessions.find(session).head)


def show_unfinished(app: App, view: ChatView, rows: Sequence[Row]) -> None:
    """Shows an open turn, or an unanswered message. What it asked is asked again, unless it runs elsewhere."""
    runs = is_elsewhere(app, view.session)
    for row in rows:
        if runs or not isinstance(row.event, ApprovalRequested | QuestionAsked):
            view.on_event(app.envelope(row))
