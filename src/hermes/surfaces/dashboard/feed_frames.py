"""The feed of the dashboard, and the frames in which it is sent: JSON arrays of events."""

from collections.abc import Iterator

from hermes.app.app import EventPublisher
from hermes.app.feed import Feed
from hermes.app.feed_inbox import FeedItem

_MAX_FRAME_BYTES = 256 * 1024  # unless a single event is larger
_STALL_TIMEOUT_S = 10.0
_REQUEST_HEAD_TIMEOUT_S = 30.0


class DashboardFeed(Feed):
    """A feed whose readers are connections, with their timeouts."""

    def __init__(self, bus: EventPublisher) -> None:
        super().__init__(bus)
        self.closed_slow = 0
        """How many connections were closed because their peer took nothing."""
        self.stall_timeout_s = _STALL_TIMEOUT_S
        """Seconds in which a peer must take something."""
        self.request_timeout_s = _REQUEST_HEAD_TIMEOUT_S
        """Seconds in which the head of a request must arrive."""


class EncodedBatches:
    """Encodes batches as frames. Keeps the last one: readers of one pattern mostly send the same batch."""

    def __init__(self) -> None:
        self._batch: list[FeedItem] = []
        self._frames: list[bytes] = []

    def of(self, batch: list[FeedItem]) -> list[bytes]:
        """The frames of a batch, which must not be changed afterwards."""
        if batch != self._batch:
            self._frames = [b"[" + b",".join(part) + b"]" for part in _parts(batch)]
            self._batch = batch
        return self._frames


def _parts(batch: list[FeedItem]) -> Iterator[list[bytes]]:
    part: list[bytes] = []
    size = 0
    for item in batch:
        if size + len(item.data) > _MAX_FRAME_BYTES and part:
            yield part
            part, size = list[bytes](), 0
        part.append(item.data)
        size += len(item.data)
    yield part
