"""The one ASGI middleware in front of everything: Host, Origin, where the request comes from, credential, scope."""

import hmac
from collections.abc import Callable
from typing import Literal, NamedTuple
from urllib.parse import parse_qsl, urlencode

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hermes.surfaces.dashboard.gate.access import READING, AccessRule, AccessTable
from hermes.surfaces.dashboard.gate.headers import guarded
from hermes.surfaces.dashboard.gate.keys import Keyring, Pass
from hermes.surfaces.dashboard.gate.one_time import OneTimeCodes
from hermes.surfaces.dashboard.gate.open_connections import Visit, Visits
from hermes.surfaces.dashboard.gate.scopes import SCOPES, covers
from hermes.surfaces.web.host_names import Addresses
from hermes.surfaces.web.login_throttle import Throttle

SUBPROTOCOL = "hermes.v1"
TICKET = "ticket."
TICKET_SECONDS = 30.0
LINK_SECONDS = 600.0
_MOST_COOKIES = 8
_OWN_PAGE = frozenset({"same-origin", "none"})
_TOKEN_IN_URL = "/api/pub"  # noqa: S105 - a path: the only one where older senders may put their token into the URL


class Refusal(Exception):
    """A request that goes no further."""

    def __init__(
        self, status: int, error: str, hint: str = "", *, wait: float = 0.0
    ) -> None:
        super().__init__(error)
        self.status = status
        self.error = error
        self.hint = hint
        self.wait = wait


class Identity(NamedTuple):
    """Who asks."""

    held: Pass
    by: Literal["token", "cookie", "ticket"]


class Doors(NamedTuple):
    """What the gate knows: names, keys, what is good once, and how often somebody guessed wrong."""

    addresses: Addresses
    keys: Keyring
    tickets: OneTimeCodes[Pass]
    links: OneTimeCodes[bool]
    visits: Visits
    throttle: Throttle
    cookie: str
    """The cookie's name. Cookies know no ports, so it carries ours."""
    secure: bool
    password: str = ""

    @classmethod
    def open(
        cls,
        addresses: Addresses,
        keys: Keyring,
        clock: Callable[[], float],
        *,
        port: int,
        secure: bool,
        password: str,
    ) -> "Doors":
        name = "__Host-hermes" if secure else f"hermes_{port}"
        # Whoever signs everybody out means those too who have not come in yet.
        tickets: OneTimeCodes[Pass] = OneTimeCodes(
            TICKET_SECONDS, clock, lambda: keys.serial
        )
        links: OneTimeCodes[bool] = OneTimeCodes(
            LINK_SECONDS, clock, lambda: keys.serial
        )
        return cls(
            addresses,
            keys,
            tickets,
            links,
            Visits(keys),
            Throttle(clock),
            name,
            secure,
            password,
        )

    def is_password(self, given: str) -> bool:
        """Whether that is the password. Without one, nothing is."""
        right = hmac.compare_digest(
            given.encode(errors="replace"), self.password.encode()
        )
        return right and bool(self.password)


