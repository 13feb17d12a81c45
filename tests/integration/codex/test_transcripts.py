"""Recordings of the real program, held against its own schema, and projected: the same bytes every time."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from tests.fakes.codex_program import NEWEST, OLDEST

from hermes.codex.projector import Projector
from hermes.codex.wire import CodexNotification, classify
from hermes.core.history import ConversationHistory
from hermes.schema.event_base import Event
from hermes.schema.messages import AssistantMessage, ToolFinished

DATA = Path(__file__).parents[1] / "data" / "codex"
FILES = sorted((DATA / "transcripts").glob("*.jsonl"))


def rows(file: Path) -> list[tuple[str, dict[str, Any]]]:
    return [
        (side, message)
        for side, message in map(json.loads, file.read_text().splitlines())
    ]


@cache
def validators(version: str = NEWEST) -> dict[str, dict[str, Any]]:
    """By union and method, the check for that message."""
    schema = json.loads((DATA / f"schema-{version}.json").read_text())
    found: dict[str, dict[str, Any]] = {}
    for union, parts in schema.items():
        found[union] = {}
        for one in parts["oneOf"]:
            whole = {**one, "definitions": parts["definitions"]}
            found[union][one["properties"]["method"]["enum"][0]] = (
                jsonschema.Draft7Validator(whole)
            )
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_the_program_said_is_what_its_schema_says(file: Path) -> None:
    for side, message in rows(file):
        if side != "s2c" or "method" not in message:
            continue
        union = "ServerRequest" if "id" in message else "ServerNotification"
        validators()[union][message["method"]].validate(message)


def project(file: Path) -> list[Event]:
    """All turns of a recording, each closed as Hermes closes it."""
    events: list[Event] = []
    projector: Projector | None = None
    for side, message in rows(file):
        if side != "s2c" or "method" not in message or "id" in message:
            continue
        if message["method"] == "turn/started":
            projector = Projector(
                message["params"]["turn"]["id"], cwd="/workspace", model="m"
            )
        told = classify(json.dumps(message).encode())
        assert isinstance(told, CodexNotification)
        if projector is not None:
            events += projector.feed(told)
            if projector.ending is not None:
                events += projector.close(
                    finish="stop"
                    if projector.ending.status == "completed"
                    else "interrupted"
                )
                assert projector.odd == 0
                projector = None
    return events + (projector.close(finish="interrupted") if projector else [])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_recording_projects_to_the_same_bytes_and_a_valid_conversation(
    file: Path,
) -> None:
    events = project(file)
    assert [msgspec.json.encode(event) for event in events] == [
        msgspec.json.encode(event) for event in project(file)
    ]
    history = ConversationHistory()
    for number, event in enumerate(events, 1):
        history.add(number, event)
    assert history.open_calls == {}
    for before, after in zip(history.messages, history.messages[1:], strict=False):
        assert (
            type(before) is not type(after)
            or isinstance(before, ToolFinished)
            or not _calls(before)
        )


def _calls(message: object) -> bool:
    return isinstance(message, AssistantMessage) and bool(message.tool_calls)


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("02_command_completes", ["one\ntwo\n/workspace\n", "oops\n[exit code 3]"]),
        ("04_command_approval_decline", ["Not run: it was not approved."]),
        ("11_file_change_accept", ["Created hello.txt: 2 lines."]),
        ("20_mcp_tool_readonly_and_progress", ["definition of codex"]),
        ("71_dynamic_tools", ["value of a", "no such key"]),
    ],
)
def test_results_of_recordings(name: str, texts: list[str]) -> None:
    found = [
        event.text
        for event in project(DATA / "transcripts" / f"{name}.jsonl")
        if isinstance(event, ToolFinished)
    ]
    assert found[: len(texts)] == texts


async def test_what_we_send_is_what_the_schema_says(played: Any) -> None:
    async with played.bench() as (bench, codex):
        session = bench.begin()
        for turn in ("turn-1", "turn-2"):
            await bench.service.submit(session, "hi")
            await codex.begin_turn(turn)
            if turn == "turn-1":
                codex.end_turn(turn=turn)
                await bench.service.idle(session)
                await bench.engine.retire(session)
        await bench.service.submit(session, "and that", delivery="steer")
        steer = await codex.receive("turn/steer")
        codex.send({"id": steer["id"], "result": {"turnId": "turn-2"}})
        await bench.service.interrupt(session, by="test")
        asked = await codex.receive("turn/interrupt")
        codex.send({"id": asked["id"], "result": {}})
        codex.end_turn("interrupted", "turn-2")
        await codex.begin_turn("turn-3")  # what was not taken in any more is said again
        codex.end_turn(turn="turn-3")
        await bench.service.idle(session)
    sent = [
        message for message in codex.received if "method" in message and "id" in message
    ]
    for message in sent:
        for version in (OLDEST, NEWEST):
            validators(version)["ClientRequest"][message["method"]].validate(message)
    assert {message["method"] for message in sent} >= {
        "thread/start",
        "thread/resume",
        "turn/start",
        "turn/steer",
    }
