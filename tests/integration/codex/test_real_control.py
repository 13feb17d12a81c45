"""Stopping, steering and going on with the real codex program, with nothing left behind. How fast is in benchmarks."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hermes.core.calls import CallRunner
from hermes.core.ports import Approver, PolicyDecision, Tool
from hermes.core.turn import NativeRuntime
from hermes.schema.events import (
    ApprovalRequested,
    CodexThread,
    SessionUndone,
    Steered,
    TurnStarted,
)
from hermes.schema.messages import AssistantMessage, ToolFinished
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_model import ScriptedModel
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall, ServerFault


def command(script: str, number: str = "call_1", **more: Any) -> ScriptedResponse:
    return ScriptedResponse(
        calls=(
            ServedCall(
                "exec_command",
                msgspec.json.encode({"cmd": script, **more}).decode(),
                number,
            ),
        )
    )


def alive(word: str) -> list[int]:
    """Processes whose command line has this word in it."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                if word.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


async def until(condition: Any, seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - processes have no event
            await asyncio.sleep(0.01)


async def test_an_interrupt_while_it_talks_keeps_what_was_said(real: Any) -> None:
    long = ScriptedResponse(text="word " * 40, fault=ServerFault(hang="middle"))
    async with ModelServer(long, "and on") as server, real.bench(server.url) as bench:
        session = bench.begin()
        await bench.service.submit(session, "talk")
        await bench.see("agent.message.delta")
        await bench.service.interrupt(session, by="test")
        ended = await bench.service.idle(session)
        (message,) = bench.events(session, AssistantMessage)
        again = await bench.say(session, "go on")
    assert ended.reason == "interrupted"
    assert message.finish == "interrupted"
    assert message.text.startswith("word word")
    assert again.reason == "done"


async def test_an_interrupt_ends_the_commands_it_started_and_leaves_no_litter(
    real: Any,
) -> None:
    word = f"sleep 98765.{os.getpid()}"
    async with (
        ModelServer(command(f"({word} & {word}); echo done"), "next") as server,
        real.bench(server.url) as bench,
    ):
        session = bench.begin()
        await bench.service.submit(session, "run")
        await bench.see("agent.tool.started")
        await until(lambda: alive(word.replace(" ", "\0")))
        await bench.service.interrupt(session, by="test")
        ended = await bench.service.idle(session)
        await until(lambda: not alive(word.replace(" ", "\0")))
        (result,) = bench.events(session, ToolFinished)
        assert (await bench.say(session, "again")).reason == "done"
    assert ended.reason == "interrupted"
    assert not result.ok
    assert list(real.cwd.iterdir()) == []


async def test_an_interrupt_while_a_question_is_open(real: Any) -> None:
    asking = command(
        "touch x", sandbox_permissions="require_escalated", justification="May I?"
    )
    async with ModelServer(asking, "next") as server, real.bench(server.url) as bench:
        session = bench.begin()
        with bench.questions.attached("test"):
            await bench.service.submit(session, "run")
            asked = await bench.see("agent.approval.requested")
            await bench.service.interrupt(session, by="test")
            ended = await bench.service.idle(session)
            assert not await bench.service.answer(
                session, asked["call_id"], "once", by="test"
            )
        (result,) = bench.events(session, ToolFinished)
        assert (await bench.say(session, "again")).reason == "done"
    assert ended.reason == "interrupted"
    assert not result.ok


async def test_two_interrupts_are_one(real: Any) -> None:
    long = ScriptedResponse(text="word " * 40, fault=ServerFault(hang="middle"))
    async with ModelServer(long, "on") as server, real.bench(server.url) as bench:
        session = bench.begin()
        await bench.service.submit(session, "talk")
        await bench.see("agent.message.delta")
        await asyncio.gather(
            *(bench.service.interrupt(session, by="test") for _ in range(3))
        )
        assert (await bench.service.idle(session)).reason == "interrupted"
        assert (await bench.say(session, "again")).reason == "done"


async def test_what_is_said_meanwhile_goes_into_the_running_turn(real: Any) -> None:
    async with ModelServer(
        command("until [ -e go ]; do sleep 0.02; done"), "heard both"
    ) as server:
        async with real.bench(server.url) as bench:
            session = bench.begin()
            await bench.service.submit(session, "run")
            await bench.see("agent.tool.started")
            _, seq = await bench.service.submit(
                session, "and be quick", delivery="steer"
            )
            turn = bench.engine._sessions[session][0]._turn
            await until(
                lambda: (
                    seq in [words.seq for words in turn._projector.delivered.values()]
                )
            )
            (real.cwd / "go").touch()
            ended = await bench.service.idle(session)
            (steered,) = bench.events(session, Steered)
            assert len(bench.events(session, TurnStarted)) == 1
        assert b"and be quick" in server.posts[-1].body
    assert ended.reason == "done"
    assert steered.inputs == (seq,)


async def test_a_session_goes_on_with_its_thread_in_another_process(real: Any) -> None:
    async with ModelServer("first answer", "second answer") as server:
        async with real.bench(server.url) as bench:
            session = bench.begin()
            await bench.say(session, "remember 4711")
        async with real.bench(server.url) as bench:
            await bench.say(session, "what was it?")
            threads = {row.thread for row in bench.events(session, CodexThread)}
        sent = server.posts[-1].body
    assert len(threads) == 1
    assert sent.count(b"remember 4711") == 1
    assert b"first answer" in sent


async def test_a_process_that_dies_is_replaced_and_the_thread_goes_on(
    real: Any,
) -> None:
    long = ScriptedResponse(text="word " * 40, fault=ServerFault(hang="middle"))
    async with (
        ModelServer("one", long, "three") as server,
        real.bench(server.url) as bench,
    ):
        session = bench.begin()
        await bench.say(session, "remember 4711")
        first = bench.engine.pid(session)
        await bench.service.submit(session, "talk")
        await bench.see("agent.message.delta", text="word wor")
        (codex,) = _children(first)
        os.kill(codex, signal.SIGKILL)
        ended = await bench.service.idle(session)
        again = await bench.say(session, "go on")
        assert bench.engine.pid(session) != first
        threads = {row.thread for row in bench.events(session, CodexThread)}
        assert b"4711" in server.posts[-1].body
    assert ended.reason == "failed"
    assert "codex process ended" in ended.detail
    assert again.reason == "done"
    assert len(threads) == 1


def _children(pid: int) -> list[int]:
    return [
        int(number)
        for number in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    ]


async def test_closing_leaves_no_process(real: Any) -> None:
    async with ModelServer("hi") as server:
        async with real.bench(server.url) as bench:
            session = bench.begin()
            await bench.say(session, "hi")
            leash = bench.engine.pid(session)
            below = _children(leash)
            assert below
        assert not any(map(_running, (leash, *below)))


def _running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[
            0
        ] not in ("Z", "X")
    except OSError:
        return False


_KILLED = """
import asyncio, os, sys
from pathlib import Path
from hermes.codex.client import Client, CodexLaunch, CodexListener

async def nothing(_): return None

async def main():
    launch = CodexLaunch(Path(sys.argv[1]), ("app-server",), dict(os.environ), Path.cwd())
    client = await Client.start(launch, CodexListener(nothing, nothing))
    print(client.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("wedged", [False, True])
async def test_codex_ends_when_hermes_is_killed(real: Any, wedged: bool) -> None:
    real.configure("http://127.0.0.1:9/v1")
    environ = {
        **real.environ,
        "CODEX_HOME": str(real.home),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    hermes = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        _KILLED,
        str(real.program),
        env=environ,
        cwd=real.cwd,
        stdout=asyncio.subprocess.PIPE,
    )
    assert hermes.stdout is not None
    leash = int(await hermes.stdout.readline())
    (codex,) = _children(leash)
    if wedged:
        os.kill(codex, signal.SIGSTOP)
    hermes.kill()
    await hermes.wait()
    await until(lambda: not _running(codex) and not _running(leash), 10)


class Lenient:
    """A policy that allows everything."""

    def judge(
        self, tool: Tool, arguments: Mapping[str, Any], cwd: Path
    ) -> PolicyDecision:
        return PolicyDecision("allow")

    def remember(self, request: ApprovalRequested, rule: str = "") -> None:
        raise AssertionError("nothing is asked")


def native(*replies: str) -> Any:
    """Hermes' own loop, with a scripted model."""
    model = ScriptedModel(*replies)

    def runtime(session: str, approvals: Approver) -> NativeRuntime:
        return NativeRuntime(model, CallRunner({}, Lenient(), approvals), max_steps=5)

    return runtime


async def test_a_conversation_moves_to_codex_and_back_and_to_codex_again(
    real: Any,
) -> None:
    async with (
        ModelServer("codex one", "codex two") as server,
        real.bench(server.url) as bench,
    ):
        session = bench.begin()
        bench.native = native("native one", "native two")
        await bench.say(session, "question one")
        own, bench.native = bench.native, None
        await bench.say(session, "question two")
        carried = server.posts[-1].body
        bench.native = own
        await bench.say(session, "question three")
        bench.native = None
        await bench.say(session, "question four")
        engines = [row.runtime for row in bench.events(session, TurnStarted)]
        threads = {row.thread for row in bench.events(session, CodexThread)}
        last = server.posts[-1].body
        messages = bench.events(session, AssistantMessage)
    assert engines == ["native", "codex", "native", "codex"]
    assert [message.text for message in messages] == [
        "native one",
        "codex one",
        "native two",
        "codex two",
    ]
    assert b"question one" in carried
    assert b"native one" in carried
    assert len(threads) == 1
    for words in (
        b"question one",
        b"native one",
        b"question two",
        b"codex one",
        b"question three",
        b"native two",
    ):
        assert last.count(words) == 1, words


async def test_after_an_undo_codex_does_not_know_what_was_taken_back(real: Any) -> None:
    async with (
        ModelServer("answer one", "answer two", "answer three") as server,
        real.bench(server.url) as bench,
    ):
        session = bench.begin()
        await bench.say(session, "question one")
        await bench.say(session, "the secret word is xyzzy")
        rows = list(bench.app.store.log.every_event(session))
        since = [row.seq for row in rows if isinstance(row.event, TurnStarted)][-1]
        await asyncio.to_thread(bench.app.record, session, SessionUndone(since=since))
        await bench.say(session, "question three")
        last = server.posts[-1].body
    assert b"xyzzy" not in last
    assert b"question one" in last
    assert b"answer one" in last


async def test_a_megabyte_of_output_is_one_line_and_is_taken_in(real: Any) -> None:
    script = "head -c 1200000 /dev/zero | tr '\\\\0' 'x'"
    async with (
        ModelServer(command(script), "done") as server,
        real.bench(server.url) as bench,
    ):
        session = bench.begin()
        ended = await bench.say(session, "go")
        (result,) = bench.events(session, ToolFinished)
    assert ended.reason == "done"
    assert "characters left out" in result.text
    assert len(result.text) < 30_000


def _environment(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


UNUSED = """
[model_providers.other]
name = "Other"
base_url = "http://127.0.0.1:9"
wire_api = "responses"
env_key = "ANTHROPIC_API_KEY"
[mcp_servers.off]
command = "false"
enabled = false
env_vars = ["MY_TOKEN"]
"""


async def test_other_providers_keys_do_not_reach_codex_or_its_commands(
    real: Any,
) -> None:
    real.environ |= {
        "ANTHROPIC_API_KEY": "sk-ant-hidden",
        "MY_TOKEN": "tok-hidden",
        "FAKE_KEY": "fake-named",
    }
    async with ModelServer(command("env"), "done") as server:
        async with real.bench(server.url) as bench:
            config = real.home / "config.toml"
            config.write_text(config.read_text() + 'env_key = "FAKE_KEY"\n' + UNUSED)
            session = bench.begin()
            await bench.say(session, "go")
            environ = _environment(_children(bench.engine.pid(session))[0])
            (result,) = bench.events(session, ToolFinished)
        authorization = server.posts[0].headers["authorization"]
    assert b"hidden" not in environ
    assert f"HOME={real.environ['HOME']}".encode() in environ.split(b"\0")
    assert "hidden" not in result.text
    assert "fake-named" not in result.text
    assert authorization == "Bearer fake-named"


async def test_programs_of_the_project_are_for_codexs_commands_and_not_for_codex(
    real: Any,
) -> None:
    own = real.cwd / ".venv" / "bin"
    own.mkdir(parents=True)
    (own / "own-tool").write_text("#!/bin/sh\necho from the project\n")
    (own / "own-tool").chmod(0o755)
    real.environ["PATH"] = f"{own}:{real.environ['PATH']}"
    async with (
        ModelServer(command("own-tool", login=False), "done") as server,
        real.bench(server.url) as bench,
    ):
        session = bench.begin()
        await bench.say(session, "go")
        environ = _environment(_children(bench.engine.pid(session))[0])
        (result,) = bench.events(session, ToolFinished)
    assert str(own).encode() not in environ
    assert "from the project" in result.text


async def test_the_security_mode_of_the_environment_decides_what_the_sandbox_allows(
    real: Any,
) -> None:
    """It wins over what codex's own settings say, which let it write."""
    real.environ["HERMES_TERMINAL_SECURITY_MODE"] = "approval-required"
    async with (
        ModelServer(command("touch here; ls"), "done") as server,
        real.bench(server.url) as bench,
    ):
        session = bench.begin()
        await bench.say(session, "go")
        (result,) = bench.events(session, ToolFinished)
    assert "Read-only file system" in result.text
    assert not (real.cwd / "here").exists()


async def test_a_model_that_stalls_is_not_waited_for_for_ever(real: Any) -> None:
    real.codex = msgspec.structs.replace(real.codex, progress_timeout=0.8)
    async with (
        ModelServer(ScriptedResponse(fault=ServerFault(hang="body")), "fine") as server,
        real.bench(server.url) as bench,
    ):
        session = bench.begin()
        ended = await bench.say(session, "hi")
        again = await bench.say(session, "again")
    assert ended.reason == "failed"
    assert "codex.progress_timeout" in ended.detail
    assert again.reason == "done"


async def test_a_model_that_can_not_be_reached_fails_the_turn(real: Any) -> None:
    async with real.bench("http://127.0.0.1:9/v1") as bench:
        ended = await bench.say(bench.begin(), "hi")
    assert ended.reason == "failed"
    assert (
        "Connection failed" if real.is_newest else "error sending request"
    ) in ended.detail
