"""A session's log as its runner sees it: writes rows, keeps the history, and notices what other processes write."""

import asyncio
from collections.abc import Callable

from hermes.app.partial_text import PartialText
from hermes.core.history import ConversationHistory
from hermes.errors import HermesError
from hermes.schema.event import Event
from hermes.schema.events import (
    ApprovalAnswered,
    MessageDelta,
    ModelRetried,
    QuestionAnswered,
    ReplyRejected,
    TurnEnded,
    TurnStarted,
)
from hermes.schema.messages import AssistantMessage
from hermes.store import Store
from hermes.store.leases import Lease
from hermes.store.log_row import Row

UNKNOWN = "Outcome unknown: Hermes stopped during this call. It may or may not have taken effect; check before you continue."

_VOIDING = (
    AssistantMessage,
    ModelRetried,
    ReplyRejected,
    TurnEnded,
)  # what was shown is in the log now, or is void
_BEHIND = 0.005  # seconds that a noted row may wait for company


def crashed(partial: str) -> list[Event]:
    """The rows that end a turn whose process is gone: the text shown of its last reply, if any, and the end."""
    said: list[Event] = (
        [AssistantMessage(text=partial, finish="interrupted")]
        if partial.strip()
        else []
    )
    return [
        *said,
        TurnEnded(reason="crashed", detail="Everything up to then was saved."),
    ]


def read_history(store: Store, session: str) -> ConversationHistory:
    """What a session's log says, read once."""
    history = ConversationHistory()
    for row in store.log.every_event(session):
        history.add(row.seq, row.event, row.turn)
    return history


class SessionJournal:
    """Implements the `Journal` port for one session that this process runs."""

    def __init__(
        self,
        store: Store,
        session: str,
        lease: Lease,
        *,
        publish: Callable[[Row], None],
        show: Callable[[Event], None],
        partial: PartialText | None = None,
    ) -> None:
        self._store = store
        self._partial = partial
        self._replies = (
            0  # of this turn, also void ones: names the one that is being written
        )
        self._publish = publish
        self._show = show
        self._mine: set[int] = set()
        self._read_up_to = 0
        self._writing: set[asyncio.Future[tuple[int, ...]]] = set()
        self._noted: tuple[Event, ...] = ()
        self._later: asyncio.TimerHandle | None = None
        self._failure: HermesError | None = None
        self.session = session
        self.lease = lease
        self.turn = ""
        self.epoch = 0
        self.history = ConversationHistory()

    def load(self) -> None:
        """Reads the whole log once."""
        for row in self._store.log.every_event(self.session):
            self.history.add(row.seq, row.event, row.turn)
            self._count(row.event)
            self._read_up_to = row.seq
            self.epoch = row.epoch

    async def record(self, *events: Event) -> tuple[int, ...]:
        """Writes, then publishes. An interrupt while it waits does not undo or tear it."""
        if any(
            isinstance(event, (ApprovalAnswered, QuestionAnswered)) for event in events
        ):
            self._write_noted()  # apart: an answer that comes too late is refused, and takes nothing with it
        noted = self._take_noted()
        seqs = await asyncio.shield(self._write(noted, events))
        return seqs[len(noted) :]

    def note(self, *events: Event) -> None:
        """Takes rows into the history now; they are written with the next ones, or in a moment."""
        for event in events:
            self.history.add(0, event, self.turn)
        self._noted += events
        if self._later is None:
            self._later = asyncio.get_running_loop().call_later(
                _BEHIND, self._write_noted
            )

    async def settled(self) -> None:
        """Waits until everything that was recorded or noted is written, or has failed to be."""
        self._write_noted()
        while self._writing:
            await asyncio.wait(set(self._writing))

    async def flush(self) -> None:
        """As `settled`; raises what could not be written and nobody was told of."""
        await self.settled()
        if failure := self._failure:
            self._failure = None
            raise failure

    def _take_noted(self) -> tuple[Event, ...]:
        """What is noted and not written yet."""
        if self._later is not None:
            self._later.cancel()
            self._later = None
        noted, self._noted = self._noted, ()
        return noted

    def _write_noted(self) -> None:
        if noted := self._take_noted():
            self._write(noted, ()).add_done_callback(self._check)

    def _check(self, writing: "asyncio.Future[tuple[int, ...]]") -> None:
        """Keeps a failure that nobody waited for, until somebody does."""
        if not writing.cancelled() and isinstance(
            error := writing.exception(), HermesError
        ):
            self._failure = error

    def _write(
        self, noted: tuple[Event, ...], events: tuple[Event, ...]
    ) -> "asyncio.Future[tuple[int, ...]]":
        writing = asyncio.ensure_future(self._record(noted, events))
        self._writing.add(writing)
        writing.add_done_callback(self._writing.discard)
        return writing

    def show(self, event: Event) -> None:
        """Publishes a transient event; of a reply, also to a file."""
        if self._partial and isinstance(event, MessageDelta):
            self._partial.add(event.text, self._mark(self.turn))
        self._show(event)

    def close(self) -> None:
        """Called when this process stops running the session."""
        if self._partial and self.history.open_turn:
            self._partial.leave()
        elif self._partial:
            self._partial.clear()

    def partial(self) -> str:
        """The text of a reply that the vanished process of the open turn had already shown."""
        return (
            self._partial.take(self._mark(self.history.open_turn))
            if self._partial
            else ""
        )

    def drop_partial(self) -> None:
        """Deletes that text, now that the log has it."""
        if self._partial:
            self._partial.drop()

    def _mark(self, turn: str) -> str:
        return f"{turn} {self._replies}"

    def _count(self, event: Event | None) -> None:
        """Notes where a reply ends, or a turn begins or ends: what is shown from here on is another one."""
        if isinstance(event, TurnStarted):
            self._replies = 0
        elif isinstance(event, _VOIDING):
            self._replies += 1

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

    async def _record(
        self, noted: tuple[Event, ...], events: tuple[Event, ...]
    ) -> tuple[int, ...]:
        if failure := self._failure:
            self._failure = None
            raise failure
        future = self._store.log.submit(
            self.session, *noted, *events, turn=self.turn, lease=self.lease
        )
        rows = await asyncio.wrap_future(future)
        self._mine.update(row.seq for row in rows)
        for row, event in zip(rows[len(noted) :], events, strict=True):
            self.history.add(row.seq, event, row.turn)
            self._count(event)
            if self._partial and isinstance(event, _VOIDING):
                self._partial.clear()
        for row in rows:
            self._publish(row)
        return tuple(row.seq for row in rows)
