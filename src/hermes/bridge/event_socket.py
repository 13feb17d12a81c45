"""The event socket of a running process: a Unix socket in the home's `run/` folder that serves its events.

Without a reader, the thread sleeps. A reader receives JSON lines. A slow reader misses events and is told how many, but
slows nobody down.
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

from hermes.bridge import EventSource
from hermes.events.envelope import is_foreign
from hermes.events.wire import WireEncoder
from hermes.primitives.repeated_errors import RepeatedErrors

log = logging.getLogger("hermes.bridge")

_PREFIX, _LOOKOUT, _SUFFIX = "events-", "lookout-", ".sock"
_GREETING_TIMEOUT_S = 5.0  # for which a new process waits for readers
_MAX_PATH_BYTES = 100  # maximum bytes of a socket's path
_MAX_QUEUED_READER_EVENTS = 10_000
_IO_TIMEOUT_S = 10.0  # for a client to send its request, or to read something
_MAX_REQUEST_BYTES = 64 * 1024
_LAST_EVENTS_TIMEOUT_S = 1.0  # for readers to receive the last events
_encode = msgspec.json.Encoder().encode


_ACCEPTING = "accepting connections to the event socket"  # not translated


class SocketRequest(msgspec.Struct, frozen=True):
    """A client's request: the events of a pattern, or the counters. `dashboard` means that a dashboard has started."""

    do: Literal["tail", "stats", "dashboard"]
    pattern: str = "**"
    relayed: bool = False
    """Whether to include events from other processes."""


class EventSocket:
    """Serves the events of this process until `close`."""

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
            self._path.unlink(missing_ok=True)  # left by a process with the same id
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
        """Closes the socket and its readers. Idempotent."""
        self._is_closed = True
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._server.close()
        with contextlib.suppress(OSError):
            self._path.unlink()
        readers = dict(self._readers)
        for reader in readers:
            reader.finish()
        deadline = time.monotonic() + _LAST_EVENTS_TIMEOUT_S
        for thread in readers.values():
            thread.join(max(0.0, deadline - time.monotonic()))

    def _serve(self) -> None:
        while True:
            try:
                peer, _ = self._server.accept()
            except OSError as error:
                if self._is_closed:
                    return
                time.sleep(self._errors.note(_ACCEPTING, error))
                continue
            self._errors.succeeded(_ACCEPTING)
            threading.Thread(
                target=self._answer,
                args=(peer,),
                name="hermes-window-reader",
                daemon=True,
            ).start()

    def _answer(self, peer: socket.socket) -> None:
        with peer:
            try:
                peer.settimeout(_IO_TIMEOUT_S)
                look = msgspec.json.decode(read_line(peer), type=SocketRequest)
                if look.do == "dashboard":
                    self._on_dashboard()
                elif look.do == "stats":
                    peer.sendall(_encode(self._describe()) + b"\n")
                else:
                    self._tail(peer, look)
            except (OSError, msgspec.MsgspecError, ValueError) as error:
                log.debug("a reader of the events disconnected: %s", error)

    def _tail(self, peer: socket.socket, look: SocketRequest) -> None:
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
    """The queue of one reader."""

    def __init__(self, look: SocketRequest) -> None:
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
            if len(self._queue) > _MAX_QUEUED_READER_EVENTS:
                self._queue.popleft()
                self._missing += 1
        self._news.set()

    def finish(self) -> None:
        self._is_over = True
        self._news.set()

    def lines(self) -> Iterator[bytes]:
        """Yields the lines to send, and now and then an empty one, which detects a reader that is gone."""
        over = False
        while not over:
            if not self._is_over:
                self._news.wait(_IO_TIMEOUT_S)
            over = self._is_over  # read before the queue, so that no event is lost
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


def event_sockets(folder: Path) -> list[Path]:
    """Returns the event sockets of the running processes."""
    return _sockets(folder, _PREFIX)


def new_process_socket(folder: Path) -> socket.socket:
    """Creates a socket that each new process connects to at its start. The process waits until it is closed."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path = folder / f"{_LOOKOUT}{os.getpid()}{_SUFFIX}"
    path.unlink(missing_ok=True)
    with address(path) as place:
        server.bind(place)
    server.listen(16)
    return server


def remove_new_process_socket(folder: Path) -> None:
    """Removes the socket of `new_process_socket`."""
    (folder / f"{_LOOKOUT}{os.getpid()}{_SUFFIX}").unlink(missing_ok=True)


def _greet_lookouts(folder: Path) -> None:
    """Connects to the processes that wait for new ones, so that they can read this one from its first event.

    On a busy machine that may take them seconds, and a short run would be over by then. A stopped process (Ctrl-Z)
    can't answer, so it is skipped.
    """
    for path in _sockets(folder, _LOOKOUT):
        if _is_stopped(path.name.removeprefix(_LOOKOUT).removesuffix(_SUFFIX)):
            continue
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer,
        ):
            peer.settimeout(_GREETING_TIMEOUT_S)
            with address(path) as place:
                peer.connect(place)
            peer.recv(1)


def _is_stopped(pid: str) -> bool:
    """Returns whether a process was stopped by a signal. False if the system can't tell."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2][:1]
    except OSError:
        return False
    return state in {b"T", b"t"}


def _sockets(folder: Path, prefix: str) -> list[Path]:
    """Returns the sockets of running processes. Those of dead processes are removed."""
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


def send_request(
    path: Path, look: SocketRequest, timeout_s: float | None = _IO_TIMEOUT_S
) -> socket.socket:
    """Sends a request. Returns the connection on which the answer comes. Raises OSError."""
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        peer.settimeout(timeout_s)
        with address(path) as place:
            peer.connect(place)
        peer.sendall(_encode(look) + b"\n")
    except BaseException:
        peer.close()
        raise
    return peer


def tell_of_dashboard(folder: Path) -> None:
    """Tells every running process that a dashboard has started."""
    for path in event_sockets(folder):
        with contextlib.suppress(OSError):
            send_request(path, SocketRequest("dashboard"), 1.0).close()


@contextlib.contextmanager
def address(path: Path) -> Iterator[str]:
    """An address for a socket: its path, or a shorter one through a handle on its folder."""
    if len(os.fsencode(path)) <= _MAX_PATH_BYTES:
        yield str(path)
        return
    handle = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{handle}/{path.name}"
    finally:
        os.close(handle)


def read_line(peer: socket.socket) -> bytes:
    """Reads one line. Raises ValueError if it has no end."""
    line = b""
    while not line.endswith(b"\n"):
        data = peer.recv(4096)
        if not data or len(line) > _MAX_REQUEST_BYTES:
            raise ValueError("the line has no end")  # not translated
        line += data
    return line
