"""Outgoing webhooks: each event that matches a pattern is sent in a signed request to an address of the user's choice.

Requests are signed according to the Standard Webhooks specification. Events wait in a spool, in order, until the
address has accepted them, so an address that is down costs only disk space.
"""

import base64
import contextlib
import hashlib
import hmac
import logging
import threading
import time
import uuid
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec

from hermes.bridge import EventSource
from hermes.bridge.spool import Spool, SpoolTaken, left_behind, thin_out
from hermes.bridge.websocket import is_private
from hermes.events.envelope import is_foreign
from hermes.events.wire import WireEncoder
from hermes.primitives.backoff import Backoff
from hermes.schema.catalogue import CATALOGUE
from hermes.settings.redaction import mask
from hermes.settings.sections import WebhookSettings

log = logging.getLogger("hermes.webhooks")

_FIRST_DELAY_S, _MAX_DELAY_S = 1.0, 60.0
_MAX_RETRY_AFTER_S = 300.0
_MAX_EVENT_REJECTIONS = 5  # attempts for one event before the next one is tried
_READ_BYTES = 64 * 1024
_PASSING_STATUSES = frozenset((408, 425, 429))  # statuses worth a retry
_SENSITIVE = {
    topic: frozenset(kind.sensitive)
    for topic, kind in CATALOGUE.items()
    if kind.sensitive
}

State = Literal["idle", "sending", "failing", "gone", "no secret"]


class WebhookStats(msgspec.Struct, frozen=True):
    """Counts the events of one webhook in this process."""

    name: str
    url: str
    state: State
    delivered: int
    waiting: int
    attempts: int
    refused: int
    """Events that the address rejected."""
    dropped: int
    """Events that did not fit in the spool."""
    replaced: int
    """Values that JSON can't represent and that were sent as strings."""


class _Answer(NamedTuple):
    status: int
    wait: float = 0.0


