"""Access to the dashboard: tokens, cookies, tickets, and security headers."""

import base64
import hashlib
import hmac
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Literal, NamedTuple
from urllib.parse import parse_qsl, urlencode

from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from hermes.surfaces.dashboard.credentials import SCOPES, Keyring, OneTimeCodes, Pass
from hermes.surfaces.dashboard.open_connections import OpenConnections
from hermes.surfaces.web import override
from hermes.surfaces.web.access import (
    AccessControl,
    Caller,
    LoginThrottle,
    RequestHeaders,
    ResponseHeaders,
    Source,
    bearer_token,
)
from hermes.surfaces.web.errors import ErrorFormat, Refusal
from hermes.surfaces.web.hosts_and_origins import Addresses
from hermes.surfaces.web.routes import READING
from hermes.text.translation import to_translate, translator

t = translator(__name__)


SUBPROTOCOL = "hermes.v1"
TICKET_PREFIX = "ticket."
TICKET_LIFETIME_S = 30.0
LINK_LIFETIME_S = 600.0
_MAX_COOKIES = 8
_TOKEN_IN_URL_PATH = "/api/pub"  # noqa: S105 - a path, where older senders may put their token into the URL
_PLUGIN_ROUTES = "/api/plugins/"
_HINT = to_translate(
    "Open the link that `hermes dashboard --link` prints, or send a token."
)

