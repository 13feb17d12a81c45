"""Reading the bus from inside an event loop: what a session publishes, on the loop's own thread."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from hermes.events import default_bus

See: TypeAlias = Callable[[Mapping[str, Any]], None]


@contextmanager
def watched(see: See, pattern: str = "agent.**") -> Iterator[None]:
    """While inside, `see` is told of every event that matches, in the thread of the running loop."""
    loop, home = asyncio.get_running_loop(), threading.get_ident()

    def tell(event: Mapping[str, Any]) -> None:
        if threading.get_ident() == home:
            see(event)
        else:
            loop.call_soon_threadsafe(see, event)

    with subscribed(tell, pattern):
        yield


@contextmanager
def subscribed(see: See, pattern: str) -> Iterator[None]:
    """While inside, `see` is told of every event that matches, at once, in whichever thread published it."""
    bus = default_bus()
    handle = bus.subscribe(pattern, see)
    try:
        yield
    finally:
        bus.unsubscribe(handle)
