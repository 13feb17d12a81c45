"""The window of a process: who looks sees everything up to its end, and who does not read holds nobody up."""

import contextlib
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec

from hermes.bridge.event_socket import (
    EventSocket,
    SocketRequest,
    event_sockets,
    send_request,
)
from hermes.events import Bus


def _open(folder: Path, bus: Bus) -> EventSocket:
    return EventSocket(folder, bus, lambda: {"pid": 1, "surface": "test"}, lambda: None)


def _lines(peer: socket.socket) -> list[dict[str, Any]]:
    with peer.makefile("rb") as file:
        return [msgspec.json.decode(line) for line in file if line.strip()]


def test_the_last_events_before_the_end_are_seen(tmp_path: Path) -> None:
    bus = Bus()
    window = _open(tmp_path, bus)
    (path,) = event_sockets(tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with send_request(path, SocketRequest("tail", "agent.**")) as peer:
        peer.recv(1, socket.MSG_PEEK)
        for number in range(5000):
            bus.publish("agent.message.delta", {"n": number})
        window.close()
        hello, *events = _lines(peer)
    assert hello["type"] == "tail.hello"
    assert [event["n"] for event in events] == list(range(5000))
    assert event_sockets(tmp_path) == []


def test_somebody_who_looks_and_does_not_read_holds_up_neither_events_nor_the_end(
    tmp_path: Path,
) -> None:
    bus = Bus()
    window = _open(tmp_path, bus)
    (path,) = event_sockets(tmp_path)
    with (
        send_request(path, SocketRequest("tail")) as stuck,
        contextlib.ExitStack() as others,
    ):
        for question in (
            b"not json\n",
            b'{"do": "tail", "pattern": ""}\n',
            b"{" * 100_000,
        ):
            peer = others.enter_context(send_request(path, SocketRequest("stats")))
            with contextlib.suppress(OSError):
                peer.sendall(question)
        stuck.recv(1, socket.MSG_PEEK)
        for number in range(20_000):
            bus.publish("agent.message.delta", {"text": "x" * 200, "n": number})
        assert bus.stats().failed == 0
        window.close()


_WAITS_FOR_PROCESSES = """
import sys
from pathlib import Path
from hermes.bridge.event_socket import new_process_socket
server = new_process_socket(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.read()
server.setblocking(False)
try:
    server.accept()
    print("somebody came")
except BlockingIOError:
    print("nobody came")
"""


def _reader_process(folder: Path) -> "subprocess.Popen[bytes]":
    """A process that waits for new ones, and accepts none."""
    reader = subprocess.Popen(
        [sys.executable, "-c", _WAITS_FOR_PROCESSES, folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert reader.stdout is not None
    assert reader.stdout.readline() == b"ready\n"
    return reader


def test_a_new_process_waits_for_a_reader_that_a_busy_machine_holds_up(
    tmp_path: Path,
) -> None:
    reader = _reader_process(tmp_path)
    opening = threading.Thread(target=lambda: _open(tmp_path, Bus()).close())
    opening.start()
    try:
        opening.join(0.8)  # longer than a reader takes on an idle machine
        assert opening.is_alive()
    finally:
        reader.kill()
        reader.communicate()
    opening.join(30)
    assert not opening.is_alive()


def test_a_new_process_does_not_wait_for_a_reader_that_is_stopped(
    tmp_path: Path,
) -> None:
    reader = _reader_process(tmp_path)
    reader.send_signal(signal.SIGSTOP)
    os.waitpid(reader.pid, os.WUNTRACED)
    try:
        _open(tmp_path, Bus()).close()
    finally:
        reader.send_signal(signal.SIGCONT)
        out, _ = reader.communicate(timeout=30)
    assert out == b"nobody came\n"
