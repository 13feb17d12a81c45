"""Ends turns whose process is gone, for sessions that somebody is looking at. The text shown so far is kept, running
calls get an unknown outcome, and open requests can still be answered."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable

from hermes.app.session_service import SessionService
from hermes.errors import HermesError

log = logging.getLogger("hermes.app")

_LOOK_S = 1.0
_RETRY_S = 60.0  # when a turn could not be ended


class DeadTurns:
    """Runs as a task of a surface that shows sessions. `sessions` returns those that somebody is looking at now."""

    def __init__(
        self,
        sessions: Callable[[], Iterable[str]],
        service: Callable[[], SessionService],
    ) -> None:
        self._sessions = sessions
        self._service = service
        self._failed: dict[str, float] = {}  # when, by session

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            for session in list(self._sessions()):
                if time.monotonic() - self._failed.get(session, -_RETRY_S) >= _RETRY_S:
                    await self._settle(session)
            await asyncio.sleep(_LOOK_S)

    async def _settle(self, session: str) -> None:
        self._failed.pop(session, None)
        try:
            await self._service().settle(session)
        except HermesError as error:
            log.warning(
                "could not end the turn of session %s, whose process is gone: %s",
                session,
                error,
            )
            self._failed[session] = time.monotonic()
        except Exception:  # the boundary of this task: a fault in one session must not end the watch over the others
            log.exception(
                "a turn of session %s has no process any more and could not be ended",
                session,
            )
            self._failed[session] = time.monotonic()
