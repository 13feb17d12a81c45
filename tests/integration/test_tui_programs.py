"""What the chat starts for the person: their own commands, and the program of the status line."""

import asyncio
import os
from pathlib import Path

from hermes.app.typed_part import typed_part
from hermes.surfaces.tui.own_commands import OwnCommands
from hermes.surfaces.tui.status_line import git_branch
from hermes.surfaces.tui.status_script import script_line


async def test_a_command_goes_to_the_model_with_the_next_message(
    tmp_path: Path,
) -> None:
    commands = OwnCommands()
    result = await commands.run("echo out; echo err >&2; pwd; exit 3", tmp_path)
    assert (result.output, result.code) == (f"out\nerr\n{tmp_path}\n", 3)
    message = "what is wrong?" + commands.take_blocks()
    assert "out\nerr\n" in message
    assert "[exit code 3]" in message
    assert typed_part(message) == "what is wrong?"
    assert commands.take_blocks() == ""


async def test_a_command_can_be_stopped_with_what_it_started(tmp_path: Path) -> None:
    commands = OwnCommands()
    running = asyncio.ensure_future(commands.run("sleep 60 & sleep 60", tmp_path))
    async with asyncio.timeout(30):
        while not commands.is_running:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0)
        commands.stop()
        result = await running
    assert result.ending != "exit code 0"


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return str(path)


async def test_the_status_script_gets_facts_and_gives_a_line(tmp_path: Path) -> None:
    echo = script(tmp_path / "a", 'read facts; echo "$1 $facts"; echo more')
    line = await script_line(f"{echo} now", {"model": "m"}, tmp_path)
    assert line == 'now {"model":"m"}'
    slow = script(tmp_path / "b", "sleep 60")
    line = await script_line(slow, {}, tmp_path, max_seconds=0.2)
    assert line == "status script: no answer in 0.2 s"
    assert await script_line("/no/such", {}, tmp_path) == ("status script: not found")
    relative = await script_line("./status.sh", {}, tmp_path)
    assert relative == "status script: use an absolute path"


def test_the_branch_of_a_repository_and_of_a_worktree(tmp_path: Path) -> None:
    git = tmp_path / "main" / ".git"
    (git / "worktrees" / "w").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/feature/x\n")
    (git / "worktrees" / "w" / "HEAD").write_text("0123456789abcdef\n")
    tree = tmp_path / "tree" / "deep"
    tree.mkdir(parents=True)
    (tree.parent / ".git").write_text(f"gitdir: {git}/worktrees/w\n")
    assert git_branch(tmp_path / "main") == "feature/x"
    assert git_branch(tree) == "01234567"
    assert git_branch(tmp_path) == ""


async def test_a_pipe_in_place_of_the_branch_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".git" / "HEAD")
    async with asyncio.timeout(30):
        assert await asyncio.to_thread(git_branch, tmp_path) == ""
    (tmp_path / ".git" / "HEAD").unlink()
    (tmp_path / "secret").write_text("ref: a secret\n")
    (tmp_path / ".git" / "HEAD").symlink_to(tmp_path / "secret")
    assert git_branch(tmp_path) == ""
