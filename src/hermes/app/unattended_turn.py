"""Answers a message in an unattended session, within a limited time: jobs, cards and rows of a batch."""

import asyncio

from hermes.app.session_service import SessionService
from hermes.schema.events import TurnEnded

_STOP_TIMEOUT_S = 30.0  # after the time was up


async def answer_within(
    service: SessionService,
    session: str,
    text: str | None,
    timeout_s: float,
    *,
    by: str,
) -> tuple[TurnEnded | None, bool]:
    """Submits a message and waits until the session is idle. When the time is up, it is interrupted in the name of `by`.

    Without a text, messages that wait already are answered.

    Returns the end of the turn, and whether it came in time. Raises what stopped the session.
    """
    if text is None:
        await service.resume(session)
    else:
        await service.submit(session, text)
    working = asyncio.ensure_future(service.idle(session))
    try:
        done, _ = await asyncio.wait({working}, timeout=timeout_s)
        if done:
            return await working, True
        await service.interrupt(session, by=by)
        await asyncio.wait({working}, timeout=_STOP_TIMEOUT_S)
        return None, False
    finally:
        working.cancel()
