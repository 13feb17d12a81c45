"""Signals during a run: what runs is stopped, what was said is kept, and the exit code tells which it was."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from hermes.schema.events import TurnEnded
from hermes.store import open_store
from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall, ServerFault

SLOW = ServedCall(
    name="terminal", arguments='{"command": "touch begun; sleep 4; touch late"}'
)
HELD = ServedCall(
    name="terminal",
    arguments='{"command": "touch begun; until [ -e go ]; do sleep 0.1; done; touch late"}',
)
"""Runs until the test lets it go on."""


async def appears(path: Path) -> None:
    for _ in range(600):
        if path.exists():  # noqa: ASYNC240
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"{path} did not appear")


async def is_written(home: Path, text: str) -> None:
    """Waits until somebody's words are in the log of the last session."""

    def said() -> list[str]:
        with open_store(home / "state.db") as store:
            return [
                message.text
                for message in store.log.messages(store.sessions.find("last").id)
            ]

    for _ in range(600):
        if text in await asyncio.to_thread(said):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"{text!r} was not written")


def ends(home: Path) -> list[str]:
    """How the turns of the last session ended."""
    with open_store(home / "state.db") as store:
        events = [
            row.event for row in store.log.every_event(store.sessions.find("last").id)
        ]
    return [event.reason for event in events if isinstance(event, TurnEnded)]


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
@pytest.mark.parametrize("options", [(), ("--json",)])
async def test_a_signal_stops_the_command_that_runs(
    tmp_path: Path, number: signal.Signals, code: int, options: tuple[str, ...]
) -> None:
    async with ModelServer(ScriptedResponse(calls=(SLOW,)), "never said") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        process = await hermes.start(*options, "--approvals", "full", "-z", "do it")
        assert process.stdin is not None
        process.stdin.close()
        await appears(hermes.work / "begun")
        process.send_signal(number)
        _, err = await asyncio.wait_for(process.communicate(), 30)
        assert process.returncode == code, err
        assert b"Traceback" not in err
        assert await asyncio.to_thread(ends, hermes.home) == ["interrupted"]
        await asyncio.sleep(4.5)
        assert not (hermes.work / "late").exists()


@pytest.mark.parametrize("term", ["xterm", "dumb"])
async def test_a_signal_ends_a_chat_and_its_command(tmp_path: Path, term: str) -> None:
    async with ModelServer(ScriptedResponse(calls=(SLOW,)), "never said") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        async with hermes.terminal("--approvals", "full", TERM=term) as terminal:
            await terminal.sees("Ctrl-D quits ›")
            terminal.type("do it" + ("\r" if term == "xterm" else "\n"))
            await appears(hermes.work / "begun")
            assert terminal._process is not None
            terminal._process.send_signal(signal.SIGTERM)
            assert await terminal.ends() == 143
        assert await asyncio.to_thread(ends, hermes.home) == ["interrupted"]
        await asyncio.sleep(4.5)
        assert not (hermes.work / "late").exists()


@pytest.mark.parametrize("term", ["xterm", "dumb"])
@pytest.mark.parametrize("closed", [False, True])
async def test_a_chat_whose_terminal_is_gone_finishes_its_turn(
    tmp_path: Path, term: str, *, closed: bool
) -> None:
    async with ModelServer(ScriptedResponse(calls=(SLOW,)), "said to nobody") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        async with hermes.terminal("--approvals", "full", TERM=term) as terminal:
            await terminal.sees("Ctrl-D quits ›")
            terminal.type("do it" + ("\r" if term == "xterm" else "\n"))
            await appears(hermes.work / "begun")
            if closed:
                terminal.vanish()
            else:
                assert terminal._process is not None
                terminal._process.send_signal(signal.SIGHUP)
            assert await terminal.ends() == 129
        assert await asyncio.to_thread(ends, hermes.home) == ["done"]
        assert (hermes.work / "late").exists()


async def test_a_closed_window_stops_the_command(tmp_path: Path) -> None:
    async with ModelServer(ScriptedResponse(calls=(SLOW,)), "never said") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        async with hermes.terminal("--approvals", "full", "do it please") as terminal:
            await appears(hermes.work / "begun")
            terminal.vanish()
            assert await terminal.ends() == 129
        assert await asyncio.to_thread(ends, hermes.home) == ["interrupted"]
        await asyncio.sleep(4.5)
        assert not (hermes.work / "late").exists()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
