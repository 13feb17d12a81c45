"""Spools of processes that have ended. Another process takes them over and sends them."""

import contextlib
from typing import NamedTuple

from hermes.bridge.outbox import Outbox, numbered
from hermes.bridge.spool import Spool, SpoolTaken, left_behind

_MAX_OPEN_SPOOLS = 16


class _Left(NamedTuple):
    epoch: int
    spool: Spool


class OrphanSpools:
    """The spools that this process took over, by publisher."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._left: dict[str, _Left] = {}
        self._more = False
        self.torn = 0
        """How many of their records are damaged."""

    @property
    def publishers(self) -> list[str]:
        return list(self._left)

    @property
    def acked(self) -> int:
        return sum(left.spool.acked for left in self._left.values())

    def adopt(self) -> None:
        """Takes over spools, a few at a time."""
        own, self._more = self._outbox.spool.folder, False
        for folder in left_behind(self._outbox.place):
            epoch, _, publisher = folder.name.partition("-")
            if folder == own or publisher in self._left or not epoch.isdecimal():
                continue
            if len(self._left) >= _MAX_OPEN_SPOOLS:
                self._more = True
                return
            with contextlib.suppress(SpoolTaken, OSError):
                self._inherit(publisher, int(epoch), Spool(folder))

    def frames(self, room: int) -> list[bytes]:
        """Returns the frames to send next, about `room` bytes."""
        if self._more and not self._left:
            self.adopt()
        for publisher, (epoch, spool) in self._left.items():
            if records := spool.read(room):
                return [
                    numbered(data, publisher, epoch, number) for number, data in records
                ]
        return []

    def rewind(self) -> None:
        """Sends unacknowledged records again."""
        for left in self._left.values():
            left.spool.rewind()

    def ack(self, publisher: str, epoch: int, number: int) -> None:
        """Acknowledges the records of a publisher. Drops a spool that is empty afterwards."""
        left = self._left.get(publisher)
        if left is None or left.epoch != epoch:
            return
        left.spool.ack(number)
        if not left.spool.waiting:
            left.spool.close()
            del self._left[publisher]

    def close(self) -> None:
        """Closes the spools. Unsent records stay on disk."""
        for left in self._left.values():
            left.spool.close()

    def _inherit(self, publisher: str, epoch: int, spool: Spool) -> None:
        self.torn += spool.torn
        self._outbox.lose(spool.torn)
        if spool.waiting:
            self._left[publisher] = _Left(epoch, spool)
        else:
            spool.close()
