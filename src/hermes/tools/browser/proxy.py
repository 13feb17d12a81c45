"""The browser's only way to the network: a proxy on loopback that allows only what the address check allows.

Intercepting requests in the browser would miss redirects, sockets and names that the browser resolves by itself. Every
byte passes through the proxy: each connection goes to an address that was checked a moment before. A password keeps
other programs out.
"""

import asyncio
import base64
import contextlib
import secrets
import socket
from collections.abc import AsyncIterator, Collection

import msgspec

from hermes.errors import ToolFailed
from hermes.primitives.acceptor import Acceptor, accept_streams
from hermes.primitives.tasks import BackgroundTasks, run_until_first, running
from hermes.tools.web.address_check import AddressCheck, CheckedAddress
from hermes.tools.web.urls import WebAddress, read_url

_MAX_HEAD_BYTES = 64 * 1024
_READ_BYTES = 64 * 1024
_UPSTREAM_CONNECT_TIMEOUT_S = 10.0
_PROXY_CLOSE_TIMEOUT_S = 1.0
_MAX_REMEMBERED_REFUSALS = 5
_HOP_BY_HOP = (
    "proxy-authorization",
    "proxy-connection",
    "connection",
    "keep-alive",
    "upgrade",
    "te",
)


class _Refused(Exception):
    """An error that the client gets instead of an answer."""

    def __init__(self, status: str, words: str, header: str = "") -> None:
        super().__init__(words)
        self.status = status
        self.header = header


class _Head(msgspec.Struct, frozen=True):
    method: str
    target: str
    headers: tuple[tuple[str, str], ...]

    def get(self, wanted: str) -> str:
        return next(
            (value for name, value in self.headers if name.lower() == wanted), ""
        )


class GateProxy:
    """A running proxy. `refusals` are the latest addresses to which it did not connect, and why."""

    def __init__(self, gate: AddressCheck, approved: Collection[str] = ()) -> None:
        self.user = "hermes"
        self.password = secrets.token_urlsafe(24)
        self._refusals: list[str] = []
        self._gate = gate
        self._approved = approved
        self._server: Acceptor | None = None
        self._connections = BackgroundTasks("a connection of the browser")

    async def start(self) -> str:
        """Starts listening; returns the proxy's address."""
        listener = socket.create_server(("127.0.0.1", 0))
        self._server = accept_streams(listener, self._accept, limit=_MAX_HEAD_BYTES)
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    def refusals(self) -> list[str]:
        """Returns what was refused since the last call."""
        found = self._refusals
        self._refusals = []
        return found

    async def close(self) -> None:
        """Ends every connection."""
        if self._server is not None:
            self._server.close()
            self._server = None
        await self._connections.close()

    def _accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._connections.start(self._serve(reader, writer))

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            await self._answer(reader, writer)
        except _Refused as refused:
            with contextlib.suppress(ConnectionError):
                writer.write(_refusal(refused))
                await writer.drain()
        except (OSError, EOFError, asyncio.LimitOverrunError):
            pass  # one of the two ends has gone; the other notices by itself
        finally:
            await _close(writer)

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        head = _read_head(await reader.readuntil(b"\r\n\r\n"))
        self._authenticate(head)
        if head.method == "CONNECT":
            checked = await self._check(f"https://{head.target}/")
            async with _connected(checked) as (upstream, sink):
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await run_until_first(_copy(reader, sink), _copy(upstream, writer))
        else:
            checked = await self._check(head.target)
            async with _connected(checked) as (upstream, sink):
                sink.write(_forwarded(head, checked.place))
                async with running(_copy(reader, sink)):
                    writer.write(_closing(await upstream.readuntil(b"\r\n\r\n")))
                    await _copy(upstream, writer)

    def _authenticate(self, head: _Head) -> None:
        expected = (
            "Basic "
            + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        )
        if not secrets.compare_digest(
            head.get("proxy-authorization").encode(), expected.encode()
        ):
            raise _Refused(
                "407 Proxy Authentication Required",
                "",
                'Proxy-Authenticate: Basic realm="hermes"\r\n',
            )

    async def _check(self, url: str) -> CheckedAddress:
        try:
            return await self._gate.check(read_url(url), self._approved)
        except ToolFailed as error:
            if error.message not in self._refusals:
                self._refusals = [*self._refusals, error.message][
                    -_MAX_REMEMBERED_REFUSALS:
                ]
            raise _Refused("403 Forbidden", error.message) from error


@contextlib.asynccontextmanager
async def _connected(
    checked: CheckedAddress,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Opens a connection to the first checked address that accepts one."""
    problem: Exception = OSError("no address")
    for address in checked.addresses:
        try:
            async with asyncio.timeout(_UPSTREAM_CONNECT_TIMEOUT_S):
                reader, writer = await asyncio.open_connection(
                    str(address), checked.place.port, limit=_MAX_HEAD_BYTES
                )
            break
        except (OSError, TimeoutError) as error:
            problem = error
    else:
        raise _Refused(
            "502 Bad Gateway", f"{checked.place.authority} can't be reached."
        ) from problem
    try:
        yield reader, writer
    finally:
        await _close(writer)


async def _close(writer: asyncio.StreamWriter) -> None:
    """Closes a connection without waiting for a peer that does not read."""
    writer.close()
    try:
        async with asyncio.timeout(_PROXY_CLOSE_TIMEOUT_S):
            await writer.wait_closed()
    except (OSError, TimeoutError):
        writer.transport.abort()


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Copies until one side closes."""
    with contextlib.suppress(OSError):
        while piece := await source.read(_READ_BYTES):
            sink.write(piece)
            await sink.drain()


def _read_head(data: bytes) -> _Head:
    first, *lines = data.decode("latin-1").rstrip("\r\n").split("\r\n")
    words = first.split(" ")
    if len(words) != 3:
        raise _Refused("400 Bad Request", "not a request")
    pairs = (line.partition(":") for line in lines)
    return _Head(
        words[0],
        words[1],
        tuple((name.strip(), value.strip()) for name, _, value in pairs),
    )


def _forwarded(head: _Head, place: WebAddress) -> bytes:
    """Returns the request for the checked address, as the only one on its connection."""
    kept = [
        (name, value)
        for name, value in head.headers
        if name.lower() not in (*_HOP_BY_HOP, "host")
    ]
    lines = [
        f"{head.method} {place.target} HTTP/1.1",
        f"Host: {place.authority}",
        "Connection: close",
    ]
    lines += [f"{name}: {value}" for name, value in kept]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _closing(head: bytes) -> bytes:
    """Returns the head of an answer that closes the connection."""
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    kept = [
        line
        for line in lines
        if line.partition(":")[0].strip().lower() not in ("connection", "keep-alive")
    ]
    return ("\r\n".join([first, *kept, "Connection: close"]) + "\r\n\r\n").encode(
        "latin-1"
    )


def _refusal(refused: _Refused) -> bytes:
    body = str(refused).encode()
    head = f"HTTP/1.1 {refused.status}\r\n{refused.header}Content-Type: text/plain; charset=utf-8\r\n"
    return (
        f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
        + body
    )
