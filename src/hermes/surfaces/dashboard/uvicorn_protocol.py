"""The dashboard's connections on uvicorn: fast enough for terminals, and closed if the peer stops reading."""

import asyncio
import struct
from asyncio.transports import BaseTransport
from collections.abc import Callable
from typing import Any, ClassVar

from starlette.websockets import WebSocket
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from hermes.surfaces.dashboard.feed_frames import DashboardFeed
from hermes.surfaces.web.http_protocol import BODY_TIMEOUT_S, StrictHttpProtocol
from hermes.surfaces.web.server import ServerProtocols

TOO_SLOW = 4008
"""The close code for a slow reader, which can connect again with its cursor."""
_NOT_UTF8 = 1007
_WRITE_BUFFER_BYTES = 256 * 1024
_CLOSE_FRAME_TIMEOUT_S = 2.0
"""For the close code to arrive."""
_TEXT, _BINARY = 0x81, 0x82  # first bytes of a frame that is a message of its own
_KIND = "hermes.kind"  # in a message to be sent: which of these its bytes are


class WriteWatchdog:
    """Closes connections whose peer reads nothing for a while; uvicorn would wait forever.

    The feed sets the timeout and counts.
    """

    def __init__(
        self,
        feed: DashboardFeed,
        transport: asyncio.Transport,
        let_go: Callable[[], None],
    ) -> None:
        self._feed = feed
        self._transport = transport
        self._let_go = let_go
        self._left = 0
        self._look: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Starts watching: the peer is behind."""
        self._left = self._transport.get_write_buffer_size()
        self._look = asyncio.get_running_loop().call_later(
            self._feed.stall_timeout_s, self._check
        )

    def end(self) -> None:
        """Stops watching: the peer has caught up or is gone."""
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def _check(self) -> None:
        if self._transport.get_write_buffer_size() < self._left:
            self.begin()
            return
        self._look = None
        self._feed.closed_slow += 1
        self._let_go()


class Requests(StrictHttpProtocol):
    """HTTP requests; an event stream is one whose response does not end by itself."""

    feed: ClassVar[DashboardFeed]
    _watch: WriteWatchdog

    # pyrefly: ignore[missing-override-decorator]
    def connection_made(self, transport: asyncio.Transport) -> None:
        self.head_timeout_s = self.feed.request_timeout_s
        self.body_timeout_s = min(self.feed.request_timeout_s * 3, BODY_TIMEOUT_S)
        super().connection_made(transport)
        self._watch = WriteWatchdog(self.feed, transport, transport.abort)

    # pyrefly: ignore[missing-override-decorator]
    def connection_lost(self, exc: Exception | None) -> None:
        self._watch.end()
        super().connection_lost(exc)

    # pyrefly: ignore[missing-override-decorator]
    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch.begin()

    # pyrefly: ignore[missing-override-decorator]
    def resume_writing(self) -> None:
        self._watch.end()
        super().resume_writing()


class Sockets(WebSocketsSansIOProtocol):
    """WebSockets."""

    feed: ClassVar[DashboardFeed]
    _watch: WriteWatchdog

    # pyrefly: ignore[missing-override-decorator]
    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        self.transport.set_write_buffer_limits(_WRITE_BUFFER_BYTES)
        self._watch = WriteWatchdog(self.feed, self.transport, self._drop)

    # pyrefly: ignore[missing-override-decorator]
    def connection_lost(self, exc: Exception | None) -> None:
        self._watch.end()
        super().connection_lost(exc)

    # pyrefly: ignore[missing-override-decorator]
    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch.begin()

    # pyrefly: ignore[missing-override-decorator]
    def resume_writing(self) -> None:
        self._watch.end()
        super().resume_writing()

    # pyrefly: ignore[missing-override-decorator]
    def send_receive_event_to_app(self) -> None:
        """Passes a message on. Text that is not UTF-8 ends this connection; uvicorn would log a traceback too."""
        if self.curr_msg_data_type == "text" and not self.close_sent:
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:
                self.frames = []
                self.conn.send_close(_NOT_UTF8)
                self.handle_parser_exception()
                return
        super().send_receive_event_to_app()

    # pyrefly: ignore[missing-override-decorator]
    async def send(self, message: Any) -> None:
        """Writes a message directly to the socket, after its frame header.

        The library would copy it twice and create costly objects.
        """
        if message["type"] != "websocket.send" or not self.handshake_complete:
            await super().send(message)
            return
        await self.writable.wait()
        if self.disconnected or self.close_sent or self.transport.is_closing():
            raise ClientDisconnected
        data, kind = message.get("bytes"), message.get(_KIND, _BINARY)
        if data is None:
            data, kind = message["text"].encode(), _TEXT
        # Not `writelines`: on some releases of Python 3.12 and 3.13 it never says that the peer is behind.
        self.transport.write(b"".join((_frame_head(kind, len(data)), data)))

    def _drop(self) -> None:
        """Sends a close frame if possible, and closes the connection shortly after."""
        if not (self.close_sent or self.transport.is_closing()):
            self.conn.send_close(TOO_SLOW)
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.close_sent = True
        self.transport.close()
        self.loop.call_later(_CLOSE_FRAME_TIMEOUT_S, self.transport.abort)


def protocols_for(feed: DashboardFeed) -> ServerProtocols:
    """The protocols of one dashboard."""
    return ServerProtocols(
        type("DashboardRequests", (Requests,), {"feed": feed}),
        type("DashboardSockets", (Sockets,), {"feed": feed}),
    )


def _frame_head(kind: int, size: int) -> bytes:
    if size < 126:
        return struct.pack("!BB", kind, size)
    if size <= 0xFFFF:
        return struct.pack("!BBH", kind, 126, size)
    return struct.pack("!BBQ", kind, 127, size)


async def send_text(socket: WebSocket, data: bytes) -> None:
    """Sends a text frame. Waits while the peer is behind; raises WebSocketDisconnect when it is gone or was dropped."""
    await socket.send({"type": "websocket.send", "text": data.decode()})


async def send_json(socket: WebSocket, data: bytes) -> None:
    """The same for JSON that we encoded ourselves, which needs no UTF-8 check."""
    await socket.send({"type": "websocket.send", "bytes": data, _KIND: _TEXT})


async def send_bytes(socket: WebSocket, data: bytes) -> None:
    """The same with a binary frame."""
    await socket.send({"type": "websocket.send", "bytes": data})


async def ignore_messages(socket: WebSocket) -> None:
    """Reads and ignores messages until the peer is gone."""
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass
