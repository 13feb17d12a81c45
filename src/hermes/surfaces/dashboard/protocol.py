"""Our WebSockets on uvicorn: wide enough for a terminal's output, and able to let go of a peer that takes nothing."""

import asyncio
from asyncio.transports import BaseTransport
from typing import ClassVar

from starlette.websockets import WebSocket
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from hermes.surfaces.dashboard.feeds.hub import Hub

RESUME = 4008  # close code: you were too slow, connect again with your cursor
MAX_MESSAGE = 1024 * 1024  # bytes of a message that comes in
_BUFFER = 256 * 1024  # bytes on their way before a sender has to wait
_GRACE = 2.0  # seconds for the close code to get through


class Protocol(WebSocketsSansIOProtocol):
    """uvicorn waits for ever for a peer to take what was sent. This one looks after a while whether it took anything,
    and lets go of it otherwise; the hub says how long, and counts."""

    hub: ClassVar[Hub]
    _look: asyncio.TimerHandle | None = None
    _left = 0

    # pyrefly: ignore[missing-override-decorator]
    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        self.transport.set_write_buffer_limits(_BUFFER)

    # pyrefly: ignore[missing-override-decorator]
    def connection_lost(self, exc: Exception | None) -> None:
        self._relax()
        super().connection_lost(exc)

    # pyrefly: ignore[missing-override-decorator]
    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch()

    # pyrefly: ignore[missing-override-decorator]
    def resume_writing(self) -> None:
        self._relax()
        super().resume_writing()

    def _watch(self) -> None:
        self._left = self.transport.get_write_buffer_size()
        self._look = self.loop.call_later(self.hub.patience, self._check)

    def _check(self) -> None:
        if self.transport.get_write_buffer_size() < self._left:
            self._watch()
            return
        self._look = None
        self.hub.closed_slow += 1
        self._drop()

    def _relax(self) -> None:
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def _drop(self) -> None:
        """Says goodbye as far as that is possible, and lets go of the peer shortly after."""
        if not (self.close_sent or self.transport.is_closing()):
            self.conn.send_close(RESUME)
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.close_sent = True
        self.transport.close()
        self.loop.call_later(_GRACE, self.transport.abort)


def protocol_for(hub: Hub) -> type[Protocol]:
    """The protocol of one dashboard."""
    return type("DashboardProtocol", (Protocol,), {"hub": hub})


async def send_text(socket: WebSocket, data: bytes) -> None:
    """Sends a text frame. Waits while the peer is behind; raises WebSocketDisconnect when it is gone, or let go."""
    await socket.send({"type": "websocket.send", "text": data.decode()})


async def send_bytes(socket: WebSocket, data: bytes) -> None:
    """The same with a binary frame."""
    await socket.send({"type": "websocket.send", "bytes": data})


async def talk(*jobs: "asyncio.Task[None]") -> None:
    """Runs the jobs of a WebSocket until the first one ends, then ends the others. Raises what that one raised."""
    try:
        done, _ = await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)
    for job in done:
        job.result()


async def ignore_messages(socket: WebSocket) -> None:
    """Reads until the peer is gone; what it says means nothing."""
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass
