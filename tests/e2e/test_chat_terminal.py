"""The chat at a real pseudo-terminal: banner, streaming, questions, interrupts, the way back."""

from pathlib import Path

import msgspec
import pytest

from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall, ServerFault

WRITE = ServedCall(
    name="write_file", arguments='{"path": "made.txt", "content": "hello\\n"}'
)
CTRL_C, CTRL_D, ENTER = "\x03", "\x04", "\r"
READY = "Ctrl-D quits ›"


def texts(server: ModelServer, number: int = -1) -> list[str]:
    """What the user said, as the model was told."""
    messages = msgspec.json.decode(server.posts[number].body)["messages"]
    return [message["content"] for message in messages if message["role"] == "user"]


async def test_a_chat_from_the_banner_to_the_way_back(tmp_path: Path) -> None:
    async with ModelServer("Hello to you, too.") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        async with hermes.terminal("--model", "fake-1") as terminal:
            shown = await terminal.sees(READY)
            assert "fake-1" in shown
            assert "Session " in shown
            terminal.type("hello there" + ENTER)
            await terminal.sees("Hello to you, too.")
            await terminal.sees("28 tokens")
            terminal.type(CTRL_D)
            shown = await terminal.sees("Resume with: hermes --resume ")
            assert await terminal.ends() == 0
        session = shown.rpartition("--resume ")[2].split()[0]
        assert "hello there" in (await hermes.run("sessions", "show", session)).out


async def test_text_is_shown_while_the_model_still_writes(tmp_path: Path) -> None:
    async with (
        ModelServer(
            ScriptedResponse(
                text="one two three four", chunk=4, fault=ServerFault(hang="middle")
            )
        ) as server,
        InstalledHermes(tmp_path, server.url).terminal() as terminal,
    ):
        await terminal.sees(READY)
        terminal.type("count" + ENTER)
        await terminal.sees("one two")
        assert "four" not in terminal.screen


async def test_ctrl_c_interrupts_the_turn_and_keeps_the_text(tmp_path: Path) -> None:
    replies = (
        ScriptedResponse(text="one two three four", fault=ServerFault(hang="middle")),
        "I am still here.",
    )
    async with ModelServer(*replies) as server:
        async with InstalledHermes(tmp_path, server.url).terminal() as terminal:
            await terminal.sees(READY)
            terminal.type("count" + ENTER)
            await terminal.sees("one two")
            terminal.type(CTRL_C)
            await terminal.sees("Interrupted. The reply so far was saved.")
            terminal.type("are you there?" + ENTER)
            await terminal.sees("I am still here.")
        told = msgspec.json.decode(server.posts[-1].body)["messages"]
        assert any(
            "one two" in str(message["content"])
            for message in told
            if message["role"] == "assistant"
        )


async def test_ctrl_c_twice_leaves(tmp_path: Path) -> None:
    async with InstalledHermes(
        tmp_path, "http://127.0.0.1:9/v1"
    ).terminal() as terminal:
        await terminal.sees(READY)
        terminal.type(CTRL_C)
        await terminal.sees("Ctrl-C again")
        terminal.type(CTRL_C)
        assert await terminal.ends() == 0


async def test_a_chat_without_a_word_leaves_no_session(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path, "http://127.0.0.1:9/v1")
    async with hermes.terminal() as terminal:
        await terminal.sees(READY)
        terminal.type(CTRL_D)
        assert await terminal.ends() == 0
        assert "--resume" not in terminal.screen
    assert (await hermes.run("sessions", "list", "--json")).out.split() == [
        "{",
        '"sessions":',
        "[]",
        "}",
    ]


@pytest.mark.parametrize(("key", "written"), [("y", True), ("s", True), ("n", False)])
async def test_a_question_shows_what_will_happen_and_takes_an_answer(
    tmp_path: Path, key: str, *, written: bool
) -> None:
    async with ModelServer(ScriptedResponse(calls=(WRITE,)), "That was it.") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        async with hermes.terminal() as terminal:
            await terminal.sees(READY)
            terminal.type("write it" + ENTER)
            shown = await terminal.sees("Esc stops")
            assert "Hermes wants to write" in shown
            assert "made.txt" in "".join(shown.split())  # a long path is wrapped
            assert not (hermes.work / "made.txt").exists()
            terminal.type("x")  # no choice has this key
            terminal.type(key)
            if not written:
                await terminal.sees("what instead? ›")
                terminal.type(ENTER)
            await terminal.sees("That was it.")
        assert (hermes.work / "made.txt").exists() is written


