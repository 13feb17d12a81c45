"""Sends events out of this process: to a dashboard, to readers in a terminal, to webhooks and as traces."""

from collections.abc import Callable
from typing import Any, Protocol


class EventSource(Protocol):
    """The part of the bus that delivers events."""

    def subscribe(self, pattern: str, callback: Callable[[Any], Any], /) -> Any: ...

    def unsubscribe(self, handle: Any, /) -> bool: ...
