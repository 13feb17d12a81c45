"""`Endpoint` declares a route: its method, path, scope and types.

Routing, access control and the OpenAPI description are derived from it, so none of them
can miss a route.
"""

import asyncio
import gzip
import inspect
import logging
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from hermes.surfaces.web.access import Need
from hermes.surfaces.web.errors import ErrorFormat, Refusal, json_response
from hermes.surfaces.web.request_json import InvalidRequest, read_json, read_query
from hermes.surfaces.web.routes import Route

log = logging.getLogger("hermes.web")

Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE", "WEBSOCKET"]

CALLER = "hermes.caller"
"""The key of the caller in an ASGI scope."""
MAX_BODY_BYTES = 16 * 1024 * 1024
"""The default limit of a request body. Images are sent in bodies."""
MIN_GZIP_BYTES = 700
"""Shorter responses fit into one packet anyway."""
_GZIP_LEVEL = 5
_MAX_GZIP_IN_LOOP_BYTES = 32 * 1024
_MAX_PATH_NUMBER = 2**63 - 1


class Nothing(msgspec.Struct, frozen=True):
    """No parameters."""


class Acknowledged(msgspec.Struct, frozen=True):
    """The request was carried out."""

    ok: bool = True


class EndpointCall(NamedTuple):
    """A request as passed to its handler: query and body have the endpoint's types."""

    path: dict[str, Any]
    query: Any
    body: Any
    request: Request

    @property
    def caller(self) -> Any:
        """The sender, as identified by the access control."""
        return self.request.scope[CALLER]


class Endpoint(NamedTuple):
    """One route.

    Its handler takes an `EndpointCall` or nothing. A coroutine runs in the event loop,
    any other function in a thread. It returns a value, which is sent as JSON, or an ASGI
    application such as a Starlette response. The handler of a WebSocket takes the socket
    and the query.
    """

    method: Method
    path: str
    need: Need
    handler: Callable[..., Any]
    query: type[msgspec.Struct] = Nothing
    body: type[msgspec.Struct | bytes] | None = None
    answer: Any = Acknowledged
    is_page: bool = False
    max_body_bytes: int = MAX_BODY_BYTES

    @property
    def summary(self) -> str:
        return (inspect.getdoc(self.handler) or "").partition("\n")[0]

    def route(self, errors: ErrorFormat) -> Route:
        """Its entry in the route table."""
        path, _, convertors = compile_path(self.path)
        if self.method == "WEBSOCKET":
            return Route(
                "websocket",
                frozenset(),
                path,
                self.need,
                _serve_socket(self),
                convertors,
            )
        methods = {self.method, "HEAD"} if self.method == "GET" else {self.method}
        return Route(
            "http",
            frozenset(methods),
            path,
            self.need,
            _serve_request(self, errors),
            convertors,
            self.is_page,
        )


def routes_of(endpoints: Iterable[Endpoint], errors: ErrorFormat) -> list[Route]:
    """The routes of several endpoints."""
    return [endpoint.route(errors) for endpoint in endpoints]


def find_file(folder: Path, name: str) -> Path | None:
    """The file of that name below a folder; None if it does not exist or is outside the folder."""
    try:
        path = (folder / name).resolve()
        is_inside = path.is_relative_to(folder.resolve())
        return path if is_inside and path.is_file() else None
    except (OSError, ValueError):  # a name that no file can have
        return None


async def read_body(request: Request, max_bytes: int) -> bytes | None:
    """The body of a request; None when it is larger than `max_bytes`."""
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > max_bytes:
            return None
    return bytes(content)


def _serve_request(endpoint: Endpoint, errors: ErrorFormat) -> ASGIApp:
    """Serves one request. An error ends only this request."""
    handle = _handler(endpoint)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        is_started = False

        async def note_start(message: Message) -> None:
            nonlocal is_started
            is_started = True
            await send(message)

        try:
            call = await _read_call(endpoint, Request(scope, receive))
            found = await handle(call)
            response = found if callable(found) else await _json(found, call.request)
            await response(scope, receive, note_start)
        except Exception as error:
            refusal = errors.refusal(error)
            if refusal is None:
                log.exception("%s %s failed", endpoint.method, endpoint.path)
                refusal = errors.unexpected(error)
            if not is_started:
                await errors.response(refusal, scope)(scope, receive, send)
            elif not isinstance(error, ClientDisconnect):
                # Too late for another response. This one is cut off, which clients
                # notice.
                log.warning("%s was cut off: %s", endpoint.path, refusal.error)

    return serve


def accepts_gzip(request: Request) -> bool:
    """Whether the client accepts compressed responses."""
    return "gzip" in request.headers.get("accept-encoding", "")


async def _json(value: object, request: Request) -> Response:
    """A JSON response, compressed if that is worth it; encoded in a thread if it is long."""
    response = json_response(value)
    content = bytes(response.body)
    if len(content) < MIN_GZIP_BYTES or not accepts_gzip(request):
        return response
    work = partial(gzip.compress, content, _GZIP_LEVEL, mtime=0)
    is_long = len(content) > _MAX_GZIP_IN_LOOP_BYTES
    response.body = await asyncio.to_thread(work) if is_long else work()
    response.headers["content-encoding"] = "gzip"
    response.headers["content-length"] = str(len(response.body))
    response.headers.add_vary_header("accept-encoding")
    return response


def _handler(endpoint: Endpoint) -> Callable[[EndpointCall], Any]:
    handler = endpoint.handler
    is_async = inspect.iscoroutinefunction(handler)
    takes_call = bool(inspect.signature(handler).parameters)

    async def handle(call: EndpointCall) -> Any:
        arguments = (call,) if takes_call else ()
        if is_async:
            return await handler(*arguments)
        return await asyncio.to_thread(handler, *arguments)

    return handle


async def _read_call(endpoint: Endpoint, request: Request) -> EndpointCall:
    query = read_query(request.query_params, endpoint.query)
    body: Any = None
    if endpoint.body is not None:
        content = await read_body(request, endpoint.max_body_bytes)
        if content is None:
            raise Refusal(
                413,
                "The request is too large.",
                f"The limit is {endpoint.max_body_bytes / 1e6:.0f} MB.",
                code="request_too_large",
            )
        body = content
        if endpoint.body is not bytes:
            body = read_json(content or b"{}", endpoint.body)
    params = request.path_params
    if any(
        isinstance(value, int) and value > _MAX_PATH_NUMBER for value in params.values()
    ):
        raise Refusal(404, "There is nothing here.")
    return EndpointCall(params, query, body, request)


def _serve_socket(endpoint: Endpoint) -> ASGIApp:
    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        socket = WebSocket(scope, receive, send)
        try:
            query = read_query(socket.query_params, endpoint.query)
        except InvalidRequest as error:
            await socket.close(4000, f"The address can't be read: {error}")
            return
        try:
            await endpoint.handler(socket, query)
        except WebSocketDisconnect as gone:  # the usual end: the page was closed
            log.debug("the peer of %s is gone (%s)", endpoint.path, gone.code)
        except Exception:  # the boundary of a request
            log.exception("the WebSocket %s failed", endpoint.path)
            await socket.close(1011)

    return serve