async def test_what_is_typed_meanwhile_waits_for_its_turn(tmp_path: Path) -> None:
    replies = (
        ScriptedResponse(text="one two three four", chunk=4, pauses=True),
        "And the second.",
    )
    async with ModelServer(*replies) as server:
        async with InstalledHermes(tmp_path, server.url).terminal() as terminal:
            await terminal.sees(READY)
            terminal.type("count" + ENTER)
            await terminal.sees("one")
            terminal.type("and then" + ENTER)
            await terminal.sees("queued › and then")
            server.go_on.set()
            await terminal.sees("And the second.")
        assert texts(server) == ["count", "and then"]


async def test_a_command_typed_meanwhile_splits_no_word(tmp_path: Path) -> None:
    reply = ScriptedResponse(
        text="The incomprehensibilities go on", chunk=10, pauses=True
    )
    async with (
        ModelServer(reply) as server,
        InstalledHermes(tmp_path, server.url).terminal(size=(40, 24)) as terminal,
    ):
        await terminal.sees("quits ›")
        terminal.type("say it" + ENTER)
        await terminal.sees("The incomp")
        terminal.type("/title A talk" + ENTER)
        await terminal.sees("Title: A talk")
        server.go_on.set()
        await terminal.sees("tokens")
        shown = terminal.screen.replace("\r", "")
        assert "› /title A talk\n" in shown
        assert (
            "The incomprehensibilities go on\n" in shown
        )  # the reply is printed as a whole, below


async def test_several_lines_are_one_message(tmp_path: Path) -> None:
    async with ModelServer("first", "second") as server:
        async with InstalledHermes(tmp_path, server.url).terminal() as terminal:
            await terminal.sees(READY)
            terminal.type("line one\\" + ENTER + "line two" + ENTER)
            await terminal.sees("first")
            terminal.type("\x1b[200~pasted one\npasted two\x1b[201~" + ENTER)
            await terminal.sees("second")
        assert texts(server) == ["line one\nline two", "pasted one\npasted two"]


async def test_slash_commands(tmp_path: Path) -> None:
    async with (
        ModelServer("yes") as server,
        InstalledHermes(tmp_path, server.url).terminal("--model", "fake-1") as terminal,
    ):
        await terminal.sees(READY)
        terminal.type("/help" + ENTER)
        await terminal.sees("/quit")
        terminal.type("q")
        await terminal.until(lambda shown: "Commands and keys" not in shown)
        terminal.type("/nonsense" + ENTER)
        await terminal.sees("There is no command /nonsense")
        terminal.type("is it?" + ENTER)
        await terminal.sees("28 tokens")
        terminal.type("/title A talk" + ENTER)
        await terminal.sees("Title: A talk")
        terminal.type("/cost" + ENTER)
        await terminal.sees("cost unknown (no price for")
        terminal.type("/status" + ENTER)
        await terminal.sees("waiting for you")
        terminal.type("/model other-1 force" + ENTER)
        await terminal.sees("openai-compatible other-1")
        terminal.type("/new" + ENTER)
        await terminal.sees("Started session")
        terminal.type("/resume A talk" + ENTER)
        await terminal.sees("Session ", times=2)
        await terminal.sees("is it?", times=2)
        terminal.type("exit" + ENTER)
        assert await terminal.ends() == 0
        assert len(server.posts) == 1  # "exit" alone is no message


async def test_another_model_must_be_one_that_the_service_lists(tmp_path: Path) -> None:
    async with (
        ModelServer("Hello.", models=("fake-1", "fake-9")) as server,
        InstalledHermes(tmp_path, server.url).terminal() as terminal,
    ):
        await terminal.sees(READY)
        terminal.type("/model fake-8" + ENTER)
        await terminal.sees("has no model called 'fake-8'. Did you mean fake-9")
        terminal.type("/model fake-9" + ENTER)
        await terminal.sees("fake-9 answers.")
        terminal.type("/model nope force" + ENTER)
        await terminal.sees("nope answers.")


def models(server: ModelServer) -> list[str]:
    """The model of each request."""
    return [msgspec.json.decode(post.body)["model"] for post in server.posts]


