"""Feeds over WebSockets and as server-sent events, and the channels other processes publish on."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.responses import Response, StreamingResponse
from starlette.types import Send
from starlette.websockets import WebSocket

from hermes.app.feed import BATCH_INTERVAL_S, SessionFeed
from hermes.app.feed_inbox import FeedItem, Inbox
from hermes.errors import SessionNotFound
from hermes.primitives.tasks import run_until_first
from hermes.primitives.untyped import number_in_text
from hermes.schema.shown_reasons import shown_event
from hermes.surfaces.dashboard.access_control import Identity, offered_subprotocol
from hermes.surfaces.dashboard.dashboard import Dashboard
from hermes.surfaces.dashboard.feed_frames import EncodedBatches
from hermes.surfaces.dashboard.ingest import pass_on
from hermes.surfaces.dashboard.routes.sessions import find
from hermes.surfaces.dashboard.uvicorn_protocol import (
    ignore_messages,
    send_bytes,
    send_json,
    send_text,
)
from hermes.surfaces.web.access import covers
from hermes.surfaces.web.endpoint import CALLER, Endpoint, EndpointCall
from hermes.text.translation import current_sentences

log = logging.getLogger("hermes.dashboard")

GONE = 4004
RESTARTS = 1012  # come back
NOT_YOURS = 4003
_PAGE_INTERVAL_S = 0.03  # the page draws at most every 50 ms
_REASONS = (b'"reason":', b'"detail":')
_KEEPALIVE_INTERVAL_S = 15.0  # a stream without events sends a comment this often


class CursorQuery(msgspec.Struct, frozen=True):
    epoch: int = 0
    after: Annotated[int, Meta(ge=0)] = 0


class PatternQuery(msgspec.Struct, frozen=True):
    pattern: Annotated[str, Meta(min_length=1, max_length=500)] = "**"


class ChannelQuery(msgspec.Struct, frozen=True):
    channel: Annotated[str, Meta(min_length=1, max_length=200)]


class FeedRoutes:
    """Handlers over one dashboard."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._board = dashboard
        self._feed = dashboard.feed
        self._frames = EncodedBatches()

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                "WEBSOCKET",
                "/api/sessions/{id}/feed",
                "observe",
                self.session,
                CursorQuery,
            ),
            Endpoint(
                "GET",
                "/api/sessions/{id}/stream",
                "observe",
                self.session_stream,
                CursorQuery,
                answer=None,
            ),
            Endpoint(
                "WEBSOCKET", "/api/feed", "observe", self.everything, PatternQuery
            ),
            Endpoint(
                "GET",
                "/api/stream",
                "observe",
                self.everything_stream,
                PatternQuery,
                answer=None,
            ),
            Endpoint("WEBSOCKET", "/api/pub", "publish", self.publish, ChannelQuery),
            Endpoint("WEBSOCKET", "/api/events", "observe", self.channel, ChannelQuery),
        ]

    async def session(self, socket: WebSocket, query: CursorQuery) -> None:
        """The feed of a session: every frame is an array of events."""
        await socket.accept(offered_subprotocol(socket))
        feed = SessionFeed(
            self._board.app,
            self._feed,
            socket.path_params["id"],
            epoch=query.epoch,
            after=query.after,
            interval_s=_PAGE_INTERVAL_S,
        )

        async def show() -> None:
            try:
                async with aclosing(feed.batches()) as batches:
                    async for batch in batches:
                        await self._send_shown(socket, batch)
            except SessionNotFound as error:
                log.debug("a feed was asked for in vain: %s", error)
                feed.is_deleted = True
            if feed.is_deleted:
                await socket.close(GONE, "no such session")
            else:  # the dashboard ends: another will have the session
                await socket.close(RESTARTS)

        await run_until_first(show(), ignore_messages(socket))

    async def session_stream(self, call: EndpointCall) -> Response:
        """The feed of a session as server-sent events."""
        query: CursorQuery = call.query
        session = call.path["id"]
        await asyncio.to_thread(find, self._board, session)
        epoch, after = _last_event(call.request.headers.get("last-event-id", "")) or (
            query.epoch,
            query.after,
        )
        feed = SessionFeed(
            self._board.app, self._feed, session, epoch=epoch, after=after
        )
        return _EventStream(feed.batches())

    async def everything(self, socket: WebSocket, query: PatternQuery) -> None:
        """All events published here whose topic matches a pattern, live."""
        await socket.accept(offered_subprotocol(socket))

        async def show() -> None:
            with self._feed.topic_inbox(query.pattern) as inbox:
                await self._send(socket, self._greeting(query.pattern))
                async for batch in _live(inbox, query.pattern):
                    await self._send(socket, batch)
            await socket.close(RESTARTS)

        await run_until_first(show(), ignore_messages(socket))

    async def everything_stream(self, call: EndpointCall) -> Response:
        """The same as server-sent events."""
        return _EventStream(self._overheard(call.query.pattern))

    async def _overheard(self, pattern: str) -> AsyncGenerator[list[FeedItem]]:
        with self._feed.topic_inbox(pattern) as inbox:
            yield self._greeting(pattern)
            async for batch in _live(inbox, pattern):
                yield batch

    async def publish(self, socket: WebSocket, query: ChannelQuery) -> None:
        """Accepts events from other processes: relayed ones, those of a terminal, or arrays of them."""
        identity: Identity = socket.scope[CALLER]
        await socket.accept(offered_subprotocol(socket))
        if identity.held.channel not in {"", query.channel}:
            await socket.close(NOT_YOURS, "this token is for another channel")
            return
        ingest = self._board.ingest
        trusted = covers(identity.scopes, "relay")
        with ingest.publishing(query.channel):
            while (message := await socket.receive())["type"] != "websocket.disconnect":
                text, data = message.get("text"), message.get("bytes")
                frame: str | bytes = text if text is not None else data or b""
                publishing = ingest.publish_frame(query.channel, frame, trusted=trusted)
                for ack in await publishing:
                    await send_text(socket, msgspec.json.encode(ack))

    async def channel(self, socket: WebSocket, query: ChannelQuery) -> None:
        """Every frame published on a channel, unchanged."""
        await socket.accept(offered_subprotocol(socket))

        async def show() -> None:
            with self._board.ingest.watching(query.channel) as inbox:
                await pass_on(
                    inbox, partial(send_text, socket), partial(send_bytes, socket)
                )

        await run_until_first(show(), ignore_messages(socket))

    def _greeting(self, pattern: str) -> list[FeedItem]:
        """The first frame of a feed. If the store can't be reached, it says so."""
        greeting = [FeedItem(_hello(pattern))]
        app = self._board.app
        if app.is_waiting and "store." in pattern:
            greeting.append(
                FeedItem(msgspec.json.encode({"type": "store.unreachable"}))
            )
        return greeting

    async def _send_shown(self, socket: WebSocket, batch: list[FeedItem]) -> None:
        """Sends what a person reads: reasons are in the language of the browser."""
        if current_sentences() is not None:
            batch = list(map(_shown, batch))
        await self._send(socket, batch)

    async def _send(self, socket: WebSocket, batch: list[FeedItem]) -> None:
        for frame in self._frames.of(batch):
            await send_json(socket, frame)


