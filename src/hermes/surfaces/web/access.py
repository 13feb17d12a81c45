"""Access to a server: where requests may come from, who sends them, and what they may do."""

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Literal, NamedTuple, NoReturn, Protocol, TypeAlias

from starlette.types import Receive, Scope, Send

from hermes.primitives.backoff import delay_s
from hermes.surfaces.web.errors import Refusal
from hermes.surfaces.web.hosts_and_origins import Addresses
from hermes.text.translation import translator

t = translator(__name__)

Need: TypeAlias = Literal[
    "open",
    "mcp",
    "observe",
    "chat",
    "approve",
    "terminal",
    "publish",
    "relay",
    "admin",
    "models",
    "sessions",
]
"""The scope that a route needs. `open` routes need none, but the request's source is still checked."""

RequestHeaders: TypeAlias = dict[str, list[str]]
"""Every value of each header, by its name in lower case."""
ResponseHeaders: TypeAlias = list[tuple[bytes, bytes]]

_OWN_PAGE = frozenset({"same-origin", "none"})
_FREE_FAILURES = 5
_MAX_THROTTLE_WAIT_S = 60.0
_FORGET_AFTER_S = 600.0


class LoginThrottle:
    """Slows down guessing: after five wrong credentials of a kind, each further one doubles the delay.

    Failures are counted by kind of credential, wherever they come from, including this
    machine.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kinds: dict[str, tuple[int, float, float]] = {}
        self.failures = 0

    def wait(self, kind: str) -> float:
        """Seconds until the next attempt will be checked; 0 if it may be now."""
        _, until, _ = self._kinds.get(kind, (0, 0.0, 0.0))
        return max(0.0, until - self._clock())

    def failed(self, kind: str) -> float:
        """Counts a wrong credential. Returns the seconds to wait, including what is left of the last wait.

        An early attempt does not extend the wait, because it was not checked.
        """
        now = self._clock()
        count, until, last = self._kinds.get(kind, (0, 0.0, 0.0))
        self.failures += 1
        if now < until:
            return until - now
        count = 1 if now - last > _FORGET_AFTER_S else count + 1
        penalty = 0.0
        if count >= _FREE_FAILURES:
            beyond = count - _FREE_FAILURES + 1
            penalty = delay_s(beyond, first_s=1.0, max_s=_MAX_THROTTLE_WAIT_S)
        self._kinds[kind] = (count, now + penalty, now)
        return penalty

    def succeeded(self, kind: str) -> None:
        """Resets the failures of a kind."""
        self._kinds.pop(kind, None)

    def refuse(self, kind: str, refusal: Refusal) -> NoReturn:
        """Counts a wrong credential and raises the refusal, or a 429 if the caller has to wait."""
        if wait := self.failed(kind):
            raise Refusal(
                429,
                f"Too many wrong {kind}s.",
                f"Wait {wait:.0f} s.",
                code="too_many_failures",
                wait=wait,
            )
        raise refusal


class Caller(Protocol):
    """Whoever sent a request."""

    @property
    def scopes(self) -> tuple[str, ...]: ...


class Source(NamedTuple):
    """Where requests to a server may come from. `setting` names the setting with its addresses."""

    addresses: Addresses
    setting: str

    def check(self, headers: RequestHeaders, *, arrives_by_link: bool) -> None:
        """Refuses requests for other host names, and requests made by pages of other sites."""
        hosts, origins = headers.get("host", []), headers.get("origin", [])
        if len(hosts) != 1 or len(origins) > 1:
            raise Refusal(400, "A request has one Host and at most one Origin.")
        if not self.addresses.knows_host(hosts[0]):
            raise Refusal(
                403,
                "This server does not have that host name.",
                f"If the name is right, add its address to the setting {self.setting}.",
                code="unknown_host",
            )
        sites = headers.get("sec-fetch-site", [])
        is_foreign = any(site not in _OWN_PAGE for site in sites)
        has_other_origin = bool(origins) and not self.addresses.knows_origin(
            origins[0], hosts[0]
        )
        if has_other_origin or (is_foreign and not arrives_by_link):
            raise Refusal(
                403, "A page from another site may not do this.", code="unknown_origin"
            )


class AccessControl:
    """Decides who may use a server. This base class admits everybody.

    It is for servers whose endpoints check their callers themselves, such as webhooks.
    """

    source: Source | None = None

    def identify(
        self, scope: Scope, headers: RequestHeaders, method: str
    ) -> Caller | None:
        """The sender of the request; None if callers need not identify themselves. Raises Refusal."""
        del scope, headers, method

    def response_headers(self, headers: ResponseHeaders) -> ResponseHeaders:
        """Adds the headers that every response has."""
        return headers

    def connection(
        self, caller: Caller, scope: Scope, receive: Receive, send: Send
    ) -> AbstractAsyncContextManager[tuple[Receive, Send]]:
        """Wraps a request while it is served; may end it early."""
        del caller, scope
        return nullcontext((receive, send))


def covers(held: Iterable[str], need: Need) -> bool:
    """Whether a credential with these scopes covers the scope that is needed."""
    return need == "open" or need in held or "admin" in held


def require(caller: Caller, need: Need, why: str) -> None:
    """Refuses a part of a request that needs a scope beyond the route's own."""
    if not covers(caller.scopes, need):
        raise Refusal(
            403,
            t("This needs the scope {scope!r}: {why}.", scope=need, why=why),
            t("Nothing was changed."),
        )


def bearer_token(headers: RequestHeaders) -> str | None:
    """The token of the Authorization header; None without the header, empty if it holds no token."""
    values = headers.get("authorization", [])
    if not values:
        return None
    kind, _, token = values[0].partition(" ")
    if kind.lower() == "bearer" and len(values) == 1:
        return token.strip()
    return ""