class WebhookSender:
    """One webhook of one process. `key` signs its requests."""

    def __init__(
        self,
        bus: EventSource,
        name: str,
        webhook: WebhookSettings,
        key: bytes,
        place: Path,
        *,
        backoff: Backoff | None = None,
    ) -> None:
        self._backoff = backoff or Backoff(_FIRST_DELAY_S, _MAX_DELAY_S)
        self._bus = bus
        self._name = name
        self._webhook = webhook
        self._contents = webhook.contents and is_private(webhook.url)
        if webhook.contents and not self._contents:
            log.warning(
                "the connection to the webhook %s is not encrypted: private fields are left out",
                name,
            )
        self._key = key
        self._place = place
        thin_out(place)
        self._spool = Spool(place / f"{int(time.time() * 1000):014}-{uuid.uuid4().hex}")
        self._last: object = None
        self._encoder = WireEncoder()
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._deadline = 0.0
        self._state: State = "idle"
        self._delivered = self._attempts = self._refused = 0
        self._connection: HTTPConnection | None = None
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._handles = [
            bus.subscribe(pattern, self._on_event) for pattern in webhook.events
        ]
        if any(folder != self._spool.folder for folder in left_behind(place)):
            self._start()

    def stats(self) -> WebhookStats:
        return WebhookStats(
            self._name, mask(self._webhook.url), self._state, self._delivered, self._spool.waiting, self._attempts,
            self._refused, self._spool.dropped, self._encoder.replaced,
        )  # fmt: skip

    def stop(self, grace: float = 3.0) -> None:
        """Stops. Sends queued events if there is time; the next process sends the rest."""
        for handle in self._handles:
            self._bus.unsubscribe(handle)
        self._deadline = time.monotonic() + (
            grace if self._state in {"idle", "sending"} else 0.0
        )
        self._stopping.set()
        self._news.set()
        if self._thread is not None:
            self._thread.join(grace + 0.5)
        if self._thread is None or not self._thread.is_alive():
            self._spool.close()

    def _on_event(self, event: Mapping[str, Any]) -> None:
        """Runs in the publisher's thread."""
        if event is self._last or is_foreign(event):  # two of its patterns may match
            return
        self._last = event
        if self._state == "gone":
            self._refused += 1
            return
        self._spool.add(self._record(event))
        self._news.set()
        if self._thread is None:
            self._start()

    def _record(self, event: Mapping[str, Any]) -> bytes:
        topic = str(event["type"])
        hidden = (
            frozenset[str]() if self._contents else _SENSITIVE.get(topic, frozenset())
        )
        data = {
            name: value
            for name, value in self._encoder.ready(event).items()
            if name not in hidden
        }
        place = [event.get(name) for name in ("session_id", "epoch", "seq")]
        name = "-".join(map(str, place)) if place[2] else uuid.uuid4().hex
        return self._encoder.encode(
            {"id": name, "type": topic, "timestamp": event.get("ts", 0.0), "data": data}
        )

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name=f"hermes-webhook-{self._name}", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        try:
            for folder in left_behind(self._place):
                with contextlib.suppress(SpoolTaken, OSError):
                    heir = Spool(folder)
                    self._empty(heir)
                    heir.close()
            while not self._is_over():
                self._empty(self._spool)
                if self._stopping.is_set():
                    return
                self._news.wait()
                self._news.clear()
        except Exception:  # the main function of this thread
            log.exception("the webhook %s failed; its events are kept", self._name)
        finally:
            if self._connection is not None:
                self._connection.close()

    def _is_over(self) -> bool:
        return self._state == "gone" or (
            self._stopping.is_set() and time.monotonic() > self._deadline
        )

    def _empty(self, spool: Spool) -> None:
        while not self._is_over() and (records := spool.read(_READ_BYTES)):
            for number, record in records:
                if not self._send_until_settled(record):
                    spool.rewind()
                    return
                spool.ack(number)

    def _send_until_settled(self, record: bytes) -> bool:
        """Sends a record until it is accepted or finally rejected. Returns False if it must be kept."""
        self._backoff.reset()
        refusals = 0
        while not self._is_over():
            self._state = "sending"
            answer = self._post(record)
            if 200 <= answer.status < 300:
                self._state = "idle"
                self._delivered += 1
                return True
            if answer.status == 410:
                log.error(
                    "the webhook %s is gone (410): nothing more is sent there",
                    self._name,
                )
                self._state = "gone"
                return False
            self._state = "failing"
            refusals += (
                300 <= answer.status < 500 and answer.status not in _PASSING_STATUSES
            )
            if refusals >= _MAX_EVENT_REJECTIONS:
                log.error(
                    "the webhook %s rejected an event (%d); the event is skipped",
                    self._name,
                    answer.status,
                )
                self._refused += 1
                return True
            self._stopping.wait(max(answer.wait, self._backoff.next_s()))
            if self._stopping.is_set():
                return False
        return False

    def _post(self, record: bytes) -> _Answer:
        """Makes one attempt. The status is 0 if there was no answer."""
        self._attempts += 1
        place = urlsplit(self._webhook.url)
        path = (place.path or "/") + (f"?{place.query}" if place.query else "")
        try:
            connection = self._connect()
            connection.request("POST", path, record, _signed(self._key, record))
            response = connection.getresponse()
            response.read(_READ_BYTES)
        except (OSError, HTTPException, ValueError) as error:
            log.debug("the webhook %s: %s", self._name, error)
            self._hang_up()
            return _Answer(0)
        if response.will_close:
            self._hang_up()
        wait = response.headers.get("retry-after", "0")
        return _Answer(
            response.status,
            min(float(wait), _MAX_RETRY_AFTER_S) if wait.isdecimal() else 0.0,
        )

    def _connect(self) -> HTTPConnection:
        if self._connection is None:
            place = urlsplit(self._webhook.url)
            host, timeout = place.hostname or "", self._webhook.timeout
            if place.scheme == "https":
                import ssl

                import truststore  # the certificates of the system

                context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                self._connection = HTTPSConnection(
                    host, place.port, timeout=timeout, context=context
                )
            else:
                self._connection = HTTPConnection(host, place.port, timeout=timeout)
        return self._connection

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def key_of(secret: str) -> bytes:
    """Returns the key of a secret: base64 after `whsec_`, or any text."""
    if secret.startswith("whsec_"):
        with contextlib.suppress(ValueError):
            return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    return secret.encode()


def _signed(key: bytes, record: bytes) -> dict[str, str]:
    """Returns the headers that prove who sent a record and when."""
    name, moment = msgspec.json.decode(record)["id"], str(int(time.time()))
    mark = hmac.digest(
        key, b".".join((name.encode(), moment.encode(), record)), hashlib.sha256
    )
    return {
        "content-type": "application/json",
        "user-agent": "hermes-webhook",
        "webhook-id": name,
        "webhook-timestamp": moment,
        "webhook-signature": "v1," + base64.b64encode(mark).decode(),
    }