def _shown(item: FeedItem) -> FeedItem:
    if not any(name in item.data for name in _REASONS):
        return item
    event = msgspec.json.decode(item.data)
    shown = shown_event(event)
    return item if shown is event else item._replace(data=msgspec.json.encode(shown))


async def _live(inbox: Inbox, pattern: str) -> AsyncIterator[list[FeedItem]]:
    """The events of an inbox in batches, with a `gap` where some are missing."""
    loop = asyncio.get_running_loop()
    sent = 0.0
    while True:
        await inbox.wait()
        if inbox.is_closed:
            return
        if (early := sent + BATCH_INTERVAL_S - loop.time()) > 0:
            await asyncio.sleep(early)
        items, dropped = inbox.take()
        sent = loop.time()
        if dropped:
            gap = {
                "type": "gap",
                "dropped": dropped,
                "pattern": pattern,
                "policy": "drop_newest",
            }
            items.append(FeedItem(msgspec.json.encode(gap)))
        yield items


class _EventStream(StreamingResponse):
    """Server-sent events. The feed ends with the response, however that ends, and not when the garbage collector runs,
    which may take as long as a peer is stuck."""

    def __init__(self, batches: AsyncGenerator[list[FeedItem]]) -> None:
        self._events = _sse(batches)
        super().__init__(self._events, media_type="text/event-stream")

    # pyrefly: ignore[missing-override-decorator]
    async def stream_response(self, send: Send) -> None:
        async with aclosing(self._events):
            await super().stream_response(send)


async def _sse(batches: AsyncGenerator[list[FeedItem]]) -> AsyncGenerator[bytes]:
    """Server-sent events. A durable one's id is its cursor; silence is broken by a comment, so that proxies wait."""
    coming = asyncio.ensure_future(anext(batches))
    try:
        while True:
            done, _ = await asyncio.wait([coming], timeout=_KEEPALIVE_INTERVAL_S)
            if not done:
                yield b": still here\n\n"
                continue
            try:
                batch = coming.result()
            except StopAsyncIteration:
                return
            yield b"".join(map(_sse_event, batch))
            coming = asyncio.ensure_future(anext(batches))
    finally:  # nothing here waits: the task that runs this may be cancelled again and again
        if not coming.cancel() and not coming.cancelled():
            coming.exception()
            await batches.aclose()


def _sse_event(item: FeedItem) -> bytes:
    head = f"id: {item.epoch}-{item.seq}\n".encode() if item.seq else b""
    return head + b"data: " + item.data + b"\n\n"  # JSON has no line ends of its own


def _last_event(text: str) -> tuple[int, int] | None:
    first, _, second = text.partition("-")
    epoch, seq = number_in_text(first), number_in_text(second)
    return None if epoch is None or seq is None else (epoch, seq)


def _hello(pattern: str) -> bytes:
    return msgspec.json.encode({"type": "feed.hello", "pattern": pattern})
