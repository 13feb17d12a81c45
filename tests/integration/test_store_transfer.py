"""Export and import: a round trip keeps everything; a bad file brings in nothing and is told by its line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.store_engines import OpenStore
from tests.fakes.thoroughness import rounds

from hermes.errors import ImportRejected, StoreError
from hermes.schema.events import SessionCreated, SessionRecovered, SessionTitled
from hermes.schema.messages import AssistantMessage, ToolCall, Usage, UserMessage
from hermes.store import Store, open_store
from hermes.store.session_export import write_snapshot

HEADER = {"format": "hermes-session", "version": 1, "session_id": "s"}
CREATED = {"type": "session.created", "ts": 1.0, "seq": 1}
GAP = {"type": "gap", "ts": 2.0, "seq": 2, "dropped": 1, "pattern": "", "policy": ""}
SAID = {"type": "agent.message.user", "ts": 2.0, "seq": 2, "text": "hello"}


@pytest.fixture
def store(open_database: OpenStore) -> Iterator[Store]:
    with open_database() as opened:
        yield opened


@settings(max_examples=rounds(6, 20), deadline=None)
@given(texts=st.lists(st.text(), max_size=10))
def test_a_round_trip_keeps_every_row(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("trip")
    with open_store(folder / "a.db") as one, open_store(folder / "b.db") as other:
        one.log.create("s", SessionCreated(cwd="/x"))
        call = ToolCall(id="1", name="n", arguments="{")
        for text in texts:
            usage = Usage(input_tokens=3, cost_usd=0.5)
            one.log.append(
                "s",
                AssistantMessage(text=text, tool_calls=(call,), model="m", usage=usage),
                turn="t",
            )
        one.log.append("s", SessionTitled(title="T"))
        lines = list(one.transfer.export("s"))
        assert not any("\n" in line for line in lines)
        imported = other.transfer.import_lines(
            [line + "\n" for line in lines], fresh_id="f"
        )
        assert (imported.session, imported.rows) == ("s", len(texts) + 2)
        before = [row._replace(id=0, epoch=0) for row in one.log.every_event("s")]
        after = [row._replace(id=0, epoch=0) for row in other.log.every_event("s")]
        assert after[:-1] == before
        assert after[-1].type == "session.imported"
        mine, theirs = one.sessions.find("s"), other.sessions.find("s")
        assert (mine.title, mine.messages, mine.cost_usd) == (
            theirs.title,
            theirs.messages,
            theirs.cost_usd,
        )
        again = other.transfer.import_lines(other.transfer.export("s"), fresh_id="f")
        assert again.session == "f"
        assert other.check().problems == []


@pytest.mark.parametrize(
    "name",
    [
        "last",
        "",
        " ",
        "two words",
        "../../evil",
        "/etc/passwd",
        ".",
        "-x",
        "é",
        "a" * 101,
    ],
)
def test_an_id_that_is_unfit_gives_way_to_the_fresh_one(
    store: Store, tmp_path: Path, name: str
) -> None:
    lines = lines_of(HEADER | {"session_id": name}, CREATED, SAID)
    imported = store.transfer.import_lines(lines, fresh_id="fresh")
    assert (imported.session, imported.source, imported.rows) == ("fresh", name, 2)
    assert [info.id for info in store.sessions.recent()] == ["fresh"]
    assert (
        write_snapshot(store, "fresh", tmp_path / "copies").parent
        == tmp_path / "copies"
    )


def test_a_fit_id_is_kept(store: Store) -> None:
    for name in ("a", "20261116-101500_x.y", "a" * 100, "lasting"):
        lines = lines_of(HEADER | {"session_id": name}, CREATED, SAID)
        assert store.transfer.import_lines(lines, fresh_id="fresh").session == name


def lines_of(*values: Any) -> list[str]:
    return [value if isinstance(value, str) else json.dumps(value) for value in values]


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (lines_of(), "line 1: this is not the beginning"),
        (lines_of("hello"), "line 1: this is not the beginning"),
        (lines_of(CREATED, SAID), "line 1: this is not the beginning"),
        (lines_of(HEADER | {"version": 2}, CREATED), "line 1: the file has version 2"),
        (lines_of(HEADER), "the file holds no events"),
        (lines_of(HEADER, SAID), "line 2: a session begins with"),
        (lines_of(HEADER, CREATED | {"seq": 2}), "line 2: a session begins with"),
        (lines_of(HEADER, CREATED, CREATED | {"seq": 2}), "line 3: a session begins with"),
        (lines_of(HEADER, CREATED, "", "{not json"), "line 4: "),
        (lines_of(HEADER, CREATED, "[]"), "line 3: "),
        (lines_of(HEADER, CREATED, "null"), "line 3: "),
        (lines_of(HEADER, CREATED, SAID | {"seq": 1}), "line 3: seq 1 comes after 1"),
        (lines_of(HEADER, CREATED, SAID | {"seq": 0}), "line 3: "),
        (lines_of(HEADER, CREATED, SAID | {"seq": "2"}), "line 3: "),
        (lines_of(HEADER, CREATED, SAID | {"seq": 2**60}), "line 3: "),
        (lines_of(HEADER, CREATED, SAID | {"seq": 4}), "line 3: of the 4 rows up to here, 2 are missing"),
        (lines_of(HEADER, CREATED, SAID | {"ts": -1}), "line 3: "),
        (lines_of(HEADER, CREATED, SAID | {"ts": 1e18}), "line 3: "),
        (lines_of(HEADER, CREATED, {"type": "agent.message.user", "ts": 2, "seq": 2}), "line 3: .*text"),
        (lines_of(HEADER, CREATED, SAID | {"text": 5}), "line 3: .*text"),
        (lines_of(HEADER, CREATED, SAID | {"turn_id": 5}), "line 3: "),
        (lines_of(HEADER, CREATED, GAP), "line 3: gap is not an event of a log"),
        (lines_of(HEADER, CREATED, '{"type":"x","ts":1,"seq":2,"deep":' + "[" * 9999 + "]" * 9999 + "}"), "line 3: "),
        (lines_of(HEADER, CREATED, '{"type":"x","ts":1,"seq":2,"text":"\\ud800"}'), "line 3: "),
        (lines_of(HEADER, CREATED, '{"type":"x","ts":1,"seq":2,"text":"' + "x" * 2**25 + '"}'), "line 3: .*too long"),
    ],
    ids=range(25),
)  # fmt: skip
def test_a_bad_line_is_named_and_nothing_is_imported(
    store: Store, lines: list[str], complaint: str
) -> None:
    with pytest.raises(ImportRejected, match=complaint):
        store.transfer.import_lines(lines, fresh_id="f")
    assert store.sessions.recent() == []
    assert store.check().rows == 0


def test_rows_that_a_recovery_lost_may_be_missing(store: Store) -> None:
    note = {
        "type": SessionRecovered.topic,
        "ts": 3,
        "seq": 5,
        "kept": 2,
        "lost": 2,
        "file": "x",
    }
    store.transfer.import_lines(lines_of(HEADER, CREATED, SAID, note), fresh_id="f")
    assert store.check().problems == []
    store.log.branch("s", "early", at=4)
    store.log.branch("s", "late")
    store.log.append("early", AssistantMessage(model="m", usage=Usage(cost_usd=1.0)))
    assert store.sessions.find("early").cost_usd == 1.0
    assert store.log.messages("early")[:1] == [UserMessage(text="hello")]
    assert store.check().problems == []


def test_a_branch_after_a_loss_takes_no_row_beyond_its_place(store: Store) -> None:
    later = [SAID | {"seq": seq, "text": str(seq)} for seq in (5, 6, 7)]
    note = {
        "type": SessionRecovered.topic,
        "ts": 3,
        "seq": 8,
        "kept": 5,
        "lost": 2,
        "file": "x",
    }
    store.transfer.import_lines(
        lines_of(HEADER, CREATED, SAID, *later, note), fresh_id="f"
    )
    store.log.branch("s", "b", at=5)
    assert store.log.messages("b") == [UserMessage(text="hello"), UserMessage(text="5")]
    assert store.check().problems == []


def test_events_of_a_newer_hermes_come_through(store: Store) -> None:
    future: dict[str, Any] = {
        "type": "future.thing",
        "ts": 2.0,
        "seq": 2,
        "what": [1, {"a": None}],
    }
    store.transfer.import_lines(
        lines_of(HEADER, CREATED, future, SAID | {"seq": 3, "later": True}),
        fresh_id="f",
    )
    exported = [json.loads(line) for line in store.transfer.export("s")]
    assert exported[2]["what"] == [1, {"a": None}]
    assert exported[3]["later"] is True
    assert store.log.messages("s") == [UserMessage(text="hello")]


def test_a_snapshot_is_the_whole_session_in_one_file(
    store: Store, tmp_path: Path
) -> None:
    store.transfer.import_lines(lines_of(HEADER, CREATED, SAID), fresh_id="f")
    target = write_snapshot(store, "s", tmp_path / "sessions")
    content = json.loads(target.read_text())
    assert content["session"]["id"] == "s"
    assert [event["seq"] for event in content["events"]] == [1, 2, 3]
    assert [file.name for file in target.parent.iterdir()] == ["session_s.json"]


def test_a_snapshot_stays_in_its_folder(store: Store, tmp_path: Path) -> None:
    store.transfer.import_lines(
        lines_of(HEADER | {"session_id": "../x"}, CREATED), fresh_id="f"
    )
    with pytest.raises(StoreError, match="can't be exported to a file"):
        write_snapshot(store, "../x", tmp_path / "sessions")
