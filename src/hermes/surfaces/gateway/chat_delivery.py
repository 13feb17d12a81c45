"""One chat's view of its session: reads the session's log from where it left off and sees to it that the chat shows it,
whoever wrote it. It streams by changing messages, and lives only while something is going on."""

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from hermes.app.feed import PAGE_ROWS
from hermes.core.answers import approval_hash
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    CompactionFailed,
    MessageDelta,
    ModelRetried,
    PictureReduced,
    PictureWithheld,
    QuestionAnswered,
    QuestionAsked,
    ReplyRejected,
    SessionCompacted,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from hermes.schema.messages import AssistantMessage, UserMessage
from hermes.store.chats import Binding, DeliveredMessage
from hermes.store.log_row import Row
from hermes.surfaces.gateway.activity import ChatActivity
from hermes.surfaces.gateway.adapter import Chat, Outbound, OutgoingFile
from hermes.surfaces.gateway.files import linked_files
from hermes.surfaces.gateway.message_split import split
from hermes.surfaces.gateway.questions import asking, settled
from hermes.surfaces.terminal.notices import compaction_words

if TYPE_CHECKING:
    from hermes.surfaces.gateway.deliveries import Deliveries

log = logging.getLogger("hermes.gateway")

_FIRST = 0.8  # seconds of writing before its beginning is shown: a short reply comes as one message
_CLOSING = (
    0.1  # seconds between looks whether a turn that ended has left anything to do
)
_SILENT = 60.0  # seconds after which a turn of another process, of which nothing is heard, is not waited for
_VOID = frozenset((ModelRetried.topic, ReplyRejected.topic, AssistantMessage.topic))
_SHOWN = frozenset(
    kind.topic
    for kind in (
        *(UserMessage, AssistantMessage, TurnStarted, TurnEnded, ToolStarted),
        *(
            ApprovalRequested,
            ApprovalAnswered,
            QuestionAsked,
            QuestionAnswered,
            PictureReduced,
            PictureWithheld,
        ),
    )
)
_WAITS = "⚠️ Hermes was restarted in the middle of this. What was done until then is kept; it still waits for an answer."
_NOTICES = {
    "interrupted": "⏹ Stopped.",
    "crashed": "⚠️ Hermes was restarted in the middle of this. What was done until then is kept; /retry tries again.",
}


def concerns(event: Mapping[str, Any]) -> bool:
    """Whether a chat shows something because of this event of its session: words from a chat stand there already."""
    kind = event["type"]
    return kind == MessageDelta.topic or (
        kind in _SHOWN and not (kind == UserMessage.topic and event.get("via"))
    )


def _is_same(
    one: ApprovalRequested | QuestionAsked, other: ApprovalRequested | QuestionAsked
) -> bool:
    """Whether two questions ask the same: the answer to one would do for the other."""
    if isinstance(one, ApprovalRequested) and isinstance(other, ApprovalRequested):
        return approval_hash(one) == approval_hash(other)
    return isinstance(one, QuestionAsked) and isinstance(other, QuestionAsked)


class ChatDelivery:
    """Runs as a task. `hear` is called for each event of the session; everything durable is read from the log."""

    def __init__(self, office: "Deliveries", binding: Binding) -> None:
        self._office = office
        self._post = office.posts[binding.key.partition("/")[0]]
        self._limits = self._post.adapter.limits
        self._binding = binding
        self._cursor = office.cursor(binding)
        self._wake = asyncio.Event()
        self.caught_up = asyncio.Event()
        self._rows = True
        self._newest = 0  # row that was heard of
        self._asides: list[tuple[str, int]] = []
        self._begun: list[DeliveredMessage] = office.ledger.pieces(
            binding.key, binding.session, 0
        )
        self._shown: dict[int, str] = {}  # what was begun, as it reads now
        self._streams = False  # a reply is being written
        self._said = ""  # the last reply, where a turn is one message
        self._remarks: list[str] = []  # and what else is to be said with it
        self._answers: tuple[str, ...] = ()  # and which messages it answers
        self._edit_at = 0.0
        self._working = False
        self._heard = office.time()
        self._activity = ChatActivity(
            self._post, self.chat, office.settings, office.time
        )

    @property
    def chat(self) -> Chat:
        """Where it writes to."""
        return msgspec.json.decode(self._binding.chat, type=Chat)

    @property
    def session(self) -> str:
        return self._binding.session

    @property
    def working(self) -> bool:
        """Whether a turn of the session runs, here or elsewhere."""
        return self._working

    def hear(self, event: Mapping[str, Any]) -> None:
        """Something happened in the session, or in one that works for it."""
        self._heard = self._office.time()
        kind = event["type"]
        if kind == MessageDelta.topic:
            if not self._streams:
                self._streams = True
                self._edit_at = max(self._edit_at, self._heard + _FIRST)
                self._wake.set()
            return
        if "seq" not in event:
            return
        if event["session_id"] != self._binding.session:
            self._asides.append((event["session_id"], event["seq"]))
        else:
            self._newest = max(self._newest, event["seq"])
            self._streams = self._streams and kind not in _VOID
        if concerns(event):
            self._rows = True
            self._wake.set()

    async def run(self) -> None:
        """Until everything is delivered and nothing goes on."""
        while True:
            self._wake.clear()
            await self._catch_up()
            self.caught_up.set()
            await self._stream()
            if self._is_quiet():
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pause()):
                    await self._wake.wait()
            if self._working and not self._limits.whole:
                await self._activity.keep_company()

    async def _catch_up(self) -> None:
        while self._rows:
            self._rows = False
            asides = self._asides.copy()
            self._asides.clear()
            for session, seq in asides:
                for row in self._office.log.events(session, after=seq - 1, limit=1):
                    await self._show(row, [row])
            while rows := self._cursor.page():
                for row in rows:
                    await self._show(row, rows)
                    self._cursor.seq = row.seq
                if len(rows) < PAGE_ROWS and self._cursor.seq >= self._newest:
                    break

    async def _show(self, row: Row, around: list[Row]) -> None:
        event = row.event
        match event:
            case UserMessage():
                await self._repeat(row, event)
            case TurnStarted():
                self._working = True
                self._said = ""
                self._remarks.clear()
                self._answers = self._answered(event) if self._limits.whole else ()
                self._activity.begin()
            case AssistantMessage():
                await self._say(row, event)
            case ToolStarted():
                if not self._limits.whole and row.ts > self._office.since:
                    await self._activity.tool(event)
            case ApprovalRequested() | QuestionAsked():
                await self._ask(row, event, around)
            case ApprovalAnswered() | QuestionAnswered():
                await self._settle(row, event)
            case PictureReduced(detail=detail) | PictureWithheld(detail=detail):
                await self._remark(row, f"⚠️ {detail}")
            case SessionCompacted() | CompactionFailed() if (
                self._working
            ):  # what a person asked for tells itself
                words = compaction_words(
                    msgspec.to_builtins(event) | {"type": event.topic}
                )
                await self._remark(
                    row,
                    f"{'⚠️' if isinstance(event, CompactionFailed) else 'ℹ️'} {words}",
                )
            case TurnEnded():
                await self._end(row, event)
            case _:
                pass

    async def _repeat(self, row: Row, message: UserMessage) -> None:
        """Words that were said elsewhere are shown, so that the answer makes sense."""
        if message.via or message.origin != "user" or self._limits.whole:
            return
        quoted = "\n".join(
            f"> {line}" for line in message.text.strip()[:1000].split("\n")
        )
        await self._deliver(row, f"💻\n{quoted}")

    async def _say(self, row: Row, message: AssistantMessage) -> None:
        if not message.text.strip():
            return
        if self._limits.whole:
            self._said = message.text
            return
        self._activity.end()
        await self._deliver(row, message.text, adopt=True)

    async def _remark(self, row: Row, text: str) -> None:
        """Something that a person should know; where a turn is one message, it comes with the answer."""
        if self._limits.whole:
            self._remarks.append(text)
        else:
            await self._deliver(row, text)

    async def _end(self, row: Row, ended: TurnEnded) -> None:
        self._working = False
        self._streams = False
        self._activity.end()
        if ended.reason == "crashed" and await self._office.asks(self._binding.session):
            notice = _WAITS
        else:
            notice = _NOTICES.get(
                ended.reason,
                "" if ended.reason == "done" else f"⚠️ {ended.detail}".rstrip(),
            )
        text = "\n\n".join(
            part for part in (*self._remarks, self._said, notice) if part
        )
        self._remarks.clear()
        if text:
            await self._deliver(row, text, adopt=True)
        self._said = ""
        self._remarks.clear()
        await self._post.adapter.finished(self.chat, self._answers)
        self._answers = ()

    def _answered(self, started: TurnStarted) -> tuple[str, ...]:
        """The ids of the messages that a turn answers."""
        session = self._binding.session
        rows = (
            row
            for seq in started.inputs
            for row in self._office.log.events(session, after=seq - 1, limit=1)
        )
        events = [row.event for row in rows]
        here = f"{self._binding.key}#"
        said = [one.via for one in events if isinstance(one, UserMessage)]
        return tuple(via.removeprefix(here) for via in said if via.startswith(here))

    async def _deliver(self, row: Row, text: str, *, adopt: bool = False) -> None:
        """The text in as many messages as it takes; those that were begun become the first of them."""
        session = self._binding.session
        files: tuple[OutgoingFile, ...] = ()
        if "](" in text:
            files = await asyncio.to_thread(
                linked_files, text, self._office.folder(session), self._file_limit
            )
        answers = self._answers if adopt else ()
        parts = [
            Outbound(text=part, answers=answers)
            for part in split(text, self._limits.text, self._limits.size)
        ]
        if files and parts:
            parts.append(Outbound(text="", files=files))
        begun = self._begun if adopt else []
        left = await self._post.deliver(
            self._binding.key, self.chat, (session, row.seq), parts, begun
        )
        if adopt:
            self._begun = left
            self._shown.clear()
        self._activity.spoke()

    @property
    def _file_limit(self) -> int:
        return min(self._limits.file_bytes, self._office.settings.file_bytes)

    async def _stream(self) -> None:
        """Shows what was written so far."""
        if not self._streams or self._limits.whole or not self._limits.edit:
            return
        if self._office.time() < self._edit_at:
            return
        text = self._office.feed.live(self._binding.session).text()
        if not text.strip():
            return
        wait = 0.0
        for number, part in enumerate(
            split(text, self._limits.text, self._limits.size)
        ):
            out = Outbound(text=part, unfinished=True)
            if number < len(self._begun):
                begun = self._begun[number]
                if part != self._shown.get(begun.id):
                    wait = await self._post.try_edit(self.chat, begun.message, out)
                    self._shown[begun.id] = part
                continue
            piece = await self._post.begin(
                self._binding.key, self.chat, self._binding.session, number, out
            )
            if piece is None:
                wait = self._limits.edit_every * 5
                break
            self._begun.append(piece)
            self._shown[piece.id] = part
        self._activity.spoke()
        self._edit_at = self._office.time() + max(self._limits.edit_every, wait)

    async def _ask(
        self, row: Row, asked: ApprovalRequested | QuestionAsked, around: list[Row]
    ) -> None:
        """Puts a question to whoever may answer it. One that is answered already is not asked any more."""
        for other in around:
            answer = other.event
            if (
                isinstance(answer, ApprovalAnswered | QuestionAnswered)
                and answer.call_id == asked.call_id
            ):
                return
        before = [
            seq
            for seq, other in self._office.asked(row, asked.call_id)
            if _is_same(other, asked)
        ]
        if any(self._office.ledger.everywhere(row.session, seq) for seq in before):
            return  # it was asked before a crash, and its buttons are still good
        for key, chat, elsewhere in self._office.audience(self._binding, asked):
            post = self._office.posts[chat.platform]
            out = asking(
                row.session,
                asked,
                buttons=post.adapter.limits.buttons,
                elsewhere=elsewhere,
            )
            await post.deliver(key, chat, (row.session, row.seq), [out])
        self._activity.spoke()

    async def _settle(
        self, row: Row, answered: ApprovalAnswered | QuestionAnswered
    ) -> None:
        """Everybody who was asked sees the answer that counts."""
        found = self._office.asked(row, answered.call_id)
        if not found:
            return
        asked = found[-1][1]
        if answered.by == "nobody":
            if isinstance(asked, ApprovalRequested) and not self._limits.whole:
                await self._deliver(
                    row, f"⛔ `{asked.name}` was not allowed: there is nobody to ask."
                )
            return
        for seq, _ in found:
            for key, piece in self._office.ledger.everywhere(row.session, seq):
                await self._office.settle(
                    key, piece, settled(row.session, asked, answered)
                )
        if answered.by == "expired":
            name = asked.name if isinstance(asked, ApprovalRequested) else "question"
            await self._deliver(
                row, f"⌛ Nobody answered in time, so `{name}` was denied."
            )

    def _is_quiet(self) -> bool:
        """Whether this can end; then that is written down, with no pause after the look."""
        office, binding = self._office, self._binding
        if self._wake.is_set() or self._rows:
            return False
        lost = (
            self._working
            and office.time() - self._heard > _SILENT
            and not office.works_on(binding.session)
        )
        if (
            (self._working and not lost)
            or office.works_on(binding.session)
            or office.expects(binding.key)
        ):
            return False
        office.rest(binding, self._cursor.seq)
        return True

    def _pause(self) -> float:
        now = self._office.time()
        waits = [self._activity.pause()] if self._working else [_CLOSING]
        if self._streams:
            waits.append(self._edit_at - now)
        return max(0.01, min(waits))