async def test_a_model_that_was_picked_answers_when_the_session_is_resumed(
    tmp_path: Path,
) -> None:
    replies = ("Hello.", "Again.", "Once more.", "New here.", "Back here.")
    async with ModelServer(*replies, models=("fake-1", "fake-9")) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        async with hermes.terminal("-m", "fake-1") as terminal:
            await terminal.sees(READY)
            terminal.type("/model fake-9" + ENTER)
            await terminal.sees("fake-9 answers.")
            terminal.type("hi" + ENTER)
            await terminal.sees("Hello.")
            terminal.type("exit" + ENTER)
            assert await terminal.ends() == 0
        async with hermes.terminal("chat", "-c") as terminal:
            await terminal.sees("fake-9")
            await terminal.sees(READY)
            terminal.type("hi" + ENTER)
            await terminal.sees("Again.")
            terminal.type("exit" + ENTER)
            assert await terminal.ends() == 0
        await hermes.run("-c", "hi")
        assert models(server) == ["fake-9"] * 3
        await hermes.run("-m", "fake-1", "something else")
        await hermes.run("-c", "-m", "fake-1", "hi")
        assert models(server)[3:] == ["fake-1"] * 2


async def test_the_status_line_is_whole_with_a_model_that_has_no_key(
    tmp_path: Path,
) -> None:
    async with ModelServer() as server:
        hermes = InstalledHermes(tmp_path, server.url)
        async with hermes.terminal("-m", "anthropic:claude-x") as terminal:
            await terminal.sees("anthropic:claude-x · ask")
            terminal.type("hello" + ENTER)
            await terminal.sees("ANTHROPIC_API_KEY is not set.")


async def test_resume_alone_begins_with_the_list_of_sessions(tmp_path: Path) -> None:
    async with ModelServer("The parser is fixed.", "More of it.") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        await hermes.run("-z", "fix the parser")
        async with hermes.terminal("-r") as terminal:
            await terminal.sees("Continue which session?")
            terminal.type(ENTER)
            await terminal.until(
                lambda shown: "The parser is fixed." in shown and "which" not in shown
            )
            terminal.type("and then?" + ENTER)
            await terminal.sees("More of it.")
        assert texts(server) == ["fix the parser", "and then?"]
        refused = await hermes.run("-r", stdin="what?")
        assert refused.code == 2
        assert "--resume needs the id" in refused.err


async def test_plan_with_a_task_changes_the_mode_and_sends_the_task(
    tmp_path: Path,
) -> None:
    async with ModelServer("Let me look first.") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        async with hermes.terminal() as terminal:
            await terminal.sees(READY)
            terminal.type("/plan tidy up the parser" + ENTER)
            await terminal.sees("Approvals: plan")
            await terminal.sees("Let me look first.")
            terminal.type("/approvals" + ENTER)
            await terminal.sees("Approvals: plan", times=2)
        assert texts(server) == ["tidy up the parser"]
        tools = msgspec.json.decode(server.posts[-1].body)["tools"]
        assert "present_plan" in {one["function"]["name"] for one in tools}


async def test_a_resumed_chat_shows_where_it_was(tmp_path: Path) -> None:
    async with ModelServer("The answer of before.") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        await hermes.run("-z", "an old question")
        async with hermes.terminal("--continue") as terminal:
            await terminal.sees("The answer of before.")
            shown = await terminal.sees(READY)
            assert "Resuming session" in shown


async def test_a_failure_is_said_and_the_chat_goes_on(tmp_path: Path) -> None:
    async with (
        ModelServer(
            ScriptedResponse(fault=ServerFault(status=401, message="the key is wrong")),
            "Now it works.",
        ) as server,
        InstalledHermes(tmp_path, server.url).terminal() as terminal,
    ):
        await terminal.sees(READY)
        terminal.type("hello" + ENTER)
        await terminal.sees("401")
        terminal.type("again" + ENTER)
        await terminal.sees("Now it works.")


async def test_a_dumb_terminal_gets_plain_lines(tmp_path: Path) -> None:
    async with ModelServer(
        "Plain words.", ScriptedResponse(calls=(WRITE,)), "Written."
    ) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        async with hermes.terminal(TERM="dumb") as terminal:
            await terminal.sees("› ")
            terminal.type("hello\n")
            await terminal.sees("Plain words.")
            await terminal.sees("› ", times=2)
            terminal.type("write it\n")
            await terminal.sees("Allow?")
            terminal.type("y\n")
            await terminal.sees("Written.")
            terminal.type(CTRL_D)
            await terminal.sees("hermes --resume")
            assert await terminal.ends() == 0
            assert b"\x1b" not in terminal.raw
        assert (hermes.work / "made.txt").exists()


