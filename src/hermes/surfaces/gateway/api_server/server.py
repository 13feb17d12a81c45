"""The API server as a part of the gateway, and alone: where it listens, and whether that is safe."""

import asyncio
from collections.abc import Callable

import uvicorn

from hermes.app import App
from hermes.errors import SettingsError
from hermes.primitives.tasks import BackgroundTasks
from hermes.settings import Secrets
from hermes.surfaces.gateway.adapter import GatewayPart, House, Inlet, override
from hermes.surfaces.gateway.api_server.api_keys import SECRET, ApiKeys
from hermes.surfaces.gateway.api_server.authentication import Door
from hermes.surfaces.gateway.api_server.routes import OpenAIRoutes
from hermes.surfaces.web.host_names import Addresses, is_loopback, is_wildcard
from hermes.surfaces.web.listen_socket import listen, require_certificate
from hermes.surfaces.web.login_throttle import Throttle
from hermes.surfaces.web.request_timeouts import HastyRequests
from hermes.surfaces.web.uvicorn_server import UvicornServer

_PATIENCE = 5  # seconds for connections to end


class ApiServer:
    """Listens and answers, until it is cancelled."""

    requests: type[HastyRequests] = HastyRequests

    def __init__(self, app: App, secrets: Secrets) -> None:
        self._app = app
        self._secrets = secrets

    async def run(self, ready: Callable[[str], object]) -> None:
        """Serves; `ready` is told the address once it listens."""
        settings = self._app.settings.api
        require_safe(self._app)
        require_key(self._app, self._secrets)
        hint = "Choose another port: hermes config set api.port 8712"
        listener = listen(settings.host, settings.port, who="The API server", hint=hint)
        api = OpenAIRoutes(self._app, self._secrets)
        try:
            scheme, port = (
                "https" if settings.tls_cert else "http",
                listener.getsockname()[1],
            )
            config = self._config(
                api, Addresses(scheme, settings.host, port, settings.public_urls)
            )
            server = UvicornServer(config, self._app.errors, "the API server")
            serving = asyncio.ensure_future(server.serve(sockets=[listener]))
            ready(_url(scheme, settings.host, port))
            try:
                await asyncio.shield(serving)
            finally:
                server.should_exit = True
                await serving
        finally:
            listener.close()
            await api.close()

    def _config(self, api: OpenAIRoutes, addresses: Addresses) -> uvicorn.Config:
        """No access log: addresses don't end up anywhere. No forwarded headers: what counts is in the settings."""
        clock, settings = self._app.clock.now, self._app.settings.api
        door = Door(
            api,
            addresses,
            ApiKeys(self._app.home, clock),
            self._secrets,
            Throttle(clock),
        )
        return uvicorn.Config(
            door,
            http=self.requests,
            ws="none",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            timeout_graceful_shutdown=_PATIENCE,
            ssl_certfile=settings.tls_cert or None,
            ssl_keyfile=settings.tls_key or None,
        )


class ApiPart(GatewayPart):
    """The server inside a gateway."""

    name = "api"

    def __init__(self, house: House) -> None:
        self._server = ApiServer(house.app, house.secrets)

    @override
    async def run(self, inlet: Inlet) -> None:
        """Until it is cancelled."""
        telling = BackgroundTasks("telling the gateway that the API server runs")
        await self._server.run(lambda url: telling.start(inlet.connected(url)))


def build(house: House) -> GatewayPart:
    """For the gateway."""
    return ApiPart(house)


def require_safe(app: App) -> None:
    """Refuses to listen where others can reach it, unless nobody can listen in."""
    settings = app.settings.api
    if bool(settings.tls_cert) != bool(settings.tls_key):
        raise SettingsError(
            "A certificate and its key belong together.",
            hint="Set api.tls_cert and api.tls_key.",
        )
    require_certificate(settings.tls_cert, settings.tls_key, section="api")
    if is_loopback(settings.host):
        return
    if not settings.tls_cert and not settings.behind_proxy:
        raise SettingsError(
            f"Others can reach {settings.host}, and could listen in: there is no TLS.",
            hint="Set api.tls_cert and api.tls_key, or api.behind_proxy if a proxy sees to it.",
        )
    if is_wildcard(settings.host) and not settings.public_urls:
        raise SettingsError(
            "The API server has to know the name it is reached by.",
            hint="Set api.public_urls, such as [https://hermes.example.org].",
        )


def require_key(app: App, secrets: Secrets) -> None:
    """Without a key nobody could use it; it is never open."""
    if not secrets.get(SECRET) and not ApiKeys(app.home, app.clock.now).all():
        raise SettingsError(
            "The API server has no key yet.",
            hint="Make one with: hermes api key add NAME",
        )


def _url(scheme: str, host: str, port: int) -> str:
    name = "127.0.0.1" if is_wildcard(host) else host
    return f"{scheme}://{f'[{name}]' if ':' in name else name}:{port}/v1"
