"""Compressing a conversation on request, and saying what fills the model's window."""

import asyncio

from hermes.app.app import App
from hermes.app.journal import SessionJournal, read_history
from hermes.core.compaction import choose_cut, compact
from hermes.core.context import Context, measure
from hermes.core.ports import Model
from hermes.schema.events import SessionCompacted


async def compress(app: App, session: str, model: Model) -> SessionCompacted:
    """Replaces the middle of a conversation by a summary, in the model's view. Raises NotCompacted or SessionBusy."""
    settings = app.settings.compression
    lease = await asyncio.to_thread(app.store.leases.acquire, session)
    try:
        journal = SessionJournal(app.store, session, lease, publish=app.publish, show=lambda _: None)
        await asyncio.to_thread(journal.load)
        messages = journal.history.messages
        cut = choose_cut(messages, first=settings.protect_first_n, last=settings.protect_last_n)
        row = await compact(model, messages, cut)
        await journal.record(row)
    finally:
        await asyncio.to_thread(app.store.leases.release, lease)
    return row


def context_of(app: App, session: str, window: int) -> Context:
    """What the session's next request would hold."""
    return measure(read_history(app.store, session), window)
