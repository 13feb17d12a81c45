"""The app with a real session log: what is published is on disk, in order, and complete."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from hermes.app import build
from hermes.errors import SessionNotFound, StoreError
from hermes.events import Bus, Envelope, default_bus
from hermes.schema.events import (
    SessionCreated,
    SessionTitled,
    SessionUndone,
    TurnEnded,
    TurnStarted,
)
from hermes.schema.messages import AssistantMessage, UserMessage
from hermes.settings import Home, Settings
from hermes.settings.sections import SessionSettings
from hermes.store import open_store
from hermes.testing import FakeClock, FakeIds

SNAPSHOTS = Settings(sessions=SessionSettings(write_json_snapshots=True))


class Recorder:
    """Implements the app's `Bus` port; `then` sees each envelope when it is published."""

    def __init__(self, then: Callable[[dict[str, Any]], None] = lambda _: None) -> None:
        self.stream = Bus().stream
        self.subscribe = Bus().subscribe
        self.unsubscribe = Bus().unsubscribe
        self.deaf_to = ""
        self.seen: list[dict[str, Any]] = []
        self._then = then

    def has_subscribers(self, topic: str, /) -> bool:
        return topic != self.deaf_to

    def publish(self, topic: str, payload: Mapping[str, Any] | None = None, /) -> None:
        envelope = dict(payload or {})
        assert envelope["type"] == topic
        self.seen.append(envelope)
        self._then(envelope)

    @property
    def cursors(self) -> list[tuple[str, int]]:
        return [(envelope["session_id"], envelope["seq"]) for envelope in self.seen]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_building_touches_no_file(home: Home) -> None:
    with build(Settings(), home) as app:
        assert not app.has_log
    assert not home.root.exists()


def test_a_session_begins_with_a_published_row_in_a_private_home(home: Home) -> None:
    bus = Recorder()
    with build(Settings(), home, bus=bus, clock=FakeClock(), ids=FakeIds()) as app:
        first = app.begin(SessionCreated(surface="cli"))
        assert (first.session, first.seq) == ("session-1", 1)
        assert app.has_log
    assert bus.seen == [
        {
            "type": "session.created",
            "ts": 1_800_000_000.0,
            "src": "session",
            "session_id": "session-1",
            "turn_id": "",
            "epoch": first.epoch,
            "seq": 1,
            "kind": "root",
            "parent": "",
            "parent_seq": 0,
            "root": "",
            "surface": "cli",
            "cwd": "",
            "place": "",
            "person": "",
        }
    ]
    assert home.root.stat().st_mode & 0o777 == 0o700
    assert home.state.stat().st_mode & 0o777 == 0o600


def test_an_event_is_on_disk_before_it_is_published(home: Home) -> None:
    found: list[int] = []

    def look(envelope: dict[str, Any]) -> None:
        with open_store(home.state) as other:
            found.append(len(other.log.events(envelope["session_id"])))

    with build(Settings(), home, bus=Recorder(look)) as app:
        session = app.begin(SessionCreated()).session
        app.record(session, UserMessage(text="one"), UserMessage(text="two"), turn="t")
    assert found == [1, 3, 3]


def test_a_subscriber_may_record_and_everybody_sees_the_order_of_the_log(
    home: Home,
) -> None:
    def answer(envelope: dict[str, Any]) -> None:
        if envelope.get("text") == "one":
            app.record(envelope["session_id"], SessionTitled(title="from inside"))

    bus = Recorder(answer)
    with build(Settings(), home, bus=bus, ids=FakeIds()) as app:
        session = app.begin(SessionCreated()).session
        app.record(session, UserMessage(text="one"), UserMessage(text="two"))
    assert bus.cursors == [(session, seq) for seq in (1, 2, 3, 4)]


def test_events_of_a_child_name_the_root_of_its_lineage(home: Home) -> None:
    bus = Recorder()
    with build(Settings(), home, bus=bus) as app:
        root = app.begin(SessionCreated()).session
        child = app.begin(SessionCreated(kind="child", parent=root, root=root)).session
        app.record(child, UserMessage(text="work"))
        app.record(root, UserMessage(text="wait"))
    assert [envelope.get("root_session_id") for envelope in bus.seen] == [
        None,
        root,
        root,
        None,
    ]


def test_subscribers_of_a_real_bus_receive_the_row_as_the_log_has_it(
    home: Home,
) -> None:
    bus, seen = Bus(), list[Envelope]()
    bus.subscribe("agent.message.*", seen.append)
    with build(Settings(), home, bus=bus) as app:
        session = app.begin(SessionCreated()).session
        (row,) = app.record(session, UserMessage(text="hi"), turn="t-1")
        assert [dict(envelope) for envelope in seen] == [app.envelope(row)]
    assert (seen[0]["session_id"], seen[0]["seq"], seen[0]["turn_id"]) == (
        session,
        2,
        "t-1",
    )


def test_an_app_without_a_bus_uses_that_of_the_process(home: Home) -> None:
    with build(Settings(), home) as app:
        assert app.bus is default_bus()


