"""Hooks: found, trusted by their bytes, run beside the work, and never in its way."""

import json
import os
import py_compile
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hermes.app import build
from hermes.errors import HermesError, NotFound
from hermes.events import Bus
from hermes.events.envelope import relay
from hermes.plugins.hook_runner import HookRunner
from hermes.plugins.hooks import Hooks
from hermes.schema.catalogue import CATALOGUE
from hermes.schema.events import SessionCreated, TurnEnded, TurnStarted
from hermes.schema.messages import AssistantMessage, ToolCall, UserMessage
from hermes.settings import Home, Secrets, Settings

_NOTE = """
import json
from pathlib import Path
from .place import OUT
def handle(event_type, context):
    with open(OUT, "a") as file:
        file.write(json.dumps([event_type, context]) + chr(10))
"""


def _write(
    home: Home, name: str, handler: str, events: str = '["*"]', more: str = ""
) -> Path:
    folder = home.hooks / name
    folder.mkdir(parents=True)
    (folder / "HOOK.yaml").write_text(
        f"name: {name}\ndescription: a test\nevents: {events}\n{more}"
    )
    (folder / "handler.py").write_text(handler)
    return folder


def _noting(home: Home, out: Path, name: str = "note", events: str = '["*"]') -> Path:
    folder = _write(home, name, _NOTE, events)
    (folder / "place.py").write_text(f"OUT = {str(out)!r}\n")
    return folder


def _notes(out: Path) -> list[tuple[str, dict[str, Any]]]:
    return (
        [tuple(json.loads(line)) for line in out.read_text().splitlines()]
        if out.exists()
        else []
    )


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").ensure()


def test_a_hook_is_off_until_it_is_trusted_and_after_every_change(
    home: Home, tmp_path: Path
) -> None:
    folder = _noting(home, tmp_path / "out")
    hooks = Hooks(home)
    assert hooks.find("note").state == "off"
    assert hooks.trust("note").state == "trusted"
    assert (home.root / "hooks.json").stat().st_mode & 0o777 == 0o600
    (folder / "place.py").write_text("OUT = '/dev/null'\n")
    assert hooks.find("note").state == "changed"
    runner = HookRunner(hooks.every())
    runner.fire("agent:end", {})
    runner.close()
    assert not (tmp_path / "out").exists()
    with pytest.raises(HermesError, match="changed in the meantime"):
        hooks.trust("note", "0" * 64)
    assert hooks.untrust("note")
    assert not hooks.untrust("note")
    assert hooks.find("note").state == "off"


def test_running_a_hook_does_not_change_it(home: Home, tmp_path: Path) -> None:
    _noting(home, tmp_path / "out")
    Hooks(home).trust("note")
    runner = HookRunner(Hooks(home).every())
    runner.fire("agent:end", {"session_id": "s"})
    runner.close()
    assert _notes(tmp_path / "out") == [("agent:end", {"session_id": "s"})]
    assert Hooks(home).find("note").state == "trusted"


def test_a_hook_runs_from_the_bytes_that_were_agreed_to_also_when_files_change_meanwhile(
    home: Home, tmp_path: Path
) -> None:
    gate, out = tmp_path / "gate", tmp_path / "out"
    late = (
        "import os, pathlib\n"
        f"fd = os.open({str(gate)!r}, os.O_RDONLY)  # waits for the test\n"
        "os.close(fd)\n"
        "from .place import OUT\n"
        "def handle(event_type, context):\n"
        "    from .later import NOTE\n"
        "    pathlib.Path(OUT).write_text(NOTE)\n"
    )
    folder = _write(home, "late", late)
    (folder / "place.py").write_text(f"OUT = {str(out)!r}\n")
    (folder / "later.py").write_text("NOTE = 'as agreed'\n")
    os.mkfifo(gate)
    hook = Hooks(home).trust("late")
    runner = HookRunner([hook])
    runner.fire("agent:end", {})
    with gate.open("w"):  # opens once the handler is being loaded
        for name in ("place.py", "later.py"):
            (folder / name).write_text("raise SystemExit('this was never agreed to')\n")
    runner.close(timeout_s=20)
    assert out.read_text() == "as agreed"


