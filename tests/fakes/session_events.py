"""The events of a session, as a reader of the feed sees them."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from hermes.app import App
from hermes.app.feed import SessionFeed


async def watch(
    app: App, session: str, *, after: int = 0
) -> AsyncGenerator[Mapping[str, Any]]:
    """The rows after a cursor, then live events, without end."""
    feed = SessionFeed(app, app.feed, session, after=after, interval_s=0.0)
    async for batch in feed.batches():
        for item in batch:
            if not item.event["type"].startswith("feed."):
                yield item.event
