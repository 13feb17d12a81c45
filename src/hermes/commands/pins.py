"""Commands about messages that compaction keeps word for word."""

import asyncio
from collections.abc import Iterable
from typing import Annotated

import msgspec

from hermes.app.session_journal import read_history
from hermes.app.typed_part import typed_part
from hermes.commands.command import Arg, SessionId, command
from hermes.commands.context import CommandContext
from hermes.commands.views import Block, TextResult, line, message, table
from hermes.core.history import ConversationHistory
from hermes.errors import NotFound
from hermes.schema.events import MessagePinned, MessageUnpinned
from hermes.schema.messages import AssistantMessage, UserMessage
from hermes.text.translation import translator

t = translator(__name__)


_MAX_SHOWN_CHARS = 70
_ANSWER = "answer"


class PinList(msgspec.Struct, frozen=True, kw_only=True):
    """The pinned messages of a session, numbered from 1."""

    pins: tuple[MessagePinned, ...]

    def view(self, _now: float) -> Iterable[Block]:
        if not self.pins:
            yield line(t("Nothing is pinned. /pin pins your last message."))
            return
        rows = (
            (f"{number}.", "you" if one.by == "user" else "Hermes", _short(one.text))
            for number, one in enumerate(self.pins, 1)
        )
        yield table(("", t("who"), t("message")), rows)
        yield line(t("Compression keeps these word for word. /unpin N removes one."))


@command("sessions pins", slash="pins", role="user", scope="observe", group="Model")
def list_pins(context: CommandContext, session: SessionId) -> PinList:
    """List the messages that compression keeps word for word."""
    return PinList(pins=tuple(_history(context, session).pinned.values()))


@command(
    "sessions pin-message", slash="pin which", role="user", scope="chat", group="Model"
)
async def pin_message(
    context: CommandContext,
    session: SessionId,
    which: Annotated[
        str,
        Arg("`answer` for the last answer, or words of the message", metavar="WHICH"),
    ] = "",
) -> TextResult:
    """Pin a message, so that compression keeps it word for word; alone: your last one."""
    history = await asyncio.to_thread(_history, context, session)
    chosen = _chosen(history, which.strip())
    if any(chosen.text == one.text for one in history.pinned.values()):
        return message(t("Already pinned: {short}", short=_short(chosen.text)))
    name = context.app.store.sessions.find(session).id
    await asyncio.to_thread(context.app.record, name, chosen)
    return message(t("Pinned: {short}", short=_short(chosen.text)))


@command(
    "sessions unpin-message",
    slash="unpin number",
    role="user",
    scope="chat",
    group="Model",
)
async def unpin_message(
    context: CommandContext,
    session: SessionId,
    number: Annotated[int, Arg("which of them, as /pins lists", at_least=1)] = 1,
) -> TextResult:
    """Take a pin back."""
    history = await asyncio.to_thread(_history, context, session)
    pins = list(history.pinned.items())
    if number > len(pins):
        pinned = t("{count:,} message", "{count:,} messages", count=len(pins))
        raise NotFound(
            t("There is no pin {number}.", number=number),
            hint=t("{pinned} pinned: /pins", pinned=pinned),
        )
    seq, pin = pins[number - 1]
    name = context.app.store.sessions.find(session).id
    await asyncio.to_thread(context.app.record, name, MessageUnpinned(pinned=seq))
    return message(t("Unpinned: {short}", short=_short(pin.text)))


def _history(context: CommandContext, session: str) -> ConversationHistory:
    store = context.app.store
    return read_history(store, store.sessions.find(session).id)


def _chosen(history: ConversationHistory, which: str) -> MessagePinned:
    """The message that is meant. Raises NotFound."""
    for one in reversed(history.messages):
        has_words = which.lower() in one.text.lower()
        is_reply = isinstance(one, AssistantMessage) and bool(one.text and which)
        if is_reply and (has_words or which == _ANSWER):
            return MessagePinned(text=one.text, by="assistant")
        is_own = isinstance(one, UserMessage) and one.origin == "user"
        if is_own and has_words:
            return MessagePinned(text=one.text)
    raise NotFound(
        t("There is no such message."),
        hint=t(
            "/pin pins your last message, /pin answer the last answer, /pin WORDS the one with these words."
        ),
    )


def _short(text: str) -> str:
    """The start of a message as the person typed it."""
    words = " ".join((typed_part(text) or text).split())
    return words if len(words) <= _MAX_SHOWN_CHARS else f"{words[:_MAX_SHOWN_CHARS]}…"
