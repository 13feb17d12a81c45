"""HTTP for the adapters: pooled connections, a timeout for each phase, bounded sizes.

Every failure is a `TransportFailure` that names the phase.
"""

import asyncio
import errno
import re
import socket
from collections.abc import Iterator, Mapping
from functools import cached_property
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypeAlias
from urllib.parse import urlsplit

import msgspec

from hermes.primitives.decompression import CompressionError, Decompressor
from hermes.primitives.read_timeout import ReadTimeout
from hermes.providers.http_response import ConnectionBroken, HttpResponse
from hermes.providers.provider_table import is_local
from hermes.text.translation import translator

t = translator(__name__)

if TYPE_CHECKING:
    from hermes.providers.direct_http import Direct, Http11Connection
    from hermes.providers.proxied_http import Proxied

MAX_RESPONSE_BYTES = 128 * 1024 * 1024
MAX_ERROR_BODY_BYTES = 64 * 1024
_DRAIN_TIMEOUT_S = (
    0.2  # for the end of a complete body, so that the connection can be reused
)

_PROXIES = ("https_proxy", "http_proxy", "all_proxy")

Phase: TypeAlias = Literal[
    "connect", "first_byte", "idle", "total", "cut", "protocol", "too_large"
]


class HttpTimeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds for each phase of a call. `idle` is the longest silence in a body that has begun."""

    connect: float = 10.0
    first_byte: float = 60.0
    idle: float = 300.0
    total: float = 1800.0


class TransportFailure(Exception):
    """No complete answer came over the wire. `phase` says how far it got, `timed_out` whether a deadline passed."""

    def __init__(self, phase: Phase, detail: str, *, timed_out: bool = False) -> None:
        super().__init__(detail)
        self.phase: Phase = phase
        self.detail = detail
        self.timed_out = timed_out


class Http:
    """A pool of connections. Addresses of this machine or a private network never go through a proxy."""

    def __init__(self, environment: Mapping[str, str] = MappingProxyType({})) -> None:
        self._has_proxy = any(
            environment.get(spelling)
            for name in _PROXIES
            for spelling in (name, name.upper())
        )

    @cached_property
    def _direct(self) -> "Direct":
        from hermes.providers.direct_http import Direct

        return Direct()

    @cached_property
    def _proxied(self) -> "Proxied":
        from hermes.providers.proxied_http import Proxied

        return Proxied()

    def warm(self, url: str) -> None:
        """Loads what the first request to `url` needs; call it from a thread while a person types."""
        if self._is_direct(url):
            self._direct.warm(url)
        else:
            self._proxied.warm()

    async def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        deadlines: HttpTimeouts,
    ) -> "HttpReply":
        """Sends a request and waits for the head of the answer. The caller closes the reply."""
        start = asyncio.get_running_loop().time()
        phase: Phase = (
            "total" if deadlines.total < deadlines.first_byte else "first_byte"
        )
        try:
            async with asyncio.timeout(getattr(deadlines, phase)):
                if self._is_direct(url):
                    answer: HttpResponse = await self._ask(
                        method, url, headers, body, deadlines
                    )
                else:
                    answer = await self._proxied.send(method, url, headers, body)
        except TimeoutError as error:
            raise _late(phase, getattr(deadlines, phase)) from error
        except ConnectionBroken as error:
            raise TransportFailure("cut", str(error)) from error
        except (OSError, ValueError) as error:
            raise TransportFailure("connect", _no_connection(error)) from error
        return HttpReply(answer, deadlines, start)

    async def aclose(self) -> None:
        """Close all connections."""
        if "_direct" in self.__dict__:
            self._direct.close()
        if "_proxied" in self.__dict__:
            await self._proxied.close()

    def _is_direct(self, url: str) -> bool:
        server = urlsplit(url).netloc
        plain = server.isascii() and "@" not in server
        return plain and (
            not self._has_proxy or (url.startswith("http://") and is_local(url))
        )

    async def _ask(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        deadlines: HttpTimeouts,
    ) -> "Http11Connection":
        """Sends on an idle connection, or on a new one if that has died."""
        exchange = self._direct.idle(url)
        if exchange is not None:
            try:
                return await _sent(exchange, method, url, headers, body)
            except ConnectionBroken as cut:
                if cut.fresh:
                    raise
        try:
            async with asyncio.timeout(deadlines.connect):
                exchange = await self._direct.connect(url)
        except TimeoutError as error:
            raise _late("connect", deadlines.connect) from error
        return await _sent(exchange, method, url, headers, body)


async def _sent(
    exchange: "Http11Connection",
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
) -> "Http11Connection":
    try:
        await exchange.send(method, url, headers, body)
    except BaseException:
        exchange.close()
        raise
    return exchange


class HttpReply:
    """An answer whose body is still coming. Leaving the `async with` releases the connection at once."""

    def __init__(
        self, answer: HttpResponse, deadlines: HttpTimeouts, start: float
    ) -> None:
        self.status = answer.status
        self.headers = answer.headers
        self._answer = answer
        self._deadlines = deadlines
        self._start = start
        self._began = self._ended = False
        self._size = 0
        self._first_byte_s: float | None = None
        self._encoding = answer.headers.get("content-encoding", "identity")
        self._body: Decompressor | None = None
        self._pieces: Iterator[bytes] = iter(())
        self._time = asyncio.get_running_loop().time
        self._timeout = ReadTimeout()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timeout.close()
        await self._answer.end()

    async def read(self) -> bytes:
        """Returns the next piece of the body; empty at its end."""
        if self._encoding == "identity":
            return self._counted(await self._read())
        try:
            self._body = self._body or Decompressor(self._encoding)
            while not (piece := next(self._pieces, b"")):
                data = await self._read()
                if not data and not self._body.is_whole:
                    raise TransportFailure(
                        "cut", t.logged("the compressed response is incomplete")
                    )
                if not data:
                    return b""
                self._pieces = self._body.feed(data)
        except CompressionError as error:
            raise TransportFailure("protocol", str(error)) from error
        return self._counted(piece)

    def _counted(self, piece: bytes) -> bytes:
        self._size += len(piece)
        if self._size > MAX_RESPONSE_BYTES:
            raise TransportFailure(
                "too_large",
                t.logged(
                    "the answer is larger than {size} MiB",
                    size=MAX_RESPONSE_BYTES // 2**20,
                ),
            )
        return piece

    async def _read(self) -> bytes:
        """Returns the next piece as it came."""
        if self._ended:
            return b""
        left = self._deadlines.total - (self._time() - self._start)
        phase: Phase = "idle" if self._began else "first_byte"
        limit = self._deadlines.idle
        if not self._began:
            limit = self._deadlines.first_byte - (self._time() - self._start)
        if left < limit:
            phase, limit = "total", left
        try:
            chunk = await self._timeout.wait(self._answer.chunk, limit)
        except TimeoutError as error:
            raise _late(phase, getattr(self._deadlines, phase)) from error
        except ConnectionBroken as error:
            raise TransportFailure("cut", str(error)) from error
        if self._first_byte_s is None and chunk:
            self._first_byte_s = self._time() - self._start
        self._began, self._ended = True, not chunk
        return chunk

    def timing(self) -> str:
        """Says how far the answer came, and how long that took."""
        seconds = self._time() - self._start
        if self._first_byte_s is None:
            return (
                f"ended after {seconds:.1f} s, before its first byte"  # not translated
            )
        began = f"first byte after {self._first_byte_s:.1f} s"  # not translated
        return f"{began}, {self._size:,} bytes, ended after {seconds:.1f} s"  # not translated

    async def read_all(self, limit: int) -> bytes:
        """Returns the body up to `limit` bytes, and reads no further."""
        pieces: list[bytes] = []
        size = 0
        while size < limit and (piece := await self.read()):
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces)[:limit]

    async def read_error(self) -> bytes:
        """Returns what can be read of an error's body. The status matters more, so a failure is ignored."""
        try:
            return await self.read_all(MAX_ERROR_BODY_BYTES)
        except TransportFailure:
            return b""

    async def drain(self) -> None:
        """Reads the end of a complete body, so that the connection can be reused."""
        try:
            async with asyncio.timeout(_DRAIN_TIMEOUT_S):
                while await self._answer.chunk():
                    pass
        except (TimeoutError, ConnectionBroken):
            return  # the message is complete; the connection is closed instead


def _no_connection(error: OSError | ValueError) -> str:
    """Says why there is no connection, without error numbers."""
    if isinstance(error, socket.gaierror):
        return t.logged("its host name could not be resolved")
    if isinstance(error, UnicodeError):  # from looking up a name that no host can have
        return t.logged("its host name is not valid")
    words = str(error)
    refused = f"[Errno {errno.ECONNREFUSED}]"
    if isinstance(error, ConnectionRefusedError) or refused in words or not words:
        return t.logged("the connection was refused")
    return re.sub(r"\[Errno -?\d+\] ", "", words)


def _late(phase: Phase, seconds: float) -> TransportFailure:
    number = f"{seconds:g}"
    match phase:
        case "connect":
            words = t.logged("no connection within {seconds} s", seconds=number)
        case "first_byte":
            words = t.logged("no answer within {seconds} s", seconds=number)
        case "idle":
            words = t.logged("the answer stopped for {seconds} s", seconds=number)
        case _:
            words = t.logged("the answer took longer than {seconds} s", seconds=number)
    return TransportFailure(phase, words, timed_out=True)
