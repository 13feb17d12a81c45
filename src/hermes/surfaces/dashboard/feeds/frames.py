"""Batches of events as they are sent: arrays in JSON, of a bearable size."""

from collections.abc import Iterator

from hermes.surfaces.dashboard.feeds.inbox import Item

_MOST = 256 * 1024  # bytes of events in one frame, unless a single one is larger


class EncodedBatches:
    """Remembers the last batch: feeds of one pattern mostly send the same at the same moment."""

    def __init__(self) -> None:
        self._batch: list[Item] = []
        self._frames: list[bytes] = []

    def of(self, batch: list[Item]) -> list[bytes]:
        """The frames of a batch, which must not be changed afterwards."""
        if batch != self._batch:
            self._frames = [b"[" + b",".join(part) + b"]" for part in _parts(batch)]
            self._batch = batch
        return self._frames


def _parts(batch: list[Item]) -> Iterator[list[bytes]]:
    part: list[bytes] = []
    size = 0
    for item in batch:
        if size + len(item.data) > _MOST and part:
            yield part
            part, size = list[bytes](), 0
        part.append(item.data)
        size += len(item.data)
    yield part
