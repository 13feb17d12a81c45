"""Transient events, such as pieces of a reply, between processes on several machines.

Rows never travel this way: each process reads them from the log. Each event is numbered, and names the row that its
sender published before it. A receiver shows the event after that row, and drops it once a row holds the same text. If
a number is missing, the receiver reports a gap and asks the sender for the text so far.
"""

import hashlib
import threading
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import msgspec

from hermes.app.feed import DURABLE, Feed
from hermes.app.feed_inbox import cursor_of
from hermes.app.live_reply import LiveReply
from hermes.bridge.nats_link import NatsLink, token
from hermes.events.envelope import is_foreign, relay
from hermes.events.wire import WireEncoder
from hermes.primitives.recent import RecentDict
from hermes.store.leases import this_process

if TYPE_CHECKING:
    from hermes.app.app import App

_RESERVED = ("feed.", "pub.", "gap")  # topics of the feeds themselves
_TEXT = frozenset(("agent.message.delta", "agent.reasoning.delta"))
_PROGRESS = "agent.tool.progress"
_ENDS_TEXT = frozenset(
    ("agent.message.assistant", "agent.turn.started", "agent.turn.ended")
)
_MAX_SESSIONS = 1_024
_MAX_HELD = 2_000  # events of one session that wait for a row
_HOLD_TIMEOUT_S = 2.0  # for a row that an event follows


class LiveFrame(msgspec.Struct, frozen=True, omit_defaults=True):
    """A transient event on its way, or the answer to somebody who asked (`partial`)."""

    sender: str
    home: str
    number: int
    epoch: int = 0
    seq: int = 0
    event: dict[str, Any] = {}
    partial: dict[str, Any] = {}


_decode = msgspec.json.Decoder(LiveFrame).decode


class _Sent:
    """What this process has sent of one session."""

    def __init__(self) -> None:
        self.number = 0
        self.live = LiveReply()
        self.is_running = False


class LiveEventSender:
    """Sends the transient events of this process's bus."""

    def __init__(self, app: "App", link: NatsLink) -> None:
        self._app = app
        self._link = link
        self._lock = threading.Lock()
        self._sent: RecentDict[str, _Sent] = RecentDict(_MAX_SESSIONS)
        self._tokens: RecentDict[str, str] = RecentDict(_MAX_SESSIONS)
        self._encoder = WireEncoder()
        self._names = {"sender": this_process(), "home": home_name(app)}
        self._handle = app.bus.subscribe("**", self._send)
        self._end_answers = link.answer_asks(self._answer)

    def stop(self) -> None:
        """Ends it."""
        self._app.bus.unsubscribe(self._handle)
        self._end_answers()

    def _send(self, event: Any) -> None:
        topic, session = event.get("type", ""), event.get("session_id")
        if is_foreign(event) or topic.startswith(_RESERVED):
            return
        if not isinstance(session, str):
            self._link.send("", self._frame(event, 0, 0, 0))
            return
        with self._lock:
            sent = self._sent.get_or_make(session, _Sent)
            epoch, seq = cursor_of(event)
            if seq or topic in DURABLE:
                sent.live.epoch, sent.live.head = epoch, seq
                sent.is_running = topic != "agent.turn.ended"
                sent.live.note(event)
                return
            sent.live.note(event)
            sent.number += 1
            self._tokens[token(session)] = session
            frame = self._frame(event, sent.number, sent.live.epoch, sent.live.head)
        self._link.send(session, frame)

    def _frame(self, event: Any, number: int, epoch: int, seq: int) -> bytes:
        fields = self._names | {"number": number, "epoch": epoch, "seq": seq}
        return self._encoder.encode(fields | {"event": event})

    def _answer(self, name: str) -> bytes | None:
        """What a session that runs here has said since its last row."""
        with self._lock:
            session = self._tokens.get(name, name)
            sent = self._sent.get(session)
            if sent is None or not sent.is_running:
                return None
            position = {"epoch": sent.live.epoch, "seq": sent.live.head}
            fields = self._names | {"number": sent.number} | position
            return self._encoder.encode(fields | {"partial": sent.live.event(session)})


class _Stream:
    """What was received of one session."""

    def __init__(self) -> None:
        self.sender = ""
        self.number = 0
        self.head = (0, 0)
        self.text_ended = 0  # seq of the last row that holds the text before it
        self.finished: RecentDict[str, bool] = RecentDict(64)  # calls
        self.held: deque[LiveFrame] = deque()
        self.is_asking = False
        self.timer: Any = None


