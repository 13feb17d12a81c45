"""Conversations of pi, gemini-cli and opencode come over as whole sessions, once."""

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.learning.test_import_openclaw import session

from hermes.app import App, build
from hermes.app.learning.importer import Importer
from hermes.app.session_journal import read_history
from hermes.learning.learning_service import open_learning
from hermes.schema.messages import AssistantMessage, ToolFinished
from hermes.settings import Home, Settings
from hermes.settings.sections import LearningSettings


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    with build(Settings(), Home(tmp_path / "home")) as made:
        yield made


def run(app: App, source: Path, kind: str) -> None:
    """Imports a source, and once more: then there is nothing left."""
    learning = open_learning(app.home, LearningSettings(), os.environ)
    work = Importer(app, learning)
    made = work.plan(source)
    assert made.kind == kind
    done = work.carry_out(made, said=lambda text: None)
    assert (done.problems, done.missing) == ([], [])
    assert work.plan(source).empty


def check(app: App, name: str, *, model: str = "model-x") -> None:
    """Every fixture tells the same story: a question, a call, its result, an answer."""
    question, reply, result, answer = read_history(app.store, name).messages
    assert question.text == "what is here?"
    assert isinstance(reply, AssistantMessage)
    assert (reply.model, reply.tool_calls[0].name) == (model, "ls")
    assert json.loads(reply.tool_calls[0].arguments) == {"path": "."}
    assert reply.usage is not None
    assert reply.usage.output_tokens == 7
    assert isinstance(result, ToolFinished)
    assert (result.text, result.ok) == ("a.py", True)
    assert answer.text == "There is a.py."


def test_sessions_of_pi_come_over(app: App, tmp_path: Path) -> None:
    folder = tmp_path / ".pi" / "agent" / "sessions" / "--work--"
    folder.mkdir(parents=True)
    (folder / "2026_s-pi.jsonl").write_text(session("s-pi", "what is here?"))
    run(app, tmp_path / ".pi" / "agent", "pi")
    texts = [message.text for message in read_history(app.store, "s-pi").messages]
    assert texts == ["what is here?", "", "a.py", "There is a.py."]
    assert app.store.sessions.find("s-pi").cwd == "/work"


def gemini_messages() -> list[dict[str, object]]:
    call = {"id": "t1", "name": "ls", "args": {"path": "."}, "status": "success", "timestamp": "2026-01-01T10:00:02Z",
            "result": [{"functionResponse": {"id": "t1", "response": {"output": "a.py"}}}]}  # fmt: skip
    return [
        {"id": "1", "type": "user", "timestamp": "2026-01-01T10:00:00Z", "content": [{"text": "what is here?"}]},
        {"id": "2", "type": "info", "timestamp": "2026-01-01T10:00:00Z", "content": "update available"},
        {"id": "3", "type": "gemini", "timestamp": "2026-01-01T10:00:01Z", "content": "", "model": "model-x",
         "tokens": {"input": 5, "output": 7, "cached": 0}, "toolCalls": [call]},
        {"id": "4", "type": "gemini", "timestamp": "2026-01-01T10:00:03Z", "content": "There is a.py."},
    ]  # fmt: skip


CONTEXT = "<session_context>\nThis is the Gemini CLI.\n</session_context>"


def test_sessions_of_gemini_come_over_in_both_forms(app: App, tmp_path: Path) -> None:
    chats = tmp_path / ".gemini" / "tmp" / "0123" / "chats"
    chats.mkdir(parents=True)
    about = {"sessionId": "g-old", "projectHash": "0123", "startTime": "2026-01-01"}
    whole = about | {"messages": gemini_messages()}
    (chats / "session-a.json").write_text(json.dumps(whole))
    lines = [
        about | {"sessionId": "g-new"},
        {"id": "0", "type": "user", "content": [{"text": CONTEXT}]},
        *gemini_messages(),
        {"id": "5", "type": "user", "content": "taken back"},
        {"$rewindTo": "5"},
        {"$set": {"summary": "Looking around"}},
    ]
    (chats / "session-b.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (chats.parent / ".project_root").write_text("/work/lab")
    (tmp_path / ".gemini" / "settings.json").write_text("{}")
    run(app, tmp_path / ".gemini", "gemini")
    check(app, "g-old")
    check(app, "g-new")
    assert app.store.sessions.find("g-new").title == "Looking around"
    assert app.store.sessions.find("g-new").cwd == "/work/lab"


def opencode_records() -> list[tuple[dict[str, object], list[dict[str, object]]]]:
    state = {"status": "completed", "input": {"path": "."}, "output": "a.py"}
    return [
        ({"role": "user", "time": {"created": 1767261600000}}, [{"type": "text", "text": "what is here?"}]),
        ({"role": "assistant", "time": {"created": 1767261601000}, "modelID": "model-x",
          "tokens": {"input": 5, "output": 7, "reasoning": 0, "cache": {"read": 0, "write": 0}}},
         [{"type": "step-start"}, {"type": "tool", "tool": "ls", "callID": "t1", "state": state}]),
        ({"role": "assistant", "time": {"created": 1767261602000}, "modelID": "model-x"},
         [{"type": "text", "text": "There is a.py."}]),
    ]  # fmt: skip


def test_sessions_of_opencode_come_from_its_database_and_its_older_files(
    app: App, tmp_path: Path
) -> None:
    home = tmp_path / "opencode"
    storage = home / "storage"
    (storage / "session" / "p1").mkdir(parents=True)
    about = {"id": "ses_old", "directory": "/work", "title": "Old"}
    (storage / "session" / "p1" / "ses_old.json").write_text(json.dumps(about))
    for number, (message, parts) in enumerate(opencode_records()):
        name = f"msg_{number}"
        put(storage / "message" / "ses_old" / f"{name}.json", message | {"id": name})
        for place, part in enumerate(parts):
            put(storage / "part" / name / f"prt_{place}.json", part)
    _opencode_database(home / "opencode.db")
    run(app, home, "opencode")
    check(app, "ses_old")
    check(app, "ses_new")
    assert {info.id for info in app.store.sessions.recent()} == {"ses_old", "ses_new"}


def put(path: Path, record: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record))


def _opencode_database(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as made:
        made.executescript(
            "CREATE TABLE session (id TEXT, parent_id TEXT, directory TEXT, title TEXT);"
            "CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT);"
            "CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT);"
            "INSERT INTO session VALUES ('ses_new', NULL, '/work', 'New'), ('ses_sub', 'ses_new', '/work', 'Sub');"
        )
        for number, (message, parts) in enumerate(opencode_records()):
            for name in ("ses_new", "ses_sub"):
                made.execute(
                    "INSERT INTO message VALUES (?, ?, ?, ?)",
                    (f"{name}_{number}", name, number, json.dumps(message)),
                )
                for place, part in enumerate(parts):
                    made.execute(
                        "INSERT INTO part VALUES (?, ?, ?, ?)",
                        (f"p{place}", f"{name}_{number}", name, json.dumps(part)),
                    )
        made.commit()
