"""Our WebSockets on uvicorn: wide enough for a terminal's output, and able to let go of a peer that takes nothing."""

import asyncio
from asyncio.transports import BaseTransport

from starlette.websockets import WebSocket
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

from hermes.surfaces.dashboard.feeds.hub import PATIENCE

RESUME = 4008  # close code: you were too slow, connect again with your cursor
MAX_MESSAGE = 1024 * 1024  # bytes of a message that comes in
_BUFFER = 256 * 1024  # bytes on their way before a sender has to wait
_GRACE = 2.0  # seconds for the close code to get through
_DROP = "hermes.drop"


class Protocol(WebSocketsSansIOProtocol):
    """uvicorn waits for a peer to take everything before it closes; a peer that is stuck would be kept for ever."""

    # pyrefly: ignore[missing-override-decorator]
    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        self.transport.set_write_buffer_limits(_BUFFER)

    # pyrefly: ignore[missing-override-decorator]
    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.handshake_initiated and not self.close_sent:
            self.scope[_DROP] = self.drop  # type: ignore[literal-required]

    def drop(self, code: int) -> None:
        """Says goodbye as far as that is possible, and lets go of the peer shortly after."""
        if self.close_sent or self.disconnected or self.transport.is_closing():
            return
        self.conn.send_close(code)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.transport.close()
        self.loop.call_later(_GRACE, self.transport.abort)


class TooSlow(Exception):
    """The peer took nothing for a while, and was let go."""


async def send_text(socket: WebSocket, data: bytes, *, patience: float = PATIENCE) -> None:
    """Sends a text frame. Raises TooSlow once the peer has taken nothing for `patience` seconds."""
    await _send(socket, {"type": "websocket.send", "text": data.decode()}, patience)


async def send_bytes(socket: WebSocket, data: bytes, *, patience: float = PATIENCE) -> None:
    """The same with a binary frame."""
    await _send(socket, {"type": "websocket.send", "bytes": data}, patience)


async def _send(socket: WebSocket, message: dict[str, object], patience: float) -> None:
    try:
        async with asyncio.timeout(patience):
            await socket.send(message)
    except TimeoutError as error:
        drop = socket.scope.get(_DROP)
        if drop is not None:
            drop(RESUME)
        raise TooSlow from error


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
