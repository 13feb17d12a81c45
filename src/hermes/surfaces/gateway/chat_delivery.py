"""Delivers one session to its chat: reads the log from where it left off and shows what is new.

A reply that is being written is shown by editing messages. A delivery exists only while the session is active.
"""

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from hermes.app.child_sessions import BACKGROUND, REVIEW, review_report
from hermes.app.feed import PAGE_ROWS
from hermes.app.schedules.delivery import VIA_JOB
from hermes.core.answers import approval_hash
from hermes.schema.event_base import Event
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    CompactionFailed,
    LoginExpired,
    MessageDelta,
    ModelRetried,
    PictureReduced,
    PictureWithheld,
    QuestionAnswered,
    QuestionAsked,
    ReplyRejected,
    SessionCompacted,
    ToolStarted,
    TurnChecked,
    TurnEnded,
    TurnStarted,
)
from hermes.schema.goals import ChildEnded, GoalJudged, GoalPaused, GoalWoken
from hermes.schema.messages import AssistantMessage, ToolFinished, UserMessage
from hermes.schema.shown_reasons import shown_row
from hermes.store.chats import Binding, DeliveredMessage
from hermes.store.log_row import Row
from hermes.surfaces.gateway.activity import ChatActivity
from hermes.surfaces.gateway.adapter import Chat, Outbound, OutgoingFile
from hermes.surfaces.gateway.files import linked_files, made_files
from hermes.surfaces.gateway.message_split import split
from hermes.surfaces.gateway.questions import answered_text, question_text
from hermes.surfaces.gateway.spoken_reply import SpokenReply
from hermes.surfaces.terminal.notices import (
    child_notice,
    compaction_notice,
    goal_notice,
)
from hermes.text.translation import to_translate, translator

if TYPE_CHECKING:
    from hermes.surfaces.gateway.deliveries import Deliveries

t = translator(__name__)

log = logging.getLogger("hermes.gateway")

_STREAM_DELAY_S = 0.8
"""How long a reply is written before its beginning is shown, so that a short one is sent once."""
_CLOSE_CHECK_S = 0.1
"""Between checks whether a turn that ended has left anything to do."""
_SILENT_TURN_TIMEOUT_S = 60.0
"""How long to wait for a turn of another process that publishes nothing."""
_MAX_QUOTED_MESSAGE_CHARACTERS = 1000
_STREAM_ENDS = frozenset(
    (ModelRetried.topic, ReplyRejected.topic, AssistantMessage.topic)
)
_SHOWN_TOPICS = frozenset(
    kind.topic
    for kind in (
        *(UserMessage, AssistantMessage, TurnStarted, TurnChecked),
        *(TurnEnded, ToolStarted),
        *(GoalJudged, GoalPaused, GoalWoken, ChildEnded),
        *(
            ApprovalRequested,
            ApprovalAnswered,
            QuestionAsked,
            QuestionAnswered,
            PictureReduced,
            PictureWithheld,
            LoginExpired,
        ),
    )
)
_MAKES_PICTURES = "image_generate"
_PICTURE_TOO_LARGE = to_translate(
    "⚠️ A picture is too large to be sent here. It is saved in {path}"
)
_STILL_WAITING = to_translate(
    "⚠️ Hermes was restarted during this turn. Everything up to then was saved; a "
    "question is still waiting for an answer."
)
_NOTICES = {
    "interrupted": to_translate("⏹ Stopped."),
    "crashed": to_translate(
        "⚠️ Hermes was restarted during this turn. Everything up to then was saved; /retry tries again."
    ),
}


def is_shown(event: Mapping[str, Any]) -> bool:
    """Whether an event changes what a chat shows. A message from the chat itself is there already."""
    kind = event["type"]
    if kind == ToolFinished.topic:
        return event["name"] == _MAKES_PICTURES
    return kind == MessageDelta.topic or (
        kind in _SHOWN_TOPICS and not (kind == UserMessage.topic and event.get("via"))
    )


def _is_same(
    one: ApprovalRequested | QuestionAsked, other: ApprovalRequested | QuestionAsked
) -> bool:
    """Whether two questions are the same, so that the answer to one also answers the other."""
    if isinstance(one, ApprovalRequested) and isinstance(other, ApprovalRequested):
        return approval_hash(one) == approval_hash(other)
    return isinstance(one, QuestionAsked) and isinstance(other, QuestionAsked)


def _warning(event: PictureReduced | PictureWithheld | LoginExpired) -> str:
    if isinstance(event, LoginExpired):
        again = t("Sign in again: {command}", command=event.command)
        return f"{event.detail} {again}"
    return event.detail


class ChatDelivery:
    """The delivery of one chat, as a task. `on_event` only wakes it; it reads rows from the log."""

    def __init__(
        self,
        deliveries: "Deliveries",
        binding: Binding,
        drafts: list[DeliveredMessage],
    ) -> None:
        self._deliveries = deliveries
        self._sender = deliveries.senders[binding.key.partition("/")[0]]
        self._limits = self._sender.adapter.limits
        self._binding = binding
        self.chat = msgspec.json.decode(binding.chat, type=Chat)
        self._cursor = deliveries.cursor(binding)
        self._wake = asyncio.Event()
        self.caught_up = asyncio.Event()
        self._rows = True
        self._newest = 0  # the last row that an event announced
        self._child_rows: list[tuple[str, int]] = []
        self._drafts = drafts
        self._shown: dict[int, str] = {}  # what was draft, as it reads now
        self._streams = False  # a reply is being written
        self._spoken = SpokenReply(deliveries, binding.session)
        self._reply = ""  # where a turn is one message: the last reply,
        self._remarks: list[str] = []  # remarks for the same message,
        self._made: tuple[OutgoingFile, ...] = ()  # its pictures,
        self._answers: tuple[str, ...] = ()  # and the messages that it answers
        self._edit_at = 0.0
        self._working = False
        self._last_event_at = deliveries.time()
        self._activity = ChatActivity(
            self._sender, self.chat, deliveries.settings, deliveries.time
        )

    @property
    def session(self) -> str:
        return self._binding.session

    @property
    def is_working(self) -> bool:
        """Whether a turn of the session runs, in any process."""
        return self._working

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Handles an event of the session, or of one that works for it."""
        self._last_event_at = self._deliveries.time()
        kind = event["type"]
        if kind == MessageDelta.topic:
            if not self._streams:
                self._streams = True
                self._edit_at = max(
                    self._edit_at, self._last_event_at + _STREAM_DELAY_S
                )
                self._wake.set()
            return
        if "seq" not in event:
            return
        if event["session_id"] != self._binding.session:
            self._child_rows.append((event["session_id"], event["seq"]))
        else:
            self._newest = max(self._newest, event["seq"])
            self._streams = self._streams and kind not in _STREAM_ENDS
        if is_shown(event):
            self._rows = True
            self._wake.set()

    async def run(self) -> None:
        """Delivers until there is nothing left and no turn runs."""
        while True:
            self._wake.clear()
            await self._catch_up()
            self.caught_up.set()
            await self._stream()
            if self._finish_if_idle():
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pause()):
                    await self._wake.wait()
            if self._working and not self._limits.whole:
                await self._activity.update()

    async def _catch_up(self) -> None:
        while self._rows:
            self._rows = False
            child_rows = self._child_rows.copy()
            self._child_rows.clear()
            for session, seq in child_rows:
                log_ = self._deliveries.log
                found = await self._deliveries.call(
                    log_.events, session, after=seq - 1, limit=1
                )
                for row in found:
                    await self._show(row, [row])
            while rows := await self._deliveries.call(self._cursor.page):
                for row in rows:
                    await self._show(row, rows)
                    self._cursor.seq = row.seq
                if len(rows) < PAGE_ROWS and self._cursor.seq >= self._newest:
                    break

    async def _show(self, row: Row, around: list[Row]) -> None:
        event = None if row.event is None else shown_row(row.event)
        match event:
            case UserMessage():
                await self._quote(row, event)
            case TurnStarted():
                await self._begin_turn(event)
            case AssistantMessage():
                await self._show_reply(row, event)
            case ToolStarted():
                if not self._limits.whole and row.ts > self._deliveries.since:
                    await self._activity.tool(event)
            case ApprovalRequested() | QuestionAsked():
                await self._ask(row, event, around)
            case ApprovalAnswered() | QuestionAnswered():
                await self._show_answer(row, event)
            case PictureReduced() | PictureWithheld() | LoginExpired():
                await self._remark(row, f"⚠️ {_warning(event)}")
            case TurnChecked(ok=ok, detail=detail):
                await self._show_checks(row, f"{'✅' if ok else '⚠️'} {detail}")
            case SessionCompacted() | CompactionFailed():
                await self._show_compaction(row, event)
            case TurnEnded():
                await self._end_turn(row, event)
            case _:
                await self._show_progress(row, event)

    async def _begin_turn(self, event: TurnStarted) -> None:
        self._working = True
        self._spoken.begin(event)
        self._reply = ""
        self._remarks.clear()
        self._answers = ()
        if self._limits.whole:
            self._answers = await self._deliveries.call(self._answered_ids, event)
        self._activity.begin()

    async def _show_compaction(
        self, row: Row, event: SessionCompacted | CompactionFailed
    ) -> None:
        """Tells of a compaction that happened by itself. The command for one answers with its own result."""
        if not self._working:
            return
        words = compaction_notice(msgspec.to_builtins(event) | {"type": event.topic})
        mark = "⚠️" if isinstance(event, CompactionFailed) else "ℹ️"
        await self._remark(row, f"{mark} {words}")

    async def _show_progress(self, row: Row, event: Event | None) -> None:
        """Shows pictures that were made, how a goal goes on, or how a session ended that worked for this one."""
        if isinstance(event, ToolFinished) and event.name == _MAKES_PICTURES:
            await self._show_pictures(row, event)
        if not isinstance(event, GoalJudged | GoalPaused | GoalWoken | ChildEnded):
            return
        fields = msgspec.to_builtins(event) | {"type": event.topic}
        if isinstance(event, ChildEnded):
            words = await self._child_words(event, fields)
        else:
            words = goal_notice(fields)
        goes_on = isinstance(event, GoalJudged) and event.verdict == "continue"
        if words and not (goes_on and self._limits.whole):
            marks = {"done": "🎯", "needs_you": "✋", "wait": "⏳"}
            mark = marks.get(fields.get("verdict", ""), "ℹ️")
            await self._deliver(row, f"{mark} {words}")

    async def _child_words(self, event: ChildEnded, fields: dict[str, Any]) -> str:
        """What the chat is told of the end of a session that worked for it: of a review, all that it found."""
        if event.kind == REVIEW:
            return await self._deliveries.call(
                review_report, self._deliveries.app, event
            )
        if event.kind != BACKGROUND and self._working:
            return ""  # a turn that waits for its child gets the result itself
        return child_notice(fields)

    async def _quote(self, row: Row, message: UserMessage) -> None:
        """Shows a message from another surface, so that the answer makes sense."""
        is_of_chat = message.via and not message.via.startswith(VIA_JOB)
        if is_of_chat or message.origin != "user" or self._limits.whole:
            return
        quoted = "\n".join(
            f"> {line}"
            for line in message.text.strip()[:_MAX_QUOTED_MESSAGE_CHARACTERS].split(
                "\n"
            )
        )
        await self._deliver(row, f"💻\n{quoted}")

    async def _show_reply(self, row: Row, message: AssistantMessage) -> None:
        if not message.text.strip():
            return
        self._spoken.text = message.text
        if self._limits.whole:
            self._reply = message.text
            return
        self._activity.end()
        await self._deliver(row, message.text, adopt=True)

    async def _show_pictures(self, row: Row, made: ToolFinished) -> None:
        """Sends the pictures that a turn made; where a turn is one message, with it."""
        if not made.ok:
            return
        folder = self._deliveries.media_folder(row.session)
        files = await asyncio.to_thread(made_files, made, folder, self._file_limit)
        if len(files) < len(made.images):
            await self._remark(
                row, t.marked(_PICTURE_TOO_LARGE, path=made.images[0].source)
            )
        if self._limits.whole:
            self._made += files
        elif files:
            place = (self._binding.session, row.seq)
            parts = [Outbound(text="", files=files)]
            await self._sender.deliver(self._binding.key, self.chat, place, parts)

    async def _remark(self, row: Row, text: str) -> None:
        """Shows a remark; where a turn is one message, it becomes part of it."""
        if self._limits.whole:
            self._remarks.append(text)
        else:
            await self._deliver(row, text)

    async def _show_checks(self, row: Row, text: str) -> None:
        """Shows what the project's rules found, below the answer."""
        if self._limits.whole:
            self._reply = "\n\n".join(filter(None, (self._reply, text)))
        else:
            await self._deliver(row, text)

    async def _end_turn(self, row: Row, ended: TurnEnded) -> None:
        self._working = False
        self._streams = False
        self._activity.end()
        if ended.reason == "crashed" and await self._deliveries.has_question(
            self._binding.session
        ):
            notice = t.marked(_STILL_WAITING)
        else:
            failed = "" if ended.reason == "done" else f"⚠️ {ended.detail}".rstrip()
            known = _NOTICES.get(ended.reason)
            notice = t.marked(known) if known else failed
        text = "\n\n".join(
            part for part in (*self._remarks, self._reply, notice) if part
        )
        self._remarks.clear()
        made, self._made = self._made, ()
        if text or made:
            await self._deliver(row, text, adopt=True, made=made)
        if ended.reason == "done":
            await self._speak(row)
        self._reply = ""
        self._remarks.clear()
        await self._sender.adapter.finished(self.chat, self._answers)
        self._answers = ()

    async def _speak(self, row: Row) -> None:
        """Sends the reply as sound, if that is wanted in this chat."""
        if self._limits.whole:
            return
        async with self._spoken.message(self._limits.voice, self._file_limit) as out:
            if out is not None:
                place = (self._binding.session, row.seq)
                await self._sender.deliver(self._binding.key, self.chat, place, [out])

    def _answered_ids(self, started: TurnStarted) -> tuple[str, ...]:
        """The ids of the messages that a turn answers."""
        session = self._binding.session
        rows = (
            row
            for seq in started.inputs
            for row in self._deliveries.log.events(session, after=seq - 1, limit=1)
        )
        events = [row.event for row in rows]
        here = f"{self._binding.key}#"
        said = [one.via for one in events if isinstance(one, UserMessage)]
        return tuple(via.removeprefix(here) for via in said if via.startswith(here))

    async def _deliver(
        self,
        row: Row,
        text: str,
        *,
        adopt: bool = False,
        made: tuple[OutgoingFile, ...] = (),
    ) -> None:
        """Delivers a text in as many messages as it needs; drafts become the first of them."""
        session = self._binding.session
        files: tuple[OutgoingFile, ...] = ()
        if "](" in text:
            files = await asyncio.to_thread(
                linked_files, text, self._deliveries.folder(session), self._file_limit
            )
        answers = self._answers if adopt else ()
        parts = [
            Outbound(text=part, answers=answers)
            for part in split(text, self._limits.text, self._limits.size)
        ]
        files = (*made, *(one for one in files if one not in made))
        if files:
            parts.append(Outbound(text="", files=files))
        draft = self._drafts if adopt else []
        left = await self._sender.deliver(
            self._binding.key, self.chat, (session, row.seq), parts, draft
        )
        if adopt:
            self._drafts = left
            self._shown.clear()
        self._activity.spoke()

    @property
    def _file_limit(self) -> int:
        return min(self._limits.file_bytes, self._deliveries.settings.file_bytes)

    async def _stream(self) -> None:
        """Shows the reply as far as it is written."""
        if not self._streams or self._limits.whole or not self._limits.edit:
            return
        if self._deliveries.time() < self._edit_at:
            return
        text = self._deliveries.feed.live(self._binding.session).text()
        if not text.strip():
            return
        wait = 0.0
        for number, part in enumerate(
            split(text, self._limits.text, self._limits.size)
        ):
            out = Outbound(text=part, unfinished=True)
            if number < len(self._drafts):
                draft = self._drafts[number]
                if part != self._shown.get(draft.id):
                    wait = await self._sender.try_edit(self.chat, draft.message, out)
                    self._shown[draft.id] = part
                continue
            piece = await self._sender.begin(
                self._binding.key, self.chat, self._binding.session, number, out
            )
            if piece is None:
                wait = self._limits.edit_every * 5
                break
            self._drafts.append(piece)
            self._shown[piece.id] = part
        self._activity.spoke()
        self._edit_at = self._deliveries.time() + max(self._limits.edit_every, wait)

    async def _ask(
        self, row: Row, asked: ApprovalRequested | QuestionAsked, around: list[Row]
    ) -> None:
        """Asks whoever may answer, unless the question is answered already."""
        for other in around:
            answer = other.event
            if (
                isinstance(answer, ApprovalAnswered | QuestionAnswered)
                and answer.call_id == asked.call_id
            ):
                return
        call = self._deliveries.call
        if await call(self._was_asked, row, asked):
            return  # it was asked before a crash, and its buttons still work
        audience = await call(self._deliveries.audience, self._binding, asked)
        for key, chat, elsewhere in audience:
            sender = self._deliveries.senders[chat.platform]
            out = question_text(
                row.session,
                asked,
                buttons=sender.adapter.limits.buttons,
                elsewhere=elsewhere,
                mark=sender.adapter.limits.command_mark,
            )
            await sender.deliver(key, chat, (row.session, row.seq), [out])
        self._activity.spoke()

    def _was_asked(self, row: Row, asked: ApprovalRequested | QuestionAsked) -> bool:
        before = [
            seq
            for seq, other in self._deliveries.questions_before(row, asked.call_id)
            if _is_same(other, asked)
        ]
        ledger = self._deliveries.ledger
        return any(ledger.everywhere(row.session, seq) for seq in before)

    async def _show_answer(
        self, row: Row, answered: ApprovalAnswered | QuestionAnswered
    ) -> None:
        """Shows the answer to everybody who was asked."""
        call, ledger = self._deliveries.call, self._deliveries.ledger
        found = await call(self._deliveries.questions_before, row, answered.call_id)
        if not found:
            return
        asked = found[-1][1]
        if answered.by == "nobody":
            if isinstance(asked, ApprovalRequested) and not self._limits.whole:
                await self._deliver(
                    row,
                    t(
                        "⛔ `{name}` was not allowed: there is nobody to ask.",
                        name=asked.name,
                    ),
                )
            return
        for seq, _ in found:
            for key, piece in await call(ledger.everywhere, row.session, seq):
                await self._deliveries.show_answer(
                    key, piece, answered_text(row.session, asked, answered)
                )
        if answered.by == "expired":
            name = asked.name if isinstance(asked, ApprovalRequested) else "question"
            await self._deliver(
                row, t("⌛ Nobody answered in time, so `{name}` was denied.", name=name)
            )

    def _finish_if_idle(self) -> bool:
        """Whether this can end. If so, that is stored at once, so that no event comes in between."""
        deliveries, binding = self._deliveries, self._binding
        if self._wake.is_set() or self._rows:
            return False
        lost = (
            self._working
            and deliveries.time() - self._last_event_at > _SILENT_TURN_TIMEOUT_S
            and not deliveries.works_on(binding.session)
        )
        if (
            (self._working and not lost)
            or deliveries.works_on(binding.session)
            or deliveries.has_pending(binding.key)
        ):
            return False
        deliveries.finish(binding, self._cursor.seq)
        return True

    def _pause(self) -> float:
        now = self._deliveries.time()
        waits = [self._activity.pause()] if self._working else [_CLOSE_CHECK_S]
        if self._streams:
            waits.append(self._edit_at - now)
        return max(0.01, min(waits))
