"""One bridge in one process: when it begins, how it ends, and what it leaves out."""

import os
import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.integration.bridge.receiver import wait_until

from hermes.app import build
from hermes.bridge.bridge import Bridge
from hermes.bridge.outbox import Outbox
from hermes.bridge.target import is_private
from hermes.bridge.wire import Target
from hermes.events import Bus
from hermes.events.origin import relay
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
        assert app.outside is not None
        assert app.outside.bridge is None
        assert not (app.home.root / "bridge").exists()


def test_a_dashboard_that_is_this_very_process_or_is_no_more_is_none(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.ensure(home.root / "dashboard")
    for pid in (os.getpid(), 2**22 + 1):
        running = f'{{"url": "x", "pub_url": "ws://127.0.0.1:1/api/pub", "token": "t", "pid": {pid}}}'
        (home.root / "dashboard" / "running.json").write_text(running)
        with build(Settings(), home, bus=Bus()) as app:
            app.go_live(Secrets({}, {}))
            assert app.outside is not None
            assert app.outside.bridge is None


def test_starting_twice_replaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_DASHBOARD_EVENT_URL", "ws://127.0.0.1:1/api/pub")
    monkeypatch.setenv("HERMES_DASHBOARD_EVENT_TOKEN", "t")
    bus = Bus()
    with build(Settings(), Home(tmp_path / "home"), bus=bus) as app:
        app.go_live(Secrets({}, {}), "gateway")
        assert app.outside is not None
        first = app.outside.bridge
        assert first is not None
        assert first.channel == "gateway"
        app.outside.start_bridge()
        assert first.state == "stopped"
        assert app.outside.bridge not in {None, first}
        assert [one.pattern for one in bus.stats().subscriptions if "Bridge" in one.callback] == ["**"]


def test_the_environment_needs_both_an_address_and_a_token() -> None:
    assert event_target({"HERMES_DASHBOARD_EVENT_URL": "ws://x/api/pub"}).url == ""
    both = {"HERMES_DASHBOARD_EVENT_URL": "ws://x/api/pub", "HERMES_DASHBOARD_EVENT_TOKEN": "t"}
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
    assert (bridge.stats().durable, bridge.stats().transient) == (0, 2)  # the answer, and the third


def test_the_oldest_transient_events_go_first_and_are_counted(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, most=3)
    for number in range(10):
        outbox.put({"type": "agent.message.delta", "n": number})
    assert (outbox.heard, outbox.dropped) == (10, 7)
    frames = _frames(outbox)
    assert '"dropped":7' in frames.split("\n")[1]  # behind the number that counting begins with
    assert [f'"n":{number}' in frames for number in (6, 7, 8, 9)] == [False, True, True, True]
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
    for url in ("ws://127.0.0.1:1/api/pub", "ws://[::1]:1/api/pub", "ws://localhost:1/", "wss://dashboard.lan/"):
        assert is_private(url)


def test_an_event_that_is_too_large_is_sent_as_far_as_that_goes(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    outbox.put({"type": "agent.tool.finished", "text": "x" * 2_000_000, "images": ["y" * 2_000_000], "name": "cat"})
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
