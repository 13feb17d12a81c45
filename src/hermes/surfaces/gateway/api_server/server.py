"""The API server, on its own and as a part of the gateway."""

from collections.abc import Callable

from hermes.app import App
from hermes.errors import SettingsError
from hermes.primitives.tasks import BackgroundTasks
from hermes.settings import Secrets
from hermes.surfaces.gateway.adapter import AdapterDeps, GatewayPart, Inlet, override
from hermes.surfaces.gateway.api_server.access_control import OpenAIErrors, api_access
from hermes.surfaces.gateway.api_server.api_keys import SECRET, ApiKeys
from hermes.surfaces.gateway.api_server.routes import OpenAIRoutes
from hermes.surfaces.web.application import InEnglish, WebApplication
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


class ApiServer:
    """Serves OpenAI's API until it is cancelled."""

    protocols = ServerProtocols()

    def __init__(self, app: App, secrets: Secrets) -> None:
        self._app = app
        self._secrets = secrets

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
            server = WebServer(
                self._application(routes, address),
                listener,
                self._app.errors,
                "the API server",  # not translated: for the log
                protocols=self.protocols,
                tls=settings,
            )
            await server.serve(lambda: ready(f"{address.url}/v1"))
        finally:
            listener.close()
            await routes.close()

    def _application(self, routes: OpenAIRoutes, address: ListenAddress) -> InEnglish:
        access = api_access(self._app, self._secrets, address)
        errors = OpenAIErrors()
        table = RouteTable(
            routes_of(routes.endpoints(), errors), ignore_trailing_slash=True
        )
        return InEnglish(WebApplication(table, access, errors))

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

    def __init__(self, deps: AdapterDeps) -> None:
        self._server = ApiServer(deps.app, deps.secrets)

    @override
    async def run(self, inlet: Inlet) -> None:
        """Until it is cancelled."""
        reports = BackgroundTasks("reporting that the API server runs")
        await self._server.run(lambda url: reports.start(inlet.connected(url)))


def build(deps: AdapterDeps) -> GatewayPart:
    """For the gateway."""
    return ApiPart(deps)
