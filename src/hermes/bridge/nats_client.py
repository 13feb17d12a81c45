"""The connection to NATS: a separate event loop, in a thread.

While the server is unreachable, nothing is queued for it and nothing waits for it; senders are told.
"""

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

import msgspec

from hermes.errors import HermesError, words_of_connection
from hermes.primitives.backoff import Backoff
from hermes.primitives.threads import EventLoopThread
from hermes.settings.sections import EventSettings
from hermes.text.translation import translator

t = translator(__name__)

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

log = logging.getLogger("hermes.events")

PASSWORD = "EVENTS_PASSWORD"  # noqa: S105 - the name of a variable
TOKEN = "EVENTS_TOKEN"  # noqa: S105 - the name of a variable
_CONNECT_TIMEOUT_S = 2
_RECONNECT_INTERVAL_S = 0.5
_PING_INTERVAL_S = 2
_MAX_QUEUED = 10_000  # messages queued for the connection
_CLOSE_TIMEOUT_S = 2.0

Handler = Callable[["Msg"], Awaitable[None]]
NOT_ENCRYPTED = t.logged("it does not ask for encryption")


class EventsAddressError(HermesError):
    """`events.url`, or a setting that belongs to it, can't be used."""


class NatsOptions(msgspec.Struct, frozen=True):
    """The address of NATS and the connection options."""

    settings: EventSettings
    password: str = ""
    token: str = ""

    def __repr__(self) -> str:
        return f"NatsOptions({self.shown})"

    @property
    def servers(self) -> list[str]:
        """The addresses."""
        return [one.strip() for one in self.settings.url.split(",") if one.strip()]

    @property
    def shown(self) -> str:
        """The addresses for people, without user names."""
        return ", ".join(
            urlsplit(one).netloc.rpartition("@")[2] for one in self.servers
        )

    def connect_arguments(self) -> dict[str, Any]:
        """Returns the arguments for nats-py's connect. Raises for an address that can't be used."""
        parts = [urlsplit(one) for one in self.servers]
        self._require_usable(parts)
        user = next((one.username for one in parts if one.username), None)
        arguments: dict[str, Any] = {
            "servers": [_without_user(one) for one in self.servers],
            "name": "hermes",
            "no_echo": True,
            "allow_reconnect": True,
            "max_reconnect_attempts": -1,
            "reconnect_time_wait": _RECONNECT_INTERVAL_S,
            "connect_timeout": _CONNECT_TIMEOUT_S,
            "ping_interval": _PING_INTERVAL_S,
            "max_outstanding_pings": 2,
            "pending_size": 0,  # send no stale messages after an outage
        }
        if user:
            arguments |= {"user": user, "password": self.password or None}
        elif self.token:
            arguments["token"] = self.token
        if self.settings.credentials_file:
            arguments["user_credentials"] = str(
                Path(self.settings.credentials_file).expanduser()
            )
        if any(one.scheme == "tls" for one in parts) or self.settings.tls_ca:
            arguments["tls"] = self._tls()
        return arguments

    def _require_usable(self, parts: list[SplitResult]) -> None:
        if any(one.scheme not in {"nats", "tls"} for one in parts):
            raise EventsAddressError(
                t.later("{url!r} is not a NATS address", url=self.settings.url),
                hint=t.later(
                    "Use nats://USER@HOST:4222 or tls://USER@HOST:4222 in `events.url`."
                ),
            )
        if any(one.password for one in parts):
            raise EventsAddressError(
                t.later("the address of NATS must not hold a password"),
                hint=t.later(
                    "Leave it out of `events.url`, and run: hermes config set EVENTS_PASSWORD"
                ),
            )

    def _tls(self) -> ssl.SSLContext:
        settings = self.settings
        try:
            context = ssl.create_default_context(
                cafile=str(Path(settings.tls_ca).expanduser())
                if settings.tls_ca
                else None
            )
            if settings.tls_certificate:
                key = settings.tls_private_key_file
                context.load_cert_chain(
                    Path(settings.tls_certificate).expanduser(),
                    str(Path(key).expanduser()) if key else None,
                )
        except OSError as error:
            raise EventsAddressError(
                t.later(
                    "a certificate for NATS can't be read: {strerror}",
                    strerror=error.strerror,
                ),
                hint=t.later(
                    "Check `events.tls_ca`, `events.tls_certificate` and `events.tls_private_key_file`."
                ),
            ) from error
        return context


class _Subscription(NamedTuple):
    subject: str
    handler: Handler


