"""Connections that get nowhere are let go, wherever Hermes listens; slow answers are not their peers' fault."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from starlette.responses import Response

from hermes.app import build
from hermes.events.bus import Bus
from hermes.primitives.repeated_errors import RepeatedErrors
from hermes.settings import Home, Secrets, Settings
from hermes.settings.gateway import ApiSettings
from hermes.surfaces.gateway.api_server.server import ApiServer
from hermes.surfaces.gateway.listener import HttpListener
from hermes.surfaces.web.endpoint import Endpoint, EndpointCall, read_body
from hermes.surfaces.web.http_protocol import StrictHttpProtocol
from hermes.surfaces.web.server import ServerProtocols

_PATIENCE = 20.0
_KEY = "sk-hermes-of-a-test-0000000000000000"
_HEAD = b"POST /hook HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"


class _Quick(StrictHttpProtocol):
    head_timeout_s = body_timeout_s = 0.1


class _Unhurried(StrictHttpProtocol):
    head_timeout_s = 3.0  # long beside any pause of a busy machine
    body_timeout_s = 1.0


async def _said(url: str, *pieces: bytes) -> bytes:
    """All that comes back until the connection is closed."""
    host, _, port = url.removeprefix("http://").partition("/")[0].partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
    try:
        return await asyncio.wait_for(reader.read(), _PATIENCE)
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


@asynccontextmanager
async def _listening(
    protocol: type[StrictHttpProtocol],
) -> AsyncIterator[tuple[str, asyncio.Event]]:
    """Reads a body once it is told to, and gives it back."""
    go = asyncio.Event()

    async def measure(call: EndpointCall) -> Response:
        await go.wait()
        body = await read_body(call.request, 10_000_000)
        return Response(str(len(body or b"")))

    listener = HttpListener("127.0.0.1", 0, RepeatedErrors(logging.getLogger("hermes")))
    listener.protocols = ServerProtocols(protocol)
    try:
        yield await listener.add(Endpoint("POST", "/hook", "open", measure)), go
    finally:
        go.set()
        await listener.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HT",
        b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ",
        _HEAD,
        _HEAD + b"12345",
    ],
)
async def test_a_request_that_does_not_come_is_not_waited_for(sent: bytes) -> None:
    async with _listening(_Quick) as (url, go):
        go.set()
        assert await _said(url, sent) == b""


@pytest.mark.parametrize("size", [10, 300_000])
async def test_an_answer_takes_as_long_as_it_likes_and_so_do_we_in_reading(
    size: int,
) -> None:
    head = _HEAD.replace(b"10", f"{size}\r\nConnection: close".encode())
    async with _listening(_Unhurried) as (url, go):
        asking = asyncio.create_task(_said(url, head + b"x" * size))
        assert await _said(url, b"GET") == b""  # longer than the terms of the other
        assert not asking.done()
        go.set()
        assert (await asking).endswith(f"\r\n{size}".encode())


async def test_the_api_server_waits_for_nobody_either(tmp_path: Path) -> None:
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    with build(
        Settings(api=ApiSettings(port=0)), Home(tmp_path / "home"), bus=Bus()
    ) as app:
        server = ApiServer(app, Secrets({"GATEWAY_API_KEY": _KEY}, {}))
        server.protocols = ServerProtocols(_Quick)
        serving = asyncio.create_task(server.run(ready.set_result))
        try:
            assert (
                await _said(
                    await asyncio.wait_for(ready, _PATIENCE),
                    b"GET /v1/models HTTP/1.1\r\nHost: ",
                )
                == b""
            )
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
