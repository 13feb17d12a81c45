"""Long-lived requests: feeds, streams, terminals. Each ends when its credential does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from starlette.types import Message, Receive, Scope, Send

from hermes.primitives.tasks import running
from hermes.surfaces.dashboard.credentials import Keyring, Pass

SIGNED_OUT = 4001
"""The close code of a WebSocket whose credential is void."""
_CREDENTIAL_CHECK_INTERVAL_S = 2.0


class _Credential(NamedTuple):
    """A credential and the key that signed it."""

    held: Pass
    serial: str


class OpenConnection:
    """A request or WebSocket while it is served, with a `receive` and `send` of its own."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._is_socket = scope["type"] == "websocket"
        self._receive = receive
        self._send = send
        self._ended = asyncio.Event()
        self._is_open = False
        # Terminal bytes are passed on directly.
        self.receive: Receive = receive if self._is_socket else self._receive_or_end
        self.send: Send = send if self._is_socket else self._note_and_send

    async def _receive_or_end(self) -> Message:
        """The next message; once the connection was ended, its peer counts as gone."""
        async with (
            running(_receive_once(self._receive)) as receiving,
            running(self._ended.wait()) as ending,
        ):
            await asyncio.wait({receiving, ending}, return_when=asyncio.FIRST_COMPLETED)
            if self._ended.is_set():
                return {"type": "http.disconnect"}
            return receiving.result()

    async def _note_and_send(self, message: Message) -> None:
        self._is_open = message.get("more_body", False)
        await self._send(message)

    async def end(self) -> None:
        """Tells whoever serves it that the peer is gone."""
        self._ended.set()
        if self._is_socket:
            await self._send(
                {"type": "websocket.close", "code": SIGNED_OUT, "reason": "signed out"}
            )

    async def finish(self) -> None:
        """Closes a response that was broken off."""
        if self._ended.is_set() and self._is_open:
            await self._send({"type": "http.response.body", "body": b""})


class OpenConnections:
    """The open connections of a dashboard, by credential."""

    def __init__(self, keys: Keyring) -> None:
        self._keys = keys
        self._open: dict[OpenConnection, _Credential] = {}

    @asynccontextmanager
    async def hold(
        self, held: Pass, scope: Scope, receive: Receive, send: Send
    ) -> AsyncIterator[tuple[Receive, Send]]:
        """Inside, the connection is ended as soon as its credential is void."""
        connection = OpenConnection(scope, receive, send)
        self._open[connection] = _Credential(held, self._keys.serial)
        try:
            yield connection.receive, connection.send
        finally:
            del self._open[connection]
        await connection.finish()

    async def check(self) -> None:
        """Ends the connections whose credential is void by now."""
        serial = self._keys.serial
        valid = {
            one
            for one in set(self._open.values())
            if one.serial == serial and self._keys.is_good(one.held)
        }
        void = [
            connection for connection, one in self._open.items() if one not in valid
        ]
        # Some of them close at this very moment.
        await asyncio.gather(
            *(connection.end() for connection in void), return_exceptions=True
        )

    async def keep_checking(self) -> None:
        """Checks from time to time: credentials expire, and other processes revoke them."""
        while True:
            await asyncio.sleep(_CREDENTIAL_CHECK_INTERVAL_S)
            if self._open:
                await self.check()


async def _receive_once(receive: Receive) -> Message:
    return await receive()
