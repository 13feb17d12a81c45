"""Ends turns whose process is gone, in sessions that somebody watches. The text shown so far is kept, running calls get
an unknown outcome, open requests can still be answered, and messages that were queued are answered."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable

from hermes.app.session_service import SessionService
from hermes.errors import HermesError

log = logging.getLogger("hermes.app")

_DEAD_TURN_POLL_INTERVAL_S = 1.0
_DEAD_TURN_RETRY_S = 60.0  # after a turn could not be ended


class DeadTurns:
    """Runs as a task of a surface that shows sessions. `sessions` returns those that somebody watches now."""

    def __init__(
        self,
        sessions: Callable[[], Iterable[str]],
        service: Callable[[], SessionService],
    ) -> None:
        self._sessions = sessions
        self._service = service
        self._failed: dict[str, float] = {}  # when, by session

    async def run(self) -> None:
        """Runs until it is cancelled."""
        while True:
            for session in list(self._sessions()):
                if (
                    time.monotonic() - self._failed.get(session, -_DEAD_TURN_RETRY_S)
                    >= _DEAD_TURN_RETRY_S
                ):
                    await self._end_turn(session)
            await asyncio.sleep(_DEAD_TURN_POLL_INTERVAL_S)

    async def _end_turn(self, session: str) -> None:
        self._failed.pop(session, None)
        try:
            service = self._service()
            if await service.end_dead_turn(session):
                await service.answer_queued(session)
        except HermesError as error:
            log.warning(
                "could not end the turn of session %s, whose process is gone: %s",
                session,
                error,
            )
            self._failed[session] = time.monotonic()
        except (
            Exception
        ):  # the boundary of this task: one session must not affect the others
            log.exception(
                "the turn of session %s, whose process is gone, could not be ended",
                session,
            )
            self._failed[session] = time.monotonic()
