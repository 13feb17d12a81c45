"""Interrupts the running turn, even if the request comes before the turn has started."""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hermes.app import App
from hermes.errors import StoreError

if TYPE_CHECKING:
    from hermes.app.session_service import SessionService

_REPEAT_INTERRUPT_S = (
    0.1  # the request is repeated, because it may arrive before the turn listens
)


class Interrupts:
    """Follows the turns of one session, and interrupts the current or next one."""

    def __init__(self, service: "SessionService", session: str) -> None:
        self._service = service
        self._session = session
        self._begun = asyncio.Event()
        self._over = asyncio.Event()
        self._stopping: asyncio.Task[None] | None = None
        self._presses = 0

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Records a turn's start and end."""
        if event.get("session_id") != self._session:
            return
        if event["type"] == "agent.turn.started":
            self._over.clear()
            self._begun.set()
        elif event["type"] == "agent.turn.ended":
            self._begun.clear()
            self._over.set()
            self._presses = 0

    def press(self) -> int:
        """Interrupts the turn on the first press. Returns the number of presses since the last turn
        ended.
        """
        self._presses += 1
        if self._stopping is None or self._stopping.done():
            self._stopping = asyncio.ensure_future(self._stop())
        return self._presses

    def forget(self) -> None:
        """Drops a request that no turn received, so that it does not hit a later one."""
        self.close()
        self._presses = 0

    def close(self) -> None:
        """Stops repeating the request."""
        if self._stopping is not None:
            self._stopping.cancel()

    async def _stop(self) -> None:
        await self._begun.wait()
        while not self._over.is_set():
            await self._service.interrupt(self._session, by="cli")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), _REPEAT_INTERRUPT_S)


def is_elsewhere(app: App, session: str) -> bool:
    """Returns whether another process runs the session."""
    try:
        held = app.store.leases.holder(session)
    except StoreError:
        return False
    return held is not None and held.owner != app.store.leases.owner
