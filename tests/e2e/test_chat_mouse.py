"""The mouse in the chat: it is Hermes's only while a menu or a list is open."""

import json
from pathlib import Path

from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

ENTER = "\r"
READY = "Ctrl-D quits ›"
ON, OFF = b"\x1b[?1000h", b"\x1b[?1000l"
WHEEL_UP = "\x1b[<64;3;3M"


def command(line: str) -> ScriptedResponse:
    arguments = json.dumps({"command": line})
    return ScriptedResponse(calls=(ServedCall("terminal", arguments),))


async def test_a_click_answers_and_the_mouse_is_given_back(tmp_path: Path) -> None:
    replies = (command("rm -r gone"), ScriptedResponse(text="Removed."))
    async with ModelServer(*replies) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        (hermes.work / "gone").mkdir(parents=True)
        async with hermes.terminal() as terminal:
            await terminal.sees(READY)
            assert ON not in terminal.raw
            terminal.type("clean up" + ENTER)
            await terminal.until(lambda shown: "a number or a key" in shown)
            assert terminal.raw.rindex(ON) > terminal.raw.rfind(OFF)
            terminal.click("2  Yes, and don't ask again")
            await terminal.until(lambda shown: "Removed." in shown)
            assert not (hermes.work / "gone").exists()
            assert terminal.raw.rindex(OFF) > terminal.raw.rindex(ON)


async def test_the_wheel_gives_the_mouse_back_and_a_list_takes_clicks(
    tmp_path: Path,
) -> None:
    replies = (command("rm -r gone"), ScriptedResponse(text="Kept."))
    async with ModelServer(*replies) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        (hermes.work / "gone").mkdir(parents=True)
        async with hermes.terminal() as terminal:
            await terminal.sees(READY)
            terminal.type("clean up" + ENTER)
            await terminal.until(lambda shown: "a number or a key" in shown)
            terminal.type(WHEEL_UP)
            while terminal.raw.rfind(OFF) < terminal.raw.rindex(ON):
                await terminal.changed()
            terminal.click("1  Yes")  # a report that was under way: no longer a choice
            terminal.type("n")
            await terminal.until(lambda shown: "Why not" in shown)
            terminal.type(ENTER)
            await terminal.until(lambda shown: "Kept." in shown)
            await terminal.until(lambda shown: "tokens\n" in shown)
            terminal.type("\x1b\x1b")  # as /rewind does
            await terminal.until(lambda shown: "before which message?" in shown)
            terminal.click("clean up")
            await terminal.until(lambda shown: "Conversation and files" in shown)
            terminal.click("Conversation only")
            await terminal.until(lambda shown: "Undid the last turn" in shown)


async def test_the_mouse_can_be_left_to_the_terminal(tmp_path: Path) -> None:
    async with ModelServer(command("rm -r gone")) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        (hermes.work / "gone").mkdir(parents=True)
        async with hermes.terminal(HERMES_DISPLAY_MOUSE="false") as terminal:
            await terminal.sees(READY)
            terminal.type("clean up" + ENTER)
            await terminal.until(lambda shown: "a number or a key" in shown)
            assert ON not in terminal.raw
