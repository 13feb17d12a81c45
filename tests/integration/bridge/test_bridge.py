"""One bridge in one process: when it begins, how it ends, and what it leaves out."""

import base64
import contextlib
import hashlib
import os
import socket
import threading
import time
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import pytest
from tests.integration.bridge.receiver import wait_until

from hermes.app import build
from hermes.bridge.bridge import Bridge
from hermes.bridge.outbox import Outbox
from hermes.bridge.websocket import Target, is_private
from hermes.events import Bus
from hermes.events.envelope import relay
from hermes.primitives.backoff import Backoff
from hermes.settings import Home, Secrets, Settings
from hermes.settings.load import event_target


def _frames(outbox: Outbox) -> str:
    return b"\n".join(outbox.batch(1_000_000)).decode()


def test_it_stops_promptly_and_again_while_nobody_answers(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        bus = Bus()
        target = Target(f"ws://127.0.0.1:{silent.getsockname()[1]}/api/pub", "t")
        bridge = Bridge(bus, lambda: target, Outbox(tmp_path))
        silent.settimeout(20)
        with silent.accept()[0]:
            bus.publish("agent.tool.started", {"n": 1})
            before = time.monotonic()
            bridge.stop(0.2)
            bridge.stop(0.2)
            assert time.monotonic() - before < 5
    assert bridge.state == "stopped"
    assert not bus.stats().subscriptions
    bus.publish("agent.tool.started", {"n": 2})
    assert bridge.stats().waiting == 1
    assert not [one for one in threading.enumerate() if one.name == "hermes-bridge"]


def test_no_dashboard_means_no_bridge(tmp_path: Path) -> None:
    with build(Settings(), Home(tmp_path / "home"), bus=Bus()) as app:
        app.go_live(Secrets({}, {}))
        assert app.exporters is not None
        assert app.exporters.bridge is None
        assert not (app.home.root / "bridge").exists()


def test_a_dashboard_that_is_this_very_process_or_is_no_more_is_none(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path / "home")
    home.ensure(home.root / "dashboard")
    for pid in (os.getpid(), 2**22 + 1):
        running = f'{{"url": "x", "pub_url": "ws://127.0.0.1:1/api/pub", "token": "t", "pid": {pid}}}'
        (home.root / "dashboard" / "running.json").write_text(running)
        with build(Settings(), home, bus=Bus()) as app:
            app.go_live(Secrets({}, {}))
            assert app.exporters is not None
            assert app.exporters.bridge is None


def test_starting_twice_replaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_DASHBOARD_EVENT_URL", "ws://127.0.0.1:1/api/pub")
    monkeypatch.setenv("HERMES_DASHBOARD_EVENT_TOKEN", "t")
    bus = Bus()
    with build(Settings(), Home(tmp_path / "home"), bus=bus) as app:
        app.go_live(Secrets({}, {}), "gateway")
        assert app.exporters is not None
        first = app.exporters.bridge
        assert first is not None
        assert first.channel == "gateway"
        app.exporters.start_bridge()
        assert first.state == "stopped"
        assert app.exporters.bridge not in {None, first}
        assert [
            one.pattern for one in bus.stats().subscriptions if "Bridge" in one.callback
        ] == ["**"]


def test_the_environment_needs_both_an_address_and_a_token() -> None:
    assert event_target({"HERMES_DASHBOARD_EVENT_URL": "ws://x/api/pub"}).url == ""
    both = {
        "HERMES_DASHBOARD_EVENT_URL": "ws://x/api/pub",
        "HERMES_DASHBOARD_EVENT_TOKEN": "t",
    }
    assert event_target(both) == ("ws://x/api/pub", "t", "")


def test_only_what_is_born_here_is_taken(tmp_path: Path) -> None:
    bus = Bus()
    bridge = Bridge(bus, lambda: None, Outbox(tmp_path))

    def answer(event: Mapping[str, Any]) -> None:
        bus.publish("plugin.answer", {"to": event["n"]})

    bus.subscribe("agent.tool.started", answer)
    relay(bus.publish, "agent.tool.started", {"n": 1})
    relay(bus.publish, "agent.message.delta", {"n": 2})
    bus.publish("agent.message.delta", {"n": 3})
    bridge.stop()
    assert (bridge.stats().durable, bridge.stats().transient) == (
        0,
        2,
    )  # the answer, and the third


def test_the_oldest_transient_events_go_first_and_are_counted(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, most=3)
    for number in range(10):
        outbox.put({"type": "agent.message.delta", "n": number})
    assert (outbox.heard, outbox.dropped) == (10, 7)
    frames = _frames(outbox)
    assert (
        '"dropped":7' in frames.split("\n")[1]
    )  # behind the number that counting begins with
    assert [f'"n":{number}' in frames for number in (6, 7, 8, 9)] == [
        False,
        True,
        True,
        True,
    ]
    outbox.rewind(arrived=2)  # of the gap and the three that were sent
    assert (outbox.dropped, outbox.sent) == (9, 2)
    assert '"dropped":2' in _frames(outbox)
    outbox.rewind(arrived=2)  # that gap was lost itself, so it is told again
    assert outbox.dropped == 9
    assert '"dropped":2' in _frames(outbox)
    outbox.spool.close()


def test_where_others_can_listen_in_private_fields_are_left_out(tmp_path: Path) -> None:
    event = {"type": "agent.tool.started", "name": "ls", "arguments": "private"}
    for hide in (False, True):
        outbox = Outbox(tmp_path, hide=hide)
        outbox.put(event)
        frames = _frames(outbox)
        assert '"ls"' in frames
        assert ("private" in frames) is not hide
        outbox.spool.close()
    assert not is_private("ws://dashboard.lan:9119/api/pub")
    for url in (
        "ws://127.0.0.1:1/api/pub",
        "ws://[::1]:1/api/pub",
        "ws://localhost:1/",
        "wss://dashboard.lan/",
    ):
        assert is_private(url)


def test_an_event_that_is_too_large_is_sent_as_far_as_that_goes(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    outbox.put(
        {
            "type": "agent.tool.finished",
            "text": "x" * 2_000_000,
            "images": ["y" * 2_000_000],
            "name": "cat",
        }
    )
    frames = _frames(outbox)
    assert len(frames) < 100_000
    assert '"cut":["text","images"]' in frames
    assert '"name":"cat"' in frames
    assert outbox.cut == 1
    outbox.spool.close()


def test_a_connection_that_falls_silent_is_noticed_by_its_end(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        target = Target(f"ws://127.0.0.1:{other.getsockname()[1]}/api/pub", "t")
        bridge = Bridge(Bus(), lambda: target, Outbox(tmp_path))
        other.settimeout(20)
        other.accept()[0].close()
        wait_until(lambda: bridge.state == "waiting")
        bridge.stop()


def test_it_tries_at_once_when_a_dashboard_has_begun(tmp_path: Path) -> None:
    asked = threading.Semaphore(0)

    def find() -> None:
        asked.release()

    bridge = Bridge(Bus(), find, Outbox(tmp_path), backoff=Backoff(600.0, 600.0))
    assert asked.acquire(timeout=20)
    wait_until(lambda: bridge.state == "waiting")
    bridge.reconnect_now()
    assert asked.acquire(timeout=20)
    bridge.stop()


def test_what_was_damaged_on_disk_is_counted_and_told_as_a_gap(tmp_path: Path) -> None:
    left = Outbox(tmp_path)
    for number in range(3):
        left.put({"type": "agent.tool.started", "n": number})
    os.close(left.spool._file_lock.fd)  # it was killed
    (path,) = left.spool.folder.glob("*.log")
    os.truncate(path, path.stat().st_size - 1)
    with _Fake() as fake:
        bridge = Bridge(Bus(), lambda: fake.target, Outbox(tmp_path))
        fake.greet(bridge.publisher)
        told = fake.read_until('"n":1')
        told += "" if '"gap"' in told else fake.read_until('"gap"')
        assert '"dropped":1' in told
        assert '"n":2' not in told
        assert bridge.stats().torn == 1
        bridge.stop(0.0)


@pytest.mark.parametrize(
    "flood",
    [b"\x01\x7e\xff\xff" + b"x" * 65535, b"\x89\x7d" + b"p" * 125],
    ids=["a message without an end", "pings"],
)
def test_a_dashboard_that_sends_without_end_is_held_off(
    tmp_path: Path, flood: bytes
) -> None:
    with _Fake() as fake:
        bridge = Bridge(Bus(), lambda: fake.target, Outbox(tmp_path))
        fake.greet(bridge.publisher)
        tracemalloc.start()
        with contextlib.suppress(OSError):
            for _ in range(30 * 1024 * 1024 // len(flood)):
                fake.peer.sendall(flood)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 12 * 1024 * 1024
        bridge.stop(0.0)


class _Fake:
    """Something that looks like a dashboard, as far as a test lets it. It reads only what it is told to."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.settimeout(20)
        self.target = Target(
            f"ws://127.0.0.1:{self._server.getsockname()[1]}/api/pub", "t"
        )
        self.peer = socket.socket()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.peer.close()
        self._server.close()

    def greet(self, publisher: str) -> None:
        """Shakes hands, and says that nothing has arrived."""
        self.peer.close()
        self.peer, _ = self._server.accept()
        self.peer.settimeout(20)
        head = b""
        while b"\r\n\r\n" not in head:
            head += self.peer.recv(4096)
        key = head.partition(b"Sec-WebSocket-Key: ")[2].partition(b"\r\n")[0]
        whole = key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(
            hashlib.sha1(whole, usedforsecurity=False).digest()
        ).decode()
        self.peer.sendall(
            f"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: {accept}\r\n\r\n".encode()
        )
        ack = f'{{"type":"pub.ack","publisher":"{publisher}.transient","epoch":0,"seq":0}}'.encode()
        self.peer.sendall(
            b"\x81"
            + (bytes([len(ack)]) if len(ack) < 126 else b"\x7e\x00" + bytes([len(ack)]))
            + ack
        )

    def read_until(self, text: str) -> str:
        """Messages, without their masks, until one holds this."""
        found = ""
        while text not in found:
            _, first = _exactly(self.peer, 2)
            length = first & 0x7F
            if length > 125:
                length = int.from_bytes(_exactly(self.peer, 2 if length == 126 else 8))
            mask, data = _exactly(self.peer, 4), _exactly(self.peer, length)
            found += bytes(
                byte ^ mask[place % 4] for place, byte in enumerate(data)
            ).decode()
        return found


def _exactly(peer: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = peer.recv(count - len(data))
        assert more
        data += more
    return data
