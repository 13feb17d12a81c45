"""The orb in the dashboard: follows the bus, publishes changes of state, and serves the state over HTTP."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from hermes_events import publish, stream, subscribe

from .orb import PATTERNS, Mood, Orb

CHANGED = "orb.changed"
_MAX_CHECK_INTERVAL_S = 5.0  # seconds between checks for expired states

router = APIRouter()
loop = asyncio.get_running_loop()
orb = Orb()
shown = [Mood()]


def look() -> None:
    """Publishes the state if it has changed."""
    mood = orb.mood(time.monotonic())
    if mood != shown[0]:
        shown[0] = mood
        publish(CHANGED, mood._asdict())


def take(event: dict[str, Any]) -> None:
    orb.take(event, time.monotonic())
    look()


async def forget() -> None:
    """Updates the state when one expires."""
    while True:
        left = orb.until(time.monotonic())
        await asyncio.sleep(
            _MAX_CHECK_INTERVAL_S
            if left is None
            else min(left + 0.1, _MAX_CHECK_INTERVAL_S)
        )
        look()


for pattern in PATTERNS:
    # Events are published on any thread; the orb belongs to this loop.
    subscribe(pattern, lambda event: loop.call_soon_threadsafe(take, event))
tasks = [loop.create_task(forget())]  # they end with the plugin


@router.get("/state")
def state() -> dict[str, Any]:
    """Returns what Hermes is doing right now."""
    return shown[0]._asdict()


@router.get("/states")
async def states() -> StreamingResponse:
    """Streams the state as server-sent events: now, and whenever it changes."""

    async def told() -> AsyncIterator[str]:
        async with stream(CHANGED) as changes:
            yield f"data: {json.dumps(shown[0]._asdict())}\n\n"
            async for _ in changes:
                yield f"data: {json.dumps(shown[0]._asdict())}\n\n"

    return StreamingResponse(told(), media_type="text/event-stream")
