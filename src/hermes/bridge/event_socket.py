"""A window into a running process: a socket in the home's `run/` folder through which its user can see its events.

Until somebody looks, it is a thread that sleeps. Whoever looks gets JSON lines. A reader that is slow misses events, is
told how many, and slows nobody down.
"""

import contextlib
import logging
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from hermes.bridge.ports import EventSource
from hermes.events.origin import is_foreign
from hermes.events.wire import WireEncoder
from hermes.primitives.repeated_errors import RepeatedErrors

log = logging.getLogger("hermes.bridge")

_PREFIX, _LOOKOUT, _SUFFIX = "events-", "lookout-", ".sock"
_GREETING = (
    0.5  # seconds that a process waits at most for one who wants to see it begin
)
_LONGEST = 100  # bytes of a path that a socket can have
_WAITING = 10_000  # events that wait for a reader
_PATIENCE = 10.0  # seconds for a reader to take something, or to say what it wants
_MOST = 64 * 1024  # bytes of a question
_LAST = 1.0  # seconds for readers to get the last events of a process that ends
_encode = msgspec.json.Encoder().encode


class Look(msgspec.Struct, frozen=True):
    """What a reader wants: the events of a pattern, the counters, or to say that there is a dashboard now."""

    do: Literal["tail", "stats", "dashboard"]
    pattern: str = "**"
    relayed: bool = False
    """Also events that came from other processes."""


class EventSocket:
    """Open from the start until `close`."""

    def __init__(
        self,
        folder: Path,
        bus: EventSource,
        describe: Callable[[], dict[str, Any]],
        on_dashboard: Callable[[], None],
        *,
        errors: RepeatedErrors | None = None,
    ) -> None:
        self._bus = bus
        self._errors = errors or RepeatedErrors(log)
        self._is_closed = False
        self._describe = describe
        self._on_dashboard = on_dashboard
        self._path = folder / f"{_PREFIX}{os.getpid()}{_SUFFIX}"
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._path.unlink(
                missing_ok=True
            )  # of a process that had this number before
            with address(self._path) as place:
                self._server.bind(place)
            self._path.chmod(0o600)
            self._server.listen(16)
        except BaseException:
            self._server.close()
            raise
        self._readers: dict[_Reader, threading.Thread] = {}
        threading.Thread(target=self._serve, name="hermes-window", daemon=True).start()
        _greet_lookouts(folder)

    def close(self) -> None:
        """Lets everybody who looks go. Idempotent."""
        self._is_closed = True
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._server.close()
        with contextlib.suppress(OSError):
            self._path.unlink()
        readers = dict(self._readers)
        for reader in readers:
            reader.finish()
        deadline = time.monotonic() + _LAST
        for thread in readers.values():
            thread.join(max(0.0, deadline - time.monotonic()))

    def _serve(self) -> None:
        while True:
            try:
                peer, _ = self._server.accept()
            except OSError as error:
                if self._is_closed:
                    return
                time.sleep(
                    self._errors.note(
                        "accepting connections to the event socket", error
                    )
                )
                continue
            self._errors.succeeded("accepting connections to the event socket")
            threading.Thread(
                target=self._answer,
                args=(peer,),
                name="hermes-window-reader",
                daemon=True,
            ).start()

    def _answer(self, peer: socket.socket) -> None:
        with peer:
            try:
                peer.settimeout(_PATIENCE)
                look = msgspec.json.decode(read_line(peer), type=Look)
                if look.do == "dashboard":
                    self._on_dashboard()
                elif look.do == "stats":
                    peer.sendall(_encode(self._describe()) + b"\n")
                else:
                    self._tail(peer, look)
            except (OSError, msgspec.MsgspecError, ValueError) as error:
                log.debug("somebody who looked at the events is gone: %s", error)

    def _tail(self, peer: socket.socket, look: Look) -> None:
        reader = _Reader(look)
        self._readers[reader] = threading.current_thread()
        handle = self._bus.subscribe(look.pattern, reader.put)
        try:
            peer.sendall(_encode(self._describe() | {"type": "tail.hello"}) + b"\n")
            for lines in reader.lines():
                peer.sendall(lines)
        finally:
            self._bus.unsubscribe(handle)
            self._readers.pop(reader, None)


