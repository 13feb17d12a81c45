"""A remote MCP server, over streamable HTTP: encrypted, with size limits and clear messages for refusals."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx2
from mcp.client.streamable_http import streamable_http_client

from hermes import __version__
from hermes.mcp.safe_text import ServerFailed
from hermes.mcp.stdio_server import MAX_MESSAGE_BYTES
from hermes.text.translation import LaterWords, LoggedWords, to_translate, translator

t = translator(__name__)

if TYPE_CHECKING:
    from hermes.mcp.server_config import LoginSource

LOOPBACK_HOSTS = frozenset(("localhost", "127.0.0.1", "::1"))
_LOGIN = to_translate(
    "Sign in: hermes mcp login {name}. Or give it a token in its headers (Authorization: "
    "Bearer ${NAME_TOKEN}), and store it with: hermes config set NAME_TOKEN."
)
_WORDS = {
    401: (to_translate("it needs you to sign in (401)"), _LOGIN),
    403: (
        to_translate("it refused access (403)"),
        to_translate("Check that the token in its headers may use it."),
    ),
    404: (
        to_translate("there is nothing at its address (404)"),
        to_translate("Check its url; it often ends in /mcp."),
    ),
    405: (
        to_translate("its address does not accept MCP requests (405)"),
        to_translate("Check its url; it often ends in /mcp."),
    ),
    429: (
        to_translate("it got too many requests (429)"),
        to_translate("Wait a while."),
    ),
}


class TooLarge(httpx2.StreamError):
    """An answer is too large. The library reports it for the one request it belongs to."""


class _Bounded(httpx2.AsyncByteStream):
    """A body that is read only up to a limit."""

    def __init__(self, inner: Any, limit: int) -> None:
        self._inner = inner
        self._limit = limit

    # pyrefly: ignore[missing-override-decorator]
    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > self._limit:
                raise TooLarge(
                    t.logged(
                        "it sent more than {limit} MiB", limit=self._limit // 2**20
                    )
                )
            yield chunk

    # pyrefly: ignore[missing-override-decorator]
    async def aclose(self) -> None:
        await self._inner.aclose()


class LimitedTransport(httpx2.AsyncBaseTransport):
    """Sends requests, limits the size of responses, and remembers the last refusal."""

    def __init__(self, limit: int = MAX_MESSAGE_BYTES) -> None:
        self._inner = httpx2.AsyncHTTPTransport()
        self._limit = limit
        self.refusal = 0

    # pyrefly: ignore[missing-override-decorator]
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        kind = response.headers.get("content-type", "").lower()
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise ServerFailed(
                t.later("it sends compressed answers, whose size can't be known")
            )
        if request.method == "POST":
            self.refusal = response.status_code if response.status_code >= 400 else 0
        if not kind.startswith("text/event-stream"):  # events are limited one by one
            response.stream = _Bounded(response.stream, self._limit)
        return response

    # pyrefly: ignore[missing-override-decorator]
    async def aclose(self) -> None:
        await self._inner.aclose()


@contextlib.asynccontextmanager
async def over_http(
    url: str,
    headers: Mapping[str, str],
    transport: LimitedTransport,
    seconds: float,
    login: "LoginSource | None" = None,
) -> AsyncIterator[tuple[Any, Any]]:
    """Opens the streams of a service. Redirects are followed only within the same origin."""
    require_safe(url, headers)
    ours = {"user-agent": f"hermes/{__version__}", "accept-encoding": "identity"}
    limits = httpx2.Timeout(seconds, read=None)  # each call has its own timeout
    async with (
        httpx2.AsyncClient(
            headers={**ours, **headers},
            transport=transport,
            timeout=limits,
            auth=_auth(url, login),
        ) as client,
        streamable_http_client(
            url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES
        ) as streams,
    ):
        yield streams


def _auth(url: str, login: "LoginSource | None") -> httpx2.Auth | None:
    """The user's login at this service, if there is one."""
    if login is None:
        return None
    require_safe(url, {"authorization": ""})
    from hermes.mcp.login_auth import LoginAuth

    return LoginAuth(login.server, url, login.store, login.on_ended)


def require_safe(url: str, headers: Mapping[str, str]) -> None:
    """Raises ServerFailed for an address that can't be called, or that would send the headers unencrypted."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ServerFailed(
            t.later("its url is not usable"),
            hint=t.later("A url looks like https://example.org/mcp."),
        )
    if parts.scheme == "http" and headers and parts.hostname not in LOOPBACK_HOSTS:
        raise ServerFailed(
            t.later("its headers would be sent unencrypted"),
            hint=t.later("Use https://, or leave out the headers."),
        )


def refusal_words(status: int, name: str) -> tuple[LaterWords, LaterWords]:
    """Explains an HTTP status to the user, and what to do about it."""
    if status in _WORDS:
        words, hint = _WORDS[status]
        return LoggedWords(words), LoggedWords(hint.replace("{name}", name))
    return (
        t.later("it answered with an error ({status})", status=status),
        t.later("Try again later."),
    )
