"""The journal of a session that this process runs: writes rows, keeps the history, and reads what others wrote."""

import asyncio
from collections.abc import Callable

from hermes.app.app import App
from hermes.app.partial_text import PartialText
from hermes.core.history import ConversationHistory
from hermes.errors import TitledAlready
from hermes.primitives.tasks import BackgroundTasks
from hermes.schema.event_base import Event
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
from hermes.text.translation import translator

t = translator(__name__)

OUTCOME_UNKNOWN = (
    "Outcome unknown: Hermes stopped during this call. "
    "It may or may not have taken effect; check before you continue."  # not translated
)

_END_OF_REPLY = (AssistantMessage, ModelRetried, ReplyRejected, TurnEnded)
"""Events after which the streamed text is in the log, or void."""
_FEW_ROWS = 200  # that are read and decoded in a moment
_WRITE_DELAY_S = 0.005  # that a noted row waits, to be written together with others


def crashed(partial: str) -> list[Event]:
    """The rows that end a turn whose process is gone: the part of the reply that was shown, if any, and the end."""
    ended = TurnEnded(
        reason="crashed", detail=t.logged("Everything up to then was saved.")
    )
    if not partial.strip():
        return [ended]
    return [AssistantMessage(text=partial, finish="interrupted"), ended]


def read_history(store: Store, session: str) -> ConversationHistory:
    """Reads the history of a session from its log."""
    history = ConversationHistory()
    for row in store.log.every_event(session):
        history.add(row.seq, row.event, row.turn)
    return history


