"""The position up to which the events of each publisher have arrived.

It is kept in a memory-mapped file of fixed size, so that a dashboard that was killed knows which events it has
published, and does not publish them again.
"""

import hashlib
import mmap
import os
import struct
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from hermes.primitives.files import open_private
from hermes.settings import Home
from hermes.surfaces.dashboard.credentials import dashboard_folder

MAX_PUBLISHERS = 1024
_SLOT = struct.Struct("=16sQQQ")  # publisher, when it was last heard of, epoch, seq
_PLACE = struct.Struct("=QQQ")
_WORDS = _SLOT.size // 8  # numbers in a slot, the seq being the last

Place: TypeAlias = tuple[int, int]
"""`(epoch, seq)`; `(0, 0)` for none."""


class PublisherCursors:
    """The positions of publishers. A new publisher replaces the one that was silent for longest."""

    def __init__(self, home: Home) -> None:
        home.ensure(dashboard_folder(home))
        path = dashboard_folder(home) / "arrived"
        handle = open_private(path, os.O_RDWR | os.O_CREAT)
        try:
            os.ftruncate(handle, MAX_PUBLISHERS * _SLOT.size)
            self._map = mmap.mmap(handle, MAX_PUBLISHERS * _SLOT.size)
        finally:
            os.close(handle)
        self._words = memoryview(self._map).cast("Q")
        found = [
            (*_SLOT.unpack_from(self._map, slot * _SLOT.size), slot)
            for slot in range(MAX_PUBLISHERS)
        ]
        self._turn = max(turn for _, turn, *_ in found)
        self._order = {slot: turn for _, turn, _, _, slot in found}
        self._slots = {name: slot for name, turn, _, _, slot in found if turn}
        self._known: dict[
            str, int
        ] = {}  # slots by the names of publishers that were asked for

    def of(self, publisher: str) -> Place:
        """The position up to which everything has arrived."""
        slot = self._known.get(publisher)
        if slot is None:
            slot = self._slots.get(_key(publisher))
            if slot is None:
                return (0, 0)
            self._known[publisher] = slot
        end = (slot + 1) * _WORDS
        return (self._words[end - 2], self._words[end - 1])

    def set(self, publisher: str, place: Place) -> None:
        """Sets the position up to which everything was published."""
        slot = self._known.get(publisher)
        if slot is None:
            slot = self._known[publisher] = self._slot(publisher)
        end = (slot + 1) * _WORDS
        if (
            self._order[slot] == self._turn and self._words[end - 2] == place[0]
        ):  # nearly always
            self._words[end - 1] = place[1]
            return
        self._turn += 1
        self._order[slot] = self._turn
        _PLACE.pack_into(self._map, slot * _SLOT.size + 16, self._turn, *place)

    def counter(self, publisher: str, place: Place) -> Callable[[int], None]:
        """Sets a position, and returns a cheap function that advances it."""
        self.set(publisher, place)
        return partial(
            self._words.__setitem__, (self._known[publisher] + 1) * _WORDS - 1
        )

    def close(self) -> None:
        self._words.release()
        self._map.close()

    def _slot(self, publisher: str) -> int:
        key = _key(publisher)
        slot = self._slots.get(key)
        if slot is None:
            slot = min(self._order, key=self._order.__getitem__)
            self._slots = {
                name: other for name, other in self._slots.items() if other != slot
            } | {key: slot}
            self._known = {
                name: other for name, other in self._known.items() if other != slot
            }
            _SLOT.pack_into(self._map, slot * _SLOT.size, key, 0, 0, 0)
        return slot


def _key(publisher: str) -> bytes:
    return hashlib.sha256(publisher.encode(errors="replace")).digest()[:16]
