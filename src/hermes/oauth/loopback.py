"""Receives the redirect at the end of a browser sign-in, on a local port; the person may paste the redirect address
instead.

Listens only on 127.0.0.1. A request with another Host, path or state is refused, and the listener keeps waiting.
"""

import asyncio
import contextlib
import secrets
import socket
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, urlsplit

import h11
import msgspec

from hermes.errors import HermesError
from hermes.primitives.acceptor import Acceptor, accept_streams
from hermes.text.translation import to_translate, translator

t = translator(__name__)

_MAX_REQUEST_BYTES = 16 * 1024
_REQUEST_TIMEOUT_S = 10.0
_MAX_ERROR_CHARACTERS = 200
_PATH = "/callback"
_PAGE = """<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Hermes</title><style>body{{font:16px/1.5 system-ui,sans-serif;margin:15vh auto;max-width:32rem;padding:0 1rem;
color-scheme:light dark;color:CanvasText;background:Canvas}}</style><h1>{title}</h1><p>{text}</p>"""  # not translated
_CLOSE = to_translate("You can close this tab and go back to Hermes.")
_HEADERS = (
    ("content-type", "text/html; charset=utf-8"),
    ("cache-control", "no-store"),
    ("referrer-policy", "no-referrer"),  # the address holds the code
    ("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'"),
    ("x-content-type-options", "nosniff"),
    ("connection", "close"),
)


class RedirectError(HermesError):
    """No port is available for the redirect, or a pasted address belongs to another sign-in."""


class BrowserRedirect(msgspec.Struct, frozen=True):
    """The contents of the redirect: a code, or the reason why there is none."""

    address: str
    """The full redirect address."""
    code: str = ""
    error: str = ""

    def __repr__(self) -> str:
        return f"BrowserRedirect(error={self.error!r})"


class LoopbackListener:
    """Waits for one redirect, as an async context manager.

    `redirect_uri` is the address to register with the identity provider. For a provider that returns no state, the path
    contains it.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        preferred_port: int = 0,
        state_in_path: bool = False,
    ) -> None:
        self.state = secrets.token_urlsafe(24)
        self.redirect_uri = ""
        self._host = host
        self._preferred_port = preferred_port
        self._path = f"{_PATH}/{self.state}" if state_in_path else _PATH
        self._state_in_path = state_in_path
        self._redirect: asyncio.Future[BrowserRedirect] | None = None
        self._acceptor: Acceptor | None = None
        self._port = 0

    async def __aenter__(self) -> Self:
        """Listens on the preferred port, or on any free one. Raises RedirectError if that fails."""
        self._redirect = asyncio.get_running_loop().create_future()
        listening = _listening_socket(self._preferred_port)
        self._port = listening.getsockname()[1]
        self.redirect_uri = f"http://{self._host}:{self._port}{self._path}"
        self._acceptor = accept_streams(
            listening, self._serve, limit=_MAX_REQUEST_BYTES
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._acceptor is not None:
            self._acceptor.close()
            await self._acceptor.wait_closed()

    async def wait(self) -> BrowserRedirect:
        """Returns the received redirect, or the pasted one."""
        assert self._redirect is not None  # noqa: S101 - entered
        return await asyncio.shield(self._redirect)

    def paste(self, text: str) -> None:
        """Accepts the redirect address, or the code in it. Raises RedirectError if it belongs to another sign-in."""
        text = text.strip()
        if "://" in text or text.startswith(("localhost", "127.0.0.1")):
            parts = urlsplit(text if "://" in text else f"http://{text}")
            found = self._read(f"{parts.path}?{parts.query}")
        else:
            is_code = bool(text) and text.isprintable() and " " not in text
            found = BrowserRedirect(self.redirect_uri, code=text) if is_code else None
        if found is None:
            raise RedirectError(
                t.later("That is not the address of this sign-in."),
                hint=t.later(
                    "Copy the whole address from the browser, also if the page could not be shown."
                ),
            )
        self._settle(found)

    def _settle(self, found: BrowserRedirect) -> None:
        if self._redirect is not None and not self._redirect.done():
            self._redirect.set_result(found)

    def _read(self, target: str) -> BrowserRedirect | None:
        """Parses a request line; returns None if it is not for this sign-in."""
        parts = urlsplit(target)
        query = parse_qs(parts.query)
        states = query.get("state", [])
        if not self._is_own_path(parts.path) or not (states or self._state_in_path):
            return None
        if not all(_is_equal(state, self.state) for state in states):
            return None
        address = f"http://{self._host}:{self._port}{target}"
        if error := next(iter(query.get("error", [])), ""):
            return BrowserRedirect(address, error=error[:_MAX_ERROR_CHARACTERS])
        code = next(iter(query.get("code", [])), "")
        return BrowserRedirect(address, code=code) if code else None

    def _is_own_path(self, path: str) -> bool:
        return _is_equal(path, self._path)  # it may hold the state

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(OSError, TimeoutError, h11.RemoteProtocolError):
            async with asyncio.timeout(_REQUEST_TIMEOUT_S), _closing(writer):
                connection = h11.Connection(h11.SERVER)
                request = await _request(connection, reader)
                status, title, text = self._answer(request)
                page = _PAGE.format(title=title, text=text).encode()
                head = h11.Response(
                    status_code=status,
                    headers=[*_HEADERS, ("content-length", str(len(page)))],
                )
                for event in (head, h11.Data(data=page), h11.EndOfMessage()):
                    writer.write(connection.send(event) or b"")
                await writer.drain()

    def _answer(self, request: h11.Request) -> tuple[int, str, str]:
        host = dict(request.headers).get(b"host", b"").decode("latin-1").lower()
        if host not in {f"localhost:{self._port}", f"127.0.0.1:{self._port}"}:
            return (
                421,
                t("Refused"),
                t("This address is only for signing in to Hermes."),
            )
        if request.method != b"GET":
            return (
                405,
                t("Refused"),
                t("This address is only for signing in to Hermes."),
            )
        found = self._read(request.target.decode("latin-1"))
        if found is None:
            return 400, t("Not this sign-in"), t("Start again from Hermes.")
        self._settle(found)
        if found.error:
            return 200, t("Not signed in"), t.marked(_CLOSE)
        return 200, t("Signed in"), t.marked(_CLOSE)


def _listening_socket(preferred_port: int) -> socket.socket:
    for port in dict.fromkeys((preferred_port, 0)):
        with contextlib.suppress(OSError):
            return socket.create_server(("127.0.0.1", port))
    raise RedirectError(
        t.later("No port is free on this machine to wait for your browser.")
    )


def _is_equal(given: str, expected: str) -> bool:
    return secrets.compare_digest(given.encode(), expected.encode())


async def _request(
    connection: h11.Connection, reader: asyncio.StreamReader
) -> h11.Request:
    while True:
        event = connection.next_event()
        if isinstance(event, h11.Request):
            return event
        if event is not h11.NEED_DATA:
            raise h11.RemoteProtocolError("no request")
        connection.receive_data(await reader.read(_MAX_REQUEST_BYTES))


@contextlib.asynccontextmanager
async def _closing(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    try:
        yield
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
