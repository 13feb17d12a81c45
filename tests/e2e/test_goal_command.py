"""`hermes --goal` in scripts, its exit codes, `kill -9` in between, and `hermes --worktree`."""

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse


def judging(*verdicts: str) -> Callable[[Recorded], ScriptedResponse]:
    """Answers "working", and as the judge what is next in the list."""
    left, turns = list(verdicts), 0

    def respond(request: Recorded) -> ScriptedResponse:
        nonlocal turns
        if b"You judge whether" in request.body:
            verdict = left.pop(0)
            return ScriptedResponse(
                text=f'{{"verdict": "{verdict}", "reason": "because"}}'
            )
        turns += 1
        return ScriptedResponse(text=f"working, turn {turns}")

    return respond


def begin_repository(folder: Path) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    for words in ("init -q -b main", "commit -q --allow-empty -m one"):
        command = ["git", "-C", str(folder), *who, *words.split()]
        subprocess.run(command, check=True)


@pytest.mark.parametrize(
    ("verdicts", "options", "code", "told"),
    [
        (("continue", "done"), "", 0, "Goal reached after 2 turns: because"),
        (("needs_you",), "", 3, "The goal was not reached. because"),
        (("continue",), " turns: 1", 1, "which is its limit"),
    ],
)
async def test_the_exit_code_tells_how_a_goal_ended(
    tmp_path: Path, verdicts: tuple[str, ...], options: str, code: int, told: str
) -> None:
    async with ModelServer(respond=judging(*verdicts)) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        done = await hermes.run("goal", "run", f"write a poem{options}")

        assert done.code == code, done.err
        assert told in done.err
        assert "/goal" not in done.err  # which is no command of a shell
        assert done.out.startswith("working, turn")


async def test_a_paused_goal_names_the_commands_of_a_shell(tmp_path: Path) -> None:
    async with ModelServer(respond=judging("continue")) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        done = await hermes.run("goal", "run", "write a poem turns: 1")
        for words in (("show",), ("pause",)):
            told = await hermes.run("goal", *words)
            assert "hermes goal resume 2" in told.out, told.out
            assert "/goal" not in told.out
        assert "hermes goal resume 2" in done.err
        empty = await hermes.run("goal", "run", " ")
        waits = await hermes.run("goal", "wait", "last", "kanban.run.ended card=t_1")
        shown = await hermes.run("goal", "show")
        cleared = await hermes.run("goal", "clear")
        assert "kanban.run.ended card=t_1" in shown.out, waits.err
        assert "Nothing is running that would wake it" in shown.out.replace("\n", " ")
        for one in (empty, waits, shown, cleared):
            assert "/goal" not in one.out + one.err
            assert "/stop" not in one.out + one.err


async def test_a_goal_goes_on_after_kill_9(tmp_path: Path) -> None:
    judged, answer = asyncio.Event(), judging("continue", "done")

    def respond(request: Recorded) -> ScriptedResponse:
        if b"You judge whether" in request.body:
            judged.set()
        return answer(request)

    async with ModelServer(respond=respond) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        running = await hermes.start("--goal", "write a poem")
        assert running.stdin is not None
        running.stdin.close()
        async with asyncio.timeout(60):
            await judged.wait()
        running.kill()  # between the verdict and the next turn, or near it
        await running.communicate()

        async with hermes.terminal("--continue") as screen:
            await screen.sees("Goal reached")
            screen.type("/quit\r")
            assert await screen.ends() == 0


@pytest.mark.parametrize(
    "command",
    [
        ("dashboard", "--port", "0", "--no-open"),
        ("gateway", "run"),
        ("worker",),
    ],
    ids=["dashboard", "gateway", "worker"],
)
async def test_whoever_lives_wakes_a_goal_that_waited_in_a_killed_process(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    verdicts = [
        '{"verdict": "wait", "reason": "later", "wait": {"seconds": 3}}',
        '{"verdict": "done", "reason": "because"}',
    ]

    def respond(request: Recorded) -> ScriptedResponse:
        if b"You judge whether" in request.body:
            return ScriptedResponse(text=verdicts.pop(0))
        return ScriptedResponse(text=f"working {len(verdicts)}")

    async with ModelServer(respond=respond) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        running = await hermes.start("--goal", "write a poem")
        assert running.stdin is not None and running.stderr is not None  # noqa: PT018
        running.stdin.close()
        async with asyncio.timeout(60):
            while b"Goal waits" not in await running.stderr.readline():
                pass
        running.kill()
        await running.communicate()
        shown = await hermes.run("goal", "show")
        assert "Nothing is running that would wake it" in shown.out

        config = "gateway: {platforms: [api], port: 0}\n"
        (hermes.home / "config.yaml").write_text(config)
        waker = await hermes.start(*command, GATEWAY_API_KEY="sk-gateway-0000000000000")
        try:
            async with asyncio.timeout(60):
                while "reached" not in (await hermes.run("goal", "show")).out:
                    pass
        finally:
            waker.terminate()
            await waker.communicate()


async def test_a_worktree_is_worked_in_merged_and_dropped(tmp_path: Path) -> None:
    async with ModelServer("hello") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        folder, data = hermes.work, str(tmp_path / "data")
        begin_repository(folder)

        done = await hermes.run("--worktree=fix", "hi", XDG_DATA_HOME=data)
        assert "Made the worktree fix" in done.err
        place = Path(done.err.partition("fix: ")[2].splitlines()[0])
        (place / "new.txt").write_text("new\n")

        refused = await hermes.run("worktree", "drop", "fix", XDG_DATA_HOME=data)
        assert refused.code == 3
        assert "1 uncommitted file" in refused.err
        merged = await hermes.run("worktree", "merge", "fix", XDG_DATA_HOME=data)
        assert "Merged 1 commit of fix into main." in merged.out
        assert (folder / "new.txt").read_text() == "new\n"
        dropped = await hermes.run("worktree", "drop", "fix", XDG_DATA_HOME=data)
        assert (dropped.code, list(place.parent.glob("fix*"))) == (0, [])

        async with hermes.terminal("--worktree=again", XDG_DATA_HOME=data) as screen:
            await screen.sees("Ctrl-D quits")
            screen.type("/worktree drop again\r")
            await screen.sees("now, in a new session.")
            screen.type("!echo in $PWD\r")
            await screen.sees(f"in {folder}\n")


async def test_a_hurried_goal_command_says_how_to_go_on(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path)

    shown = await hermes.run("goal")
    sentence = await hermes.run("goal", "fix", "the", "tests")

    assert "There are no sessions yet." in shown.err
    assert "hermes goal run 'fix the tests'" in sentence.err
    assert sentence.code == 2
