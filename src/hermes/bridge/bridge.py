"""The bridge sends the events of this process to a dashboard. `publish` never blocks on it.

The bridge runs in its own thread, which sleeps while nothing happens. Durable events are sent again until the dashboard
has acknowledged them. Those of a process that was killed are sent by the next process.
"""

import contextlib
import logging
import os
import select
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import msgspec

from hermes.bridge import EventSource
from hermes.bridge.orphan_spools import OrphanSpools
from hermes.bridge.outbox import Outbox
from hermes.bridge.websocket import Target, Wire, WireClosed, WireRefused
from hermes.events.envelope import is_foreign
from hermes.primitives.backoff import Backoff

log = logging.getLogger("hermes.bridge")

_BATCH_INTERVAL_S = 0.004  # events that arrive in this time are sent together
_MAX_BATCH_BYTES = 192 * 1024
_CONNECTION_SILENCE_TIMEOUT_S = 90.0  # without any data, pings included
_ACK_TIMEOUT_S = 30.0  # without progress; then the bridge reconnects
_BRIDGE_STOP_TIMEOUT_S = 1.0

State: TypeAlias = Literal["waiting", "connecting", "connected", "refused", "stopped"]


class BridgeStats(msgspec.Struct, frozen=True):
    """Counts the events of this process. An event that is neither dropped nor refused has arrived or is queued."""

    state: State
    url: str
    channel: str
    durable: int
    acknowledged: int
    waiting: int
    refused: int
    transient: int
    dropped: int
    torn: int
    cut: int
    replaced: int
    connects: int


class _Ack(msgspec.Struct):
    type: str = ""
    publisher: str = ""
    epoch: int = 0
    seq: int = 0


_decode = msgspec.json.Decoder(_Ack).decode


class _Stopped(WireClosed):
    """The bridge was stopped while it was waiting."""