def test_what_python_compiled_before_is_not_run(home: Home, tmp_path: Path) -> None:
    folder = _noting(home, tmp_path / "out")
    (tmp_path / "evil.py").write_text(
        "def handle(event_type, context):\n    raise SystemExit\n"
    )
    compiled = folder / "__pycache__" / f"handler.{sys.implementation.cache_tag}.pyc"
    py_compile.compile(
        str(tmp_path / "evil.py"),
        cfile=str(compiled),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    runner = HookRunner([Hooks(home).trust("note")])
    runner.fire("agent:end", {})
    runner.close(timeout_s=20)
    assert [kind for kind, _ in _notes(tmp_path / "out")] == ["agent:end"]


def test_what_a_hook_prints_goes_into_the_log(
    home: Home, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    _write(
        home,
        "loud",
        "def handle(event_type, context):\n    print('hello', event_type, sep='-')\n",
    )
    caplog.set_level("INFO", "hermes.hooks")
    runner = HookRunner([Hooks(home).trust("loud")])
    runner.fire("agent:end", {})
    runner.close(timeout_s=20)
    assert capsys.readouterr().out == ""
    assert "the hook loud: hello-agent:end" in caplog.text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name: other\nevents: ['*']", "calls it 'other'"),
        ("name: bad", "events"),
        ("name: bad\nevents: [agent:endd]", "there is no event 'agent:endd'"),
        ("name: bad\nevents: []", "events"),
        ("- just\n- a list", "HOOK.yaml"),
        ("name: bad\nevents: ['*']\ntimeout: -1", "timeout"),
        ("name: bad\nevents: ['*']\ncolour: red", "colour"),
    ],
)
def test_a_manifest_that_can_t_be_used_is_said(
    home: Home, text: str, problem: str
) -> None:
    folder = _write(home, "bad", "def handle(event_type, context): pass")
    (folder / "HOOK.yaml").write_text(text)
    hook = Hooks(home).find("bad")
    assert hook.state == "broken"
    assert problem in hook.problem
    with pytest.raises(HermesError, match="can't be used"):
        Hooks(home).trust("bad")
    with pytest.raises(NotFound, match="no hook"):
        Hooks(home).find("none")


def test_a_hook_is_told_of_what_it_asked_for(home: Home, tmp_path: Path) -> None:
    _noting(
        home, tmp_path / "out", events='["command:*", "agent:end", "session:start"]'
    )
    Hooks(home).trust("note")
    runner = HookRunner(Hooks(home).every())
    for kind in (
        "command:new",
        "agent:start",
        "agent:end",
        "session:end",
        "session:start",
        "command:stop",
    ):
        runner.fire(kind, {})
    runner.close()
    assert [kind for kind, _ in _notes(tmp_path / "out")] == [
        "command:new",
        "agent:end",
        "session:start",
        "command:stop",
    ]


