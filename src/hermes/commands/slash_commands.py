"""Commands about the chat itself: its session, its turn, and how full the model's context is."""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Annotated

import msgspec

from hermes.app.compaction import compaction_preview, summarised_messages
from hermes.app.session_journal import read_history
from hermes.commands.command import Arg, SessionId, command
from hermes.commands.context import CommandContext
from hermes.commands.session_views import SessionListing
from hermes.commands.sessions import list_sessions
from hermes.commands.views import (
    Block,
    Column,
    Record,
    TextResult,
    line,
    message,
    table,
)
from hermes.core.context_usage import CompactionPreview
from hermes.core.context_usage import Context as ContextUsage
from hermes.errors import UsageError
from hermes.schema.messages import AssistantMessage, Message, UserMessage
from hermes.text.translation import translator

t = translator(__name__)


_MAX_PREVIEW_CHARS = 120


class ChatStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The session of a chat and who answers in it."""

    facts: tuple[tuple[str, str], ...]

    def view(self, _now: float) -> Iterable[Block]:
        yield Record(self.facts)


class ContextUse(msgspec.Struct, frozen=True, kw_only=True):
    """What fills the model's context, and what compressing would take out of it."""

    usage: ContextUsage
    preview: CompactionPreview

    def view(self, _now: float) -> Iterable[Block]:
        usage = self.usage
        about = "" if usage.counted else ", estimated"
        yield line(
            t(
                "{used:,} of {window:,} tokens ({share:.0%}{about})",
                used=usage.used,
                window=usage.window,
                share=usage.share,
                about=about,
            ),
            "bold",
        )
        yield Record(
            tuple((part.name, f"{part.tokens:,} tokens") for part in usage.scaled())
        )
        yield line(" ".join(self.what_next()), fit="wrap")

    def what_next(self) -> Iterator[str]:
        """When the context is compressed, and what that would do."""
        left = self.usage.full - self.usage.used
        at = (
            t("at {tokens:,} tokens", tokens=self.usage.full)
            if self.usage.full
            else t("when it is full")
        )
        soon = t("before the next reply")
        when = t("after {tokens:,} more", tokens=left) if left > 0 else soon
        yield t("The context is compressed {at}, {when}.", at=at, when=when)
        preview = self.preview
        if preview.pointers:
            results = t(
                "{count:,} old result", "{count:,} old results", count=preview.pointers
            )
            yield t(
                "{results} (about {freed:,} tokens) would be shortened.",
                results=results,
                freed=preview.freed,
            )
        if preview.summarised:
            messages = t(
                "{count:,} message", "{count:,} messages", count=preview.summarised
            )
            yield t(
                "A summary would replace {messages} (about {replaced:,} tokens).",
                messages=messages,
                replaced=preview.replaced,
            )
        if not preview.pointers and not preview.summarised:
            yield t("There is nothing to remove yet.")
        yield t("The log keeps everything. To compress now: /compress")


def _preview(context: CommandContext, session: str) -> "CompressionPreview":
    history = read_history(context.app.store, session)
    pinned = {one.text for one in history.pinned.values()}
    going = [
        (_speaker(one), " ".join(one.text.split())[:_MAX_PREVIEW_CHARS] or "(calls)")
        for one in summarised_messages(context.app, history.messages)
        if one.text not in pinned
    ]
    return CompressionPreview(
        preview=compaction_preview(context.app, session),
        going=tuple(going),
        pinned=len(pinned),
    )


def _speaker(one: Message) -> str:
    if isinstance(one, UserMessage):
        return "you" if one.origin == "user" else "note"
    return "Hermes" if isinstance(one, AssistantMessage) else one.name


