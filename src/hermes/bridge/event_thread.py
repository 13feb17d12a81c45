"""Handles events in a separate thread, so that no publisher waits."""

import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hermes.bridge import EventSource

_MAX_QUEUED_EVENTS = 10_000


class EventThread:
    """Runs `run` in a thread, with the events of some topics as they arrive. `accepts` says which of them it wants."""

    def __init__(
        self,
        bus: EventSource,
        topics: Sequence[str],
        run: Callable[[Iterator[Mapping[str, Any]]], None],
        *,
        name: str,
        accepts: Callable[[Mapping[str, Any]], bool] = lambda _: True,
    ) -> None:
        self.dropped = 0
        """How many events arrived faster than they were handled."""
        self._bus = bus
        self._accepts = accepts
        self._queue: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()
        self._handles = [bus.subscribe(topic, self._on_event) for topic in topics]
        self._run = run
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def stop(self, grace_s: float) -> None:
        """Ends the stream of events, and waits a limited time for the thread."""
        self._unsubscribe()
        self._queue.put(None)
        self._thread.join(grace_s)

    def _work(self) -> None:
        try:
            self._run(self._events())
        finally:
            self._unsubscribe()

    def _unsubscribe(self) -> None:
        for handle in self._handles:
            self._bus.unsubscribe(handle)

    def _on_event(self, event: Mapping[str, Any]) -> None:
        """Runs in the publisher's thread."""
        if not self._accepts(event):
            return
        if self._queue.qsize() >= _MAX_QUEUED_EVENTS:
            self.dropped += 1
        else:
            self._queue.put(event)

    def _events(self) -> Iterator[Mapping[str, Any]]:
        while (event := self._queue.get()) is not None:
            yield event
