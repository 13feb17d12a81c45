"""What waits for one consumer of a feed: bounded, so that a slow one costs nobody else anything."""

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

LIMIT = 1024 * 1024  # bytes that wait


class Item(NamedTuple):
    """An event as it is sent. `seq` is 0 for what has no cursor; an empty `data` only says: look into the log."""

    data: bytes
    epoch: int = 0
    seq: int = 0
    binary: bool = False


LOOK = Item(b"")


class Inbox:
    """A queue that, when it is full, lets go of everything and counts what came since."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._items: list[Item] = []
        self._size = 0
        self._news = asyncio.Event()
        self.dropped = 0
        self.lost = 0
        """How many were ever dropped."""
        self.is_over = False

    def put(self, item: Item) -> None:
        """Takes an event, or counts it."""
        size = self._size + len(item.data)
        if self.dropped or size > self._limit:
            self._let_go()
            self._drop()
        else:
            self._size = size
            self._items.append(item)
            if len(self._items) > 1:  # whoever waits was told of the first
                return
        self._news.set()

    def finish(self) -> None:
        """Nothing will follow."""
        self.is_over = True
        self._news.set()

    async def wait(self) -> None:
        """Until there is something to take."""
        await self._news.wait()

    def take(self) -> tuple[list[Item], int]:
        """What waits, and how many events are missing before what comes next."""
        items, dropped = self._items, self.dropped
        self._items = list[Item]()
        self._size = self.dropped = 0
        if not self.is_over:
            self._news.clear()
        return items, dropped

    def _let_go(self) -> None:
        for _ in self._items:
            self._drop()
        self._items.clear()
        self._size = 0

    def _drop(self) -> None:
        self.dropped += 1
        self.lost += 1


def cursor_of(event: Mapping[str, Any]) -> tuple[int, int]:
    """`(epoch, seq)` of a durable event, `(0, 0)` of any other."""
    epoch, seq = event.get("epoch"), event.get("seq")
    return (epoch, seq) if isinstance(epoch, int) and isinstance(seq, int) else (0, 0)