class LiveEventReceiver:
    """Publishes the transient events of other machines here. Make it in the feed's event loop.

    With `everything` it receives all sessions, as plugins may want them; otherwise those that somebody reads. A
    dashboard gets the events of its own home by the bridge, so it leaves them out (`skip_own_home`).
    """

    def __init__(
        self,
        app: "App",
        feed: Feed,
        link: NatsLink,
        *,
        everything: bool,
        skip_own_home: bool,
    ) -> None:
        self._app = app
        self._feed = feed
        self._link = link
        self._skipped_home = home_name(app) if skip_own_home else ""
        self._streams: RecentDict[str, _Stream] = RecentDict(_MAX_SESSIONS)
        self._loop = feed.loop
        self._ends: dict[str, Callable[[], None]] = {}
        self._everything = everything
        self._stack = ExitStack()
        self._stack.enter_context(feed.listening("agent.**", self._note))
        if everything:
            self._ends["*"] = link.receive("*", self._arrived)
        feed.on_reader = self._reader_changed
        self.gaps = 0
        """How many gaps were reported."""

    def stop(self) -> None:
        """Ends it."""
        self._stack.close()
        self._feed.on_reader = None
        for end in self._ends.values():
            end()

    def _reader_changed(self, session: str, is_read: bool) -> None:
        if is_read:
            if not self._everything:
                self._ends[session] = self._link.receive(session, self._arrived)
            self._ask(session)
        elif end := self._ends.pop(session, None):
            end()

    def _arrived(self, data: bytes) -> None:
        try:
            frame = _decode(data)
        except (msgspec.MsgspecError, UnicodeError):
            return
        if frame.home != self._skipped_home:
            self._loop.call_soon_threadsafe(self._take, frame)

    def _take(self, frame: LiveFrame) -> None:
        topic = frame.event.get("type")
        if (
            not isinstance(topic, str)
            or topic in DURABLE
            or topic.startswith(_RESERVED)
        ):
            return  # a row counts only if the log has it
        session = frame.event.get("session_id")
        if not isinstance(session, str) or "seq" in frame.event:
            self._publish(frame)
            return
        stream = self._streams.get_or_make(session, _Stream)
        if len(stream.held) >= _MAX_HELD:
            self._release(session, stream, force=True)
        stream.held.append(frame)
        self._release(session, stream)

    def _note(self, event: Any) -> None:
        """A row was published here."""
        session, (epoch, seq) = event.get("session_id"), cursor_of(event)
        if not seq or not isinstance(session, str):
            return
        stream = self._streams.get(session)
        if stream is None:
            if not is_foreign(event):
                return
            stream = self._streams[session] = _Stream()
        stream.head = max(stream.head, (epoch, seq))
        if event["type"] in _ENDS_TEXT:
            stream.text_ended = seq
        elif event["type"] == "agent.tool.finished":
            stream.finished[str(event.get("call_id", ""))] = True
        if stream.held:
            self._loop.call_soon(self._release, session, stream)

    def _release(self, session: str, stream: _Stream, *, force: bool = False) -> None:
        """Publishes what was held and may follow now."""
        while stream.held:
            frame = stream.held[0]
            is_known = (frame.epoch, frame.seq) <= stream.head or not frame.seq
            if (stream.is_asking or not is_known) and not force:
                if stream.timer is None:
                    stream.timer = self._loop.call_later(
                        _HOLD_TIMEOUT_S, self._give_up, session, stream
                    )
                return
            stream.held.popleft()
            self._show(session, stream, frame)
        if stream.timer is not None:
            stream.timer.cancel()
            stream.timer = None

    def _give_up(self, session: str, stream: _Stream) -> None:
        """The row did not come: the reader began after it, or the log can't be read."""
        stream.timer, stream.is_asking = None, False
        if stream.held:
            stream.head = max(stream.head, *((f.epoch, f.seq) for f in stream.held))
        self._release(session, stream, force=True)

    def _show(self, session: str, stream: _Stream, frame: LiveFrame) -> None:
        is_next = stream.sender == frame.sender and frame.number == stream.number + 1
        if stream.sender == frame.sender and frame.number <= stream.number:
            return
        lost = frame.number - stream.number - 1 if stream.sender == frame.sender else 0
        is_begun = frame.number == 1
        stream.sender, stream.number = frame.sender, frame.number
        if _is_over(stream, frame):
            return
        if not is_next and not is_begun:
            if lost:
                self.gaps += 1
                self._feed.report_gap(session, lost)
            if not stream.is_asking and session in self._feed.sessions:
                stream.number = 0  # the answer says where to go on
                stream.sender = ""
                stream.held.appendleft(frame)
                self._ask(session)
                return
        self._publish(frame)

    def _ask(self, session: str) -> None:
        """Asks for the text so far. What comes meanwhile is held."""
        stream = self._streams.get_or_make(session, _Stream)
        if stream.is_asking or not self._link.client.is_connected:
            return
        stream.is_asking = True
        future = self._link.client.start(self._link.ask(session))
        future.add_done_callback(
            lambda done: self._loop.call_soon_threadsafe(
                self._answered, session, None if done.cancelled() else done.result()
            )
        )

    def _answered(self, session: str, data: bytes | None) -> None:
        stream = self._streams.get_or_make(session, _Stream)
        stream.is_asking = False
        try:
            frame = _decode(data) if data else None
        except (msgspec.MsgspecError, UnicodeError):
            frame = None
        if frame is not None and frame.home != self._skipped_home:
            position = (frame.epoch, frame.seq)
            stream.sender, stream.number = frame.sender, frame.number
            if position >= stream.head:
                stream.head = position
                self._feed.restore(session, frame.partial, position)
        elif stream.held:  # nobody knows; go on with what there is
            first = stream.held[0]
            stream.sender, stream.number = first.sender, first.number - 1
        self._release(session, stream)

    def _publish(self, frame: LiveFrame) -> None:
        with self._feed.relaying(trusted=True):
            relay(self._app.bus.publish, frame.event["type"], frame.event)


def _is_over(stream: _Stream, frame: LiveFrame) -> bool:
    """Whether a row that was published here holds what the event says."""
    topic = frame.event.get("type")
    if topic in _TEXT:
        return frame.seq < stream.text_ended
    return topic == _PROGRESS and str(frame.event.get("call_id")) in stream.finished


def home_name(app: "App") -> str:
    """Names a home on a machine; processes with the same one share a dashboard."""
    host = this_process().partition(":")[0]
    return hashlib.sha256(f"{host} {app.home.root}".encode()).hexdigest()[:16]
