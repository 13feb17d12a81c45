"""A dashboard on loopback with a home of its own, and clients that speak to it as browsers and scripts do."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import httpx2
import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

from hermes.app import App, build
from hermes.settings import Home, Secrets, Settings
from hermes.surfaces.dashboard.credentials import Keyring, Scope
from hermes.surfaces.dashboard.server import ServedDashboard, serve

PATIENCE = 30.0


@cache
def certificates() -> ssl.SSLContext:
    """One for all tests: to read those of the system takes as long as to build a dashboard."""
    return ssl.create_default_context()


class Harness:
    """A running dashboard as tests see it."""

    def __init__(self, app: App, served: ServedDashboard, link: str) -> None:
        self.app = app
        self.served = served
        self.link = link
        self.url = served.board.url
        self.host = self.url.removeprefix("http://")
        self.client = httpx2.AsyncClient(
            base_url=self.url, timeout=PATIENCE, trust_env=False, verify=certificates()
        )
        self._keys = Keyring(app.home, app.clock.now)

    def token(self, *scopes: Scope, channel: str = "") -> str:
        return self._keys.mint("token", scopes, seconds=3600.0, channel=channel)

    def bearer(self, *scopes: Scope) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token(*scopes)}"}

    async def call(
        self, method: str, path: str, body: object = None, *, scope: Scope = "admin"
    ) -> Any:
        """An answer that must be good, decoded."""
        answer = await self.ask(method, path, body, scope=scope)
        assert answer.status_code == 200, (answer.status_code, answer.text)
        return answer.json()

    async def ask(
        self, method: str, path: str, body: object = None, *, scope: Scope = "admin"
    ) -> httpx2.Response:
        content = None if body is None else msgspec.json.encode(body)
        return await self.client.request(
            method, path, content=content, headers=self.bearer(scope)
        )

    def socket(
        self,
        path: str,
        *,
        token: str | None = None,
        scope: Scope = "admin",
        headers: dict[str, str] | None = None,
        origin: str | None = None,
        subprotocols: list[str] | None = None,
    ) -> connect:
        """A WebSocket with a token in its header; with an empty one, without."""
        given = self.token(scope) if token is None else token
        all_headers = {
            **({"Authorization": f"Bearer {given}"} if given else {}),
            **(headers or {}),
        }
        return connect(
            self.url.replace("http", "ws", 1) + path,
            additional_headers=all_headers,
            origin=Origin(origin) if origin is not None else None,
            subprotocols=[Subprotocol(one) for one in subprotocols]
            if subprotocols
            else None,
            proxy=None,
            compression=None,
            max_size=None,
        )

    async def raw(self, text: str) -> bytes:
        """What comes back for bytes that no library would send."""
        host, _, port = self.host.partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(text.replace("\n", "\r\n").encode())
        try:
            return await asyncio.wait_for(reader.read(100_000), PATIENCE)
        finally:
            writer.close()
            await writer.wait_closed()


@asynccontextmanager
async def opened(
    folder: Path, settings: Settings | None = None, secrets: Secrets | None = None
) -> AsyncIterator[Harness]:
    """A dashboard that runs while inside."""
    settings = settings or Settings()
    section = msgspec.structs.replace(settings.dashboard, port=0)
    home = Home(folder / "home")
    with build(msgspec.structs.replace(settings, dashboard=section), home) as app:
        stop = asyncio.Event()
        ready: asyncio.Future[tuple[ServedDashboard, str]] = (
            asyncio.get_running_loop().create_future()
        )
        serving = asyncio.create_task(
            serve(
                app,
                secrets or Secrets({}, {}),
                lambda served, link: ready.set_result((served, link)),
                stop,
            )
        )
        await asyncio.wait([serving, ready], return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()
        harness = Harness(app, *await ready)
        try:
            yield harness
        finally:
            await harness.client.aclose()
            stop.set()
            await asyncio.wait_for(serving, PATIENCE)


async def frames(
    socket: ClientConnection, until: Callable[[dict[str, Any]], bool]
) -> list[dict[str, Any]]:
    """Events of a feed up to the first that fits."""
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(PATIENCE):
        while True:
            batch = msgspec.json.decode(await socket.recv())
            for event in batch:
                found.append(event)
                if until(event):
                    return found


def is_type(kind: str) -> Callable[[dict[str, Any]], bool]:
    return lambda event: event["type"] == kind
