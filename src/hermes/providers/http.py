"""HTTP for the adapters: one pooled client, made at the first request; a deadline for each phase; bounded sizes.

Everything that can go wrong on the way is a `TransportFailure` that says which phase it was. Only this module knows
httpx2.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

import msgspec

from hermes.providers.quirks import is_local

if TYPE_CHECKING:
    import httpx2

MAX_RESPONSE = 128 * 1024 * 1024
MAX_ERROR_BODY = 64 * 1024
_DRAIN = (
    0.2  # seconds to wait for the end of a body whose content is complete, so that the connection can be used again
)

Phase: TypeAlias = Literal["connect", "first_byte", "idle", "total", "cut", "protocol", "too_large"]


class Deadlines(msgspec.Struct, frozen=True, kw_only=True):
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

    def __init__(self) -> None:
        self._library: ModuleType | None = None
        self._clients: dict[bool, httpx2.AsyncClient] = {}

    def warm(self, url: str) -> None:
        """Load the client for `url`, which costs a tenth of a second; call it from a thread while a person types."""
        self._client(url)

    def _client(self, url: str) -> "httpx2.AsyncClient":
        if self._library is None:
            import httpx2

            self._library = httpx2
        plain = url.startswith("http://") and is_local(url)
        client = self._clients.get(plain)
        if client is None:
            client = self._library.AsyncClient(
                verify=not plain,  # no TLS context for an address that has no TLS; redirects are never followed
                trust_env=not plain,
                follow_redirects=False,
                limits=self._library.Limits(max_connections=64, max_keepalive_connections=16, keepalive_expiry=30.0),
            )
            self._clients[plain] = client
        return client

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, deadlines: Deadlines
    ) -> "Reply":
        """Send and wait for the head of the answer. The caller closes the reply."""
        client = self._client(url)
        library = self._library
        assert library is not None  # noqa: S101 - _client loaded it
        timeout = library.Timeout(None, connect=deadlines.connect, write=deadlines.first_byte)
        loop = asyncio.get_running_loop()
        start = loop.time()
        try:
            request = client.build_request(method, url, headers=headers, content=body or None, timeout=timeout)
            async with asyncio.timeout(min(deadlines.first_byte, deadlines.total)):
                response = await client.send(request, stream=True)
        except TimeoutError as error:
            phase: Phase = "total" if deadlines.total < deadlines.first_byte else "first_byte"
            raise _late(phase, getattr(deadlines, phase)) from error
        except library.ConnectTimeout as error:
            raise _late("connect", deadlines.connect) from error
        except library.WriteTimeout as error:
            raise _late("first_byte", deadlines.first_byte) from error
        except library.ConnectError as error:
            raise TransportFailure("connect", str(error) or "the connection was refused") from error
        except (library.InvalidURL, library.UnsupportedProtocol) as error:
            raise TransportFailure("connect", f"not an address: {error}") from error
        except library.HTTPError as error:
            raise TransportFailure("cut", str(error) or type(error).__name__) from error
        return Reply(response, library, deadlines, start)

    async def aclose(self) -> None:
        """Close all connections."""
        clients = list(self._clients.values())
        self._clients.clear()
        for client in clients:
            await client.aclose()


class Reply:
    """An answer whose body is still coming. Leaving the `async with` closes the connection at once."""

    def __init__(self, response: "httpx2.Response", library: ModuleType, deadlines: Deadlines, start: float) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._response = response
        self._library = library
        self._deadlines = deadlines
        self._start = start
        self._size = 0
        self._time = asyncio.get_running_loop().time
        self._chunks: AsyncIterator[bytes] = response.aiter_raw()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._response.aclose()

    async def read(self) -> bytes:
        """The next piece of the body; nothing at its end."""
        left = self._deadlines.total - (self._time() - self._start)
        phase: Phase = "idle" if self._size else "first_byte"
        limit = self._deadlines.idle
        if not self._size:
            limit = self._deadlines.first_byte - (self._time() - self._start)
        if left < limit:
            phase, limit = "total", left
        try:
            async with asyncio.timeout(limit):
                chunk = await anext(self._chunks, b"")
        except TimeoutError as error:
            raise _late(phase, getattr(self._deadlines, phase)) from error
        except self._library.HTTPError as error:
            raise TransportFailure("cut", str(error) or type(error).__name__) from error
        self._size += len(chunk)
        if self._size > MAX_RESPONSE:
            raise TransportFailure("too_large", f"the answer is larger than {MAX_RESPONSE // 2**20} MiB")
        return chunk

    async def read_all(self, limit: int) -> bytes:
        """The body up to `limit` bytes; what is behind them is not read."""
        pieces: list[bytes] = []
        size = 0
        while size < limit and (piece := await self.read()):
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces)[:limit]

    async def read_error(self) -> bytes:
        """What can be had of an error's body. Its status is known; a body that fails adds nothing to it."""
        try:
            return await self.read_all(MAX_ERROR_BODY)
        except TransportFailure:
            return b""

    async def drain(self) -> None:
        """Take the end of a body that has said all it has to say, so that the connection can be used again."""
        try:
            async with asyncio.timeout(_DRAIN):
                while await anext(self._chunks, b""):
                    pass
        except (TimeoutError, self._library.HTTPError):
            return  # the message was complete before; the connection is closed instead of kept


def _late(phase: Phase, seconds: float) -> TransportFailure:
    words = {
        "connect": f"no connection within {seconds:g} s",
        "first_byte": f"no answer within {seconds:g} s",
        "idle": f"the answer stopped for {seconds:g} s",
        "total": f"the answer took longer than {seconds:g} s",
    }
    return TransportFailure(phase, words[phase], timed_out=True)
