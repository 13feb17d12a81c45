"""Web push: tells browsers that have no page open that something waits or has finished.

A push carries no text. The service worker asks this dashboard what happened, with its cookie, so the push service in
between learns only that something happened. `cryptography` signs the requests (VAPID, RFC 8292).
"""

import asyncio
import base64
import importlib.util
import logging
import re
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from hermes.app.app import EventPublisher
from hermes.errors import UsageError
from hermes.primitives.tasks import BackgroundTasks
from hermes.settings import Home, atomic
from hermes.surfaces.dashboard.credentials import Pass, dashboard_folder
from hermes.text.translation import translator

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec

t = translator(__name__)


log = logging.getLogger("hermes.dashboard")

_SERVICES = (
    "fcm.googleapis.com",
    "push.services.mozilla.com",
    "push.apple.com",
    "notify.windows.com",
)
"""Push services of the browsers, with their subdomains. Nothing is sent anywhere else."""
_ADDRESS = re.compile(r"https://[a-z0-9.-]+(?::443)?/[!-~]*")
_TTL_S = 3600
_TOKEN_LIFETIME_S = 12 * 3600
_SEND_TIMEOUT_S = 15.0
_MAX_SUBSCRIPTIONS = 20
_TOPICS = ("agent.approval.requested", "agent.question.asked", "agent.turn.ended")
_SETTLE_S = 0.5  # several events at once become one push
_GONE = frozenset({404, 410})
_CONTACT = "https://localhost"  # where a push service could complain; there is no other address


class PushSubscription(msgspec.Struct, frozen=True):
    """A browser that wants to be told, and the credential with which it said so."""

    endpoint: str
    held: Pass


class _PushFile(msgspec.Struct):
    key: str
    """The private key, as a number in hexadecimal."""
    subscriptions: list[PushSubscription] = []


def is_push_service(endpoint: str) -> bool:
    """Whether an address belongs to a push service of a browser, written as browsers write it."""
    if not _ADDRESS.fullmatch(endpoint):
        return False
    host = urlsplit(endpoint).hostname or ""
    return any(host == one or host.endswith(f".{one}") for one in _SERVICES)


class WebPush:
    """The subscriptions of a home, and sending to them."""

    def __init__(
        self,
        home: Home,
        is_good: Callable[[Pass], bool],
        *,
        is_allowed: Callable[[str], bool] = is_push_service,
    ) -> None:
        self._path = dashboard_folder(home) / "push.json"
        self._home = home
        self._is_good = is_good
        self._is_allowed = is_allowed

    @property
    def is_available(self) -> bool:
        """Whether the library is there that signs requests."""
        return importlib.util.find_spec("cryptography") is not None

    def public_key(self) -> str:
        """The key that a browser subscribes with."""
        return _public(_private(self._change(lambda _: None).key))

    def subscribe(self, endpoint: str, held: Pass) -> None:
        """Adds a browser; the oldest one goes if there are too many."""
        if not self._is_allowed(endpoint):
            raise UsageError(
                t("This is not an address of a known push service."),
                hint=t("Nothing was changed."),
            )

        def add(file: _PushFile) -> None:
            others = [one for one in file.subscriptions if one.endpoint != endpoint]
            new = PushSubscription(endpoint, held)
            file.subscriptions = [*others, new][-_MAX_SUBSCRIPTIONS:]

        self._change(add)

    def unsubscribe(self, *endpoints: str) -> None:
        def remove(file: _PushFile) -> None:
            file.subscriptions = [
                one for one in file.subscriptions if one.endpoint not in endpoints
            ]

        self._change(remove)

    async def send(self) -> None:
        """Tells every browser that is still signed in that there is something to look at."""
        file = await asyncio.to_thread(self._read)
        if file is None or not file.subscriptions:
            return
        gone = [
            one.endpoint for one in file.subscriptions if not self._is_good(one.held)
        ]
        wanted = [one for one in file.subscriptions if one.endpoint not in gone]
        key = _private(file.key)
        results = await asyncio.gather(
            *(self._push(one.endpoint, key) for one in wanted)
        )
        gone += [
            one.endpoint
            for one, status in zip(wanted, results, strict=True)
            if status in _GONE
        ]
        if gone:
            await asyncio.to_thread(self.unsubscribe, *gone)

    async def _push(
        self, endpoint: str, key: "ec.EllipticCurvePrivateKey"
    ) -> int | None:
        """The status of the answer; None if there was none."""
        import httpx2

        origin = "{0.scheme}://{0.netloc}".format(urlsplit(endpoint))
        headers = {
            "ttl": str(_TTL_S),
            "urgency": "high",
            "authorization": f"vapid t={_token(key, origin)}, k={_public(key)}",
        }
        try:
            async with httpx2.AsyncClient(timeout=_SEND_TIMEOUT_S) as client:
                answer = await client.post(endpoint, headers=headers)
        except (httpx2.HTTPError, OSError) as error:
            log.warning("a push to %s failed: %s", origin, error)
            return None
        if answer.status_code >= 400 and answer.status_code not in _GONE:
            log.warning("%s refused a push: %s", origin, answer.status_code)
        return answer.status_code

    def _read(self) -> _PushFile | None:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=_PushFile)
        except FileNotFoundError:
            return None

    def _change(self, work: Callable[[_PushFile], None]) -> _PushFile:
        self._home.ensure(self._path.parent)
        with atomic.locked(self._path) as target:
            file = self._read() or _PushFile(_new_key())
            before = msgspec.json.encode(file)
            work(file)
            if not self._path.exists() or msgspec.json.encode(file) != before:
                atomic.replace(target, msgspec.json.encode(file), mode=0o600)
        return file