@command(slash="status", role="user", group="Chat")
def show_status(context: CommandContext, session: SessionId) -> ChatStatus:
    """Show the session, the model, the folder and what is allowed."""
    chat = context.chat
    info = context.app.store.sessions.find(session)
    model = chat.agent.describe(session)
    facts = (
        (t("session"), info.id),
        (t("title"), info.title),
        (t("model"), f"{model.provider} {model.name}".rstrip()),
        (t("engine"), "codex" if model.engine == "codex" else "Hermes"),
        (t("folder"), info.cwd),
        (
            t("turns"),
            t(
                "{turns}, {messages}",
                turns=t("{count:,} turn", "{count:,} turns", count=info.turns),
                messages=t(
                    "{count:,} message", "{count:,} messages", count=info.messages
                ),
            ),
        ),
        (t("approvals"), chat.approvals),
    )
    return ChatStatus(facts=(*facts, *chat.facts))


@command(slash="stop", role="user", group="Chat")
async def stop_turn(context: CommandContext) -> TextResult:
    """Stop the running turn."""
    stopped = await context.chat.stop()
    return message() if stopped else message(t("Nothing is running."))


@command(slash="new", role="user", group="Sessions")
async def new_session(context: CommandContext) -> TextResult:
    """Begin a new session."""
    made = await context.chat.begin()
    return message(t("Started session {made}. The previous one was saved.", made=made))


@command(slash="resume name", role="owner", group="Sessions")
async def resume_session(
    context: CommandContext,
    name: Annotated[str, Arg("its id or title", metavar="ID")] = "",
) -> SessionListing | TextResult:
    """Continue another session; without a name, list them."""
    if not name and context.chat.has_audience:
        raise UsageError(
            t("Other people in this chat would see your sessions."),
            hint=t("List them in a private chat with me."),
        )
    if not name:
        return await asyncio.to_thread(list_sessions.function, context, limit=10)
    await context.chat.enter(name, recap=True)
    return message()


@command(slash="context", role="user", group="Model")
async def show_context(context: CommandContext, session: SessionId) -> ContextUse:
    """Show how full the model's context is, and with what."""
    usage = await asyncio.to_thread(context.chat.agent.context, session)
    preview = await asyncio.to_thread(compaction_preview, context.app, session)
    return ContextUse(usage=usage, preview=preview)


class CompressionPreview(msgspec.Struct, frozen=True, kw_only=True):
    """The messages that compressing would replace by a summary, and the old results it would shorten."""

    preview: CompactionPreview
    going: tuple[tuple[str, str], ...]
    """Who said it, and how it begins."""
    pinned: int

    def view(self, _now: float) -> Iterable[Block]:
        if not self.going:
            yield line(t("Nothing to compress yet: the conversation is short."))
            return
        summarised = t(
            "{count:,} message", "{count:,} messages", count=self.preview.summarised
        )
        yield line(
            t(
                "A summary would replace {summarised} (about {replaced:,} tokens):",
                summarised=summarised,
                replaced=self.preview.replaced,
            ),
            "bold",
        )
        columns = (t("who"), Column(t("message"), shrinks=True))
        yield table(columns, self.going)
        if self.pinned:
            pinned = t(
                "{count:,} pinned message",
                "{count:,} pinned messages",
                count=self.pinned,
            )
            yield line(t("Kept word for word: {pinned} (/pins).", pinned=pinned))
        yield line(t("The log keeps everything. To compress now: /compress"), "dim")


@command(slash="compress", role="user", group="Model")
async def compress(
    context: CommandContext,
    session: SessionId,
    *,
    preview: Annotated[bool, Arg("only show what would go")] = False,
) -> CompressionPreview | TextResult:
    """Compress a long conversation: summarize its older part; `--preview` shows what would go."""
    found = await asyncio.to_thread(_preview, context, session)
    if preview or not found.preview.summarised:
        return found
    await context.chat.require_idle()
    context.surface.tell(line(t("Summarizing the older part of the conversation ...")))
    done = await context.chat.agent.compress(session)
    return message(
        t(
            "Done: about {before:,} tokens became {after:,}. The log keeps everything.",
            before=done.before,
            after=done.after,
        )
    )
