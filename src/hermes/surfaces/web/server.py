"""Listens and serves: one socket and one uvicorn, configured alike for every server of Hermes."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import uvicorn
from starlette.types import ASGIApp

from hermes.errors import HermesError, SettingsError, os_reason
from hermes.primitives.acceptor import Acceptor
from hermes.primitives.repeated_errors import RepeatedErrors
from hermes.settings.section import ListenSettings
from hermes.surfaces.web.hosts_and_origins import is_loopback, is_wildcard
from hermes.surfaces.web.http_protocol import StrictHttpProtocol
from hermes.text.translation import translator

t = translator(__name__)


_BACKLOG_CONNECTIONS = 2048
_SHUTDOWN_TIMEOUT_S = 5
_KEEP_ALIVE_S = 75
"""Closing an idle connection can collide with a request on its way, so it is left to the client."""
_MAX_MESSAGE_BYTES = 1024 * 1024
_PING_INTERVAL_S = 30.0
_PING_TIMEOUT_S = 60.0


class ListenAddress(NamedTuple):
    """Where a server listens."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, settings: ListenSettings, listener: socket.socket) -> "ListenAddress":
        """The address of a server with these settings. The port comes from the socket."""
        scheme = "https" if settings.tls_cert else "http"
        return cls(scheme, settings.host, listener.getsockname()[1])

    @property
    def url(self) -> str:
        """Its URL on this machine."""
        host = "127.0.0.1" if is_wildcard(self.host) else self.host
        return f"{self.scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"


class ServerProtocols(NamedTuple):
    """The protocols of a server. Without `websockets`, it serves no WebSockets."""

    http: type[StrictHttpProtocol] = StrictHttpProtocol
    websockets: type[asyncio.Protocol] | None = None


class WebServer:
    """Serves an ASGI application on a socket that is already listening.

    There is no access log, so that no client address is written to a file. Forwarded headers
    are ignored; the settings say how the server is reached.
    """

    def __init__(
        self,
        application: ASGIApp,
        listener: socket.socket,
        errors: RepeatedErrors,
        name: str,
        *,
        protocols: ServerProtocols = ServerProtocols(),  # noqa: B008 - it is frozen
        tls: ListenSettings | None = None,
    ) -> None:
        config = uvicorn.Config(
            application,
            interface="asgi3",
            http=protocols.http,
            ws=protocols.websockets or "none",
            ws_max_size=_MAX_MESSAGE_BYTES,
            ws_per_message_deflate=False,
            ws_ping_interval=_PING_INTERVAL_S,
            ws_ping_timeout=_PING_TIMEOUT_S,
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=_SHUTDOWN_TIMEOUT_S,
            ssl_certfile=(tls.tls_cert or None) if tls else None,
            ssl_keyfile=(tls.tls_key or None) if tls else None,
        )
        self._server = _UvicornServer(config, errors, name)
        self._listener = listener
        self._serving: asyncio.Task[None] | None = None

    def start(self) -> "asyncio.Task[None]":
        """Starts serving. The task ends when the server does."""
        loop = asyncio.get_running_loop()
        self._serving = loop.create_task(self._server.serve(sockets=[self._listener]))
        return self._serving

    async def serve(self, ready: Callable[[], object]) -> None:
        """Serves until it is cancelled. Calls `ready` once it has started."""
        serving = self.start()
        ready()
        try:
            await asyncio.shield(serving)
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Gives running requests a moment to finish, then closes everything."""
        self._server.should_exit = True
        if self._serving is not None:
            await self._serving


class _UvicornServer(uvicorn.Server):
    """Survives running out of file handles and leaves signals to its caller.

    uvicorn would raise the signals again before anything is closed.
    """

    def __init__(
        self, config: uvicorn.Config, errors: RepeatedErrors, name: str
    ) -> None:
        super().__init__(config)
        self._errors = errors
        self._name = name

    @contextlib.contextmanager
    # pyrefly: ignore[missing-override-decorator]
    def capture_signals(self) -> Iterator[None]:
        yield

    # pyrefly: ignore[missing-override-decorator]
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts serving on sockets that are already listening."""
        await super().startup(sockets=[])
        what = f"accepting connections of {self._name}"  # not translated: for the log
        tls = self.config.ssl
        # pyrefly: ignore[bad-assignment]
        self.servers = [
            Acceptor(one, self._protocol, errors=self._errors, what=what, tls=tls)
            for one in sockets or []
        ]

    def _protocol(self) -> asyncio.BaseProtocol:
        make: Any = self.config.http_protocol_class
        return make(
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )


def listen(host: str, port: int, *, who: str, hint: str) -> socket.socket:
    """Opens a listening socket, so that early clients wait instead of being refused.

    Raises HermesError if that is not possible.
    """
    name = (host or "::").strip("[]")
    family = socket.AF_INET6 if ":" in name else socket.AF_INET
    # With an explicit protocol number, asyncio turns Nagle's algorithm off.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((name, port))
        listener.listen(_BACKLOG_CONNECTIONS)
    except OSError as error:
        listener.close()
        why = os_reason(error)
        raise HermesError(
            t(
                "{who} can't listen on {host}:{port} ({why}).",
                who=who,
                host=host,
                port=port,
                why=why,
            ),
            hint=hint,
        ) from error
    listener.set_inheritable(False)
    return listener


def require_safe(settings: ListenSettings, *, section: str, who: str) -> None:
    """Refuses settings that would let others read the traffic, or that can't work."""
    require_certificate(settings, section=section)
    if is_loopback(settings.host):
        return
    if not settings.tls_cert and not settings.behind_proxy:
        raise SettingsError(
            t(
                "Others can reach {host}, and without TLS they could read the traffic.",
                host=settings.host,
            ),
            hint=t(
                "Set {section}.tls_cert and {section}.tls_key, or {section}.behind_proxy if a proxy provides TLS.",
                section=section,
            ),
        )
    if is_wildcard(settings.host) and not settings.public_urls:
        raise SettingsError(
            t("{who} must know the host name that it is reached by.", who=who),
            hint=t(
                "Set {section}.public_urls, such as [https://hermes.example.org].",
                section=section,
            ),
        )


def require_certificate(settings: ListenSettings, *, section: str) -> None:
    """Raises SettingsError if the certificate and its key can't be used together."""
    cert, key = settings.tls_cert, settings.tls_key
    if bool(cert) != bool(key):
        raise SettingsError(
            t("A certificate and its key must be set together."),
            hint=t("Set {section}.tls_cert and {section}.tls_key.", section=section),
        )
    if not cert:
        return
    import ssl

    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key, password=_no_password)
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        why = getattr(error, "strerror", None) or str(error)
        raise SettingsError(
            t(
                "The certificate can't be used: {cert} with the key {key} ({why}).",
                cert=cert,
                key=key,
                why=why.lower(),
            ),
            hint=t(
                "Set {section}.tls_cert and {section}.tls_key to PEM files that belong together, without a password.",
                section=section,
            ),
        ) from error


def _no_password() -> str:
    """Refuses to ask for a password: there may be nobody at the terminal."""
    raise ValueError("the key has a password")  # not translated: from inside a library