class _Reader:
    """Events on their way to one who looks."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._queue: deque[Mapping[str, Any]] = deque()
        self._lock = threading.RLock()
        self._news = threading.Event()
        self._missing = 0
        self._is_over = False
        self._encode = WireEncoder().encode

    def put(self, event: Mapping[str, Any]) -> None:
        """Runs in the publisher's thread."""
        if is_foreign(event) and not self._look.relayed:
            return
        with self._lock:
            self._queue.append(event)
            if len(self._queue) > _WAITING:
                self._queue.popleft()
                self._missing += 1
        self._news.set()

    def finish(self) -> None:
        self._is_over = True
        self._news.set()

    def lines(self) -> Iterator[bytes]:
        """What to send, with an empty line now and then, by which a reader that is gone is noticed."""
        over = False
        while not over:
            if not self._is_over:
                self._news.wait(_PATIENCE)
            over = self._is_over  # looked at before the queue, so that what came before the end is still told
            self._news.clear()
            with self._lock:
                events, missing = list(self._queue), self._missing
                self._queue.clear()
                self._missing = 0
            gap = {
                "type": "gap",
                "dropped": missing,
                "pattern": self._look.pattern,
                "policy": "drop_oldest",
            }
            yield (
                b"".join(
                    self._encode(event) + b"\n"
                    for event in ([gap] if missing else []) + events
                )
                or b"\n"
            )


def windows(folder: Path) -> list[Path]:
    """The windows of the processes that run."""
    return _sockets(folder, _PREFIX)


def lookout(folder: Path) -> socket.socket:
    """A socket to which every process that begins from now on says hello. It waits until it is let go."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path = folder / f"{_LOOKOUT}{os.getpid()}{_SUFFIX}"
    path.unlink(missing_ok=True)
    with address(path) as place:
        server.bind(place)
    server.listen(16)
    return server


def forget_lookout(folder: Path) -> None:
    """Removes the lookout of this process."""
    (folder / f"{_LOOKOUT}{os.getpid()}{_SUFFIX}").unlink(missing_ok=True)


def _greet_lookouts(folder: Path) -> None:
    """Lets those who wait for processes see this one from its first event on. Nobody waits: nothing is done."""
    for path in _sockets(folder, _LOOKOUT):
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer,
        ):
            peer.settimeout(_GREETING)
            with address(path) as place:
                peer.connect(place)
            peer.recv(1)


def _sockets(folder: Path, prefix: str) -> list[Path]:
    """Sockets of processes that run. What processes left that are no more is removed."""
    found: list[Path] = []
    for path in sorted(folder.glob(f"{prefix}*{_SUFFIX}")):
        number = path.name.removeprefix(prefix).removesuffix(_SUFFIX)
        try:
            os.kill(int(number), 0)
        except (ProcessLookupError, ValueError):
            path.unlink(missing_ok=True)
        except PermissionError:
            continue
        else:
            found.append(path)
    return found


def look_into(
    path: Path, look: Look, patience: float | None = _PATIENCE
) -> socket.socket:
    """A connection on which the answer comes. Raises OSError."""
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        peer.settimeout(patience)
        with address(path) as place:
            peer.connect(place)
        peer.sendall(_encode(look) + b"\n")
    except BaseException:
        peer.close()
        raise
    return peer


def tell_of_dashboard(folder: Path) -> None:
    """Lets every process that runs know that there is a dashboard now."""
    for path in windows(folder):
        with contextlib.suppress(OSError):
            look_into(path, Look("dashboard"), 1.0).close()


@contextlib.contextmanager
def address(path: Path) -> Iterator[str]:
    """A name by which a socket can be reached: its path, or a short one by way of its folder."""
    if len(os.fsencode(path)) <= _LONGEST:
        yield str(path)
        return
    handle = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{handle}/{path.name}"
    finally:
        os.close(handle)


def read_line(peer: socket.socket) -> bytes:
    """One line, which comes alone. Raises ValueError for one that has no end."""
    line = b""
    while not line.endswith(b"\n"):
        data = peer.recv(4096)
        if not data or len(line) > _MOST:
            raise ValueError("no whole line came")
        line += data
    return line