async def test_a_plain_chat_can_be_interrupted(tmp_path: Path) -> None:
    async with (
        ModelServer(
            ScriptedResponse(
                text="one two three four", fault=ServerFault(hang="middle")
            )
        ) as server,
        InstalledHermes(tmp_path, server.url).terminal(TERM="dumb") as terminal,
    ):
        await terminal.sees("› ")
        terminal.type("count\n")
        await terminal.sees("one two")
        terminal.type(CTRL_C)
        await terminal.sees("Interrupted")


async def test_the_text_of_a_model_can_not_drive_the_terminal(tmp_path: Path) -> None:
    async with (
        ModelServer("before\x1b]0;owned\x07\x1b[2Jafter") as server,
        InstalledHermes(tmp_path, server.url).terminal() as terminal,
    ):
        await terminal.sees(READY)
        terminal.type("hello" + ENTER)
        await terminal.sees("after")
        assert b"\x1b]0;" not in terminal.raw
        assert b"\x1b[2J" not in terminal.raw


async def test_one_question_at_a_terminal_can_be_approved(tmp_path: Path) -> None:
    async with ModelServer(
        ScriptedResponse(text="Let me.", calls=(WRITE,)), "It is written."
    ) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        async with hermes.terminal("write it please") as terminal:
            await terminal.sees("Allow?")
            terminal.type("y\n")
            await terminal.sees("It is written.")
            assert await terminal.ends() == 0
        assert (hermes.work / "made.txt").exists()


async def test_one_question_at_a_terminal_that_is_denied_ends_with_3(
    tmp_path: Path,
) -> None:
    async with ModelServer(ScriptedResponse(calls=(WRITE,)), "Then not.") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        async with hermes.terminal("write it please") as terminal:
            await terminal.sees("Allow?")
            terminal.type("n\n")
            await terminal.sees("what instead?")
            terminal.type("\n")
            await terminal.sees("Not run, because it was not allowed")
            assert await terminal.ends() == 3
        assert not (hermes.work / "made.txt").exists()


async def test_one_question_at_a_terminal_is_interrupted_by_ctrl_c(
    tmp_path: Path,
) -> None:
    async with (
        ModelServer(
            ScriptedResponse(
                text="one two three four", fault=ServerFault(hang="middle")
            )
        ) as server,
        InstalledHermes(tmp_path, server.url).terminal("please count") as terminal,
    ):
        await terminal.sees("one two")
        terminal.type(CTRL_C)
        await terminal.sees("hermes --resume")
        assert await terminal.ends() == 130


async def test_commands_of_the_table_work_in_the_chat(tmp_path: Path) -> None:
    async with ModelServer("yes") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        async with hermes.terminal(TERM="dumb") as terminal:
            await terminal.sees("› ")
            terminal.type("is it?\n")
            await terminal.sees("28 tokens")
            for line, shown in (
                ("/sessions", "Continue one with: /resume ID"),
                ("/search is it", "row 2"),
                ("/history 1", "hermes"),
                ("/jobs", "There are no jobs yet"),
                ("/context", "your words"),
                ("/memory", "MEMORY.md"),
                ("/skills", "bundled"),
                ("/tools", "read_file"),
                ("/mcp", "There are no MCP servers"),
                ("/approvals", "Approvals: ask"),
                ("/approvals some", "expected one of ask, auto-edit, plan, full"),
                ("/config", "display.color"),
                ("/codex-runtime", "codex"),
                ("/diff", "No files were changed."),
                ("/export talk.md", "talk.md"),
                ("/export talk.md", "Name another file: /export FILE"),
                ("/branch", "a copy of"),
                ("/queue", "The queue is empty."),
                ("/learn", "Nothing to review."),
                ("/undo 5", "There is only 1 turn"),
                ("/redo", "There is nothing to redo."),
            ):
                terminal.type(f"{line}\n")
                await terminal.sees(shown)
        assert "## Hermes" in (hermes.work / "talk.md").read_text()


async def test_what_is_typed_before_the_prompt_is_sent_once_it_is_there(
    tmp_path: Path,
) -> None:
    async with ModelServer(ScriptedResponse(text="Heard you.")) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        async with hermes.terminal() as terminal:
            terminal.type("typed at once" + ENTER)  # the program is not loaded yet
            await terminal.sees("Heard you.")
            assert texts(server) == ["typed at once"]
