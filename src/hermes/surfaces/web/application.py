"""`WebApplication`: the one ASGI application in front of every endpoint."""

import logging

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hermes.errors import HermesError, in_sentences
from hermes.surfaces.web.access import AccessControl, Caller, RequestHeaders, covers
from hermes.surfaces.web.endpoint import CALLER
from hermes.surfaces.web.errors import ErrorFormat, Refusal
from hermes.surfaces.web.routes import READING, Route, RouteTable
from hermes.text.translation import in_language

log = logging.getLogger("hermes.web")

_RESPONSE_STARTS = frozenset({"http.response.start", "websocket.http.response.start"})


class WebApplication:
    """Checks every request, then passes it to its route with the caller in the ASGI scope.

    The checks, in order: Host and Origin, the credential, whether the route exists, the
    scope. This way a stranger can't find out which routes exist.
    """

    def __init__(
        self, routes: RouteTable, access: AccessControl, errors: ErrorFormat
    ) -> None:
        self.routes = routes
        self._access = access
        self._errors = errors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_guarded(message: Message) -> None:
            if message["type"] in _RESPONSE_STARTS:
                headers = self._access.response_headers(
                    list(message.get("headers", ()))
                )
                message = {**message, "headers": headers}
            await send(message)

        try:
            route, caller = self._admit(scope)
        except Refusal as refusal:
            await self._refuse(refusal, scope, receive, send_guarded)
            return
        except HermesError as error:  # for example, the keys can't be read
            log.error("a request was refused: %s", in_sentences(error))  # noqa: TRY400 - no more to say
            refusal = Refusal(
                500, "Hermes can't check credentials.", "The log has more."
            )
            await self._refuse(refusal, scope, receive, send_guarded)
            return
        if caller is None:
            await route.serve(scope, receive, send_guarded)
            return
        async with self._access.connection(caller, scope, receive, send_guarded) as (
            receiving,
            sending,
        ):
            await route.serve(scope, receiving, sending)

    def _admit(self, scope: Scope) -> tuple[Route, Caller | None]:
        """Returns the route of a request and its sender. Raises Refusal."""
        protocol, path = scope["type"], scope["path"]
        method = "GET" if protocol == "websocket" else scope["method"]
        headers = _headers(scope)
        found = self.routes.find(protocol, method, path)
        route = found.route if found else None
        if self._access.source is not None:
            is_page = route is not None and route.is_page and method in READING
            navigates = headers.get("sec-fetch-mode") == ["navigate"]
            self._access.source.check(headers, arrives_by_link=is_page and navigates)
        caller = None
        if route is None or route.need != "open":
            caller = self._access.identify(scope, headers, method)
        if found is None or route is None:
            allowed = self.routes.allowed_methods(protocol, path)
            raise self._errors.not_found(scope, allowed)
        if caller is not None and not covers(caller.scopes, route.need):
            raise Refusal(
                403,
                f"This needs the scope {route.need!r}; you have: {', '.join(caller.scopes)}.",
                code="missing_scope",
            )
        scope["path_params"] = found.path_params
        scope[CALLER] = caller
        return route, caller

    async def _refuse(
        self, refusal: Refusal, scope: Scope, receive: Receive, send: Send
    ) -> None:
        response = self._errors.response(refusal, scope)
        if scope["type"] == "http":
            await response(scope, receive, send)
            return

        async def send_as_handshake(message: Message) -> None:
            await send({**message, "type": f"websocket.{message['type']}"})

        await response({**scope, "type": "http"}, receive, send_as_handshake)


class InEnglish:
    """Answers programs in English, whatever the user's language: errors are part of the API."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with in_language(None):
            await self._application(scope, receive, send)


def _headers(scope: Scope) -> RequestHeaders:
    found: RequestHeaders = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        found.setdefault(key, []).append(value.decode("latin-1"))
    return found
