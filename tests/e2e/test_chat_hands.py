"""What hands expect of a chat: an editor for a plan, Ctrl-Z, vim keys, and a layout for screen readers."""

import json
from pathlib import Path

import msgspec

from hermes.testing.installed import InstalledHermes, TerminalProcess, executable
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

ENTER, ESCAPE, CTRL_Z = "\r", "\x1b", "\x1a"
READY = "Ctrl-D quits ›"


def said(server: ModelServer) -> list[str]:
    messages = msgspec.json.decode(server.posts[-1].body)["messages"]
    return [one["content"] for one in messages if one["role"] == "user"]


async def test_a_plan_is_edited_in_the_editor_before_it_is_accepted(
    tmp_path: Path,
) -> None:
    plan = {
        "title": "Tidy up",
        "steps": ["rename the parser"],
        "files": ["parser.py"],
        "risks": ["none"],
        "check": "make test",
    }
    calls = (ServedCall("present_plan", json.dumps(plan)),)
    replies = (ScriptedResponse(calls=calls), ScriptedResponse(text="On it."))
    async with ModelServer(*replies) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        editor = tmp_path / "editor"
        editor.write_text(
            "#!/bin/sh\nsed -i 's/rename the parser/keep the parser/' \"$1\"\n"
        )
        editor.chmod(0o755)
        options = {"EDITOR": str(editor), "VISUAL": str(editor)}
        async with hermes.terminal("--approvals", "plan", **options) as terminal:
            await terminal.sees(READY)
            terminal.type("tidy up" + ENTER)
            await terminal.until(lambda shown: "a number or a key" in shown)
            terminal.type("e")
            await terminal.until(lambda shown: "Plan changed." in shown)
            await terminal.until(lambda shown: "a number or a key" in shown)
            terminal.type("1")
            await terminal.until(lambda shown: "On it." in shown)
        assert b"keep the parser" in server.posts[-1].body


async def test_ctrl_z_suspends_and_fg_brings_the_draft_back(tmp_path: Path) -> None:
    async with ModelServer(ScriptedResponse(text="Back again.")) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        environ = hermes.environ({"TERM": "xterm-256color", "PS1": "shell> "})
        shell = ["/bin/bash", "--norc", "--noprofile", "-i"]
        async with TerminalProcess(shell, environ, hermes.work, (80, 24)) as terminal:
            await terminal.until(lambda shown: "shell>" in shown)
            terminal.type(f"{executable()}{ENTER}")
            await terminal.sees(READY)
            terminal.type("half a thought")
            await terminal.until(lambda shown: "› half a thought" in shown)
            terminal.type(CTRL_Z)
            await terminal.until(lambda shown: "Stopped" in shown)
            terminal.type("echo in-$((40+2))" + ENTER)
            await terminal.until(lambda shown: "in-42" in shown)
            terminal.type("fg" + ENTER)
            await terminal.until(
                lambda shown: "› half a thought" in shown.rpartition("in-42")[2]
            )
            terminal.type(ENTER)
            await terminal.until(lambda shown: "Back again." in shown)
        assert said(server) == ["half a thought"]


async def test_vim_keys_edit_the_input(tmp_path: Path) -> None:
    async with ModelServer(ScriptedResponse(text="Read it.")) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        async with hermes.terminal(HERMES_DISPLAY_KEYS="vim") as terminal:
            await terminal.sees(READY)
            terminal.type("wrong words")
            await terminal.until(lambda shown: "› wrong words" in shown)
            terminal.type(ESCAPE)
            await terminal.until(lambda shown: "N› wrong words" in shown)
            terminal.type("0ceright")
            await terminal.until(lambda shown: "› right words" in shown)
            terminal.type(ENTER)
            await terminal.until(lambda shown: "Read it." in shown)
        assert said(server) == ["right words"]


async def test_the_linear_layout_only_prints_lines(tmp_path: Path) -> None:
    call = ServedCall("terminal", json.dumps({"command": "rm -r gone"}))
    replies = (ScriptedResponse(calls=(call,)), ScriptedResponse(text="Removed it."))
    async with ModelServer(*replies) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        (hermes.work / "gone").mkdir(parents=True)
        async with hermes.terminal(HERMES_DISPLAY_LAYOUT="linear") as terminal:
            await terminal.sees("Ctrl-D quits")
            terminal.type("clean up\n")
            await terminal.until(lambda shown: "Your choice (1-4)" in shown)
            terminal.type("1\n")
            await terminal.until(lambda shown: "Removed it." in shown)
            assert not (hermes.work / "gone").exists()
        for redrawing in (
            b"\x1b[?25l",
            b"\x1b[K",
            b"\x1b[J",
            b"\x1b[1A",
            b"\x1b[?1049h",
        ):
            assert redrawing not in terminal.raw


async def test_a_bug_in_what_a_person_typed_does_not_end_the_chat(
    tmp_path: Path,
) -> None:
    async with ModelServer(ScriptedResponse(text="Still-here.")) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        async with hermes.terminal() as terminal:
            await terminal.sees(READY)
            (hermes.home / "memories").write_text("no folder")
            terminal.type("#tea is at four" + ENTER)
            await terminal.sees("because of a bug in Hermes: FileExistsError")
            await terminal.sees("See: hermes logs")
            terminal.type("hello" + ENTER)
            await terminal.until(lambda shown: "Still-here." in shown)
        assert said(server) == ["hello"]
    log = (hermes.home / "logs" / "hermes.log").read_text()
    assert "Your message failed" in log
    assert "Traceback" in log


async def test_an_alias_is_completed_and_runs_what_it_stands_for(
    tmp_path: Path,
) -> None:
    async with ModelServer() as server:
        hermes = InstalledHermes(tmp_path, server.url)
        aliases = '{"zz": "!echo as-$((40+2))"}'
        async with hermes.terminal(HERMES_ALIASES=aliases) as terminal:
            await terminal.sees(READY)
            terminal.type("/z")
            await terminal.until(lambda shown: "!echo as-" in shown)
            terminal.type("z" + ENTER)
            await terminal.until(lambda shown: "as-42" in shown)
