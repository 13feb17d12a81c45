"""Wherever Hermes listens, a request has one end that everybody sees at the same place."""

import asyncio
import logging

import pytest
from starlette.responses import Response

from hermes.primitives.repeated_errors import RepeatedErrors
from hermes.surfaces.dashboard.uvicorn_protocol import Requests
from hermes.surfaces.gateway.api_server.server import ApiServer
from hermes.surfaces.gateway.listener import HttpListener
from hermes.surfaces.web.endpoint import Endpoint, EndpointCall, read_body
from hermes.surfaces.web.http_protocol import StrictHttpProtocol

_PATIENCE = 20.0


def test_every_listener_speaks_the_same_http() -> None:
    assert issubclass(Requests, StrictHttpProtocol)
    assert issubclass(ApiServer.protocols.http, StrictHttpProtocol)


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ("Content-Length: 2\r\n", b"200"),
        ("Transfer-Encoding: chunked\r\n", b"200"),
        ("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", b"400"),
        ("transfer-encoding: chunked\r\nX: y\r\ncontent-length: 2\r\n", b"400"),
        ("X-Folded: one\r\n two\r\n", b"400"),
        ("X-Folded: one\n\ttwo\n", b"400"),
    ],
)
async def test_what_can_be_read_in_two_ways_is_refused(
    lines: str, status: bytes
) -> None:
    async def answer(call: EndpointCall) -> Response:
        await read_body(call.request, 100)
        return Response("ok")

    listener = HttpListener("127.0.0.1", 0, RepeatedErrors(logging.getLogger("hermes")))
    url = await listener.add(Endpoint("POST", "/hook", "open", answer))
    host, _, port = url.removeprefix("http://").partition("/")[0].partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        body = "0\r\n\r\n" if "chunked" in lines else "ok"
        writer.write(
            f"POST /hook HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{lines}\r\n{body}".encode()
        )
        assert (await asyncio.wait_for(reader.read(), _PATIENCE)).split(b" ")[
            1
        ] == status
    finally:
        writer.close()
        await listener.close()