class PushNotices:
    """Makes pushes of events, while a dashboard runs. Make it inside its event loop."""

    def __init__(self, bus: EventPublisher, push: WebPush) -> None:
        self._bus = bus
        self.push = push
        self.finished = ""
        """The session whose turn ended last."""
        self._loop = asyncio.get_running_loop()
        self._tasks = BackgroundTasks("a push")
        self._timer: asyncio.TimerHandle | None = None
        self._handles: list[Any] = []

    def start(self) -> None:
        if self.push.is_available:
            self._handles = [self._bus.subscribe(one, self._note) for one in _TOPICS]

    async def close(self) -> None:
        for handle in self._handles:
            self._bus.unsubscribe(handle)
        if self._timer is not None:
            self._timer.cancel()
        await self._tasks.close()

    def _note(self, event: Mapping[str, Any]) -> None:
        self._loop.call_soon_threadsafe(self._plan, event)

    def _plan(self, event: Mapping[str, Any]) -> None:
        """Sends soon. The ends of child sessions are not worth a push."""
        session = event["session_id"]
        if event["type"] == "agent.turn.ended":
            if event.get("root_session_id", session) != session:
                return
            self.finished = session
        if self._timer is None:
            self._timer = self._loop.call_later(_SETTLE_S, self._send)

    def _send(self) -> None:
        self._timer = None
        self._tasks.start(self.push.send())


def _new_key() -> str:
    from cryptography.hazmat.primitives.asymmetric import ec

    made = ec.generate_private_key(ec.SECP256R1())
    return f"{made.private_numbers().private_value:064x}"


def _private(key: str) -> "ec.EllipticCurvePrivateKey":
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.derive_private_key(int(key, 16), ec.SECP256R1())


def _public(key: "ec.EllipticCurvePrivateKey") -> str:
    numbers = key.public_key().public_numbers()
    point = b"\x04" + numbers.x.to_bytes(32, "big") + numbers.y.to_bytes(32, "big")
    return _text(point)


def _token(key: "ec.EllipticCurvePrivateKey", audience: str) -> str:
    """A signed statement of who sends the push (a JWT with ES256)."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, utils

    claims: dict[str, Any] = {
        "aud": audience,
        "exp": int(time.time()) + _TOKEN_LIFETIME_S,
        "sub": _CONTACT,
    }
    head = _text(b'{"typ":"JWT","alg":"ES256"}')
    body = f"{head}.{_text(msgspec.json.encode(claims))}"
    signature = key.sign(body.encode(), ec.ECDSA(hashes.SHA256()))
    first, second = utils.decode_dss_signature(signature)
    return f"{body}.{_text(first.to_bytes(32, 'big') + second.to_bytes(32, 'big'))}"


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
