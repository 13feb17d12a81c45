"""The queue between a feed and one of its readers. It is bounded, so that a slow reader costs the others nothing."""

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

MAX_INBOX_BYTES = 1024 * 1024

Envelope: TypeAlias = Mapping[str, Any]


class FeedItem(NamedTuple):
    """An event on its way to a reader. `seq` is 0 for an event without a cursor."""

    data: bytes
    epoch: int = 0
    seq: int = 0
    binary: bool = False
    event: Envelope = MappingProxyType({})


READ_LOG = FeedItem(b"")
"""Tells a reader to read the log."""


class Inbox:
    """The bounded queue of one reader. When it overflows it drops its items and counts what it dropped."""

    def __init__(self, max_bytes: int = MAX_INBOX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._items: list[FeedItem] = []
        self._bytes = 0
        self._has_items = asyncio.Event()
        self.dropped = 0
        """How many items were dropped since the last `take`."""
        self.total_dropped = 0
        self.is_closed = False

    def put(self, item: FeedItem) -> None:
        """Adds an item, or counts it as dropped."""
        size = self._bytes + len(item.data)
        if self.dropped or size > self._max_bytes:
            lost = len(self._items) + 1
            self._items.clear()
            self._bytes = 0
            self.dropped += lost
            self.total_dropped += lost
        else:
            self._bytes = size
            self._items.append(item)
            if len(self._items) > 1:  # the reader was woken for the first one
                return
        self._has_items.set()

    def close(self) -> None:
        """Tells the reader that nothing will follow."""
        self.is_closed = True
        self._has_items.set()

    async def wait(self) -> None:
        """Waits until there is something to take."""
        await self._has_items.wait()

    def take(self) -> tuple[list[FeedItem], int]:
        """Returns the waiting items, and how many events are missing before the next one."""
        items, dropped = self._items, self.dropped
        self._items = list[FeedItem]()
        self._bytes = self.dropped = 0
        if not self.is_closed:
            self._has_items.clear()
        return items, dropped


def cursor_of(event: Envelope) -> tuple[int, int]:
    """The `(epoch, seq)` of a durable event; `(0, 0)` of any other."""
    epoch, seq = event.get("epoch"), event.get("seq")
    if isinstance(epoch, int) and isinstance(seq, int):
        return (epoch, seq)
    return (0, 0)
