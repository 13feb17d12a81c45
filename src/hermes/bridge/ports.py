"""What the ways out of a process need of the bus."""

from collections.abc import Callable
from typing import Any, Protocol


class EventSource(Protocol):
    """Lets events be heard."""

    def subscribe(self, pattern: str, callback: Callable[[Any], Any], /) -> Any: ...

    def unsubscribe(self, handle: Any, /) -> bool: ...
