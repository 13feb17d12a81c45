"""HTTP/1.1 straight to a server: asyncio carries the bytes, h11 frames them, and idle connections are reused.

Nearly every call takes this path; it loads in a tenth of the time of a general client. What it can't do (proxies,
credentials in the address) goes through `proxied_http`.
"""

import asyncio
import select
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias, cast
from urllib.parse import SplitResult, urlsplit

import h11

from hermes.providers.http_response import ConnectionBroken
from hermes.providers.metadata_addresses import is_hidden_metadata
from hermes.providers.read_pacing import ReadPacing
from hermes.text.translation import translator

t = translator(__name__)


if TYPE_CHECKING:
    import ssl

_MAX_IDLE_CONNECTIONS = 16  # idle connections per server
_IDLE_CONNECTION_TIMEOUT_S = 30.0
_MAX_HEAD_BYTES = 64 * 1024
_READ_BYTES = 64 * 1024
_CLOSED = t.logged("the server closed the connection")
_CLOSED_UNASKED = (
    "event type ConnectionClosed"  # h11's words for a close before the answer began
)

OpenConnection: TypeAlias = Callable[
    ..., Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]
]


_HttpEvent: TypeAlias = "type[h11.NEED_DATA | h11.PAUSED] | h11.Event"


class Direct:
    """The connections of one process, by server."""

    def __init__(self, open_connection: OpenConnection | None = None) -> None:
        self._open = open_connection or asyncio.open_connection
        self._idle: dict[str, list[Http11Connection]] = {}
        self._context: ssl.SSLContext | None = None

    def warm(self, url: str) -> None:
        """Loads what a secure connection needs, which takes a moment."""
        if url.startswith("https:"):
            self._secure()

    async def connect(self, url: str) -> "Http11Connection":
        """Opens a new connection. Raises OSError, which includes ssl's errors."""
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        reader, writer = await self._open(
            parts.hostname,
            parts.port or (443 if secure else 80),
            ssl=self._secure() if secure else None,
        )
        _require_no_metadata(parts.hostname or "", writer)
        return Http11Connection(self, _server(parts), reader, writer)

    def idle(self, url: str) -> "Http11Connection | None":
        """Returns an idle connection to the same server that still seems open."""
        waiting = self._idle.get(_server(urlsplit(url)), [])
        now = asyncio.get_running_loop().time()
        while waiting:
            exchange = waiting.pop()
            if exchange.usable(now):
                return exchange
            exchange.close()
        return None

    def keep(self, server: str, exchange: "Http11Connection") -> None:
        """Keeps a connection for reuse after its answer has ended."""
        waiting = self._idle.setdefault(server, [])
        waiting.append(exchange)
        if len(waiting) > _MAX_IDLE_CONNECTIONS:
            waiting.pop(0).close()

    def close(self) -> None:
        """Closes all idle connections."""
        for waiting in self._idle.values():
            for exchange in waiting:
                exchange.close()
        self._idle.clear()

    def _secure(self) -> "ssl.SSLContext":
        if self._context is None:
            import ssl

            import truststore  # the system's certificates, wherever the system keeps them

            self._context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return self._context


def _require_no_metadata(host: str, writer: asyncio.StreamWriter) -> None:
    """Refuses a connection whose name led to a cloud's metadata, whatever it led to when it was checked."""
    peer = str(writer.get_extra_info("peername")[0])
    if is_hidden_metadata(host, peer):
        writer.transport.abort()
        raise OSError(
            t.logged(
                "{host} leads to {peer}, which belongs to the machine's cloud",
                host=host,
                peer=peer,
            )
        )


