"""Builds the dashboard and serves it until it is told to stop."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

from starlette.types import ASGIApp

from hermes.app import App
from hermes.app.boards.event_follower import BoardFollower
from hermes.app.goals.waking import GoalWaker
from hermes.app.presence import Presence
from hermes.bridge.event_socket import tell_of_dashboard
from hermes.errors import SettingsError
from hermes.plugins import PluginRegistry
from hermes.primitives.tasks import BackgroundTasks, running
from hermes.settings import Secrets
from hermes.surfaces.dashboard.access_control import DashboardAccess, DashboardErrors
from hermes.surfaces.dashboard.assets import Assets
from hermes.surfaces.dashboard.credentials import Keyring
from hermes.surfaces.dashboard.dashboard import Dashboard
from hermes.surfaces.dashboard.page_language import InBrowserLanguage
from hermes.surfaces.dashboard.plugins import Plugins
from hermes.surfaces.dashboard.preview_origins import PreviewOrigins
from hermes.surfaces.dashboard.routes.boards import BoardRoutes
from hermes.surfaces.dashboard.routes.chat import ChatRoutes
from hermes.surfaces.dashboard.routes.chat_commands import ChatCommandRoutes
from hermes.surfaces.dashboard.routes.commands import CommandRoutes
from hermes.surfaces.dashboard.routes.connections import ConnectionRoutes
from hermes.surfaces.dashboard.routes.feeds import FeedRoutes
from hermes.surfaces.dashboard.routes.learning import LearningRoutes
from hermes.surfaces.dashboard.routes.login import LoginRoutes, first_visit
from hermes.surfaces.dashboard.routes.mcp_logins import McpLoginRoutes
from hermes.surfaces.dashboard.routes.message_media import MessageMediaRoutes
from hermes.surfaces.dashboard.routes.plugins import PluginRoutes
from hermes.surfaces.dashboard.routes.policy import PolicyRoutes
from hermes.surfaces.dashboard.routes.push import PushRoutes
from hermes.surfaces.dashboard.routes.requests import RequestRoutes
from hermes.surfaces.dashboard.routes.rewind import RewindRoutes
from hermes.surfaces.dashboard.routes.schedules import ScheduleRoutes
from hermes.surfaces.dashboard.routes.sessions import SessionRoutes
from hermes.surfaces.dashboard.routes.speech import SpeechRoutes
from hermes.surfaces.dashboard.routes.status import StateRoutes
from hermes.surfaces.dashboard.routes.terminals import TerminalRoutes
from hermes.surfaces.dashboard.routes.written_files import WrittenFileRoutes
from hermes.surfaces.dashboard.running_file import announce, withdraw
from hermes.surfaces.dashboard.uvicorn_protocol import protocols_for
from hermes.surfaces.web.application import WebApplication
from hermes.surfaces.web.endpoint import Endpoint, routes_of
from hermes.surfaces.web.hosts_and_origins import Addresses, is_loopback
from hermes.surfaces.web.openapi import describe
from hermes.surfaces.web.routes import RouteTable
from hermes.surfaces.web.server import (
    ListenAddress,
    WebServer,
    listen,
    require_certificate,
    require_safe,
)
from hermes.text.translation import translator

t = translator(__name__)


PASSWORD = "HERMES_DASHBOARD_PASSWORD"  # noqa: S105 - the name of the secret
_WORKER_THREADS = 16
"""A few slow handlers must not keep requests waiting; Python's default is six on two cores."""


class ServedDashboard(NamedTuple):
    """A dashboard as an application, with its parts."""

    board: Dashboard
    routes: RouteTable
    plugins: Plugins
    endpoints: list[Endpoint]
    application: ASGIApp


def build_dashboard(
    app: App, secrets: Secrets, address: ListenAddress
) -> ServedDashboard:
    """Builds the application. Call it inside the event loop that serves it."""
    settings = app.settings.dashboard
    is_secure = address.scheme == "https" or any(
        url.startswith("https:") for url in settings.public_urls
    )
    assets = Assets()
    access = DashboardAccess(
        Addresses(*address, settings.public_urls),
        Keyring(app.home, app.clock.now),
        app.clock.now,
        port=address.port,
        secure=is_secure,
        password=secrets.get(PASSWORD) or "",
    )
    access.allow_inline(assets.inline_script())
    board = Dashboard(app, secrets, access, url=address.url)
    routes = RouteTable()
    plugins = Plugins(PluginRegistry(app.home), routes)
    endpoints = _endpoints(board, plugins, assets)
    errors = DashboardErrors()
    routes.add(routes_of(endpoints, errors))
    application: ASGIApp = InBrowserLanguage(
        WebApplication(routes, access, errors), app
    )
    if not is_secure:
        application = PreviewOrigins(application, assets.preview_document)
    return ServedDashboard(board, routes, plugins, endpoints, application)


