"""The one port that the gateway listens on, for platforms that call us: each gets a path of its own.

It is opened with the first path. Plain HTTP: put a reverse proxy with TLS before it, or keep it on this machine.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from hermes.errors import HermesError
from hermes.installation import install_hint
from hermes.primitives.repeated_errors import RepeatedErrors
from hermes.surfaces.web.listen_socket import listen

if TYPE_CHECKING:
    from hermes.surfaces.web.request_timeouts import HastyRequests

Application: TypeAlias = Callable[
    [dict[str, Any], Callable[..., Awaitable[Any]], Callable[..., Awaitable[None]]], Any
]

_PATIENCE = 5  # seconds for connections to end


class HttpListener:
    """Serves ASGI applications by the beginning of their path."""

    def __init__(self, host: str, port: int, errors: RepeatedErrors) -> None:
        self._errors = errors
        self._host = host
        self._port = port
        self._paths: dict[str, Application] = {}
        self._server: Any = None
        self._serving: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()
        self.url = ""
        self.requests: type[HastyRequests] | None = (
            None  # another way to speak with callers than the usual one
        )

    async def add(self, path: str, application: Application) -> str:
        """Serves an application at `path` and below; the address of it on this machine."""
        self._paths[path.rstrip("/")] = application
        async with self._opening:
            if self._serving is None or self._serving.done():
                await self._open()
        return self.url + path

    def remove(self, path: str) -> None:
        """Serves it no more."""
        self._paths.pop(path.rstrip("/"), None)

    async def close(self) -> None:
        """Ends it, with what is under way."""
        if self._serving is not None:
            self._server.should_exit = True
            await self._serving
            self._serving = None

    async def _open(self) -> None:
        try:
            import uvicorn

            from hermes.surfaces.web.request_timeouts import HastyRequests
            from hermes.surfaces.web.uvicorn_server import UvicornServer
        except ImportError as error:
            raise HermesError(
                "Listening needs a part that is not installed.",
                hint=install_hint("web"),
            ) from error
        hint = "Choose another: hermes config set gateway.port 8711"
        place = listen(self._host, self._port, who="The gateway", hint=hint)
        config = uvicorn.Config(
            self._serve,
            interface="asgi3",
            http=self.requests or HastyRequests,
            ws="none",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            timeout_graceful_shutdown=_PATIENCE,
        )
        self._server = server = UvicornServer(config, self._errors, "the gateway")
        self._serving = asyncio.get_running_loop().create_task(
            server.serve(sockets=[place])
        )
        host = f"[{self._host}]" if ":" in self._host else self._host
        self.url = f"http://{host}:{place.getsockname()[1]}"

    async def _serve(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        path = str(scope.get("path", ""))
        fits = [one for one in self._paths if path == one or path.startswith(f"{one}/")]
        if scope["type"] == "http" and fits:
            await self._paths[max(fits, key=len)](scope, receive, send)
            return
        await answer(send, 404, b"There is nothing here.\n")


async def answer(
    send: Any, status: int, body: bytes, kind: str = "text/plain; charset=utf-8"
) -> None:
    """A whole answer."""
    headers = [
        (b"content-type", kind.encode()),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def read_body(receive: Any, most: int) -> bytes | None:
    """The body of a request; None when it has more than `most` bytes or was cut off."""
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > most:
            return None
        if not message.get("more_body"):
            return body