class Http11Connection:
    """One connection with, at any time, one request and its answer on it."""

    def __init__(
        self,
        pool: Direct,
        server: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._pool = pool
        self._server = server
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(
            h11.CLIENT, max_incomplete_event_size=_MAX_HEAD_BYTES
        )
        transport = cast("asyncio.Transport", writer.transport)  # it is both ways
        self._pacing = ReadPacing(transport, asyncio.get_running_loop())
        self._kept: _HttpEvent | h11.RemoteProtocolError | None = None
        self._fresh = True
        self._waiting_since = 0.0
        self.status = 0
        self.headers: dict[str, str] = {}

    def usable(self, now: float) -> bool:
        """Whether an idle connection can be reused."""
        ended = self._reader.at_eof() or self._writer.transport.is_closing()
        return (
            not ended
            and now - self._waiting_since < _IDLE_CONNECTION_TIMEOUT_S
            and not self._has_news()
        )

    def _has_news(self) -> bool:
        """Whether unexpected data came: mostly the end, which the loop has not noticed yet."""
        poll = select.poll()
        poll.register(self._writer.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(poll.poll(0))

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> None:
        """Sends a request and waits for the head of its answer. Raises ConnectionBroken."""
        self._pacing.restart()
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        fields = [
            ("host", parts.netloc),
            *headers.items(),
            *([("content-length", str(len(body)))] if body else []),
        ]
        try:
            head = self._http.send(
                h11.Request(method=method, target=target, headers=fields)
            )
            rest = self._http.send(h11.Data(data=body)) if body else b""
            self._writer.write(
                b"".join(
                    (
                        head or b"",
                        rest or b"",
                        self._http.send(h11.EndOfMessage()) or b"",
                    )
                )
            )
            await self._writer.drain()
        except OSError as error:
            raise ConnectionBroken(str(error), fresh=self._fresh) from error
        except h11.LocalProtocolError as error:
            raise ConnectionBroken(
                t.logged("the request can't be sent: {error}", error=error)
            ) from error
        while not isinstance(event := await self._event(), h11.Response):
            pass
        self.status = event.status_code
        self.headers = {
            name.decode("ascii"): value.decode("latin-1")
            for name, value in event.headers
        }

    async def chunk(self) -> bytes:
        """The next piece of the body, with all that came with it; nothing at its end. Raises ConnectionBroken."""
        while not isinstance(event := await self._event(), h11.EndOfMessage):
            if isinstance(event, h11.Data) and event.data:
                return b"".join((event.data, *self._data_at_hand()))
        return b""

    def _data_at_hand(self) -> Iterator[bytes]:
        """Yields the pieces of the body that need no more reading. Keeps what comes after them for `_event`."""
        try:
            while isinstance(event := self._http.next_event(), h11.Data):
                yield event.data
        except h11.RemoteProtocolError as error:
            self._kept = error
        else:
            self._kept = event

    async def end(self) -> None:
        """Keeps the connection if the answer is complete, else closes it."""
        http = self._http
        if http.our_state is http.their_state is h11.DONE and not self._reader.at_eof():
            http.start_next_cycle()
            self._fresh = False
            self._waiting_since = asyncio.get_running_loop().time()
            self._pool.keep(self._server, self)
        else:
            self.close()

    def close(self) -> None:
        """Drops the connection at once."""
        self._writer.transport.abort()

    async def _event(self) -> h11.Event:
        try:
            while (event := self._next_event()) is h11.NEED_DATA:
                data = await self._reader.read(_READ_BYTES)
                self._pacing.note_read(len(data))
                self._http.receive_data(data)
        except (OSError, h11.RemoteProtocolError) as error:
            is_close = _CLOSED_UNASKED in str(error)
            raise ConnectionBroken(_CLOSED if is_close else str(error)) from error
        if isinstance(event, h11.ConnectionClosed) or event is h11.PAUSED:
            raise ConnectionBroken(_CLOSED)
        assert isinstance(event, h11.Event)  # noqa: S101 - the two that are not events are handled above
        return event

    def _next_event(self) -> _HttpEvent:
        kept, self._kept = self._kept, None
        if isinstance(kept, h11.RemoteProtocolError):
            raise kept
        return self._http.next_event() if kept is None else kept


def _server(parts: SplitResult) -> str:
    return f"{parts.scheme}://{parts.netloc}"