class NatsClient:
    """One connection, made in the background and restored after each loss. Its methods may be called on any thread."""

    def __init__(self, options: NatsOptions) -> None:
        self._arguments = options.connect_arguments()
        self._shown = options.shown
        self._client: Client | None = None
        self._subscriptions: dict[_Subscription, Any] = {}
        self._outgoing: deque[tuple[str, bytes]] = deque()
        self._sending: asyncio.Task[None] | None = None
        self._is_told = False
        self._is_closed = False
        self.connected_listeners: list[Callable[[], None]] = []
        """Called on the client's thread after each connect."""
        self.dropped = 0
        """How many messages were not sent because the connection was down or too slow."""
        self._thread = EventLoopThread("hermes-nats")
        self.loop = self._thread.loop
        self.start = self._thread.start
        self._connecting = self.start(self._connect())

    @property
    def is_connected(self) -> bool:
        """Whether the server was reachable at the last check."""
        return self._client is not None and self._client.is_connected

    @property
    def client(self) -> "Client":
        """The library's client, for use on the client's thread. Raises ConnectionError while there is none."""
        if self._client is None or not self._client.is_connected:
            raise ConnectionError(t.logged("NATS is not connected"))
        return self._client

    def publish(self, subject: str, data: bytes) -> bool:
        """Sends a message soon, in the order of the calls. Drops it and returns False if that is not possible now."""
        if not self.is_connected or len(self._outgoing) >= _MAX_QUEUED:
            self.dropped += 1
            return False
        self._outgoing.append((subject, data))
        if len(self._outgoing) == 1:
            with suppress(RuntimeError):  # the client is closed
                self.loop.call_soon_threadsafe(self._send_soon)
        return True

    def subscribe(self, subject: str, handler: Handler) -> Callable[[], None]:
        """Receives messages on the client's thread, even after reconnects. Returns a function that unsubscribes."""
        wanted = _Subscription(subject, handler)
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._want, wanted)

        def end() -> None:
            with suppress(RuntimeError):
                self.loop.call_soon_threadsafe(self._unwant, wanted)

        return end

    def close(self) -> None:
        """Sends queued messages, and ends the connection and the thread. Idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        with suppress(TimeoutError):
            self.start(self._close()).result(_CLOSE_TIMEOUT_S)
        self._thread.stop()

    async def _close(self) -> None:
        if self._sending is not None:
            await self._sending
        if self._client is not None:
            if self._client.is_connected:
                with suppress(Exception):  # it is closing anyway
                    await self._client.flush(1)
            await self._client.close()

    async def _connect(self) -> None:
        """Connects for the first time; the library reconnects by itself."""
        pause = Backoff(_RECONNECT_INTERVAL_S, 2.0)
        while not self._is_closed:
            client = new_client()
            try:
                await client.connect(
                    error_cb=self._failed,
                    disconnected_cb=self._disconnected,
                    reconnected_cb=self._connected,
                    **self._arguments,
                )
            except Exception as error:  # noqa: BLE001 - the library raises many kinds
                await self._failed(error)
                await end_client(client)
                await asyncio.sleep(pause.next_s())
                continue
            self._client = client
            for wanted in list(self._subscriptions):
                await self._subscribe(wanted)
            await self._connected()
            return

    async def _connected(self) -> None:
        self._outgoing.clear()
        if self._is_told:
            log.warning("NATS is reachable again: %s", self._shown)
        self._is_told = False
        for listener in self.connected_listeners:
            listener()

    async def _disconnected(self) -> None:
        if not self._is_closed:
            await self._failed(ConnectionError(t.logged("the connection was lost")))

    async def _failed(self, error: Exception) -> None:
        if self._is_told or self._is_closed:
            log.debug("NATS: %s", error)
            return
        self._is_told = True
        reason = words_of_connection(error)
        log.warning(
            "NATS can't be reached: %s (%s). Everything goes on without it, more slowly.",
            self._shown,
            reason,
        )

    def _want(self, wanted: _Subscription) -> None:
        self._subscriptions[wanted] = None
        if self._client is not None:
            self.loop.create_task(self._subscribe(wanted))

    async def _subscribe(self, wanted: _Subscription) -> None:
        if self._client is None or self._subscriptions.get(wanted) is not None:
            return
        made = await self._client.subscribe(wanted.subject, cb=wanted.handler)
        if wanted in self._subscriptions:
            self._subscriptions[wanted] = made
        else:
            await made.unsubscribe()

    def _unwant(self, wanted: _Subscription) -> None:
        made = self._subscriptions.pop(wanted, None)
        if made is not None:
            self.loop.create_task(self._unsubscribe(made))

    async def _unsubscribe(self, made: Any) -> None:
        with suppress(Exception):  # the connection may be gone
            await made.unsubscribe()

    def _send_soon(self) -> None:
        if self._sending is None or self._sending.done():
            self._sending = self.loop.create_task(self._send())

    async def _send(self) -> None:
        while self._outgoing:
            subject, data = self._outgoing[0]
            try:
                if self._client is not None:
                    await self._client.publish(subject, data)
            except Exception as error:  # noqa: BLE001 - the library raises many kinds
                self.dropped += 1
                log.debug("a message was not sent: %s", error)
            if self._outgoing:
                self._outgoing.popleft()


def new_client() -> "Client":
    """Returns the library's client, changed to enforce TLS for `tls://` addresses.

    The library encrypts only if the server asks for it. A server that does not, or an attacker in between, would get the
    password as plain text.
    """
    from nats.aio.client import Client
    from nats.errors import Error

    class StrictClient(Client):
        # pyrefly: ignore[missing-override-decorator]
        async def _process_info(
            self, info: dict[str, Any], initial_connection: bool = False
        ) -> None:
            server = self._current_server
            must_encrypt = server is not None and server.uri.scheme == "tls"
            if initial_connection and must_encrypt and not info.get("tls_required"):
                raise Error(NOT_ENCRYPTED)
            await super()._process_info(info, initial_connection)

    return StrictClient()


async def end_client(client: "Client") -> None:
    """Closes the library's client.

    The library would wait forever for a connection whose certificate was not accepted, and leave it open.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(_CLOSE_TIMEOUT_S):
            await client.close()
    transport = client._transport  # noqa: SLF001 - the library gives it up without closing it
    for name in ("_io_writer", "_bare_io_writer"):
        writer = getattr(transport, name, None)
        if writer is not None:
            writer.transport.abort()
    await asyncio.sleep(0)  # the loop closes its socket in the next iteration


def _without_user(address: str) -> str:
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"
