"""The chat as a person sees it: Markdown, cards, questions, the queue, resizes, and a terminal that goes away."""

import asyncio
import os
import re
from pathlib import Path

import msgspec
import pytest

from hermes.app import build
from hermes.schema.events import TurnEnded
from hermes.settings import Home, Settings
from hermes.surfaces.terminal.markdown.render import Markdown
from hermes.surfaces.terminal.styled_text import plain
from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import (
    ScriptedResponse,
    ServedCall,
    ServerFault,
    pieces,
)

CTRL_C, CTRL_D, CTRL_J, CTRL_S, ENTER, ESCAPE = (
    "\x03",
    "\x04",
    "\n",
    "\x13",
    "\r",
    "\x1b",
)
READY = "Ctrl-D quits ›"
TEXT = """# Head

Some **bold** words and `code`.

| a | b |
|---|--:|
| one | 2 |

```python
def f():
    return 1
```

- first
- second
"""
SHOWN = """\
Head

Some bold words and code.

 a   │ b
─────┼──
 one │ 2

─── python
def f():
    return 1
───

• first
• second"""


def words(server: ModelServer, number: int = -1) -> list[str]:
    """What the user said, as the model was told."""
    messages = msgspec.json.decode(server.posts[number].body)["messages"]
    return [message["content"] for message in messages if message["role"] == "user"]


async def test_markdown_is_drawn_once_and_stays_in_the_scrollback(
    tmp_path: Path,
) -> None:
    async with (
        ModelServer(ScriptedResponse(text=TEXT, chunk=3)) as server,
        InstalledHermes(tmp_path, server.url).terminal(size=(60, 10)) as terminal,
    ):
        await terminal.sees(READY)
        terminal.type("show it" + ENTER)
        shown = await terminal.until(lambda shown: "28 tokens" in shown)
        assert SHOWN in shown
        assert shown.count("› show it") == 1


LONG_TEXT = "\n\n".join(
    [
        *(" ".join(f"word{number}{each}" for each in range(40)) for number in range(3)),
        "| name | value |\n|---|---|\n"
        + "\n".join(f"| row {number} | {number * 11} |" for number in range(14)),
        "```python\n"
        + "\n".join(f"value{number} = '{number}'" for number in range(14))
        + "\n```",
        "- one\n- two\n\nThe end.",
    ]
)


async def test_a_reply_is_drawn_in_place_while_a_person_types(tmp_path: Path) -> None:
    reply = ScriptedResponse(text=LONG_TEXT, chunk=6, delay=0.004)
    async with (
        ModelServer(reply) as server,
        InstalledHermes(tmp_path, server.url).terminal(size=(60, 16)) as terminal,
    ):
        await terminal.sees(READY)
        terminal.type("show it" + ENTER)
        for number, word in enumerate(("word010", "word120", "row 3", "value7")):
            await terminal.until(lambda shown, word=word: word in shown)
            terminal.type(f"typed{number} ")
        shown = await terminal.until(lambda shown: "tokens\n" in shown)
    whole = Markdown(colours=True, ascii_only=False)
    rows = [*whole.feed(LONG_TEXT, 59), *whole.end(59)]
    expected = [plain(row).rstrip() for row in rows]
    lines = shown.split("\n")
    start = lines.index(expected[0])
    assert lines[start : start + len(expected)] == expected, shown
    assert shown.count("typed0 typed1 typed2 typed3") == 1
    draws = terminal.raw.count(b"\x1b[K")
    frames = terminal.raw.count(b"\x1b[?25l")  # each hides the cursor first
    assert draws > 60
    assert frames < draws / 2


async def test_colours_are_there_and_can_be_turned_off(tmp_path: Path) -> None:
    async with ModelServer(*[ScriptedResponse(text=TEXT)] * 2) as server:
        for no_color, coloured in (("", True), ("1", False)):
            async with InstalledHermes(tmp_path, server.url).terminal(
                NO_COLOR=no_color
            ) as terminal:
                await terminal.sees(READY)
                terminal.type("show it" + ENTER)
                await terminal.sees("28 tokens")
                assert (b"\x1b[35mdef\x1b[0m" in terminal.raw) is coloured
                assert (b"\x1b[36mcode" in terminal.raw) is coloured


