"""Where a turn runs: here, or on a worker. A gateway or dashboard leaves a turn to the workers if one of them can
run that session, and if no model or mode was chosen for the session in this process alone."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.errors import StoreError

if TYPE_CHECKING:
    from hermes.app.app import App

WORKER_ROLE = "worker:"
"""The prefix of the names of workers' roles."""
LEAVE_S = 5.0
"""How long a session is left to workers that begin nothing, before its own process looks whether one has taken it."""
MAX_LEAVE_S = 60.0
"""The same for workers that are busy with other sessions."""
_PRESENCE_MAX_AGE_S = 2.0


def place_of(app: "App", folder: str) -> str:
    """The machine that a folder belongs to; empty for one that is the same everywhere, and for none."""
    settings = app.settings.worker
    if not folder or not app.settings.store.url:
        return ""
    path = Path(folder)
    for shared in settings.places:
        root = Path(shared).expanduser()
        if path == root or root in path.parents:
            return ""
    return this_place(app)


def this_place(app: "App") -> str:
    """The name of this machine."""
    import socket

    return app.settings.worker.place or socket.gethostname()


class TurnPlacement:
    """Decides for one process. `is_chosen_here` tells whether something about a session is known to it alone."""

    def __init__(self, app: "App", is_chosen_here: Callable[[str], bool]) -> None:
        self._app = app
        self._is_chosen_here = is_chosen_here
        self._places: frozenset[str] = frozenset()
        self._looked = -_PRESENCE_MAX_AGE_S
        self._begun_at = float("-inf")
        self._looking = asyncio.Lock()

    async def leaves(self, session: str) -> bool:
        """Whether a message of this session is left to a worker."""
        if not self._app.settings.store.url or self._is_chosen_here(session):
            return False
        try:
            await self._look()
            if not self._places:
                return False
            origin = await asyncio.to_thread(self._app.store.sessions.origin, session)
        except StoreError:
            return False
        if origin.kind == "child":
            return False
        return not origin.place or origin.place in self._places

    def offered(self, session: str) -> None:
        """Tells one worker that a message of the session is in the queue."""
        exporters = self._app.exporters
        if exporters is None or exporters.link is None:
            return
        from hermes.bridge.work_stream import offer

        offer(exporters.link, session, self._app.store.sessions.origin(session).place)

    def note_begun(self, now: float) -> None:
        """Notes that a worker has begun a turn of any session."""
        self._begun_at = now

    def is_due_here(self, left_at: float, now: float) -> bool:
        """Whether a session that was left to workers at `left_at` is no longer left to them."""
        waited_s = now - max(left_at, self._begun_at)
        return waited_s >= LEAVE_S or now - left_at >= MAX_LEAVE_S

    async def _look(self) -> None:
        async with self._looking:
            if time.monotonic() - self._looked < _PRESENCE_MAX_AGE_S:
                return
            held = await asyncio.to_thread(self._app.store.roles.held, WORKER_ROLE)
            places = (
                one.facts.get("place") for one in held if not one.facts.get("draining")
            )
            self._places = frozenset(one for one in places if isinstance(one, str))
            self._looked = time.monotonic()
