"""Visits that last: feeds, streams, terminals. One ends when the credential that it came with does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from starlette.types import Message, Receive, Scope, Send

from hermes.primitives.tasks import running
from hermes.surfaces.dashboard.gate.keys import Keyring, Pass

SIGNED_OUT = 4001  # close code: this credential is void
_LOOK = 2.0  # seconds between looks


class _Held(NamedTuple):
    """By what somebody is here: a credential, and the key that it was signed with."""

    by: Pass
    serial: str


class Visit:
    """A request or a WebSocket while it is served, by way of its own `receive` and `send`."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._is_socket = scope["type"] == "websocket"
        self._receive = receive
        self._send = send
        self._over = asyncio.Event()
        self._is_open = False
        # A terminal's bytes take no detour.
        self.receive: Receive = receive if self._is_socket else self._take
        self.send: Send = send if self._is_socket else self._give

    async def _take(self) -> Message:
        """The next piece of a request; when the visit is over, its peer counts as gone."""
        async with (
            running(_awaited(self._receive)) as coming,
            running(self._over.wait()) as over,
        ):
            await asyncio.wait({coming, over}, return_when=asyncio.FIRST_COMPLETED)
            if self._over.is_set():
                return {"type": "http.disconnect"}
            return coming.result()

    async def _give(self, message: Message) -> None:
        self._is_open = message.get("more_body", False)
        await self._send(message)

    async def end(self) -> None:
        """Whoever serves it is told that the peer is gone."""
        self._over.set()
        if self._is_socket:
            await self._send(
                {"type": "websocket.close", "code": SIGNED_OUT, "reason": "signed out"}
            )

    async def finish(self) -> None:
        """Closes an answer that was broken off."""
        if self._over.is_set() and self._is_open:
            await self._send({"type": "http.response.body", "body": b""})


class Visits:
    """Who is here, and by which credential."""

    def __init__(self, keys: Keyring) -> None:
        self._keys = keys
        self._here: dict[Visit, _Held] = {}

    @asynccontextmanager
    async def visiting(self, visit: Visit, held: Pass) -> AsyncIterator[None]:
        """While inside, the visit is ended when its credential is."""
        self._here[visit] = _Held(held, self._keys.serial)
        try:
            yield
        finally:
            del self._here[visit]
        await visit.finish()

    async def look(self) -> None:
        """Ends the visits whose credential is void by now."""
        serial = self._keys.serial
        good = {
            held
            for held in set(self._here.values())
            if held.serial == serial and self._keys.is_good(held.by)
        }
        void = [one for one, held in self._here.items() if held not in good]
        await asyncio.gather(
            *(visit.end() for visit in void), return_exceptions=True
        )  # some leave at this moment

    async def keep_looking(self) -> None:
        """Looks now and then: another process may have signed everybody out, and credentials end by themselves."""
        while True:
            await asyncio.sleep(_LOOK)
            if self._here:
                await self.look()


async def _awaited(receive: Receive) -> Message:
    return await receive()