@pytest.mark.parametrize("size", [(20, 8), (40, 15), (140, 45)])
async def test_any_size_of_window(tmp_path: Path, size: tuple[int, int]) -> None:
    text = " ".join(f"w{number}" for number in range(120))
    async with (
        ModelServer(ScriptedResponse(text=text, chunk=11)) as server,
        InstalledHermes(tmp_path, server.url).terminal(size=size) as terminal,
    ):
        await terminal.sees("quits ›")
        terminal.type("go" + ENTER)
        shown = await terminal.until(
            lambda shown: "tokens" in shown.rpartition("w119")[2]
        )
        assert " ".join(shown.split("› go")[1].split()).startswith(text)


class InParts:
    """A model service whose reply stops after each part until the test lets it go on."""

    def __init__(self, *parts: str) -> None:
        self._parts = parts
        self.more = asyncio.Semaphore(0)

    async def handle(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        await reader.readexactly(int(length or 0))
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        for part in self._parts:
            for piece in pieces(part, 7):
                writer.write(_chunk({"delta": {"content": piece}}))
            await writer.drain()
            await self.more.acquire()
        writer.write(
            _chunk({"delta": {"content": ""}, "finish_reason": "stop"})
            + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
        )
        await writer.drain()
        writer.close()


def _chunk(choice: dict[str, object]) -> bytes:
    event = (
        b"data: " + msgspec.json.encode({"choices": [{"index": 0, **choice}]}) + b"\n\n"
    )
    return f"{len(event):x}\r\n".encode() + event + b"\r\n"


async def test_resizing_while_text_streams_garbles_nothing(tmp_path: Path) -> None:
    words = [f"w{number}" for number in range(150)]
    sizes = ((34, 12), (80, 20), (50, 9))
    model = InParts(
        *(
            " " * bool(start) + " ".join(words[start : start + 30])
            for start in range(0, 150, 30)
        )
    )
    server = await asyncio.start_server(model.handle, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    async with (
        server,
        InstalledHermes(tmp_path, url).terminal(
            "--model", "m", size=(60, 12)
        ) as terminal,
    ):
        await terminal.until(
            lambda shown: "m · ask · " in shown
        )  # nothing else will be drawn meanwhile
        terminal.type("go" + ENTER)
        for number, size in zip((29, 59, 89), sizes, strict=True):
            await terminal.until(lambda shown, number=number: f"w{number}" in shown)
            terminal.resize(*size)
            await terminal.changed()  # it has drawn itself again
            model.more.release()
        await terminal.until(lambda shown: "w119" in shown)
        model.more.release()
        await terminal.until(lambda shown: "w149" in shown)
        model.more.release()
        shown = await terminal.until(
            lambda shown: re.search(r" m?s\n", shown.rpartition("w149")[2]) is not None
        )
        assert "".join(shown.split("› go")[1].split()).startswith("".join(words))


async def test_a_running_call_shows_its_output_and_how_it_ended(tmp_path: Path) -> None:
    call = ServedCall(
        name="terminal",
        arguments='{"command": "echo one; echo two; cat go.pipe; echo three"}',
    )
    async with ModelServer(
        ScriptedResponse(text="Let me.", calls=(call,)), "It is done."
    ) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        os.mkfifo(hermes.work / "go.pipe")
        async with hermes.terminal("--approvals", "full") as terminal:
            await terminal.sees(READY)
            terminal.type("run it" + ENTER)
            shown = await terminal.until(lambda shown: "│ two" in shown)
            assert "Let me." in shown
            await asyncio.to_thread((hermes.work / "go.pipe").write_text, "")
            shown = await terminal.until(lambda shown: "It is done." in shown)
            assert "✓ Run echo one" in shown
            assert shown.count("│ two") == 1


async def test_a_tool_can_ask_and_gets_the_answer(tmp_path: Path) -> None:
    call = ServedCall(
        name="ask_user",
        arguments='{"question": "Which colour?", "options": ["red", "blue"]}',
    )
    async with ModelServer(ScriptedResponse(calls=(call,)), "Blue it is.") as server:
        async with InstalledHermes(tmp_path, server.url).terminal() as terminal:
            await terminal.sees(READY)
            terminal.type("ask me" + ENTER)
            shown = await terminal.until(lambda shown: "Esc stops" in shown)
            assert "? Which colour?" in shown
            assert "› 1  red\n  2  blue\n  3  Something else" in shown
            terminal.type("2")
            await terminal.sees("Blue it is.")
        assert "blue" in str(
            msgspec.json.decode(server.posts[-1].body)["messages"][-1]["content"]
        )


async def test_a_no_can_tell_the_model_why(tmp_path: Path) -> None:
    write = ServedCall(
        name="write_file", arguments='{"path": "made.txt", "content": "hello\\n"}'
    )
    async with ModelServer(ScriptedResponse(calls=(write,)), "Then not.") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        async with hermes.terminal() as terminal:
            await terminal.sees(READY)
            terminal.type("write it" + ENTER)
            await terminal.sees("Esc stops")
            terminal.type("n, use another name" + ENTER)
            await terminal.sees("Then not.")
        assert b"Not run: the user said no: use another name" in server.posts[1].body
        assert not (hermes.work / "made.txt").exists()


async def test_words_can_go_into_the_running_turn(tmp_path: Path) -> None:
    call = ServedCall(name="terminal", arguments='{"command": "cat go.pipe"}')
    async with ModelServer(ScriptedResponse(calls=(call,)), "I heard you.") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        os.mkfifo(hermes.work / "go.pipe")
        async with hermes.terminal("--approvals", "full") as terminal:
            await terminal.sees(READY)
            terminal.type("run it" + ENTER)
            await terminal.until(lambda shown: "Run cat go.pipe" in shown)
            terminal.type("and mind the gap" + CTRL_S)
            await terminal.until(lambda shown: "steers › and mind the gap" in shown)
            await asyncio.to_thread((hermes.work / "go.pipe").write_text, "")
            await terminal.sees("I heard you.")
        assert len(server.posts) == 2
        assert words(server) == ["run it", "and mind the gap"]


async def test_new_lines_pastes_and_files_reach_the_model_whole(tmp_path: Path) -> None:
    pasted = "\n".join(f"line {number}" for number in range(120))
    async with ModelServer("one", "two") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        (hermes.work / "notes.txt").write_text("remember the milk\n")
        async with hermes.terminal() as terminal:
            await terminal.sees(READY)
            terminal.type(
                "first" + CTRL_J + "second" + CTRL_J + f"\x1b[200~{pasted}\x1b[201~"
            )
            await terminal.until(lambda shown: "[pasted 120 lines]" in shown)
            terminal.type(ENTER)
            await terminal.until(lambda shown: "one\n" in shown)
            terminal.type("read @notes.txt" + ENTER)
            shown = await terminal.until(lambda shown: "two\n" in shown)
            assert "remember the milk" not in shown
            assert "line 119" not in shown
        assert words(server)[0] == f"first\nsecond\n{pasted}"
        assert "remember the milk" in words(server)[1]


async def test_commands_and_files_are_completed(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path, "http://127.0.0.1:9/v1")
    (hermes.work / "notes.txt").write_text("")
    async with hermes.terminal() as terminal:
        await terminal.sees(READY)
        terminal.type("/appr")
        await terminal.until(lambda shown: "/approvals" in shown)
        terminal.type(CTRL_C + "see @no")
        await terminal.until(lambda shown: "  notes.txt" in shown)
        terminal.type("\tnow")
        await terminal.until(lambda shown: "› see @notes.txt now" in shown)


async def test_what_was_typed_before_comes_back_in_another_chat(tmp_path: Path) -> None:
    async with ModelServer("yes") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        async with hermes.terminal() as terminal:
            await terminal.sees(READY)
            terminal.type("an old question" + ENTER)
            await terminal.sees("28 tokens")
            terminal.type(CTRL_D)
            assert await terminal.ends() == 0
        async with hermes.terminal() as terminal:
            await terminal.sees(READY)
            terminal.type("\x1b[A")
            await terminal.until(lambda shown: "› an old question" in shown)


async def test_words_that_were_not_sent_survive_a_kill(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path, "http://127.0.0.1:9/v1")
    async with hermes.terminal() as terminal:
        await terminal.sees(READY)
        terminal.type("half a thought")
        await terminal.sees("half a thought")
        await _drafted(hermes, "half a thought")
        terminal.kill()
        await terminal.ends()
    async with hermes.terminal() as terminal:
        await terminal.until(
            lambda shown: "› half a thought" in shown and "is back" in shown
        )


async def _drafted(hermes: InstalledHermes, text: str) -> None:
    for _ in range(1_500):
        if any(
            text in path.read_text()
            for path in (hermes.home / "drafts").glob("[0-9]*.json")
        ):
            return
        await asyncio.sleep(0.02)
    pytest.fail("the draft was never written")


async def test_a_mistyped_command_is_guessed(tmp_path: Path) -> None:
    async with InstalledHermes(
        tmp_path, "http://127.0.0.1:9/v1"
    ).terminal() as terminal:
        await terminal.sees(READY)
        terminal.type("/statsu" + ENTER)
        await terminal.sees("There is no command /statsu. Did you mean /status?")
        terminal.type("/worker" + ENTER)
        await terminal.sees("There is no command /worker. In a shell: hermes worker")


async def test_a_turn_is_taken_back_with_its_files(tmp_path: Path) -> None:
    write = ServedCall(
        name="write_file", arguments='{"path": "made.txt", "content": "hello\\n"}'
    )
    async with ModelServer(
        ScriptedResponse(calls=(write,)), "Written.", "Again."
    ) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        async with hermes.terminal("--approvals", "auto-edit") as terminal:
            await terminal.sees(READY)
            terminal.type("write it" + ENTER)
            await terminal.until(lambda shown: "56 tokens" in shown)
            terminal.type("/undo" + ENTER)
            await terminal.until(
                lambda shown: (
                    "Undid the last turn" in shown
                    and shown.rstrip().count("› write it") == 2
                )
            )
            terminal.type(ENTER)
            await terminal.sees("Again.")
        assert words(server) == ["write it"]


async def test_a_turn_goes_on_when_the_terminal_is_gone(tmp_path: Path) -> None:
    call = ServedCall(
        name="terminal", arguments='{"command": "cat go.pipe; echo made > made.txt"}'
    )
    async with ModelServer(
        ScriptedResponse(text="Let me.", calls=(call,)), "Done without you."
    ) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        os.mkfifo(hermes.work / "go.pipe")
        async with hermes.terminal("--approvals", "full") as terminal:
            await terminal.sees(READY)
            terminal.type("work on" + ENTER)
            await terminal.until(lambda shown: "Run cat go.pipe" in shown)
            terminal.vanish()
            await asyncio.to_thread((hermes.work / "go.pipe").write_text, "")
            assert await terminal.ends() == 129
        assert (hermes.work / "made.txt").read_text() == "made\n"
        async with hermes.terminal("--continue") as terminal:
            shown = await terminal.sees("Done without you.")
            assert "Hermes stopped during this turn" not in shown


@pytest.mark.parametrize(
    "seen", [False, True], ids=["by nobody else", "by a page that ended the turn"]
)
async def test_a_question_waits_when_the_terminal_is_gone(
    tmp_path: Path, seen: bool
) -> None:
    write = ServedCall(
        name="write_file", arguments='{"path": "made.txt", "content": "hello\\n"}'
    )
    async with ModelServer(
        ScriptedResponse(calls=(write,)), "Written at last."
    ) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        async with hermes.terminal() as terminal:
            await terminal.sees(READY)
            terminal.type("write it" + ENTER)
            await terminal.sees("Esc stops")
            terminal.vanish()
            assert await terminal.ends() == 129
        with build(Settings(), Home(hermes.home)) as app:
            (session,) = app.store.sessions.recent(limit=1)
            assert app.store.log.has_open_turn(session.id)
            if seen:
                app.record(session.id, TurnEnded(reason="crashed"))
        async with hermes.terminal("--continue") as terminal:
            await terminal.sees("Esc stops")
            terminal.type("y" + ENTER)
            await terminal.sees("Written at last.")
        assert (hermes.work / "made.txt").exists()


async def test_a_session_that_runs_elsewhere_is_followed(tmp_path: Path) -> None:
    call = ServedCall(name="terminal", arguments='{"command": "cat go.pipe"}')
    async with ModelServer(ScriptedResponse(calls=(call,)), "Both see this.") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        os.mkfifo(hermes.work / "go.pipe")
        async with hermes.terminal("--approvals", "full") as first:
            await first.sees(READY)
            first.type("run it" + ENTER)
            await first.until(lambda shown: "Run cat go.pipe" in shown)
            async with hermes.terminal("--continue") as second:
                await second.until(lambda shown: "Run cat go.pipe" in shown)
                await asyncio.to_thread((hermes.work / "go.pipe").write_text, "")
                await second.sees("Both see this.")
            await first.sees("Both see this.")


async def test_an_idle_terminal_shows_what_is_written_elsewhere(
    tmp_path: Path,
) -> None:
    async with ModelServer("Hello.", "From the other one.", "Mine again.") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        async with hermes.terminal() as first:
            await first.sees(READY)
            first.type("hello" + ENTER)
            await first.sees("ms · 28 tokens")
            async with hermes.terminal("--continue") as second:
                await second.sees(READY)
                second.type("what now?" + ENTER)
                await second.sees("From the other one.")
                shown = await first.until(lambda shown: "From the other one." in shown)
                assert "› what now?" in shown
            first.type("and here?" + ENTER)
            await first.sees("Mine again.")


async def test_an_idle_terminal_settles_a_turn_whose_process_died(
    tmp_path: Path,
) -> None:
    call = ServedCall(name="terminal", arguments='{"command": "cat go.pipe"}')
    async with ModelServer("Hello.", ScriptedResponse(calls=(call,))) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        os.mkfifo(hermes.work / "go.pipe")
        async with hermes.terminal() as first:
            await first.sees(READY)
            first.type("hello" + ENTER)
            await first.sees("ms · 28 tokens")
            second = hermes.terminal("--continue", "--approvals", "full")
            async with second:
                await second.sees(READY)
                second.type("run it" + ENTER)
                await first.until(lambda shown: "Run cat go.pipe" in shown)
                second.kill()
                await first.sees("Hermes stopped during this turn.")


async def test_a_message_to_a_session_that_runs_elsewhere_is_shown_and_answered(
    tmp_path: Path,
) -> None:
    call = ServedCall(name="terminal", arguments='{"command": "cat go.pipe"}')
    async with ModelServer(
        "Hello.",
        ScriptedResponse(calls=(call,)),
        "The first is done.",
        "And the second.",
    ) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        os.mkfifo(hermes.work / "go.pipe")
        async with hermes.terminal("--approvals", "full") as first:
            await first.sees(READY)
            first.type("hello" + ENTER)
            await first.sees("ms · 28 tokens")
            async with hermes.terminal("--continue") as second:
                await second.sees(READY)
                await second.sees("Hello.")
                first.type("run it" + ENTER)
                await first.until(lambda shown: "Run cat go.pipe" in shown)
                second.type("and then?" + ENTER)
                await second.until(lambda shown: "queued › and then?" in shown)
                shown = await second.until(
                    lambda shown: (
                        "Another terminal or program is working on this" in shown
                    )
                )
                assert "› run it" in shown
                assert "Run cat go.pipe" in shown
                await asyncio.to_thread((hermes.work / "go.pipe").write_text, "")
                shown = await second.until(
                    lambda shown: "tokens" in shown.partition("And the second.")[2]
                )
                assert "The first is done." in shown
                assert " 0 ms" not in shown
                assert " min " not in shown


async def test_what_is_queued_is_held_back_when_the_turn_is_stopped(
    tmp_path: Path,
) -> None:
    replies = (
        ScriptedResponse(text="one two three four", fault=ServerFault(hang="middle")),
        "Both done.",
    )
    async with ModelServer(*replies) as server:
        async with InstalledHermes(tmp_path, server.url).terminal() as terminal:
            await terminal.sees(READY)
            terminal.type("count" + ENTER)
            await terminal.sees("one two")
            terminal.type("go home" + ENTER)
            await terminal.until(lambda shown: "queued › go home" in shown)
            terminal.type(ESCAPE)
            await terminal.sees("1 message not sent yet. Press Enter to send it.")
            await terminal.until(lambda shown: "held › go home" in shown)
            assert len(server.posts) == 1
            terminal.type(ENTER)
            await terminal.sees("Both done.")
        assert words(server)[-1] == "go home"


async def test_the_press_that_stopped_a_turn_does_not_count_for_leaving(
    tmp_path: Path,
) -> None:
    replies = (
        ScriptedResponse(text="one two three four", fault=ServerFault(hang="middle")),
        "I am still here.",
    )
    async with (
        ModelServer(*replies) as server,
        InstalledHermes(tmp_path, server.url).terminal() as terminal,
    ):
        await terminal.sees(READY)
        terminal.type("count" + ENTER)
        await terminal.sees("one two")
        terminal.type(CTRL_C)
        await terminal.sees("Interrupted. The reply so far was saved.")
        terminal.type(CTRL_C)
        await terminal.sees("Ctrl-C again")
        terminal.type(
            "are you there?" + CTRL_C + CTRL_C
        )  # the first of these empties the input
        await terminal.until(lambda shown: shown.count("Ctrl-C again") == 2)
        terminal.type("hello" + ENTER)
        await terminal.sees("I am still here.")


async def test_a_command_takes_the_place_of_the_words_that_undo_brings_back(
    tmp_path: Path,
) -> None:
    async with (
        ModelServer("Hello.") as server,
        InstalledHermes(tmp_path, server.url).terminal() as terminal,
    ):
        await terminal.sees(READY)
        terminal.type("greet me" + ENTER)
        await terminal.sees("ms · 28 tokens")
        terminal.type("/undo" + ENTER)
        await terminal.until(
            lambda shown: shown.rstrip().split("\n")[-2].startswith("› greet me")
        )
        terminal.type("/redo" + ENTER)
        await terminal.sees("Restored the last turn")
        assert len(server.posts) == 1


async def test_a_child_agent_can_ask_the_person(tmp_path: Path) -> None:
    write = ServedCall(
        name="write_file", arguments='{"path": "made.txt", "content": "hello\\n"}'
    )
    delegate = ServedCall(name="delegate", arguments='{"task": "write made.txt"}')
    replies = (
        ScriptedResponse(calls=(delegate,)),
        ScriptedResponse(calls=(write,)),
        "The child is done.",
        "All is done.",
    )
    async with ModelServer(*replies) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        async with hermes.terminal() as terminal:
            await terminal.sees(READY)
            terminal.type("let a child do it" + ENTER)
            for _ in range(2):  # the delegation itself may be asked about, too
                shown = await terminal.until(lambda shown: "Esc stops" in shown)
                terminal.type("y" + ENTER)
                if "Hermes wants to write" in shown:
                    break
                await terminal.until(lambda shown: "Hermes wants to write" in shown)
            await terminal.sees("All is done.")
        assert (hermes.work / "made.txt").exists()


async def test_a_rule_is_shown_and_a_mode_may_change_while_a_question_is_open(
    tmp_path: Path,
) -> None:
    calls = [
        ScriptedResponse(
            calls=(
                ServedCall(
                    name="write_file",
                    arguments=f'{{"path": "{name}", "content": "x"}}',
                ),
            )
        )
        for name in ("one.txt", "two.txt")
    ]
    async with ModelServer(*calls, "All written.") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        async with hermes.terminal() as terminal:
            await terminal.sees(READY)
            terminal.type("write them" + ENTER)
            await terminal.sees("Esc stops")
            terminal.type("a")
            shown = await terminal.sees("Esc goes back")
            assert "New rule, for every session from now on:" in shown
            assert not (hermes.work / "one.txt").exists()
            terminal.type(ESCAPE)
            await terminal.sees("Esc stops")
            terminal.type("\x1b[Z")  # Shift-Tab
            await terminal.sees("Mode auto-edit: if it allows this call")
            await terminal.sees("All written.")
        assert (hermes.work / "two.txt").exists()
        assert not (hermes.home / "policy.yaml").exists()
