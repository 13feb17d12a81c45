"""How a route is written: an `Endpoint` with its scope and types. From these come the routes, the gate's table and the
OpenAPI description, so that none of them can lack one."""

import asyncio
import errno
import inspect
import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute, compile_path
from starlette.websockets import WebSocket, WebSocketDisconnect

from hermes.errors import (
    AnswerRefused,
    HermesError,
    ModelError,
    NotFound,
    Refused,
    SessionBusy,
    SessionNotFound,
    SettingsError,
    StoreBusy,
    StoreError,
    StoreFull,
    UsageError,
)
from hermes.surfaces.dashboard.gate.access import AccessRule
from hermes.surfaces.dashboard.gate.gate import SUBPROTOCOL, Identity, Refusal
from hermes.surfaces.dashboard.gate.scopes import Need
from hermes.surfaces.web.request_json import InvalidRequest, read_json, read_query

log = logging.getLogger("hermes.dashboard")

Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE", "WEBSOCKET"]

_LARGEST = 2**63 - 1  # a number in a path that anything can have
MAX_BODY = 16 * 1024 * 1024  # bytes of a request; pictures are sent in it
_STATUS: tuple[tuple[type[HermesError], int], ...] = (
    (SessionNotFound, 404),
    (NotFound, 404),
    (Refused, 409),
    (SessionBusy, 409),
    (AnswerRefused, 409),
    (StoreBusy, 503),
    (StoreFull, 507),
    (UsageError, 400),
    (SettingsError, 400),
    (StoreError, 400),
    (ModelError, 502),
)


class Nothing(msgspec.Struct, frozen=True):
    """No parameters."""


class Acknowledged(msgspec.Struct, frozen=True):
    """It was done."""

    ok: bool = True


class EndpointCall(NamedTuple):
    """A request as a handler sees it, with its query and body in the types that the endpoint declares."""

    path: dict[str, Any]
    query: Any
    body: Any
    identity: Identity | None
    request: Request


class Endpoint(NamedTuple):
    """One route. Its handler takes a `EndpointCall` or nothing; a coroutine runs in the event loop, any other in a thread."""

    method: Method
    path: str
    need: Need
    handler: Callable[..., Any]
    query: type[msgspec.Struct] = Nothing
    body: type[msgspec.Struct] | None = None
    answer: Any = Acknowledged
    is_page: bool = False

    @property
    def summary(self) -> str:
        return (inspect.getdoc(self.handler) or "").partition("\n")[0]

    def rule(self) -> AccessRule:
        """Its line in the gate's table."""
        pattern = compile_path(self.path)[0]
        if self.method == "WEBSOCKET":
            return AccessRule("websocket", frozenset(), pattern, self.need)
        methods = frozenset({"GET", "HEAD"} if self.method == "GET" else {self.method})
        return AccessRule("http", methods, pattern, self.need, self.is_page)


def routes(endpoints: Sequence[Endpoint]) -> list[BaseRoute]:
    """The endpoints as Starlette sees them."""
    return [
        WebSocketRoute(one.path, _socket(one))
        if one.method == "WEBSOCKET"
        else Route(one.path, _handler(one), methods=[one.method])
        for one in endpoints
    ]


def json(value: object, *, status: int = 200) -> Response:
    """An answer in JSON."""
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def find_file(folder: Path, name: str) -> Path | None:
    """The file of that name below a folder; None when there is none, or it lies elsewhere."""
    try:
        path = (folder / name).resolve()
        return (
            path if path.is_relative_to(folder.resolve()) and path.is_file() else None
        )
    except (OSError, ValueError):  # a name that no file can have
        return None


def offered(socket: WebSocket) -> str | None:
    """The subprotocol to accept a WebSocket with: ours, where it was offered beside a ticket."""
    return SUBPROTOCOL if SUBPROTOCOL in socket.scope.get("subprotocols", ()) else None


def _handler(endpoint: Endpoint) -> Callable[[Request], Any]:
    is_async = inspect.iscoroutinefunction(endpoint.handler)
    takes_call = bool(inspect.signature(endpoint.handler).parameters)

    async def answer(request: Request) -> Response:
        try:
            call = await _read(endpoint, request)
            handler = (
                partial(endpoint.handler, call) if takes_call else endpoint.handler
            )
            found = await handler() if is_async else await asyncio.to_thread(handler)
        except Refusal as refusal:
            return json(
                {"error": refusal.error, "hint": refusal.hint}, status=refusal.status
            )
        except HermesError as error:
            return json(
                {"error": error.message, "hint": error.hint}, status=_status(error)
            )
        except ClientDisconnect:
            return Response(status_code=400)
        except (
            Exception
        ) as error:  # the boundary of a request: it is logged, and the others go on
            log.exception("%s %s failed", endpoint.method, endpoint.path)
            if isinstance(error, OSError) and error.errno in (
                errno.EMFILE,
                errno.ENFILE,
            ):
                hint = "Close some pages or terminals, or raise the limit (ulimit -n), and try again."
                return json(
                    {"error": "Hermes has run out of file handles.", "hint": hint},
                    status=503,
                )
            return json(
                {
                    "error": f"{type(error).__name__}: {error}",
                    "hint": "The log has more.",
                },
                status=500,
            )
        return found if isinstance(found, Response) else json(found)

    return answer


def _socket(endpoint: Endpoint) -> Callable[[WebSocket], Any]:
    async def serve(socket: WebSocket) -> None:
        try:
            query = _typed(dict(socket.query_params), endpoint.query)
        except Refusal as refusal:
            await socket.close(4000, refusal.error)
            return
        try:
            await endpoint.handler(socket, query)
        except (
            WebSocketDisconnect
        ) as gone:  # the usual end: pages are closed, lines break
            log.debug("the peer of %s is gone (%s)", endpoint.path, gone.code)
        except Exception:  # the boundary of a request, as above
            log.exception("the WebSocket %s failed", endpoint.path)
            await socket.close(1011)

    return serve


async def _read(endpoint: Endpoint, request: Request) -> EndpointCall:
    query = _typed(dict(request.query_params), endpoint.query)
    body = None
    if endpoint.body is not None:
        content = bytearray()
        async for chunk in request.stream():
            content += chunk
            if len(content) > MAX_BODY:
                raise Refusal(
                    413,
                    "The request is too large.",
                    f"At most {MAX_BODY // 2**20} MiB are possible.",
                )
        try:
            body = read_json(bytes(content) or b"{}", endpoint.body)
        except InvalidRequest as error:
            raise Refusal(422, f"The request can't be read: {error}") from error
    if any(
        isinstance(value, int) and value > _LARGEST
        for value in request.path_params.values()
    ):
        raise Refusal(404, "There is nothing here.")
    return EndpointCall(
        request.path_params, query, body, request.scope.get("hermes.identity"), request
    )


def _typed(given: dict[str, str], kind: type[msgspec.Struct]) -> msgspec.Struct:
    try:
        return read_query(given, kind)
    except InvalidRequest as error:
        raise Refusal(422, f"The address can't be read: {error}") from error


def _status(error: HermesError) -> int:
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 400)
