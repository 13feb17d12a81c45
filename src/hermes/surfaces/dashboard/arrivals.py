"""What has arrived from each publisher, kept in a file of fixed size that outlives the process by a moment's notice: a
dashboard that was killed knows afterwards what it had published, and does not publish it again."""

import hashlib
import mmap
import os
import struct
from typing import TypeAlias

from hermes.settings import Home
from hermes.surfaces.dashboard.gate.keys import folder

SLOTS = 1024  # publishers that are remembered
_SLOT = struct.Struct("<16sQQQ")  # publisher, when it was last heard of, epoch, seq
_PLACE = struct.Struct("<QQQ")

Place: TypeAlias = tuple[int, int]
"""`(epoch, seq)`; `(0, 0)` for none."""


class Arrivals:
    """The places of publishers. The one that was silent for longest gives way to a new one."""

    def __init__(self, home: Home) -> None:
        home.ensure(folder(home))
        path = folder(home) / "arrived"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.ftruncate(handle, SLOTS * _SLOT.size)
            self._map = mmap.mmap(handle, SLOTS * _SLOT.size)
        finally:
            os.close(handle)
        self._places: dict[str, tuple[int, Place]] = {}
        found = [(*_SLOT.unpack_from(self._map, slot * _SLOT.size), slot) for slot in range(SLOTS)]
        self._turn = max(turn for _, turn, *_ in found)
        self._order = {slot: turn for _, turn, _, _, slot in found}
        self._slots = {name: slot for name, turn, _, _, slot in found if turn}

    def of(self, publisher: str) -> Place:
        """The place up to which everything has arrived."""
        known = self._places.get(publisher)
        if known is not None:
            return known[1]
        slot = self._slots.get(_key(publisher))
        if slot is None:
            return (0, 0)
        _, epoch, seq = _PLACE.unpack_from(self._map, slot * _SLOT.size + 16)
        self._places[publisher] = (slot, (epoch, seq))
        return (epoch, seq)

    def set(self, publisher: str, place: Place) -> None:
        """Notes that everything up to there was published."""
        known = self._places.get(publisher)
        slot = known[0] if known is not None else self._slot(publisher)
        if known is None or self._order[slot] != self._turn:
            self._turn += 1
            self._order[slot] = self._turn
        self._places[publisher] = (slot, place)
        _PLACE.pack_into(self._map, slot * _SLOT.size + 16, self._order[slot], *place)

    def close(self) -> None:
        self._map.close()

    def _slot(self, publisher: str) -> int:
        key = _key(publisher)
        slot = self._slots.get(key)
        if slot is None:
            slot = min(self._order, key=self._order.__getitem__)
            self._slots = {name: other for name, other in self._slots.items() if other != slot} | {key: slot}
            self._places = {name: known for name, known in self._places.items() if known[0] != slot}
            _SLOT.pack_into(self._map, slot * _SLOT.size, key, 0, 0, 0)
        return slot


def _key(publisher: str) -> bytes:
    return hashlib.sha256(publisher.encode(errors="replace")).digest()[:16]
