"""The API server, on its own and as a part of the gateway."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import NamedTuple

from hermes.app import App
from hermes.errors import SettingsError
from hermes.primitives.tasks import BackgroundTasks
from hermes.settings import Secrets, Settings
from hermes.surfaces.gateway.adapter import AdapterDeps, GatewayPart, Inlet, override
from hermes.surfaces.gateway.api_server.access_control import (
    ApiAccess,
    OpenAIErrors,
    api_access,
)
from hermes.surfaces.gateway.api_server.api_keys import SECRET, ApiKeys
from hermes.surfaces.gateway.api_server.routes import OpenAIRoutes
from hermes.surfaces.web.application import InEnglish, WebApplication
from hermes.surfaces.web.draining import DrainingApplication
from hermes.surfaces.web.endpoint import routes_of
from hermes.surfaces.web.routes import RouteTable
from hermes.surfaces.web.server import (
    ListenAddress,
    ServerProtocols,
    WebServer,
    listen,
    require_safe,
)
from hermes.text.translation import translator

t = translator(__name__)

log = logging.getLogger("hermes.api")

_LAST_WORDS_TIMEOUT_S = 2.0
"""For answers to say that their turn was stopped."""


class _Served(NamedTuple):
    """What a server that listens is made of."""

    routes: OpenAIRoutes
    access: ApiAccess
    application: DrainingApplication


class ApiServer:
    """Serves OpenAI's API until it is cancelled."""

    protocols = ServerProtocols()

    def __init__(self, app: App, secrets: Secrets) -> None:
        self._app = app
        self._secrets = secrets
        self._served: _Served | None = None

    async def run(self, ready: Callable[[str], object]) -> None:
        """Serves; calls `ready` with the address once it listens."""
        settings = self._app.settings.api
        require_safe(settings, section="api", who=t("The API server"))
        self._require_key()
        hint = t("Choose another port: hermes config set api.port 8712")
        listener = listen(
            settings.host, settings.port, who=t("The API server"), hint=hint
        )
        routes = OpenAIRoutes(self._app, self._secrets)
        try:
            address = ListenAddress.of(settings, listener)
            self._served = self._serve(routes, address)
            server = WebServer(
                self._served.application,
                listener,
                self._app.errors,
                "the API server",  # not translated: for the log
                protocols=self.protocols,
                tls=settings,
            )
            await server.serve(lambda: ready(f"{address.url}/v1"))
        finally:
            self._served = None
            listener.close()
            await routes.close()

    async def drain(self, timeout_s: float) -> None:
        """Refuses new requests; returns once the others are answered. Turns that take longer are stopped."""
        if self._served is None:
            return
        routes, _, application = self._served
        try:
            async with asyncio.timeout(timeout_s):
                await application.drain()
        except TimeoutError:
            log.warning(
                "requests still run after %g seconds; their turns are stopped",
                timeout_s,
            )
            await routes.stop_turns()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORDS_TIMEOUT_S):
                    await application.drain()

    @property
    def is_serving(self) -> bool:
        """Whether it listens."""
        return self._served is not None

    async def renew(self, secrets: Secrets) -> None:
        """Uses new secrets, and the new settings of the app, from the next turn on."""
        self._secrets = secrets
        if self._served is not None:
            self._served.access.secrets = secrets
            await self._served.routes.agent.renew(secrets)

    def _serve(self, routes: OpenAIRoutes, address: ListenAddress) -> _Served:
        access = api_access(self._app, self._secrets, address)
        errors = OpenAIErrors()
        table = RouteTable(
            routes_of(routes.endpoints(), errors), ignore_trailing_slash=True
        )
        application = InEnglish(WebApplication(table, access, errors))
        return _Served(routes, access, DrainingApplication(application, errors))

    def _require_key(self) -> None:
        """Without a key nobody could use the API; it is never open."""
        keys = ApiKeys(self._app.home, self._app.clock.now)
        if not self._secrets.get(SECRET) and not keys.all():
            raise SettingsError(
                t("The API server has no key yet."),
                hint=t("Make one with: hermes api key add NAME"),
            )


class ApiPart(GatewayPart):
    """The server inside a gateway."""

    name = "api"
    answers_requests = True

    def __init__(self, deps: AdapterDeps) -> None:
        self._app = deps.app
        self._server = ApiServer(deps.app, deps.secrets)

    @override
    async def run(self, inlet: Inlet) -> None:
        """Until it is cancelled."""
        reports = BackgroundTasks("reporting that the API server runs")
        await self._server.run(lambda url: reports.start(inlet.connected(url)))

    @override
    async def drain(self, timeout_s: float) -> None:
        await self._server.drain(timeout_s)

    @override
    def can_renew(self, settings: Settings) -> bool:
        """A certificate may have been replaced in its file, so it is read again."""
        is_same = settings.api == self._app.settings.api
        return is_same and not settings.api.tls_cert and self._server.is_serving

    @override
    async def renew(self, secrets: Secrets) -> None:
        await self._server.renew(secrets)


def build(deps: AdapterDeps) -> GatewayPart:
    """For the gateway."""
    return ApiPart(deps)
