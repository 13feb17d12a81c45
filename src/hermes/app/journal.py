"""A session's log as its runner sees it: writes rows, keeps the history, and notices what other processes write."""

import asyncio
from collections.abc import Callable

from hermes.core.history import History
from hermes.schema.event import Event
from hermes.store import Store
from hermes.store.leases import Lease
from hermes.store.row import Row


def read_history(store: Store, session: str) -> History:
    """What a session's log says, read once."""
    history = History()
    for row in store.log.every_event(session):
        history.add(row.seq, row.event, row.turn)
    return history


class SessionJournal:
    """Implements the `Journal` port for one session that this process runs."""

    def __init__(
        self, store: Store, session: str, lease: Lease, *, publish: Callable[[Row], None], show: Callable[[Event], None]
    ) -> None:
        self._store = store
        self._publish = publish
        self._show = show
        self._mine: set[int] = set()
        self._read_up_to = 0
        self._writing: set[asyncio.Future[tuple[int, ...]]] = set()
        self.session = session
        self.lease = lease
        self.turn = ""
        self.epoch = 0
        self.history = History()

    def load(self) -> None:
        """Reads the whole log once."""
        for row in self._store.log.every_event(self.session):
            self.history.add(row.seq, row.event, row.turn)
            self._read_up_to = row.seq
            self.epoch = row.epoch

    async def record(self, *events: Event) -> tuple[int, ...]:
        """Writes, then publishes. An interrupt while it waits does not undo or tear it."""
        writing = asyncio.ensure_future(self._record(events))
        self._writing.add(writing)
        writing.add_done_callback(self._writing.discard)
        return await asyncio.shield(writing)

    async def flush(self) -> None:
        """Waits until everything that was given to `record` is written, also by those who no longer wait for it."""
        while self._writing:
            await asyncio.wait(set(self._writing))

    def show(self, event: Event) -> None:
        """Publishes a transient event."""
        self._show(event)

    def foreign(self) -> list[Row]:
        """Rows that other processes added since the last look; messages among them are taken into the history."""
        rows = self._store.log.events(self.session, after=self._read_up_to)
        others = [row for row in rows if row.seq not in self._mine]
        if rows:
            self._read_up_to = rows[-1].seq
            self._mine = {seq for seq in self._mine if seq > self._read_up_to}
        for row in others:
            self.history.add(row.seq, row.event, row.turn)
        return others

    async def _record(self, events: tuple[Event, ...]) -> tuple[int, ...]:
        future = self._store.log.submit(self.session, *events, turn=self.turn, lease=self.lease)
        rows = await asyncio.wrap_future(future)
        for row, event in zip(rows, events, strict=True):
            self._mine.add(row.seq)
            self.history.add(row.seq, event, row.turn)
        for row in rows:
            self._publish(row)
        return tuple(row.seq for row in rows)
