"""Stopping the turn that runs, however early the wish comes."""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

from hermes.app import App
from hermes.app.session_service import SessionService
from hermes.errors import StoreError

_REPEAT_INTERRUPT_S = 0.1  # seconds until the request is repeated: it may have come just before the turn could hear it


class Interrupts:
    """Follows the turns of one session, and stops the one that runs or is about to."""

    def __init__(self, service: SessionService, session: str) -> None:
        self._service = service
        self._session = session
        self._begun = asyncio.Event()
        self._over = asyncio.Event()
        self._stopping: asyncio.Task[None] | None = None
        self._presses = 0

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Takes notice of a turn's beginning and end."""
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
        """Stops the turn at the first press. Returns how many there were since the last turn ended."""
        self._presses += 1
        if self._stopping is None or self._stopping.done():
            self._stopping = asyncio.ensure_future(self._stop())
        return self._presses

    def forget(self) -> None:
        """Nothing runs: a wish that nobody heard is not for a later turn."""
        self.close()
        self._presses = 0

    def close(self) -> None:
        """Stops nothing any more."""
        if self._stopping is not None:
            self._stopping.cancel()

    async def _stop(self) -> None:
        await self._begun.wait()
        while not self._over.is_set():
            await self._service.interrupt(self._session, by="cli")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), _REPEAT_INTERRUPT_S)


def is_elsewhere(app: App, session: str) -> bool:
    """Whether another process runs the session now."""
    try:
        held = app.store.leases.holder(session)
    except StoreError:
        return False
    return held is not None and held.owner != app.store.leases.owner
