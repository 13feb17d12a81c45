"""The front matter of a command's file holds for the turn that the command starts."""

import json
from pathlib import Path

import msgspec

from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

ENTER = "\r"
UP = "\x1b[A"
READY = "Ctrl-D quits ›"
COMMAND = """---
model: fake-other
tools: [read_file]
mode: plan
---
Look at it.
"""


async def test_model_tools_and_mode_hold_for_one_turn(tmp_path: Path) -> None:
    write = ServedCall("write_file", json.dumps({"path": "a.txt", "content": "x\n"}))
    replies = (
        ScriptedResponse(calls=(write,)),
        ScriptedResponse(text="Only looked."),
        ScriptedResponse(calls=(write,)),
        ScriptedResponse(text="Written."),
    )
    async with ModelServer(*replies) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        folder = Path(hermes.environ()["HERMES_HOME"]) / "commands"
        folder.mkdir(parents=True)
        (folder / "look.md").write_text(COMMAND)
        async with hermes.terminal("--approvals", "full") as terminal:
            await terminal.sees(READY)
            terminal.type("/look" + ENTER)
            await terminal.until(lambda shown: "Only looked." in shown)
            assert not (hermes.work / "a.txt").exists()
            await terminal.until(lambda shown: "tokens\n" in shown)
            terminal.type("write it" + ENTER)
            await terminal.until(lambda shown: "Written." in shown)
            assert (hermes.work / "a.txt").read_text() == "x\n"
        models = [msgspec.json.decode(post.body)["model"] for post in server.posts]
        assert models[:2] == ["fake-other"] * 2
        assert "fake-other" not in models[2:]


async def test_a_command_of_the_project_is_asked_about_once(tmp_path: Path) -> None:
    async with ModelServer("Hello, Bob.", "Hello, Ann.") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        folder = hermes.work / ".claude" / "commands"
        folder.mkdir(parents=True)
        (folder / "greet.md").write_text("Greet $ARGUMENTS nicely.\n")
        async with hermes.terminal() as terminal:
            await terminal.sees(READY)
            terminal.type("/greet Bob" + ENTER)
            await terminal.until(lambda shown: "Greet $ARGUMENTS nicely." in shown)
            terminal.type(ENTER)  # the safe choice is selected: not now
            await terminal.until(lambda shown: "/project trust greet" in shown)
            assert not server.posts
            terminal.type("/greet Bob" + ENTER)
            await terminal.until(lambda shown: "Use it from now on" in shown)
            terminal.type(UP + ENTER)
            await terminal.until(lambda shown: "Hello, Bob." in shown)
            terminal.type("/greet Ann" + ENTER)
            await terminal.until(lambda shown: "Hello, Ann." in shown)
        assert b"Greet Ann nicely." in server.posts[-1].body


async def test_an_agent_of_the_project_is_asked_about_once(tmp_path: Path) -> None:
    async with ModelServer("I only read.") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        folder = hermes.work / ".hermes" / "agents"
        folder.mkdir(parents=True)
        (folder / "reader.md").write_text("---\ntools: read_file\n---\nYou read.\n")
        async with hermes.terminal() as terminal:
            await terminal.sees(READY)
            terminal.type("/agent reader" + ENTER)
            await terminal.until(lambda shown: "You read." in shown)
            terminal.type(ENTER)  # not now
            await terminal.until(lambda shown: "/project trust reader" in shown)
            terminal.type("/agent reader" + ENTER)
            await terminal.until(lambda shown: "Use it from now on" in shown)
            terminal.type(UP + ENTER)
            await terminal.until(lambda shown: "works as reader." in shown)
            terminal.type("who are you?" + ENTER)
            await terminal.until(lambda shown: "I only read." in shown)
        assert b"You read." in server.posts[-1].body
