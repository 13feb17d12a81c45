"""The one port on which platforms call the gateway: each has a path of its own.

It is opened with the first path. It speaks plain HTTP: put a reverse proxy with TLS in
front of it, or keep it on this machine.
"""

import asyncio
from typing import TYPE_CHECKING

from hermes.errors import HermesError
from hermes.primitives.repeated_errors import RepeatedErrors
from hermes.text.install_words import install_hint
from hermes.text.translation import translator

if TYPE_CHECKING:
    from hermes.surfaces.web.endpoint import Endpoint
    from hermes.surfaces.web.routes import RouteTable
    from hermes.surfaces.web.server import ServerProtocols, WebServer

t = translator(__name__)


class HttpListener:
    """Serves endpoints that check their callers themselves."""

    def __init__(self, host: str, port: int, errors: RepeatedErrors) -> None:
        self._host = host
        self._port = port
        self._errors = errors
        self._routes: RouteTable | None = None
        self._server: WebServer | None = None
        self._serving: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()
        self.url = ""
        self.protocols: ServerProtocols | None = None
        """Replaces the usual protocols."""

    async def add(self, *endpoints: "Endpoint") -> str:
        """Serves the endpoints of one path, at it and below; returns its address on this machine."""
        async with self._opening:
            if self._serving is None or self._serving.done():
                self._open()
        assert self._routes is not None  # noqa: S101 - opened above
        from hermes.surfaces.web.errors import TextErrors

        path, errors = endpoints[0].path, TextErrors()
        below = [one._replace(path=f"{path}/{{rest:path}}") for one in endpoints]
        routes = [one.route(errors) for one in (*endpoints, *below)]
        self._routes.add(routes, group=path)
        return self.url + path

    def remove(self, path: str) -> None:
        """Stops serving the endpoint at a path."""
        if self._routes is not None:
            self._routes.remove_group(path)

    async def close(self) -> None:
        """Ends the server with its requests."""
        if self._server is not None:
            await self._server.stop()
            self._server = self._serving = None

    def _open(self) -> None:
        try:
            from hermes.surfaces.web.access import AccessControl
            from hermes.surfaces.web.application import WebApplication
            from hermes.surfaces.web.errors import TextErrors
            from hermes.surfaces.web.routes import RouteTable
            from hermes.surfaces.web.server import (
                ListenAddress,
                ServerProtocols,
                WebServer,
                listen,
            )
        except ImportError as error:
            raise HermesError(
                t("Listening needs a package that is not installed."),
                hint=install_hint("web"),
            ) from error
        hint = t("Choose another: hermes config set gateway.port 8711")
        listener = listen(self._host, self._port, who=t("The gateway"), hint=hint)
        self._routes = self._routes or RouteTable()
        self._server = WebServer(
            WebApplication(self._routes, AccessControl(), TextErrors()),
            listener,
            self._errors,
            "the gateway",
            protocols=self.protocols or ServerProtocols(),
        )
        self._serving = self._server.start()
        address = ListenAddress("http", self._host, listener.getsockname()[1])
        self.url = address.url
