"""Subscribes to the bus from inside an event loop."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from hermes.events import default_bus

EventHandler: TypeAlias = Callable[[Mapping[str, Any]], None]


@contextmanager
def events_in_loop(handle: EventHandler, pattern: str = "agent.**") -> Iterator[None]:
    """Calls `handle` in the loop's thread for every matching event, while the context is open."""
    loop, home = asyncio.get_running_loop(), threading.get_ident()

    def forward(event: Mapping[str, Any]) -> None:
        if threading.get_ident() == home:
            handle(event)
        else:
            loop.call_soon_threadsafe(handle, event)

    with subscribed(forward, pattern):
        yield


@contextmanager
def subscribed(handle: EventHandler, pattern: str) -> Iterator[None]:
    """Calls `handle` at once for every matching event, in the publisher's thread, while the context
    is open.
    """
    bus = default_bus()
    subscription = bus.subscribe(pattern, handle)
    try:
        yield
    finally:
        bus.unsubscribe(subscription)
