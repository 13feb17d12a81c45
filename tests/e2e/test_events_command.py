"""`hermes events` beside real runs of `hermes`: from the first event on, without a dashboard."""

import asyncio
import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

_PATIENCE = 30.0


async def _lookout(
    hermes: InstalledHermes, *arguments: str
) -> asyncio.subprocess.Process:
    tail = await hermes.start("events", "tail", *arguments)
    async with asyncio.timeout(_PATIENCE):
        while not list((hermes.home / "run").glob("lookout-*")):  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.02)
    return tail


async def _lines(
    tail: asyncio.subprocess.Process, *, seconds: float = _PATIENCE
) -> list[str]:
    out, _ = await asyncio.wait_for(tail.communicate(), seconds)
    return out.decode().splitlines()


async def test_tail_shows_a_run_from_its_first_event_to_its_last(
    tmp_path: Path,
) -> None:
    async with ModelServer("Hello there.") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        tail = await _lookout(hermes, "--json")
        done = await hermes.run("--json", "-z", "hi")
        assert done.code == 0
        tail.send_signal(signal.SIGINT)
        seen = [json.loads(line) for line in await _lines(tail)]
    # What came after the session's log was opened; its own first row may be older than the window.
    written = [event for event in done.events if event["type"].startswith("agent.")]
    assert [event["type"] for event in seen if event["type"].startswith("agent.")] == [
        e["type"] for e in written
    ]
    assert not list((hermes.home / "run").glob("*.sock"))


async def test_tail_takes_a_pattern_and_an_end_and_is_readable(tmp_path: Path) -> None:
    async with ModelServer("Hello there.") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        tail = await _lookout(hermes, "agent.turn.*", "--count", "2")
        await hermes.run("-z", "hi")
        first, second = await _lines(tail)
    assert tail.returncode == 0
    assert "terminal:" in first
    assert "agent.turn.started" in first
    assert "agent.turn.ended" in second
    assert "reason=done" in second


async def test_replay_reads_the_log_and_stats_asks_whoever_runs(tmp_path: Path) -> None:
    slow = ServedCall(name="terminal", arguments='{"command": "touch begun; sleep 60"}')
    async with ModelServer("Hello.", ScriptedResponse(calls=(slow,)), "done") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        assert (
            "No Hermes process is running" in (await hermes.run("events", "stats")).out
        )
        await hermes.run("-z", "first words")
        rows = await _replayed(hermes, "agent.message.*", "--session", "last")
        assert [(row["type"], row["text"]) for row in rows] == [
            ("agent.message.user", "first words"),
            ("agent.message.assistant", "Hello."),
        ]
        assert rows[0]["seq"] < rows[1]["seq"]
        assert await _replayed(hermes, "--since", "2001-01-01") != []
        assert await _replayed(hermes, "nothing.of.that.kind") == []
        assert (
            await hermes.run("events", "replay", "--since", "yesterdayish")
        ).code == 2
        process = await hermes.start("--approvals", "full", "-z", "do it")
        assert process.stdin is not None
        process.stdin.close()
        async with asyncio.timeout(_PATIENCE):
            while not (hermes.work / "begun").exists():  # noqa: ASYNC110 - another process makes it
                await asyncio.sleep(0.02)
        (one,) = json.loads((await hermes.run("events", "stats", "--json")).out)[
            "processes"
        ]
        assert (one["pid"], one["surface"], one["bridge"]) == (
            process.pid,
            "terminal",
            None,
        )
        assert one["bus"]["delivered"] > 0
        assert "subscriber" in (await hermes.run("events", "stats")).out
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.wait(), _PATIENCE)


async def _replayed(hermes: InstalledHermes, *arguments: str) -> list[dict[str, Any]]:
    return (await hermes.run("events", "replay", "--json", *arguments)).events


async def _stop_at_rest(process: asyncio.subprocess.Process, database: Path) -> None:
    """Stops a process at a moment at which it does not hold the database, which others need."""
    async with asyncio.timeout(_PATIENCE):
        while True:
            process.send_signal(signal.SIGSTOP)
            try:
                with closing(
                    sqlite3.connect(database, timeout=0.5, isolation_level=None)
                ) as connection:
                    connection.execute("BEGIN IMMEDIATE")
                    connection.execute("ROLLBACK")
            except sqlite3.OperationalError:
                process.send_signal(signal.SIGCONT)
                await asyncio.sleep(0.1)
            else:
                return


async def test_a_process_that_was_stopped_is_named_and_holds_up_nobody(
    tmp_path: Path,
) -> None:
    async with ModelServer("hello", repeat=True) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        # Whoever makes the database holds it alone, and a process that stops then holds up everybody.
        await hermes.run("-z", "hi")
        stopped = await hermes.start("cron", "daemon")
        assert stopped.stdout is not None
        await asyncio.wait_for(stopped.stdout.readline(), 30)
        await _stop_at_rest(stopped, hermes.home / "state.db")
        try:
            stats = await hermes.run("events", "stats")
            assert (stats.code, stats.out) == (0, "")
            assert f"Process {stopped.pid} does not answer" in stats.err
            tail = await _lookout(hermes, "agent.turn.ended", "--count", "1", "--json")
            await hermes.run("-z", "hi")
            assert [json.loads(line)["type"] for line in await _lines(tail)] == [
                "agent.turn.ended"
            ]
        finally:
            stopped.kill()
            await stopped.communicate()