async def test_a_reader_that_stalls_can_not_hold_up_an_interrupt(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    reply = ScriptedResponse(
        text="word " * 200_000, chunk=500, fault=ServerFault(hang="middle")
    )  # much more than a pipe holds
    async with ModelServer(reply) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        ours, theirs = os.pipe()
        process = await asyncio.create_subprocess_exec(
            Path(sys.executable).with_name("hermes"), "--json", "-z", "count",
            env=hermes.environ(), cwd=hermes.work, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE,
        )  # fmt: skip
        os.close(theirs)
        await asyncio.wait_for(server.hanging.wait(), 30)
        await asyncio.sleep(0.5)
        process.send_signal(number)
        _, err = await asyncio.wait_for(process.communicate(), 8)
        os.close(ours)
        assert process.returncode == code, err
        assert b"events were not written" in err


async def test_ctrl_c_leaves_at_once_when_another_process_has_the_session(
    tmp_path: Path,
) -> None:
    async with ModelServer(
        "hello", ScriptedResponse(calls=(HELD,)), "both answered", repeat=True
    ) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        await hermes.run("-z", "begin")
        first = await hermes.start("--continue", "--approvals", "full", "-z", "work")
        assert first.stdin is not None
        first.stdin.close()
        await appears(hermes.work / "begun")
        second = await hermes.start("--continue", "-z", "and then?")
        assert second.stdin is not None
        second.stdin.close()
        await is_written(hermes.home, "and then?")
        second.send_signal(signal.SIGINT)
        _, err = await asyncio.wait_for(second.communicate(), 1.5)
        assert second.returncode == 130
        assert (
            b"Your message was saved. The process that runs this session will answer it."
            in err
        )
        (hermes.work / "go").touch()
        await asyncio.wait_for(first.communicate(), 30)
        assert first.returncode == 0
        assert (hermes.work / "late").exists()
        said = str(msgspec.json.decode(server.posts[-1].body)["messages"])
        assert "and then?" in said


async def test_ctrl_c_leaves_a_chat_whose_session_another_process_has(
    tmp_path: Path,
) -> None:
    async with ModelServer(
        "hello", ScriptedResponse(calls=(HELD,)), "both answered", repeat=True
    ) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        await hermes.run("-z", "begin")
        first = await hermes.start("--continue", "--approvals", "full", "-z", "work")
        assert first.stdin is not None
        first.stdin.close()
        await appears(hermes.work / "begun")
        async with hermes.terminal("--continue") as terminal:
            await terminal.sees("Ctrl-D quits ›")
            terminal.type("and then?\r")
            await terminal.until(lambda shown: "queued › and then?" in shown)
            terminal.type("\x03")
            await terminal.sees("leaves it running")
            terminal.type("\x03")
            await terminal.sees(
                "Your message was saved. The process that runs this session will answer it."
            )
            assert await terminal.ends() == 130
        assert first.returncode is None
        (hermes.work / "go").touch()
        await asyncio.wait_for(first.communicate(), 30)
        assert first.returncode == 0
        assert (hermes.work / "late").exists()


@pytest.mark.parametrize(
    "module",
    [
        "hermes.errors",
        "hermes.surfaces.cli.dispatch",
        "hermes.surfaces.cli.ask",
        "asyncio",
    ],
)
async def test_ctrl_c_in_the_first_moments_ends_it_without_a_traceback(
    tmp_path: Path, module: str
) -> None:
    """While something is imported, also where an exception is swallowed: by what runs when a weak reference ends."""
    code = f"""
import os, signal, sys, weakref
from hermes.surfaces.cli import main
class Pressed:
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            weakref.finalize(Pressed(), os.kill, os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Pressed())
sys.exit(main(["-z", "hi"]))
"""
    hermes = InstalledHermes(tmp_path, "http://127.0.0.1:9/v1")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, env=hermes.environ(), cwd=hermes.work,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    out, err = await asyncio.wait_for(process.communicate(), 20)
    assert (process.returncode, out, err) == (-signal.SIGINT, b"", b"")
