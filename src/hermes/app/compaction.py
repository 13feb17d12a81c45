"""Compacts conversations, and reports what fills the model's context window."""

import asyncio
from collections.abc import Sequence

from hermes.app.app import App
from hermes.app.auxiliary_models import AuxiliaryModels
from hermes.app.folder_notes import FolderNotes
from hermes.app.session_journal import SessionJournal, read_history
from hermes.core.compaction import CompactionCut, NotCompacted, choose_cut, compact
from hermes.core.context_usage import (
    CompactionPreview,
    Context,
    measure,
    preview_compaction,
)
from hermes.schema.events import SessionCompacted
from hermes.schema.messages import Message


async def summarise(
    auxiliary: AuxiliaryModels,
    session: str,
    messages: Sequence[Message],
    cut: CompactionCut,
) -> SessionCompacted:
    """Returns the row that compacts. If one model's summary can't be used, the next model writes another.

    A plugin's context engine takes their place if the settings name one. Raises NotCompacted or BudgetSpent.
    """
    if engine := auxiliary.context_engine:
        from hermes.app.plugin_parts import summarise_by_plugin

        return await summarise_by_plugin(
            auxiliary.plugins, engine, messages, cut, auxiliary.redact
        )
    helper = await auxiliary.helper("summary", session)
    while True:
        try:
            return await compact(
                helper,
                messages,
                cut,
                window=helper.window,
                strict=helper.has_substitute,
                redact=auxiliary.redact,
            )
        except NotCompacted as error:
            if not error.unusable or not await helper.give_up(
                error.message, error.usage
            ):
                raise


async def compress(
    app: App, auxiliary: AuxiliaryModels, session: str, notes: FolderNotes | None = None
) -> SessionCompacted:
    """Replaces the middle of a conversation by a summary, for the model. `notes` reads again what that removed.

    Raises NotCompacted, SessionBusy or BudgetSpent; then nothing changed.
    """
    settings = app.settings.compression
    lease = await asyncio.to_thread(app.store.leases.acquire, session)
    try:
        journal = SessionJournal(app, session, lease)
        await journal.load()
        messages = journal.history.messages
        cut = choose_cut(
            messages, first=settings.protect_first_n, last=settings.protect_last_n
        )
        row = await summarise(auxiliary, session, messages, cut)
        before = list(messages)
        await journal.record(row)
        if notes is not None:
            cwd = app.store.sessions.origin(session).working_directory
            read = notes.after_compaction
            again = await asyncio.to_thread(read, journal.history, before, cwd)
            if again:
                await journal.record(*again)
    finally:
        await asyncio.to_thread(app.store.leases.release, lease)
    return row


def context_of(app: App, session: str, window: int) -> Context:
    """What the next request of a session would hold."""
    return measure(
        read_history(app.store, session), window, app.settings.compression.threshold
    )


def compaction_preview(app: App, session: str) -> CompactionPreview:
    """What compacting the session would do now."""
    settings = app.settings.compression
    messages = read_history(app.store, session).messages
    return preview_compaction(
        messages, first=settings.protect_first_n, last=settings.protect_last_n
    )


def summarised_messages(app: App, messages: Sequence[Message]) -> list[Message]:
    """The messages that a summary would replace now; none of a short conversation."""
    settings = app.settings.compression
    first, last = settings.protect_first_n, settings.protect_last_n
    try:
        cut = choose_cut(messages, first=first, last=last)
    except NotCompacted:
        return []
    middle = range(cut.head, len(messages) - cut.tail)
    return [messages[place] for place in middle if place + 1 != cut.kept]