def test_what_can_not_be_written_is_not_published(home: Home) -> None:
    bus = Recorder()
    with build(Settings(), home, bus=bus) as app, pytest.raises(SessionNotFound):
        app.record("nobody", UserMessage(text="lost"))
    assert bus.seen == []


def test_a_row_that_nobody_listens_to_is_written_and_not_made_into_an_event(
    home: Home,
) -> None:
    bus = Recorder()
    bus.deaf_to = "session.created"
    with build(Settings(), home, bus=bus) as app:
        session = app.begin(SessionCreated()).session
        app.record(session, UserMessage(text="hi"))
        assert [row.type for row in app.store.log.events(session)] == [
            "session.created",
            UserMessage.topic,
        ]
    assert [event["type"] for event in bus.seen] == [UserMessage.topic]


def test_a_snapshot_is_written_after_each_turn_when_it_is_wanted(home: Home) -> None:
    with build(SNAPSHOTS, home, bus=Recorder()) as app:
        session = app.begin(SessionCreated()).session
        target = home.sessions / f"session_{session}.json"
        app.record(session, UserMessage(text="hi"))
        assert not target.exists()
        app.record(session, TurnEnded(reason="done"))
        document = json.loads(target.read_text())
        assert [event["type"] for event in document["events"]][-1] == "agent.turn.ended"
        app.delete(session)
        assert not target.exists()


def test_a_snapshot_of_messages_has_every_field_of_a_session_file(home: Home) -> None:
    wanted = SessionSettings(write_json_snapshots=True, json_snapshot_format="messages")
    with build(Settings(sessions=wanted), home, bus=Recorder()) as app:
        session = app.begin(SessionCreated(surface="cli")).session
        app.record(session, UserMessage(text="hi"))
        app.record(session, AssistantMessage(text="hello", provider="anthropic", model="m"))  # fmt: skip
        app.record(session, TurnEnded(reason="done"))
        document = json.loads((home.sessions / f"session_{session}.json").read_text())
        assert document["base_url"] == "https://api.anthropic.com/v1"
        assert document["platform"] == "cli"
        assert document["message_count"] == len(document["messages"])
        assert set(document) == {
            *("session_id", "model", "base_url", "platform", "session_start"),
            *("last_updated", "system_prompt", "tools", "message_count", "messages"),
        }


def test_no_snapshot_is_written_by_default(home: Home) -> None:
    with build(Settings(), home, bus=Recorder()) as app:
        app.record(app.begin(SessionCreated()).session, TurnEnded(reason="done"))
    assert not home.sessions.exists()


def test_a_snapshot_that_can_not_be_written_is_reported_and_does_not_fail_the_turn(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    home.ensure()
    home.sessions.write_text("in the way")
    with build(SNAPSHOTS, home, bus=Recorder()) as app:
        rows = app.record(app.begin(SessionCreated()).session, TurnEnded(reason="done"))
    assert rows[0].seq == 2
    assert "was not written" in caplog.text


def test_an_imported_id_can_not_lead_a_snapshot_out_of_its_folder(home: Home) -> None:
    with build(SNAPSHOTS, home, bus=Recorder()) as app:
        app.store.log.create("../evil", SessionCreated())
        app.record("../evil", TurnEnded(reason="done"))
        (home.root / "evil.json").touch()
        app.delete("../evil")
    assert not home.sessions.exists()
    assert (home.root / "evil.json").exists()


def test_a_closed_app_does_not_open_the_log_again(home: Home) -> None:
    app = build(Settings(), home)
    app.close()
    app.close()
    with pytest.raises(StoreError, match="closed"):
        _ = app.store


def test_reading_the_log_loads_only_what_that_needs(home: Home) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from hermes.app import build; from hermes.settings import Home, Settings\n"
        "from hermes.schema.catalogue import CATALOGUE\n"
        "with build(Settings(), Home(Path(sys.argv[1]))) as app: app.store.sessions.recent()\n"
        "assert CATALOGUE['gateway.session.start']\n"
        "unneeded = {'asyncio', '_hashlib', 'tempfile', 'hermes.events', 'hermes.schema.learning', 'hermes.schema.goals'}\n"
        "print(sorted(unneeded & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(home.root)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_a_shorter_history_does_not_replace_a_snapshot(home: Home) -> None:
    wanted = SessionSettings(write_json_snapshots=True, json_snapshot_format="messages")
    with build(Settings(sessions=wanted), home, bus=Recorder()) as app:
        session = app.begin(SessionCreated()).session
        target = home.sessions / f"session_{session}.json"

        def texts_after(*asked: str) -> list[str]:
            for text in asked:
                (row,) = app.record(session, UserMessage(text=text))
                app.record(session, TurnStarted(inputs=(row.seq,)), turn=text)
                app.record(session, TurnEnded(reason="done"), turn=text)
            return [
                one["content"] for one in json.loads(target.read_text())["messages"]
            ]

        assert texts_after("one", "two") == ["one", "two"]
        app.record(session, SessionUndone(since=3, turns=("two", "one")))
        assert texts_after("three") == ["one", "two"]
        assert texts_after("four") == ["three", "four"]