CONTENT_SECURITY_POLICY = (  # not translated
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "media-src blob:; font-src 'self'; connect-src 'self'; manifest-src 'self'; worker-src 'self'; frame-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
SANDBOX_POLICY = (  # not translated
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; media-src data: blob:; font-src data:; "
    "require-trusted-types-for 'script'; trusted-types default; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
"""For a document that shows what a model wrote. Its scripts run, but with an origin of their own: they reach neither
our cookies and answers nor the network. The page's `frame-src` keeps such a frame from going anywhere else."""
_OWN_ORIGIN_POLICY = (  # not translated
    SANDBOX_POLICY.replace("allow-scripts", "allow-scripts allow-same-origin").replace(
        "frame-ancestors 'self'",
        "frame-ancestors http://127.0.0.1:* http://localhost:*",  # not translated
    )
)
_CSP = b"content-security-policy"
_SECURITY_HEADERS: ResponseHeaders = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(self)"),
]
_SECURITY_NAMES = frozenset([_CSP, *(name for name, _ in _SECURITY_HEADERS)])
_SANDBOX_HEADERS: ResponseHeaders = [
    (_CSP, SANDBOX_POLICY.encode()),
    (b"x-frame-options", b"SAMEORIGIN"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"x-dns-prefetch-control", b"off"),
]
_DATA_HEADERS: ResponseHeaders = [
    (_CSP, b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
"""For JSON, which is no document: the others would only make each answer longer."""
OWN_ORIGIN_HEADERS: ResponseHeaders = [
    (_CSP, _OWN_ORIGIN_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    *_SANDBOX_HEADERS[2:],
]
"""For the same document under a name of its own, where its origin is not ours either."""


class Identity(NamedTuple):
    """The sender of a request, and how they proved it."""

    held: Pass
    by: Literal["token", "cookie", "ticket"]

    @property
    def scopes(self) -> tuple[str, ...]:
        return self.held.scopes


class DashboardAccess(AccessControl):
    """Credentials of one dashboard, and the connections that were opened with them."""

    def __init__(
        self,
        addresses: Addresses,
        keys: Keyring,
        clock: Callable[[], float],
        *,
        port: int,
        secure: bool,
        password: str,
    ) -> None:
        self.source = Source(addresses, "dashboard.public_urls")
        self.keys = keys
        # Signing everybody out also voids tickets and links that were not used yet.
        self.tickets: OneTimeCodes[Pass] = OneTimeCodes(
            TICKET_LIFETIME_S, clock, lambda: keys.serial
        )
        self.links: OneTimeCodes[bool] = OneTimeCodes(
            LINK_LIFETIME_S, clock, lambda: keys.serial
        )
        self.connections = OpenConnections(keys)
        self.throttle = LoginThrottle(clock)
        # Browsers send a cookie to every port of a host, so its name carries ours.
        self.cookie_name = "__Host-hermes" if secure else f"hermes_{port}"
        self.secure = secure
        self._previews = "" if secure else f"http://*.localhost:{port}"
        self._policy = _page_policy(b"", self._previews)
        self.password = password

    def allow_inline(self, script: bytes) -> None:
        """Lets this one script stand in the page itself."""
        self._policy = _page_policy(script, self._previews)

    def is_password(self, given: str) -> bool:
        """Whether that is the password. Without one, nothing is."""
        matches = hmac.compare_digest(
            given.encode(errors="replace"), self.password.encode()
        )
        return matches and bool(self.password)

    def owner_cookie(self, lifetime_s: float) -> str:
        """A new cookie that may do everything."""
        return self.keys.mint("cookie", SCOPES, seconds=lifetime_s)

    @override
    def identify(
        self, scope: Scope, headers: RequestHeaders, method: str
    ) -> Identity | None:
        identity = self._credential(scope, headers)
        if identity is None:
            raise Refusal(401, t("There is no credential."), t.marked(_HINT))
        is_socket = scope["type"] == "websocket"
        if identity.by == "cookie" and (is_socket or method not in READING):
            _require_own_page(headers, is_socket=is_socket)
        return identity

    @override
    def response_headers(self, headers: ResponseHeaders) -> ResponseHeaders:
        return secured(headers, secure=self.secure, policy=self._policy)

    @override
    def connection(
        self, caller: Caller, scope: Scope, receive: Receive, send: Send
    ) -> AbstractAsyncContextManager[tuple[Receive, Send]]:
        assert isinstance(caller, Identity)  # noqa: S101 - `identify` makes no other
        return self.connections.hold(caller.held, scope, receive, send)

    def _credential(self, scope: Scope, headers: RequestHeaders) -> Identity | None:
        """The credential that was sent. A wrong one is an error, even beside a right one."""
        token = bearer_token(headers) or None
        if token is None and scope["path"] == _TOKEN_IN_URL_PATH:
            token = _take_from_url(scope, "token")
        if token is not None:
            return Identity(
                self._valid("token", self.keys.read(token, "token")), "token"
            )
        ticket = _ticket(scope)
        if ticket is not None:
            held = self.tickets.redeem(ticket)
            is_good = held is not None and self.keys.is_good(held)
            return Identity(self._valid("ticket", held if is_good else None), "ticket")
        cookies = _cookies(headers, self.cookie_name)
        if not cookies:
            return None
        valid = (self.keys.read(cookie, "cookie") for cookie in cookies)
        found = next((held for held in valid if held is not None), None)
        return Identity(self._valid("cookie", found), "cookie")

    def _valid(self, kind: str, found: Pass | None) -> Pass:
        """The contents of a credential. These can't be guessed, so the right one never waits."""
        if found is None:
            self.throttle.refuse(
                kind,
                Refusal(
                    401,
                    t("This {kind} is not valid, or no longer valid.", kind=kind),
                    t("Get another: hermes dashboard --link"),
                ),
            )
        return found


class DashboardErrors(ErrorFormat):
    """Shows a person in a browser the login page instead of JSON."""

    @override
    def response(self, refusal: Refusal, scope: Scope) -> Response:
        if refusal.status in {401, 429} and _wants_page(scope):
            return Response(
                status_code=303, headers={"location": "/login"}, media_type="text/plain"
            )
        return super().response(refusal, scope)


def _page_policy(inline_script: bytes, previews: str) -> bytes:
    """The policy of the page: with the hash of a script in it, and where previews come from (`preview_origins.py`)."""
    digest = base64.b64encode(hashlib.sha256(inline_script).digest()).decode()
    policy = CONTENT_SECURITY_POLICY
    if inline_script:
        policy = policy.replace(
            "script-src 'self'", f"script-src 'self' 'sha256-{digest}'"
        )
    if previews:
        policy = policy.replace("frame-src 'self'", f"frame-src 'self' {previews}")
    return policy.encode()


def secured(
    headers: ResponseHeaders, *, secure: bool, policy: bytes
) -> ResponseHeaders:
    """The headers of a response with those that protect it.

    They tell a browser to run only our scripts, to show the page in no other page and to
    guess nothing. A plugin can neither loosen them nor open its responses to other sites.
    A response may only ask for `SANDBOX_POLICY`, and thereby give up our origin.
    """
    is_sandboxed = (_CSP, SANDBOX_POLICY.encode()) in headers
    kept = [
        (name, value)
        for name, value in headers
        if name.lower() not in _SECURITY_NAMES
        and not name.lower().startswith(b"access-control-")
    ]
    if not any(name.lower() == b"cache-control" for name, _ in kept):
        kept.append((b"cache-control", b"no-store"))
    if not is_sandboxed and _is_json(headers):
        kept += _DATA_HEADERS
    else:
        own = _SANDBOX_HEADERS if is_sandboxed else [(_CSP, policy)]
        names = {name for name, _ in own}
        kept += [*own, *(one for one in _SECURITY_HEADERS if one[0] not in names)]
    if secure:
        kept.append((b"strict-transport-security", b"max-age=31536000"))
    return kept


def _is_json(headers: ResponseHeaders) -> bool:
    kinds = [value for name, value in headers if name.lower() == b"content-type"]
    return [kind.partition(b";")[0].strip() for kind in kinds] == [b"application/json"]


def offered_subprotocol(socket: WebSocket) -> str | None:
    """The subprotocol to accept a WebSocket with: ours, where it was offered beside a ticket."""
    if SUBPROTOCOL in socket.scope.get("subprotocols", ()):
        return SUBPROTOCOL
    return None


def _require_own_page(headers: RequestHeaders, *, is_socket: bool) -> None:
    """A browser sends a cookie by itself, so a change needs proof that our page asked for it."""
    if is_socket:
        raise Refusal(
            401,
            t("A WebSocket needs a ticket."),
            t("Ask for one: POST /api/auth/tickets"),
        )
    if not headers.get("origin") and headers.get("sec-fetch-site") != ["same-origin"]:
        raise Refusal(
            403, t("A change needs an Origin, or a token instead of the cookie.")
        )


def _ticket(scope: Scope) -> str | None:
    """The one-time ticket of a WebSocket.

    Plugins for the original agent have it in the URL: their SDK gives them an address, not a socket.
    """
    for word in scope.get("subprotocols", ()):
        if word.startswith(TICKET_PREFIX):
            return word.removeprefix(TICKET_PREFIX)
    is_socket = scope["type"] == "websocket"
    if is_socket and scope["path"].startswith(_PLUGIN_ROUTES):
        return _take_from_url(scope, "ticket")
    return None


def _take_from_url(scope: Scope, name: str) -> str | None:
    """Takes a credential out of the URL, so that nothing behind us can log it."""
    pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    values = [value for key, value in pairs if key == name]
    if not values:
        return None
    others = [pair for pair in pairs if pair[0] != name]
    scope["query_string"] = urlencode(others).encode()
    return values[0] if len(values) == 1 else ""


def _cookies(headers: RequestHeaders, name: str) -> list[str]:
    """The values of our cookie.

    It may come more than once, left by another port or an older visit; any valid one will
    do. Cookies of other servers on this host are ignored.
    """
    pairs = (
        pair.strip().partition("=")
        for pair in ";".join(headers.get("cookie", [])).split(";")
    )
    return [value for given, _, value in pairs if given == name][:_MAX_COOKIES]


def _wants_page(scope: Scope) -> bool:
    return (
        scope["type"] == "http"
        and scope["path"] == "/"
        and any(
            name == b"accept" and b"text/html" in value
            for name, value in scope["headers"]
        )
    )