class Bridge:
    """The bridge of one process. `find` returns the dashboard's address before each attempt; None if there is none."""

    def __init__(
        self,
        bus: EventSource,
        find: Callable[[], Target | None],
        outbox: Outbox,
        *,
        channel: str = "gateway",
        backoff: Backoff | None = None,
    ) -> None:
        self._bus = bus
        self._find = find
        self._backoff = backoff or Backoff()
        self.outbox = outbox
        self._stopping = threading.Event()
        self._deadline = 0.0
        self._asleep = False
        self._wakeup = Wakeup()
        self._heirs = OrphanSpools(outbox)
        self._hurried = threading.Event()
        self.arrived = -1
        """How many transient events the dashboard has received; -1 until it reports a number."""
        self._url = ""
        self._connects = 0
        self.state: State = "connecting"
        self.channel = channel
        self._handle = bus.subscribe("**", self._on_event)
        self._thread = threading.Thread(
            target=self._run, name="hermes-bridge", daemon=True
        )
        self._thread.start()

    @property
    def publisher(self) -> str:
        """The name of this publisher on the wire."""
        return self.outbox.publisher

    def stats(self) -> BridgeStats:
        outbox, spool = self.outbox, self.outbox.spool
        return BridgeStats(
            state=self.state,
            url=self._url,
            channel=self.channel,
            durable=spool.last,
            acknowledged=spool.acked,
            waiting=spool.waiting,
            refused=spool.dropped,
            transient=outbox.heard,
            dropped=outbox.dropped,
            torn=spool.torn + self._heirs.torn,
            cut=outbox.cut,
            replaced=outbox.encoder.replaced,
            connects=self._connects,
        )

    def stop(self, grace: float = _BRIDGE_STOP_TIMEOUT_S) -> None:
        """Stops. Sends queued events if there is time; the rest stays in the spool."""
        if self.state == "stopped":
            return
        self._bus.unsubscribe(self._handle)
        self._deadline = time.monotonic() + (
            grace if self.state in {"connecting", "connected"} else 0.0
        )
        self._stopping.set()
        self._hurried.set()
        self._wakeup.wake()
        self._thread.join(grace + 1.0)
        if (
            not self._thread.is_alive()
        ):  # otherwise it is stuck in the resolver and ends with the process
            self._end()

    def reconnect_now(self) -> None:
        """Reconnects immediately, because a dashboard has started."""
        self._hurried.set()

    def _end(self) -> None:
        self.state = "stopped"
        self.outbox.forfeit()
        self.outbox.spool.close()
        self._heirs.close()
        self._wakeup.close()

    def _on_event(self, event: dict[str, Any]) -> None:
        """Runs in the publisher's thread."""
        if is_foreign(event):
            return
        self.outbox.put(event)
        if self._asleep:
            self._asleep = False
            self._wakeup.wake()

    def _run(self) -> None:
        while not self._stopping.is_set():
            connects, wait = self._connects, 0.0
            try:
                self._attempt()
            except WireRefused as refused:
                self._say_refused(refused)
                wait = refused.wait
            except _Stopped:
                return
            except WireClosed as closed:
                log.debug("%s: %s", self._url, closed)
                self.state = "waiting"
            except Exception:  # the boundary of this thread
                log.exception("the bridge failed and will try again")
                self.state = "waiting"
            if self._connects > connects:
                self._backoff.reset()
            self._hurried.wait(max(wait, self._backoff.next_s()))
            self._hurried.clear()

    def _say_refused(self, refused: WireRefused) -> None:
        if self.state != "refused":
            log.warning(
                "the dashboard at %s rejected the events (%d): is the token right?",
                self._url,
                refused.status,
            )
        self.state = "refused"

    def _attempt(self) -> None:
        target = self._find()
        if target is None:
            self.state = "waiting"
            return
        self._url = target.url.partition("?")[0]
        if self.state != "refused":
            self.state = "connecting"
        wire = Wire.open(target, self.channel, self._wait)
        try:
            self._heirs.adopt()
            self._greet(wire)
            self.state = "connected"
            self._connects += 1
            log.info("events go to %s", self._url)
            self._talk(wire)
        finally:
            wire.close()

    def _greet(self, wire: Wire) -> None:
        """Asks the dashboard which events have arrived, and continues after them."""
        self.arrived = -1
        names = [self.publisher, f"{self.publisher}.transient", *self._heirs.publishers]
        wire.send(
            b"["
            + b",".join(b'{"publisher":"%s"}' % name.encode() for name in names)
            + b"]"
        )
        deadline = time.monotonic() + _ACK_TIMEOUT_S
        while self.arrived < 0:
            self._wakeup.wait(
                wire.fileno(), not wire.is_idle, min(deadline - time.monotonic(), 0.1)
            )
            if time.monotonic() > deadline or self._is_late:
                raise WireClosed("the dashboard did not report what has arrived")
            wire.push()
            self._receive(wire)
        self.outbox.rewind(self.arrived)
        self._heirs.rewind()

    def _talk(self, wire: Wire) -> None:
        """Sends and receives until the bridge is stopped or the connection breaks."""
        heard = progressed = time.monotonic()
        acked = -1
        while not self._is_done(wire):
            frames = self._frames() if wire.is_idle else []
            if frames:
                wire.send(b"[" + b",".join(frames) + b"]")
                if not self.outbox.is_filling:
                    self._stopping.wait(_BATCH_INTERVAL_S)
            else:
                wait_s = (
                    min(
                        heard + _CONNECTION_SILENCE_TIMEOUT_S,
                        progressed + _ACK_TIMEOUT_S,
                    )
                    - time.monotonic()
                )
                self._sleep(wire, 0.01 if self._stopping.is_set() else wait_s)
            now = time.monotonic()
            if self._receive(wire):
                heard = now
            wire.push()
            if (done := self._acknowledged()) != acked or not (
                wire.is_idle and self._waits
            ):
                acked, progressed = done, now
            if (
                now > heard + _CONNECTION_SILENCE_TIMEOUT_S
                or now > progressed + _ACK_TIMEOUT_S
            ):
                raise WireClosed("the dashboard has not answered for too long")

    def _is_done(self, wire: Wire) -> bool:
        if not self._stopping.is_set():
            return False
        return self._is_late or (
            wire.is_idle and not self._waits and not self.outbox.has_news
        )

    @property
    def _is_late(self) -> bool:
        """Whether the time for stopping has run out."""
        return self._stopping.is_set() and time.monotonic() > self._deadline

    def _frames(self) -> list[bytes]:
        """Returns the frames to send next. Those of orphaned spools come first."""
        return self._heirs.frames(_MAX_BATCH_BYTES) or self.outbox.batch(
            _MAX_BATCH_BYTES
        )

    def _sleep(self, wire: Wire, seconds: float) -> None:
        """Sleeps until there is something to do. A publisher wakes the thread."""
        self._asleep = True
        if not (wire.is_idle and self.outbox.has_news):
            self._wakeup.wait(wire.fileno(), not wire.is_idle, seconds)
        self._asleep = False

    def _wait(self, sock: socket.socket, also_write: bool, seconds: float) -> None:
        """Waits until a connection is established."""
        deadline = time.monotonic() + seconds
        while not self._wakeup.wait(
            sock.fileno(), also_write, min(deadline - time.monotonic(), 0.1)
        ):
            if self._is_late:
                raise _Stopped("to stop")
            if time.monotonic() >= deadline:
                raise WireClosed("it took too long")

    def _receive(self, wire: Wire) -> bool:
        """Reads acknowledgements. Returns False if nothing arrived."""
        before = wire.received
        for message in wire.receive():
            try:
                ack = _decode(message)
            except msgspec.MsgspecError:
                log.debug("the dashboard sent something that is not an acknowledgement")
                continue
            if ack.type == "pub.ack":
                self._on_ack(ack)
        return wire.received > before

    def _on_ack(self, ack: _Ack) -> None:
        outbox = self.outbox
        if ack.publisher == f"{outbox.publisher}.transient":
            self.arrived = ack.seq if ack.epoch == outbox.epoch else 0
            outbox.settle(self.arrived)
        elif ack.publisher == outbox.publisher and ack.epoch == outbox.epoch:
            outbox.spool.ack(ack.seq)
        else:
            self._heirs.ack(ack.publisher, ack.epoch, ack.seq)

    @property
    def _waits(self) -> bool:
        """Whether something was sent but not acknowledged yet."""
        return bool(self.outbox.spool.waiting or self._heirs.publishers)

    def _acknowledged(self) -> int:
        return self.outbox.spool.acked + self._heirs.acked


class Wakeup:
    """Lets one thread wait and any thread wake it."""

    def __init__(self) -> None:
        self._heard, self._rung = os.pipe()
        for handle in (self._heard, self._rung):
            os.set_blocking(handle, False)

    def wake(self) -> None:
        """Ends the current wait, or the next one."""
        with contextlib.suppress(OSError):  # full: the thread is already awake
            os.write(self._rung, b"!")

    def wait(self, handle: int, also_write: bool, seconds: float) -> bool:
        """Waits for a connection or a wake-up. Returns whether the connection is ready."""
        poll = select.poll()
        poll.register(handle, select.POLLIN | (select.POLLOUT if also_write else 0))
        poll.register(self._heard, select.POLLIN)
        ready = {one for one, _ in poll.poll(max(0.0, seconds) * 1000)}
        if self._heard in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._heard, 4096)
        return handle in ready

    def close(self) -> None:
        os.close(self._heard)
        os.close(self._rung)
