"""Lists and texts in the whole window of a chat: sessions, turns to go back to, keys."""

import json
from pathlib import Path

from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer, Recorded
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


def command(line: str) -> ScriptedResponse:
    arguments = json.dumps({"command": line})
    return ScriptedResponse(calls=(ServedCall("terminal", arguments),))


async def test_permissions_are_a_list_from_which_one_is_taken_back(
    tmp_path: Path,
) -> None:
    replies = (
        command("rm -r one"),
        ScriptedResponse(text="First gone."),
        write_file("a.txt", "x\n"),
        ScriptedResponse(text="Written."),
        command("rm -r one"),
    )
    async with ModelServer(*replies) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        (hermes.work / "one").mkdir(parents=True)
        async with hermes.terminal(size=(80, 20)) as terminal:
            await terminal.sees(READY)
            terminal.type("/permissions" + ENTER)
            await terminal.until(lambda shown: "No rules or permissions" in shown)
            for message, done in (("remove", "First gone."), ("write", "Written.")):
                terminal.type(message + ENTER)
                await terminal.until(lambda shown: "a number or a key" in shown)
                terminal.type("s")
                await terminal.until(lambda shown, done=done: done in shown)
            await terminal.until(lambda shown: shown.count("tokens\n") >= 2)
            terminal.type("/permissions" + ENTER)
            await terminal.until(lambda shown: "What runs without asking" in shown)
            terminal.type("rm -r")
            await terminal.until(lambda shown: "1 of 2" in shown)
            await terminal.until(lambda shown: "until you quit." in shown)
            terminal.type(ENTER)
            await terminal.until(lambda shown: "type to search" in shown)
            assert "rm -r" not in terminal.shown
            terminal.type(ESCAPE)
            await terminal.until(lambda shown: "Hermes will ask again." in shown)
            (hermes.work / "one").mkdir()
            terminal.type("remove it once more" + ENTER)
            await terminal.until(lambda shown: "a number or a key" in shown)


async def test_agents_are_a_list_from_which_one_is_opened(tmp_path: Path) -> None:
    def respond(request: Recorded) -> ScriptedResponse:
        if b"count the files" in request.body:
            return ScriptedResponse(text="There are seven files.")
        return ScriptedResponse(text="Hello.")

    async with ModelServer(respond=respond) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        async with hermes.terminal(size=(80, 20)) as terminal:
            await terminal.sees(READY)
            terminal.type("hi" + ENTER)
            await terminal.until(lambda shown: "Hello." in shown)
            terminal.type("/bg count the files" + ENTER)
            await terminal.until(lambda shown: "Working on it" in shown)
            await terminal.until(lambda shown: "seven files" in shown)
            terminal.type("/agents" + ENTER)
            await terminal.until(lambda shown: "Agents of this session" in shown)
            await terminal.until(lambda shown: "Ctrl-X stop" in shown)
            terminal.type("zzz")
            await terminal.until(lambda shown: "0 of 1" in shown)
            terminal.type(ESCAPE)
            await terminal.until(lambda shown: "0 of 1" not in shown)
            terminal.type("\x14")
            await terminal.until(lambda shown: "/agents tell " in shown)


async def test_a_reply_that_goes_on_in_the_background_leaves_the_new_session_alone(
    tmp_path: Path,
) -> None:
    reply = ScriptedResponse(text="half a thought, and the rest of it", pauses=True)
    async with ModelServer(reply) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        async with hermes.terminal() as terminal:
            await terminal.sees(READY)
            terminal.type("think" + ENTER)
            await terminal.until(lambda shown: "half a" in shown)
            terminal.type("/bg" + ENTER)
            await terminal.until(lambda shown: "Go back with: /agents open" in shown)
            terminal.type("/title New" + ENTER)
            shown = await terminal.until(lambda shown: "Title: New" in shown)
            assert "half a" in shown.partition("Go back with")[0]
            assert "half a" not in shown.partition("Go back with")[2]
            server.go_on.set()


async def test_what_the_person_ran_is_kept_for_the_next_chat(tmp_path: Path) -> None:
    async with ModelServer(ScriptedResponse(text="I saw it.")) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        async with hermes.terminal() as terminal:
            await terminal.sees(READY)
            terminal.type("!echo mark-$((6*7))" + ENTER)
            await terminal.until(lambda shown: "mark-42" in shown)
            terminal.type("\x04")
            await terminal.ends()
        session = terminal.screen.rpartition("hermes --resume ")[2].split()[0]
        async with hermes.terminal("--resume", session) as terminal:
            await terminal.until(lambda shown: "mark-42" in shown and "$ echo" in shown)
            terminal.type("what was it?" + ENTER)
            await terminal.until(lambda shown: "I saw it." in shown)
        assert b"mark-42" in server.posts[-1].body