class SessionJournal:
    """Implements the `Journal` port for one session. `on_written` is called with each row that this journal wrote."""

    def __init__(
        self,
        app: App,
        session: str,
        lease: Lease,
        *,
        partial: PartialText | None = None,
        on_written: Callable[[Row], None] | None = None,
    ) -> None:
        self._app = app
        self._partial = partial
        self._on_written = on_written
        self._replies = 0  # of this turn, also void ones: numbers the one being written
        self._own_seqs: set[int] = set()
        self._read_up_to = 0
        self._writing = BackgroundTasks("writing rows")
        self._noted: tuple[Event, ...] = ()
        self._write_timer: asyncio.TimerHandle | None = None
        self._failure: Exception | None = None
        self.session = session
        self.lease = lease
        self.turn = ""
        self.epoch = 0
        self.history = ConversationHistory()

    async def load(self) -> None:
        """Reads the whole log once."""
        rows = await self._rows()
        if rows:
            self._app.note_lineage(rows[0])
        for row in rows:
            self.history.add(row.seq, row.event, row.turn)
            self._count(row.event)
            self._read_up_to = row.seq
            self.epoch = row.epoch

    async def _rows(self) -> list[Row]:
        """All rows of the session. Those of a long one are read in a thread, as that takes a while."""
        store = self._app.store
        rows = await asyncio.wrap_future(store.log.fetch(self.session, limit=_FEW_ROWS))
        if 0 < len(rows) < _FEW_ROWS:
            return rows
        return await store.call(lambda: list(store.log.every_event(self.session)))

    @property
    def read_up_to(self) -> int:
        """The seq of the last row that the history has taken in."""
        return self._read_up_to

    async def record(self, *events: Event) -> tuple[int, ...]:
        """Writes rows and publishes them. A cancelled caller does not cancel the write."""
        if any(
            isinstance(event, (ApprovalAnswered, QuestionAnswered)) for event in events
        ):
            self._write_noted()  # apart: the log refuses an answer that comes too late
        noted = self._take_noted()
        seqs = await asyncio.shield(self._write(noted, events))
        return seqs[len(noted) :]

    def note(self, *events: Event) -> None:
        """Adds rows to the history now. They are written with the next ones, or after a short delay."""
        for event in events:
            self.history.add(0, event, self.turn)
        self._noted += events
        self._write_noted_soon()

    def _write_noted_soon(self) -> None:
        if self._write_timer is None:
            self._write_timer = asyncio.get_running_loop().call_later(
                _WRITE_DELAY_S, self._write_noted
            )

    async def all_written(self) -> None:
        """Waits until everything that was recorded or noted is written, or has failed."""
        self._write_noted()
        await self._writing.join()

    async def flush(self) -> None:
        """Does the same as `all_written`, and raises the error of a write that nobody waited for."""
        self._write_noted()
        await self.nothing_under_way()

    async def nothing_under_way(self) -> None:
        """Does the same as `flush`, but leaves what is noted to the next `record`."""
        await self._writing.join()
        if failure := self._failure:
            self._failure = None
            raise failure

    def _take_noted(self) -> tuple[Event, ...]:
        """The rows that are noted and not written yet."""
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
        noted, self._noted = self._noted, ()
        return noted

    def _write_noted(self) -> None:
        if noted := self._take_noted():
            self._write(noted, ()).add_done_callback(self._check)

    def _check(self, writing: "asyncio.Future[tuple[int, ...]]") -> None:
        """Keeps the error of a write that nobody waited for, whatever it is: an answer may be lost by it."""
        if not writing.cancelled() and isinstance(
            error := writing.exception(), Exception
        ):
            self._failure = error

    def _write(
        self, noted: tuple[Event, ...], events: tuple[Event, ...]
    ) -> "asyncio.Future[tuple[int, ...]]":
        return self._writing.start(self._record(noted, events), awaited=True)

    def show(self, event: Event) -> None:
        """Publishes a transient event. A piece of a reply is also written to a file."""
        if self._partial is not None and isinstance(event, MessageDelta):
            self._partial.add(event.text, self._reply_id(self.turn))
        self._app.show(self.session, self.turn, event)

    def close(self) -> None:
        """Called when this process stops running the session."""
        if self._partial is None:
            return
        if self.history.open_turn:
            self._partial.close()
        else:
            self._partial.clear()

    def partial(self) -> str:
        """The text of the reply that a process had shown before it vanished in the open turn."""
        if self._partial is None:
            return ""
        return self._partial.recover(self._reply_id(self.history.open_turn))

    def drop_partial(self) -> None:
        """Deletes that text, once the log has it."""
        if self._partial is not None:
            self._partial.drop()

    def _reply_id(self, turn: str) -> str:
        return f"{turn} {self._replies}"

    def _count(self, event: Event | None) -> None:
        """Counts the replies of a turn: text that is shown after this event belongs to another one."""
        if isinstance(event, TurnStarted):
            self._replies = 0
        elif isinstance(event, _END_OF_REPLY):
            self._replies += 1

    async def foreign(self) -> list[Row]:
        """The rows that were written past this journal since the last call. The history takes them in."""
        await self.all_written()  # so that no row of our own is taken for another's
        log, after = self._app.store.log, self._read_up_to
        rows = await asyncio.wrap_future(log.fetch(self.session, after=after))
        await self.all_written()  # also those that were written while the log was read
        rows = [row for row in rows if row.seq > self._read_up_to]
        others = [row for row in rows if row.seq not in self._own_seqs]
        if rows:
            self._read_up_to = rows[-1].seq
            self._own_seqs = {seq for seq in self._own_seqs if seq > self._read_up_to}
        for row in others:
            self.history.add(row.seq, row.event, row.turn)
        return others

    def _note_own(self, rows: tuple[Row, ...]) -> None:
        """Notes which rows `foreign` must leave out. Rows right after the last known one are not even read."""
        for row in rows:
            if row.seq == self._read_up_to + 1:
                self._read_up_to = row.seq
            else:
                self._own_seqs.add(row.seq)

    async def _record(
        self, noted: tuple[Event, ...], events: tuple[Event, ...]
    ) -> tuple[int, ...]:
        if failure := self._failure:
            self._failure = None
            raise failure
        try:
            rows = await self._app.writer.write(
                self.session, *noted, *events, turn=self.turn, lease=self.lease
            )
        except (
            TitledAlready
        ):  # only the title was refused; the caller goes on, unless it was cancelled
            self._noted = noted + self._noted
            self._write_noted_soon()
            raise
        self._note_own(rows)
        for place, (row, event) in enumerate(zip(rows, noted + events, strict=True)):
            if place >= len(noted):  # the others are in the history already
                self.history.add(row.seq, event, row.turn)
            self._count(event)
            if self._partial is not None and isinstance(event, _END_OF_REPLY):
                self._partial.clear()
        if self._on_written is not None:
            for row in rows:
                self._on_written(row)
        return tuple(row.seq for row in rows)
