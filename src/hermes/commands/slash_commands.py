"""Commands about the chat itself: its session, its turn, and how full the model's context is."""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Annotated

import msgspec

from hermes.app.compaction import outlook_of
from hermes.commands.command import Arg, SessionId, command
from hermes.commands.context import CommandContext
from hermes.commands.formats import count
from hermes.commands.sessions import SessionListing, list_sessions
from hermes.commands.views import Block, Record, TextResult, line, message
from hermes.core.context_usage import CompactionPreview
from hermes.core.context_usage import Context as ContextUsage
from hermes.errors import UsageError


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
            f"{usage.used:,} of {usage.window:,} tokens ({usage.share:.0%}{about})",
            "bold",
        )
        yield Record(
            tuple((part.name, f"{part.tokens:,} tokens") for part in usage.scaled())
        )
        yield line(" ".join(self.what_next()), fit="wrap")

    def what_next(self) -> Iterator[str]:
        """When the context is compressed, and what that would do."""
        left = self.usage.full - self.usage.used
        at = f"at {self.usage.full:,} tokens" if self.usage.full else "when it is full"
        when = f"after {left:,} more" if left > 0 else "before the next reply"
        yield f"The context is compressed {at}, {when}."
        preview = self.preview
        if preview.pointers:
            results = count(preview.pointers, "old result")
            yield f"{results} (about {preview.freed:,} tokens) would be shortened."
        if preview.summarised:
            messages = count(preview.summarised, "message")
            yield f"A summary would replace {messages} (about {preview.replaced:,} tokens)."
        if not preview.pointers and not preview.summarised:
            yield "There is nothing to remove yet."
        yield "The log keeps everything. To compress now: /compress"


@command(slash="status", role="user", group="Chat")
def show_status(context: CommandContext, session: SessionId) -> ChatStatus:
    """Show the session, the model, the folder and what is allowed."""
    chat = context.chat
    info = context.app.store.sessions.find(session)
    model = chat.agent.describe(session)
    facts = (
        ("session", info.id),
        ("title", info.title),
        ("model", f"{model.provider} {model.name}".rstrip()),
        ("engine", "codex" if model.engine == "codex" else "Hermes"),
        ("folder", info.cwd),
        ("turns", f"{count(info.turns, 'turn')}, {count(info.messages, 'message')}"),
        ("approvals", chat.approvals),
    )
    return ChatStatus(facts=(*facts, *chat.facts))


@command(slash="stop", role="user", group="Chat")
async def stop_turn(context: CommandContext) -> TextResult:
    """Stop the running turn."""
    stopped = await context.chat.stop()
    return message() if stopped else message("Nothing is running.")


@command(slash="new", role="user", group="Sessions")
async def new_session(context: CommandContext) -> TextResult:
    """Begin a new session."""
    made = await context.chat.begin()
    return message(f"Started session {made}. The previous one was saved.")


@command(slash="resume name", role="owner", group="Sessions")
async def resume_session(
    context: CommandContext,
    name: Annotated[str, Arg("its id or title", metavar="ID")] = "",
) -> SessionListing | TextResult:
    """Continue another session; without a name, list them."""
    if not name and context.chat.has_audience:
        raise UsageError(
            "Other people in this chat would see your sessions.",
            hint="List them in a private chat with me.",
        )
    if not name:
        return await asyncio.to_thread(list_sessions.function, context, limit=10)
    await context.chat.enter(name, recap=True)
    return message()


@command(slash="context", role="user", group="Model")
async def show_context(context: CommandContext, session: SessionId) -> ContextUse:
    """Show how full the model's context is, and with what."""
    usage = await asyncio.to_thread(context.chat.agent.context, session)
    preview = await asyncio.to_thread(outlook_of, context.app, session)
    return ContextUse(usage=usage, preview=preview)


@command(slash="compress", role="user", group="Model")
async def compress(context: CommandContext, session: SessionId) -> TextResult:
    """Compress a long conversation: summarize its older part."""
    await context.chat.require_idle()
    context.surface.tell(line("Summarizing the older part of the conversation ..."))
    done = await context.chat.agent.compress(session)
    return message(
        f"Done: about {done.before:,} tokens became {done.after:,}. The log keeps everything."
    )
