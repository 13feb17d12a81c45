"""HTTP for the web tools: only to checked addresses, with every hop checked, and limits on size and time.

No cookies, no credentials, no proxy except the configured one. Only this module imports httpx2.

A connection goes to the address that was checked; the name goes into the Host header and into TLS, where the
certificate must match it.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec

from hermes import __version__
from hermes.errors import ToolFailed, words_of
from hermes.installation import DISTRIBUTION
from hermes.primitives.decompression import CompressionError, Decompressor
from hermes.tools.web.address_check import AddressCheck, CheckedAddress, Unresolved
from hermes.tools.web.urls import WebAddress, follow, read_url

if TYPE_CHECKING:
    import ssl

    import httpx2

USER_AGENT = f"{DISTRIBUTION}/{__version__} (an AI agent that reads pages for its user)"
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_MAX_REDIRECTS = 5
_MAX_TRIED_ADDRESSES = 4  # addresses of one host
_WRITE_TIMEOUT_S = 30.0


class FetchLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on size and time. `size` counts decompressed bytes."""

    size: int = 10 * 1024 * 1024
    connect: float = 10.0
    total: float = 30.0


class WebRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request. With `body` it is a POST, and redirects are not followed; nor are they if `redirects` is off."""

    url: str
    headers: Mapping[str, str] = {}
    body: bytes = b""
    redirects: bool = True


class WebResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response. `place` is the target of the last redirect; `cut` says that the body exceeded the limit."""

    place: WebAddress
    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool = False

    @property
    def phrase(self) -> str:
        """The status in words."""
        try:
            return f"{self.status} {HTTPStatus(self.status).phrase}"
        except ValueError:
            return str(self.status)


class WebClient:
    """Fetches pages through an address check."""

    def __init__(
        self,
        gate: AddressCheck,
        limits: FetchLimits | None = None,
        *,
        proxy: str = "",
        trust: "ssl.SSLContext | None" = None,
    ) -> None:
        self.gate = gate
        self._limits = limits or FetchLimits()
        self._proxy = proxy
        self._trust = trust

    async def fetch(self, request: WebRequest) -> WebResponse:
        """Returns the response, after following redirects. Raises ToolFailed if there is none."""
        total = self._limits.total
        try:
            async with asyncio.timeout(total):
                return await self._follow(request)
        except TimeoutError as error:
            raise ToolFailed(
                f"{request.url} took longer than {total:g} s.",
                hint="Nothing was saved.",
            ) from error

    async def _follow(self, request: WebRequest) -> WebResponse:
        place = read_url(request.url)
        approved = (place.host,)
        for _ in range(_MAX_REDIRECTS + 1):
            answer = await self._fetch_once(request, place, approved)
            location = answer.headers.get("location", "")
            if (
                answer.status not in _REDIRECTS
                or not location
                or request.body
                or not request.redirects
            ):
                return answer
            place = follow(answer.place, location)
        raise ToolFailed(
            f"{request.url} redirects more than {_MAX_REDIRECTS} times.",
            hint="Nothing was fetched.",
        )

    async def _fetch_once(
        self, request: WebRequest, place: WebAddress, approved: Sequence[str]
    ) -> WebResponse:
        """One hop: connects to the first of the checked addresses that accepts."""
        import httpx2

        hosts = await self._hosts(place, approved)
        transport = self._transport()
        async with transport:
            problem = "it has no address"
            for host in hosts[:_MAX_TRIED_ADDRESSES]:
                try:
                    response = await transport.handle_async_request(
                        self._pinned(request, place, host)
                    )
                except (
                    httpx2.ConnectError,
                    httpx2.ConnectTimeout,
                    httpx2.ProxyError,
                ) as error:
                    problem = str(error) or "no connection in time"
                except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                    raise _broken(place, error) from error
                else:
                    return await self._read(place, response)
        raise ToolFailed(f"{place.authority} can't be reached: {problem}.")

    async def _hosts(
        self, place: WebAddress, approved: Sequence[str]
    ) -> tuple[str, ...]:
        try:
            checked: CheckedAddress = await self.gate.check(place, approved)
        except Unresolved:
            if self._proxy:
                return (
                    place.host,
                )  # a network whose names only its proxy can resolve; literal addresses were refused before
            raise
        return tuple(str(address) for address in checked.addresses)

    def _transport(self) -> "httpx2.AsyncHTTPTransport":
        import httpx2

        if self._trust is None:
            self._trust = httpx2.create_ssl_context()
        return httpx2.AsyncHTTPTransport(
            verify=self._trust, trust_env=False, proxy=self._proxy or None
        )

    def _pinned(
        self, request: WebRequest, place: WebAddress, host: str
    ) -> "httpx2.Request":
        import httpx2

        bracketed = f"[{host}]" if ":" in host else host
        limits = self._limits
        headers = {
            "Host": place.authority,
            "User-Agent": USER_AGENT,
            "Accept-Encoding": "gzip, deflate",
            "Connection": "close",
        }
        return httpx2.Request(
            "POST" if request.body else "GET",
            f"{place.scheme}://{bracketed}:{place.port}{place.target}",
            headers=headers | dict(request.headers),
            content=request.body or None,
            extensions={
                "sni_hostname": place.host,
                "timeout": {
                    "connect": limits.connect,
                    "read": limits.total,
                    "write": _WRITE_TIMEOUT_S,
                    "pool": limits.connect,
                },
            },
        )

    async def _read(
        self, place: WebAddress, response: "httpx2.Response"
    ) -> WebResponse:
        import httpx2

        headers = {name.lower(): value for name, value in response.headers.items()}
        body, cut = bytearray(), False
        try:
            if response.status_code not in _REDIRECTS:
                async for piece in _decoded(
                    _raw(response), headers.get("content-encoding", ""), place
                ):
                    body += piece
                    if len(body) > self._limits.size:
                        cut = True
                        break
        except httpx2.HTTPError as error:
            if not body:
                raise _broken(place, error) from error
            cut = True
        finally:
            await response.aclose()
        return WebResponse(
            place=place,
            status=response.status_code,
            headers=headers,
            body=bytes(body[: self._limits.size]),
            cut=cut,
        )


async def _raw(response: "httpx2.Response") -> AsyncIterator[bytes]:
    import httpx2

    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - from an async transport
    async for piece in stream:
        yield piece


async def _decoded(
    pieces: AsyncIterator[bytes], encoding: str, place: WebAddress
) -> AsyncIterator[bytes]:
    """The body, decompressed."""
    try:
        body = Decompressor(encoding)
        async for piece in pieces:
            for part in body.feed(piece):
                yield part
    except CompressionError as error:
        raise ToolFailed(f"{place} can't be read: {error}.") from error


def _broken(place: WebAddress, error: Exception) -> ToolFailed:
    why = words_of(error)
    return ToolFailed(
        f"{place} gave an invalid answer: {why}.", hint="Nothing was kept."
    )
