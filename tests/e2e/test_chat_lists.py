"""Lists and texts in the whole window of a chat: sessions, turns to go back to, keys."""

import json
from pathlib import Path

from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

ENTER, ESCAPE, DOWN, UP = "\r", "\x1b", "\x1b[B", "\x1b[A"
READY = "Ctrl-D quits ›"


def write_file(name: str, content: str) -> ScriptedResponse:
    arguments = json.dumps({"path": name, "content": content})
    return ScriptedResponse(calls=(ServedCall("write_file", arguments),))


async def test_esc_esc_goes_back_to_an_earlier_message_with_its_files(
    tmp_path: Path,
) -> None:
    replies = (
        write_file("a.txt", "one\n"),
        ScriptedResponse(text="Wrote one."),
        write_file("a.txt", "two\n"),
        ScriptedResponse(text="Wrote two."),
    )
    async with ModelServer(*replies) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        file = hermes.work / "a.txt"
        async with hermes.terminal("--approvals", "full") as terminal:
            await terminal.sees(READY)
            terminal.type("write one" + ENTER)
            await terminal.until(lambda shown: "Wrote one." in shown)
            terminal.type("write two" + ENTER)
            await terminal.until(lambda shown: "Wrote two." in shown)
            await terminal.until(lambda shown: shown.count("tokens\n") >= 2)
            terminal.type(ESCAPE + ESCAPE)
            await terminal.until(lambda shown: "before which message?" in shown)
            await terminal.until(lambda shown: "+two" in shown)  # the preview
            assert "Wrote two." not in terminal.shown
            terminal.type(ENTER)
            await terminal.until(lambda shown: "Conversation and files" in shown)
            terminal.type(ENTER)
            shown = await terminal.until(lambda shown: "Undid the last turn" in shown)
            assert "Wrote two." in shown  # what was printed is there again
            assert file.read_text() == "one\n"
            await terminal.until(lambda shown: "› write two\n" in shown)


async def test_the_list_of_sessions_and_the_keys(tmp_path: Path) -> None:
    async with ModelServer(
        ScriptedResponse(text="The parser is fixed."), ScriptedResponse(text="Hello.")
    ) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        await hermes.run("-z", "fix the parser")
        async with hermes.terminal(size=(40, 16)) as terminal:
            await terminal.sees(READY)
            terminal.type("?")
            await terminal.until(lambda shown: shown.startswith("Keys"))
            terminal.type("q")
            await terminal.until(lambda shown: "Ctrl-D quits" in shown)
            terminal.type("/resume" + ENTER)
            await terminal.until(lambda shown: "The parser is fixed." in shown)
            terminal.type("nothing like it")
            await terminal.until(lambda shown: "Nothing matches." in shown)
            terminal.type(ESCAPE)
            await terminal.until(lambda shown: "type to search" in shown)
            terminal.type(ENTER)
            await terminal.until(
                lambda shown: "The parser is fixed." in shown and "/resume" in shown
            )