async def serve(
    app: App,
    secrets: Secrets,
    ready: Callable[[ServedDashboard, str], None],
    stop: asyncio.Event,
) -> None:
    """Serves until `stop` is set. `ready` is called with the link for the first visit."""
    settings = app.settings.dashboard
    require_certificate(settings, section="dashboard")
    if not (is_loopback(settings.host) or secrets.get(PASSWORD) or settings.token_only):
        raise SettingsError(
            t(
                "Others can reach {host}, so the dashboard needs a password.",
                host=settings.host,
            ),
            hint=t(
                "Store one with: hermes config set {password}. Or set dashboard.token_only to true.",
                password=PASSWORD,
            ),
        )
    require_safe(settings, section="dashboard", who=t("The dashboard"))
    listener = listen(
        settings.host,
        settings.port,
        who=t("The dashboard"),
        hint=t("Choose another port: hermes dashboard --port 0"),
    )
    asyncio.get_running_loop().set_default_executor(
        ThreadPoolExecutor(_WORKER_THREADS, "hermes")
    )
    try:
        address = ListenAddress.of(settings, listener)
        served = build_dashboard(app, secrets, address)
        server = WebServer(
            served.application,
            listener,
            app.errors,
            "the dashboard",
            protocols=protocols_for(served.board.feed),
            tls=settings,
        )
        announce(app.home, served.board.access.keys, address.url, os.getpid())
        app.go_live(secrets, "dashboard")
        served.board.ingest.own = app.exporters.publisher if app.exporters else ""
        if app.exporters is not None:
            app.exporters.receive_live_events(
                served.board.feed, everything=True, skip_own_home=True
            )
        await asyncio.to_thread(tell_of_dashboard, app.home.root / "run")
        try:
            ready(served, first_visit(served.board))
            await _run(server, served, stop)
        finally:
            withdraw(app.home)
    finally:
        listener.close()


async def _run(server: WebServer, served: ServedDashboard, stop: asyncio.Event) -> None:
    async with _background_work(served):
        serving = server.start()
        try:
            async with running(stop.wait()) as stopping:
                await asyncio.wait(
                    {serving, stopping}, return_when=asyncio.FIRST_COMPLETED
                )
        finally:
            served.board.feed.stop()  # feeds have no end of their own
            await server.stop()


@contextlib.asynccontextmanager
async def _background_work(served: ServedDashboard) -> AsyncIterator[None]:
    """Runs the background work of a dashboard beside its requests."""
    board = served.board
    jobs = BackgroundTasks("a part of the dashboard")
    jobs.start(board.follower.run())
    jobs.start(Presence(board.app, "dashboard").run())
    if board.app.settings.store.url:  # plugins see the rows of all machines
        jobs.start(board.feed.keep_watched())
    jobs.start(board.dead_turns.run())
    waker = GoalWaker(board.app, lambda: board.agent.service, "dashboard")
    jobs.start(waker.run())
    jobs.start(BoardFollower(board.app).run())
    if board.app.settings.boards.enabled:
        jobs.start(board.cards.run(asyncio.Event()))
    jobs.start(board.access.connections.keep_checking())
    board.push_notices.start()
    try:
        await served.plugins.refresh()
        yield
    finally:
        await jobs.close()
        await served.plugins.close()
        await board.close()


def _endpoints(board: Dashboard, plugins: Plugins, assets: Assets) -> list[Endpoint]:
    endpoints = [
        *LoginRoutes(board).endpoints(),
        *SessionRoutes(board).endpoints(),
        *ChatRoutes(board).endpoints(),
        *RewindRoutes(board).endpoints(),
        *MessageMediaRoutes(board).endpoints(),
        *RequestRoutes(board).endpoints(),
        *ChatCommandRoutes(board).endpoints(),
        *WrittenFileRoutes(board).endpoints(),
        *SpeechRoutes(board).endpoints(),
        *FeedRoutes(board).endpoints(),
        *TerminalRoutes(board).endpoints(),
        *StateRoutes(board).endpoints(),
        *ConnectionRoutes(board).endpoints(),
        *PolicyRoutes(board).endpoints(),
        *McpLoginRoutes(board).endpoints(),
        *LearningRoutes(board).endpoints(),
        *ScheduleRoutes(board).endpoints(),
        *BoardRoutes(board).endpoints(),
        *PluginRoutes(plugins, board.app).endpoints(),
        *PushRoutes(board).endpoints(),
        *CommandRoutes(board).endpoints(),
        *assets.endpoints(),
    ]

    @cache  # few ask for it, and it takes as long as the rest of the start
    def openapi() -> dict[str, Any]:
        """This document."""
        return describe(endpoints, "Hermes dashboard")  # not translated

    endpoints.append(
        Endpoint("GET", "/api/openapi.json", "observe", openapi, answer=None)
    )
    return endpoints
