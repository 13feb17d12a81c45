"""Puts the dashboard together and serves it: routes behind the gate, on uvicorn, until it is told to stop."""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import ASGIApp

from hermes.app import App
from hermes.bridge.event_socket import tell_of_dashboard
from hermes.errors import SettingsError
from hermes.plugins import PluginRegistry
from hermes.primitives.tasks import BackgroundTasks, running
from hermes.settings import Secrets
from hermes.surfaces.dashboard.assets import Assets
from hermes.surfaces.dashboard.dashboard import Dashboard
from hermes.surfaces.dashboard.endpoint import Endpoint, routes
from hermes.surfaces.dashboard.gate.access import AccessTable
from hermes.surfaces.dashboard.gate.gate import AccessGate, Doors
from hermes.surfaces.dashboard.gate.keys import Keyring
from hermes.surfaces.dashboard.openapi import describe
from hermes.surfaces.dashboard.plugins import Plugins
from hermes.surfaces.dashboard.routes.chat import ChatRoutes
from hermes.surfaces.dashboard.routes.commands import CommandRoutes
from hermes.surfaces.dashboard.routes.feeds import FeedRoutes
from hermes.surfaces.dashboard.routes.learning import LearningRoutes
from hermes.surfaces.dashboard.routes.login import EntryRoutes, first_visit
from hermes.surfaces.dashboard.routes.plugins import PluginRoutes
from hermes.surfaces.dashboard.routes.policy import PolicyRoutes
from hermes.surfaces.dashboard.routes.schedules import ScheduleRoutes
from hermes.surfaces.dashboard.routes.sessions import SessionRoutes
from hermes.surfaces.dashboard.routes.status import StateRoutes
from hermes.surfaces.dashboard.routes.terminals import TerminalRoutes
from hermes.surfaces.dashboard.running_file import announce, withdraw
from hermes.surfaces.dashboard.uvicorn_protocol import MAX_MESSAGE, protocols_for
from hermes.surfaces.web.host_names import Addresses, is_loopback, is_wildcard
from hermes.surfaces.web.listen_socket import listen
from hermes.surfaces.web.uvicorn_server import UvicornServer

PASSWORD = "HERMES_DASHBOARD_PASSWORD"  # noqa: S105 - the name of the secret
_PATIENCE = 5  # seconds for connections to end
_IDLE = 75  # seconds without a request: whoever closes first may cross one that is on its way, so let it be the client
_HANDS = 16  # threads: a few slow jobs must not keep requests waiting, and Python gives six on two cores


class ServedDashboard(NamedTuple):
    """A dashboard as an application, with everything that was put into it."""

    board: Dashboard
    table: AccessTable
    plugins: Plugins
    endpoints: list[Endpoint]
    application: ASGIApp


class ListenAddress(NamedTuple):
    """Where it listens."""

    scheme: str
    host: str
    port: int

    @property
    def url(self) -> str:
        """Its address on this machine."""
        host = "127.0.0.1" if is_wildcard(self.host) else self.host
        return f"{self.scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"


def require_safe(app: App, secrets: Secrets) -> None:
    """Refuses to listen where others can reach it, unless they are kept out and nobody can listen in."""
    settings = app.settings.dashboard
    if bool(settings.tls_cert) != bool(settings.tls_key):
        raise SettingsError(
            "A certificate and its key belong together.",
            hint="Set dashboard.tls_cert and tls_key.",
        )
    if is_loopback(settings.host):
        return
    if not secrets.get(PASSWORD) and not settings.token_only:
        raise SettingsError(
            f"Others can reach {settings.host}, so the dashboard needs a password.",
            hint=f"Store one with: hermes config set {PASSWORD}. Or set dashboard.token_only to true.",
        )
    if not settings.tls_cert and not settings.behind_proxy:
        raise SettingsError(
            f"Others can reach {settings.host}, and could listen in: there is no TLS.",
            hint="Set dashboard.tls_cert and dashboard.tls_key, or dashboard.behind_proxy if a proxy sees to it.",
        )
    if is_wildcard(settings.host) and not settings.public_urls:
        raise SettingsError(
            "The dashboard has to know the name it is reached by.",
            hint="Set dashboard.public_urls, such as [https://hermes.example.org].",
        )