class AccessGate:
    """Lets a request through, with its `Identity` in the ASGI scope under `hermes.identity`, or answers itself."""

    def __init__(self, app: ASGIApp, doors: Doors, table: AccessTable) -> None:
        self._app = app
        self._doors = doors
        self._table = table

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        secure = self._doors.secure

        async def guarding(message: Message) -> None:
            if message["type"] in {
                "http.response.start",
                "websocket.http.response.start",
            }:
                message = {
                    **message,
                    "headers": guarded(message.get("headers", ()), secure=secure),
                }
            await send(message)

        try:
            identity = scope["hermes.identity"] = self._judge(scope)
        except Refusal as refusal:
            await _refuse(refusal, scope, guarding)
            return
        if identity is None:
            await self._app(scope, receive, guarding)
            return
        visit = Visit(scope, receive, guarding)
        async with self._doors.visits.visiting(visit, identity.held):
            await self._app(scope, visit.receive, visit.send)

    def _judge(self, scope: Scope) -> Identity | None:
        """Who asks; None for an open page. Raises Refusal."""
        is_socket = scope["type"] == "websocket"
        method = "GET" if is_socket else scope["method"]
        headers = _headers(scope)
        rule = self._table.find(scope["type"], method, scope["path"])
        self._check_source(headers, rule, method)
        if rule is not None and rule.need == "open":
            return None
        identity = self._identify(scope, headers)
        if identity is None:
            hint = (
                "Open the link that `hermes dashboard --link` prints, or send a token."
            )
            raise Refusal(401, "Who are you? There is no credential.", hint)
        if identity.by == "cookie" and (is_socket or method not in READING):
            _require_own_page(headers, is_socket=is_socket)
        if rule is None:
            raise Refusal(404, "There is nothing here.")
        if not covers(identity.held.scopes, rule.need):
            raise Refusal(
                403,
                f"This needs the scope {rule.need!r}; you have: {', '.join(identity.held.scopes)}.",
            )
        return identity

    def _check_source(
        self, headers: dict[str, list[str]], rule: AccessRule | None, method: str
    ) -> None:
        hosts, origins = headers.get("host", []), headers.get("origin", [])
        if len(hosts) != 1 or len(origins) > 1:
            raise Refusal(400, "A request has one Host and at most one Origin.")
        if not self._doors.addresses.knows_host(hosts[0]):
            hint = "If that name is right, add its address to the setting dashboard.public_urls."
            raise Refusal(403, "This dashboard does not go by that name.", hint)
        if origins and not self._doors.addresses.knows_origin(origins[0], hosts[0]):
            raise Refusal(403, "A page from elsewhere may not do this.")
        sites = headers.get("sec-fetch-site", [])
        arrives = rule is not None and rule.is_page and method in READING
        arrives = arrives and headers.get("sec-fetch-mode") == ["navigate"]
        if any(site not in _OWN_PAGE for site in sites) and not arrives:
            raise Refusal(403, "A page from elsewhere may not do this.")

    def _identify(self, scope: Scope, headers: dict[str, list[str]]) -> Identity | None:
        """The credential that was shown. A wrong one is an error, even if another would do."""
        doors = self._doors
        token = _bearer(headers) or (
            _url_token(scope) if scope["path"] == _TOKEN_IN_URL else None
        )
        if token is not None:
            return Identity(
                self._right("token", doors.keys.read(token, "token")), "token"
            )
        ticket = next(
            (word for word in scope.get("subprotocols", ()) if word.startswith(TICKET)),
            None,
        )
        if ticket is not None:
            held = doors.tickets.redeem(ticket.removeprefix(TICKET))
            good = held if held is not None and doors.keys.is_good(held) else None
            return Identity(self._right("ticket", good), "ticket")
        cookies = _cookies(headers, doors.cookie)
        if not cookies:
            return None
        good = next(
            (held for cookie in cookies if (held := doors.keys.read(cookie, "cookie"))),
            None,
        )
        return Identity(self._right("cookie", good), "cookie")

    def _right(self, kind: str, found: Pass | None) -> Pass:
        """What a credential said, or the refusal. These can't be guessed, so the right one is never made to wait."""
        if found is not None:
            return found
        throttle = self._doors.throttle
        wait = throttle.wait(kind)
        throttle.failed(kind)
        if wait or (wait := throttle.wait(kind)):
            raise Refusal(
                429, "Too many wrong credentials.", f"Wait {wait:.0f} s.", wait=wait
            )
        raise Refusal(
            401,
            f"This {kind} is not valid (any more).",
            "Get another: hermes dashboard --link",
        )


def everything(keys: Keyring, seconds: float) -> str:
    """A cookie for the owner."""
    return keys.mint("cookie", SCOPES, seconds=seconds)


def _require_own_page(headers: dict[str, list[str]], *, is_socket: bool) -> None:
    """A cookie comes along by itself, so it takes more to change something."""
    if is_socket:
        raise Refusal(
            401, "A WebSocket needs a ticket.", "Ask for one: POST /api/auth/tickets"
        )
    if not headers.get("origin") and headers.get("sec-fetch-site") != ["same-origin"]:
        raise Refusal(
            403, "A change needs an Origin, or a token instead of the cookie."
        )


def _headers(scope: Scope) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(
            value.decode("latin-1")
        )
    return found


def _bearer(headers: dict[str, list[str]]) -> str | None:
    values = headers.get("authorization", [])
    if not values:
        return None
    kind, _, token = values[0].partition(" ")
    return token.strip() if kind.lower() == "bearer" and len(values) == 1 else ""


def _url_token(scope: Scope) -> str | None:
    """Takes the token out of the URL, so that nobody behind us can log it."""
    pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    tokens = [value for name, value in pairs if name == "token"]
    if not tokens:
        return None
    scope["query_string"] = urlencode(
        [pair for pair in pairs if pair[0] != "token"]
    ).encode()
    return tokens[0] if len(tokens) == 1 else ""


def _cookies(headers: dict[str, list[str]], name: str) -> list[str]:
    """Our cookies. Cookies of other servers on this host, which come along from any port, are ignored. Ours may come
    twice, left by another port or an older visit: any valid one will do."""
    pairs = (
        pair.strip().partition("=")
        for pair in ";".join(headers.get("cookie", [])).split(";")
    )
    return [value for given, _, value in pairs if given == name][:_MOST_COOKIES]


async def _refuse(refusal: Refusal, scope: Scope, send: Send) -> None:
    headers = [(b"content-type", b"application/json")]
    if refusal.wait:
        headers.append((b"retry-after", str(max(1, round(refusal.wait))).encode()))
    body = msgspec.json.encode({"error": refusal.error, "hint": refusal.hint})
    if scope["type"] == "http" and refusal.status in {401, 429} and _wants_page(scope):
        headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"location", b"/login"),
        ]
        refusal.status, body = 303, b""
    kind = (
        "websocket.http.response" if scope["type"] == "websocket" else "http.response"
    )
    await send({"type": f"{kind}.start", "status": refusal.status, "headers": headers})
    await send({"type": f"{kind}.body", "body": body})


def _wants_page(scope: Scope) -> bool:
    """A person in a browser, who is shown the way in instead of JSON."""
    return scope["path"] == "/" and any(
        name == b"accept" and b"text/html" in value for name, value in scope["headers"]
    )
