"""What a person is told while a one-shot run waits for another process, and when another one took its session."""

import asyncio
from asyncio.subprocess import Process
from contextlib import closing
from pathlib import Path

import apsw
from tests.integration.gateway.harness import until

from hermes.app import build
from hermes.events import Bus
from hermes.schema.events import TurnEnded
from hermes.schema.messages import AssistantMessage
from hermes.settings import Home, Settings
from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse

_TIMEOUT_S = 60.0


async def begun(hermes: InstalledHermes, *arguments: str) -> Process:
    process = await hermes.start(*arguments)
    assert process.stdin is not None
    process.stdin.close()
    return process


async def said(process: Process, words: str) -> str:
    """What it says on stderr until these words are there."""
    assert process.stderr is not None
    text = ""
    async with asyncio.timeout(_TIMEOUT_S):
        while words not in text:
            line = await process.stderr.readline()
            assert line, f"it ended; {words!r} was not said: {text}"
            text += line.decode()
    return text


async def test_a_locked_database_is_said_with_who_holds_it(tmp_path: Path) -> None:
    async with ModelServer("one", "two") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        assert (await hermes.run("-z", "hi")).code == 0
        with closing(apsw.Connection(str(hermes.home / "state.db"))) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            process = await begun(hermes, "-z", "hi")
            told = await said(process, "Waiting for")
            assert "state.db" in told
            assert "(process " in told  # of this test
            connection.execute("ROLLBACK")
        out, _ = await asyncio.wait_for(process.communicate(), _TIMEOUT_S)
        assert (process.returncode, out) == (0, b"two\n")


async def test_a_pipe_that_stays_open_is_said(tmp_path: Path) -> None:
    async with ModelServer("one") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        process = await hermes.start("-z", "hi")
        assert "< /dev/null" in await said(process, "Waiting for the end of stdin")
        out, _ = await asyncio.wait_for(process.communicate(b"more"), _TIMEOUT_S)
        assert (process.returncode, out) == (0, b"one\n")
        assert b"more" in server.posts[0].body


async def test_a_session_that_another_process_works_on_is_said_and_each_prints_its_own_answer(
    tmp_path: Path,
) -> None:
    async with ModelServer(
        ScriptedResponse(text="the first answer", pauses=True), "the second answer"
    ) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        first = await begun(hermes, "-z", "one")
        await asyncio.wait_for(server.hanging.wait(), _TIMEOUT_S)
        second = await begun(hermes, "--continue", "-z", "two")
        told = await said(second, "is working on this session")
        assert f"(process {first.pid})" in told
        server.go_on.set()
        for process, answer in ((first, b"the first"), (second, b"the second")):
            out, _ = await asyncio.wait_for(process.communicate(), _TIMEOUT_S)
            assert (process.returncode, out) == (0, answer + b" answer\n")


async def test_a_run_whose_session_was_taken_over_says_so_and_prints_no_answer_of_another(
    tmp_path: Path,
) -> None:
    async with ModelServer(
        ScriptedResponse(text="my own answer", delay=0.3, chunk=2)
    ) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        process = await begun(hermes, "-z", "one")
        await until(lambda: server.posts)
        with build(Settings(), Home(hermes.home), bus=Bus()) as app:
            (session,) = app.store.sessions.recent(limit=1)
            with closing(apsw.Connection(str(hermes.home / "state.db"))) as connection:
                connection.execute(
                    "UPDATE leases SET owner = 'elsewhere:1:1', token = token + 1"
                )
            app.record(
                session.id,
                AssistantMessage(text="the answer of another"),
                TurnEnded(reason="done"),
            )
        out, err = await asyncio.wait_for(process.communicate(), _TIMEOUT_S)
        assert (process.returncode, out) == (1, b"")
        assert "Another process took over this session" in err.decode()
        assert f"hermes sessions show {session.id}" in err.decode()