def put_together(app: App, secrets: Secrets, place: ListenAddress) -> ServedDashboard:
    """The application. To be called inside the event loop that serves it."""
    settings = app.settings.dashboard
    addresses = Addresses(place.scheme, place.host, place.port, settings.public_urls)
    secure = place.scheme == "https" or any(
        url.startswith("https:") for url in settings.public_urls
    )
    keys = Keyring(app.home, app.clock.now)
    doors = Doors.open(
        addresses,
        keys,
        app.clock.now,
        port=place.port,
        secure=secure,
        password=secrets.get(PASSWORD) or "",
    )
    board = Dashboard(app, secrets, doors, url=place.url)
    table = AccessTable(())
    plugins = Plugins(PluginRegistry(app.home), table)
    endpoints = _endpoints(board, plugins)
    for endpoint in endpoints:
        table.add(endpoint.rule())
    inner = Starlette(
        routes=[*routes(endpoints), Mount("/api/plugins", app=plugins)],
        lifespan=_lifespan(board, plugins),
    )
    return ServedDashboard(
        board, table, plugins, endpoints, AccessGate(inner, doors, table)
    )


async def serve(
    app: App,
    secrets: Secrets,
    ready: Callable[[ServedDashboard, str], None],
    stop: asyncio.Event,
) -> None:
    """Listens until `stop` is set. `ready` is told of the link for the first visit."""
    require_safe(app, secrets)
    settings = app.settings.dashboard
    listener = listen(
        settings.host,
        settings.port,
        who="The dashboard",
        hint="Choose another port: hermes dashboard --port 0",
    )
    asyncio.get_running_loop().set_default_executor(
        ThreadPoolExecutor(_HANDS, "hermes")
    )
    try:
        scheme = "https" if settings.tls_cert else "http"
        place = ListenAddress(scheme, settings.host, listener.getsockname()[1])
        served = put_together(app, secrets, place)
        server = UvicornServer(
            _config(served, settings.tls_cert, settings.tls_key),
            app.errors,
            "the dashboard",
        )
        announce(app.home, served.board.doors.keys, place.url, os.getpid())
        app.go_live(secrets, "dashboard")
        served.board.ingest.own = app.exporters.publisher if app.exporters else ""
        await asyncio.to_thread(tell_of_dashboard, app.home.root / "run")
        try:
            ready(served, first_visit(served.board))
            await _run(server, listener, served.board, stop)
        finally:
            withdraw(app.home)
    finally:
        listener.close()


async def _run(
    server: UvicornServer,
    listener: socket.socket,
    board: Dashboard,
    stop: asyncio.Event,
) -> None:
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    try:
        async with running(stop.wait()) as stopping:
            await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        board.feed.stop()  # feeds have no end of their own
        server.should_exit = True
        await serving


def _endpoints(board: Dashboard, plugins: Plugins) -> list[Endpoint]:
    endpoints = [
        *EntryRoutes(board).endpoints(),
        *SessionRoutes(board).endpoints(),
        *ChatRoutes(board).endpoints(),
        *FeedRoutes(board).endpoints(),
        *TerminalRoutes(board).endpoints(),
        *StateRoutes(board).endpoints(),
        *PolicyRoutes(board).endpoints(),
        *LearningRoutes(board).endpoints(),
        *ScheduleRoutes(board).endpoints(),
        *PluginRoutes(plugins).endpoints(),
        *CommandRoutes(board).endpoints(),
        *Assets().endpoints(),
    ]
    document: dict[str, Any] = {}

    def openapi() -> dict[str, Any]:
        """This description."""
        return document

    endpoints.append(
        Endpoint("GET", "/api/openapi.json", "observe", openapi, answer=None)
    )
    document.update(describe(endpoints))
    return endpoints


def _lifespan(board: Dashboard, plugins: Plugins) -> Callable[[Starlette], Any]:
    @contextlib.asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        jobs = BackgroundTasks("a part of the dashboard")
        jobs.start(board.follower.run())
        jobs.start(board.dead_turns.run())
        jobs.start(board.doors.visits.keep_looking())
        await plugins.refresh()
        try:
            yield
        finally:
            await jobs.close()
            await plugins.close()
            await board.close()

    return life


def _config(served: ServedDashboard, cert: str, key: str) -> uvicorn.Config:
    """No access log: addresses don't end up anywhere. No forwarded headers: what counts is in the settings."""
    requests, sockets = protocols_for(served.board.feed)
    return uvicorn.Config(
        served.application,
        http=requests,
        ws=sockets,
        ws_max_size=MAX_MESSAGE,
        ws_per_message_deflate=False,
        ws_ping_interval=30.0,
        ws_ping_timeout=60.0,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=_PATIENCE,
        ssl_certfile=cert or None,
        ssl_keyfile=key or None,
    )