def test_hooks_that_fail_hang_or_can_t_be_loaded_stop_nobody(
    home: Home, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    hang = f"import os, time\ndef handle(t, c):\n    while not os.path.exists({str(release)!r}): time.sleep(0.01)\n"
    slow = "import asyncio\nasync def handle(event_type, context):\n    await asyncio.sleep(3600)\n"
    _noting(home, tmp_path / "out")
    _write(
        home, "fails", "def handle(event_type, context):\n    raise ValueError('no')\n"
    )
    _write(
        home, "exits", "import sys\ndef handle(event_type, context):\n    sys.exit(3)\n"
    )
    _write(home, "hangs", hang, more="timeout: 0.05\n")
    _write(home, "slow", slow, more="timeout: 0.05\n")
    _write(home, "unloadable", "import nothing_of_that_name\n")
    _write(home, "empty", "")
    for hook in Hooks(home).every():
        Hooks(home).trust(hook.name)
    runner = HookRunner(Hooks(home).every())
    before = time.monotonic()
    for _ in range(5):
        runner.fire("agent:end", {})
    assert time.monotonic() - before < 1.0
    _until(lambda: len(_notes(tmp_path / "out")) == 5)
    stats = {one.name: one for one in runner.stats()}
    _until(
        lambda: (
            stats["slow"].timed_out == 5
            and stats["hangs"].timed_out == 3
            and stats["hangs"].failed == 1
        )
    )
    _until(lambda: stats["unloadable"].failed == stats["empty"].failed == 1)
    _until(lambda: stats["fails"].failed == stats["exits"].failed == 5)
    assert stats["hangs"].dropped == 2
    runner.close(0.1)
    release.touch()
    assert stats["note"].done == 5


def test_async_handlers_are_awaited(home: Home, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    handler = "import asyncio\nasync def handle(t, c):\n    await asyncio.sleep(0)\n"
    handler += f"    with open({out!r}, 'a') as file:\n        file.write(t + ' ')\n"
    _write(home, "later", handler)
    Hooks(home).trust("later")
    runner = HookRunner(Hooks(home).every())
    for kind in ("agent:start", "agent:end"):
        runner.fire(kind, {})
    runner.close()
    assert (tmp_path / "out").read_text().split() == ["agent:start", "agent:end"]


def test_what_sessions_do_is_told_once_in_order_and_published(
    home: Home, tmp_path: Path
) -> None:
    _noting(home, tmp_path / "out")
    Hooks(home).trust("note")
    bus, seen = Bus(), list[str]()
    bus.subscribe("gateway.**", lambda event: seen.append(event["type"]))
    with build(Settings(), home, bus=bus) as app:
        app.go_live(Secrets({}, {}))
        session = app.begin(SessionCreated(surface="cli", cwd="/")).session
        app.record(session, UserMessage(text="hi"))
        app.record(session, TurnStarted(inputs=(2,)), turn="t1")
        call = ToolCall(id="c", name="read_file", arguments="{}")
        app.record(
            session, AssistantMessage(text="looking", tool_calls=(call,)), turn="t1"
        )
        app.record(session, AssistantMessage(text="hello"), turn="t1")
        app.record(session, TurnEnded(reason="done"), turn="t1")
        bus.publish("gateway.command.new", {"platform": "cli", "session_id": session})
        # What another process does is told to its own hooks.
        relay(
            bus.publish,
            "agent.turn.started",
            {"session_id": "elsewhere", "turn_id": "t9"},
        )
        relay(
            bus.publish,
            "gateway.agent.start",
            {"session_id": "elsewhere", "turn_id": "t9"},
        )
    notes = [(kind, context) for kind, context in _notes(tmp_path / "out")]
    assert [kind for kind, _ in notes] == [
        "session:start", "agent:start", "agent:step", "agent:step", "agent:end", "command:new", "session:end",
    ]  # fmt: skip
    assert {context["session_id"] for _, context in notes} == {session}
    assert {context["platform"] for _, context in notes} == {"cli"}
    start, end = notes[1][1], notes[4][1]
    assert (start["message"], start["turn_id"]) == ("hi", "t1")
    assert (end["message"], end["response"], end["reason"]) == ("hi", "hello", "done")
    assert [
        context["tool_names"] for kind, context in notes if kind == "agent:step"
    ] == [["read_file"], []]
    assert seen[:3] == [
        "gateway.session.start",
        "gateway.agent.start",
        "gateway.agent.step",
    ]


def test_the_session_of_a_job_ends_with_its_run_and_not_with_the_process(
    home: Home, tmp_path: Path
) -> None:
    _noting(home, tmp_path / "out")
    Hooks(home).trust("note")
    bus = Bus()
    with build(Settings(), home, bus=bus) as app:
        app.go_live(Secrets({}, {}), "gateway")
        session = app.begin(SessionCreated(surface="cron", cwd="/")).session
        ended = {
            "job": "j",
            "name": "n",
            "due": 0.0,
            "state": "done",
            "reason": "",
            "session": session,
        }
        bus.publish("schedule.ended", ended)
        bus.publish("schedule.ended", ended | {"state": "missed", "session": ""})
        _until(
            lambda: (
                [kind for kind, _ in _notes(tmp_path / "out")]
                == ["session:start", "session:end"]
            )
        )
    assert len(_notes(tmp_path / "out")) == 2


def test_a_process_without_hooks_publishes_the_same_with_every_field(
    home: Home,
) -> None:
    assert not home.hooks.exists()
    bus, seen = Bus(), list[dict[str, Any]]()
    bus.subscribe("gateway.**", lambda event: seen.append(dict(event)))
    with build(Settings(), home, bus=bus) as app:
        app.go_live(Secrets({}, {}))
        session = app.begin(SessionCreated(surface="cli", cwd="/")).session
        app.record(session, TurnStarted(), turn="t1")
        app.record(session, AssistantMessage(text="hello"), turn="t1")
        app.record(session, TurnEnded(reason="done"), turn="t1")
    kinds = ["session.start", "agent.start", "agent.step", "agent.end", "session.end"]
    assert [event["type"] for event in seen] == [f"gateway.{kind}" for kind in kinds]
    for event in seen:
        assert set(event) >= {
            field.name for field in msgspec.structs.fields(CATALOGUE[event["type"]])
        }
    assert (seen[0]["resumed"], seen[2]["tool_names"], seen[3]["response"]) == (
        False,
        [],
        "hello",
    )


def test_hooks_know_whom_a_session_is_with_that_began_before_this_process(
    home: Home,
) -> None:
    with build(Settings(), home, bus=Bus()) as before:
        session = before.begin(
            SessionCreated(surface="telegram", cwd="/", person="telegram:7")
        ).session
        child = before.begin(
            SessionCreated(
                kind="child", parent=session, root=session, surface="delegate"
            )
        ).session
    bus, seen = Bus(), list[tuple[str, str, str, bool]]()

    def hear(event: Any) -> None:
        seen.append(
            (event["session_id"], event["platform"], event["user"], event["resumed"])
        )

    bus.subscribe("gateway.session.start", hear)
    with build(Settings(), home, bus=bus) as app:
        app.go_live(Secrets({}, {}))
        app.record(session, TurnStarted(), turn="t1")
        app.record(child, TurnStarted(), turn="t2")
    assert seen == [
        (session, "telegram", "telegram:7", True),
        (child, "delegate", "telegram:7", True),
    ]
