"""Follows a resumed session: from its last row on, and with a turn that runs in another process or was cut off."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Self, TypeAlias

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


async def follow_other_process(app: App, session: str, last: int) -> None:
    """Publishes the rows that another process writes to the session, until that process is done or gone."""
    while True:
        runs = is_elsewhere(app, session)
        for row in await asyncio.to_thread(app.store.log.events, session, after=last):
            app.writer.publish(row, foreign=True)
            last = row.seq
        if not runs:
            return
        await asyncio.sleep(LOG_POLL_INTERVAL_S)


class OtherProcessEvents:
    """Waits for what another process, such as the dashboard, writes to a session that is idle here."""

    def __init__(self, app: App, seen: SeenRows) -> None:
        self._app = app
        self._seen = seen
        self._watch = app.store.watch()
        self._coming: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.take()
        self._watch.close()

    def coming(self) -> "asyncio.Task[None]":
        """Returns what is done when the session has rows that were not shown."""
        if self._coming is None:
            self._coming = asyncio.ensure_future(self._wait())
        return self._coming

    def take(self) -> None:
        """Waits for other rows from now on."""
        if self._coming is not None:
            self._coming.cancel()
            self._coming = None

    async def _wait(self) -> None:
        """Rows of this process are shown a moment after they are written, so it looks twice."""
        while True:
            await self._watch.wait(_IDLE_LOOK_INTERVAL_S)
            try:
                if not self._watch.changed():
                    continue
                if self._seen() is None:  # look again when the turn has ended
                    self._watch.forget()
                    await asyncio.sleep(_IDLE_LOOK_INTERVAL_S)
                elif await self._has_news():
                    await asyncio.sleep(LOG_POLL_INTERVAL_S)
                    if await self._has_news():
                        return
            except (HermesError, OSError):  # it can't be read now
                self._watch.forget()
                await asyncio.sleep(_IDLE_LOOK_INTERVAL_S)

    async def _has_news(self) -> bool:
        shown = self._seen()
        if shown is None:
            return False
        session, last = shown
        info = await asyncio.to_thread(self._app.store.sessions.find, session)
        return info.head > last


def cursor_at_end(app: App, session: str) -> SessionCursor:
    """Returns a cursor after the last row of a session."""
    return SessionCursor(app, session, seq=app.store.sessions.find(session).head)


def show_unfinished(app: App, view: ChatView, rows: Sequence[Row]) -> None:
    """Shows an open turn, or an unanswered message. What it asked is asked again, unless it runs elsewhere."""
    runs = is_elsewhere(app, view.session)
    for row in rows:
        if runs or not isinstance(row.event, ApprovalRequested | QuestionAsked):
            view.on_event(app.envelope(row))
