"""The events of one session in the order of its log, each once. Rows that another process wrote are fetched."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

Event: TypeAlias = Mapping[str, Any]


class InOrder:
    """Between the bus and whoever shows a session: fills in what the bus did not bring, leaves out what came twice."""

    def __init__(
        self, session: str, head: int, read: Callable[[int], Sequence[Event]]
    ) -> None:
        self._session = session
        self._read = read
        self.head = head
        """The last row that was given out."""

    def take(self, event: Event) -> Iterator[Event]:
        """What is to be shown now that this event came. An event that is not in a log goes through as it is."""
        seq = event.get("seq")
        if seq is None or event.get("session_id") != self._session:
            yield event
            return
        if seq > self.head + 1:
            yield from self.missed(before=seq)
        if seq > self.head:
            self.head = seq
            yield event

    def missed(self, *, before: int | None = None) -> Iterator[Event]:
        """The rows of the log that did not come, oldest first."""
        for event in self._read(self.head):
            if before is not None and event["seq"] >= before:
                return
            self.head = event["seq"]
            yield event
