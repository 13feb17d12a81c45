"""One question, one answer: what the installed `hermes` prints, and how it ends."""

import asyncio
import signal
import stat
import sys
from pathlib import Path

import msgspec
import pytest

from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall, ServerFault

WRITE = ServedCall(
    name="write_file", arguments='{"path": "made.txt", "content": "hello\\n"}'
)


def last_words(server: ModelServer, number: int = -1) -> str:
    """The last user message of a request."""
    body = msgspec.json.decode(server.posts[number].body)
    content = next(
        message["content"]
        for message in reversed(body["messages"])
        if message["role"] == "user"
    )
    return (
        content
        if isinstance(content, str)
        else "".join(part["text"] for part in content)
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("what is it?",),
        ("-z", "what is it?"),
        ("--prompt=what is it?",),
        ("--", "what", "is it?"),
    ],
)
async def test_stdout_holds_the_answer_and_nothing_else(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    async with ModelServer("It is a test.") as server:
        done = await InstalledHermes(tmp_path, server.url).run(*arguments)
        assert (done.code, done.out, done.err) == (0, "It is a test.\n", "")
        assert last_words(server) == "what is it?"


async def test_several_words_are_one_question(tmp_path: Path) -> None:
    async with ModelServer("yes") as server:
        assert (
            await InstalledHermes(tmp_path, server.url).run("is", "this", "one?")
        ).out == "yes\n"
        assert last_words(server) == "is this one?"


async def test_what_is_piped_in_follows_the_question(tmp_path: Path) -> None:
    """A file that the question names is attached, one that the piped text or a path out of the folder names is not."""
    async with ModelServer("fine") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        hermes.work.mkdir(exist_ok=True)
        for folder in (hermes.work, hermes.work.parent):
            (folder / "a.txt").write_text("of a file\n")
        done = await hermes.run(
            "-z", "review @a.txt @../a.txt:", stdin="line 1\nsee @a.txt\n"
        )
        block = '<attached path="a.txt">\nof a file\n</attached>'
        assert (
            last_words(server)
            == f"review @a.txt @../a.txt:\n\n{block}\n\nline 1\nsee @a.txt"
        )
        assert "There is no file ../a.txt here" in done.err


async def test_without_a_question_stdin_is_the_question(tmp_path: Path) -> None:
    async with ModelServer("4") as server:
        assert (
            await InstalledHermes(tmp_path, server.url).run(stdin="2 + 2?\n")
        ).out == "4\n"
        assert last_words(server) == "2 + 2?"


async def test_with_nothing_at_all_it_says_how_to_ask(tmp_path: Path) -> None:
    async with ModelServer() as server:
        done = await InstalledHermes(tmp_path, server.url).run()
        assert (done.code, done.out) == (2, "")
        assert "There is no question" in done.err
        assert 'hermes "what is in this folder?"' in done.err
        assert not server.requests


@pytest.mark.parametrize(
    ("stdin", "words"),
    [(b"x" * (10 * 1024 * 1024 + 1), "More than 10 MiB"), (b"a\0b", "is not text")],
)
async def test_input_that_can_not_be_sent_is_wrong_usage(
    tmp_path: Path, stdin: bytes, words: str
) -> None:
    async with ModelServer() as server:
        done = await InstalledHermes(tmp_path, server.url).run(
            "-z", "read", stdin=stdin
        )
        assert (done.code, done.out) == (2, "")
        assert words in done.err


async def test_words_before_a_tool_call_are_not_the_answer(tmp_path: Path) -> None:
    replies = (ScriptedResponse(text="Let me write it.", calls=(WRITE,)), "Written.")
    async with ModelServer(*replies) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        done = await hermes.run("write a file", "--approvals", "auto-edit")
        assert (done.code, done.out) == (0, "Written.\n")
        assert (hermes.work / "made.txt").read_text() == "hello\n"


async def test_a_call_nobody_could_approve_is_not_run(tmp_path: Path) -> None:
    async with ModelServer(ScriptedResponse(calls=(WRITE,)), "I may not.") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        done = await hermes.run("write a file")
        assert (done.code, done.out) == (3, "I may not.\n")
        assert "there was nobody to ask" in done.err
        assert "--approvals" in done.err
        assert not (hermes.work / "made.txt").exists()


async def test_what_the_policy_forbids_is_not_run_in_any_mode_and_ends_with_3(
    tmp_path: Path,
) -> None:
    wipe = ServedCall("terminal", '{"command": "rm -rf ~/", "reach": "machine"}')
    async with ModelServer(ScriptedResponse(calls=(wipe,)), "I may not.") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        home = tmp_path / "user"
        home.mkdir()
        (home / "precious").write_text("x")
        done = await hermes.run("--approvals", "full", "clean up", HOME=str(home))
        assert (done.code, done.out) == (3, "I may not.\n")
        assert "rm -rf ~/" in done.err
        assert (home / "precious").exists()


async def test_the_first_request_is_small(tmp_path: Path) -> None:
    async with ModelServer("hi") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        with_everything = {
            "HERMES_MEDIA_SPEECH_OUT": "command",
            "HERMES_MEDIA_SPEECH_COMMAND": '["/bin/true"]',
            "HERMES_BROWSER_EXECUTABLE": "/bin/true",
            "HERMES_BROWSER_AS_ROOT": "true",
        }
        await hermes.run("-z", "hi", **with_everything)
        request = server.posts[0]
        offered = [
            one["function"]["name"]
            for one in msgspec.json.decode(request.body)["tools"]
        ]
        assert {"text_to_speech", "browser_navigate"} <= {*offered}
        assert len(request.body) < 12_000


async def test_a_refusal_ends_with_3(tmp_path: Path) -> None:
    async with ModelServer(
        ScriptedResponse(text="I can't help with that.", finish="refused")
    ) as server:
        done = await InstalledHermes(tmp_path, server.url).run("do something bad")
        assert done.code == 3
        assert "refused" in done.err


async def test_a_failed_call_ends_with_1_and_says_why(tmp_path: Path) -> None:
    async with ModelServer(
        ScriptedResponse(fault=ServerFault(status=401, message="the key is wrong"))
    ) as server:
        done = await InstalledHermes(tmp_path, server.url).run("-z", "hi")
        assert (done.code, done.out) == (1, "")
        assert "hermes: The turn failed:" in done.err
        assert "sk-test" not in done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--approvals", "everything", "-z", "x"), "approvals"),
        (("-z", " "), "The question is empty"),
        (("-z", "one", "two"), "two questions"),
        (("-z", "x", "--cwd", "/nowhere/at/all"), "There is no folder"),
        (("-z", "x", "--resume", "a", "--continue"), "can't be used together"),
        (("--jsn", "-z", "x"), "Did you mean: hermes --json?"),
    ],
)
async def test_wrong_usage_ends_with_2(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = await InstalledHermes(tmp_path).run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


async def test_a_lone_word_may_be_a_mistyped_command(tmp_path: Path) -> None:
    done = await InstalledHermes(tmp_path).run("doctr")
    assert done.code == 2
    assert "Did you mean: hermes doctor?" in done.err
    assert "hermes -z doctr" in done.err


async def test_a_lone_word_that_is_like_no_command_is_a_question(
    tmp_path: Path,
) -> None:
    async with ModelServer("Hello.") as server:
        assert (await InstalledHermes(tmp_path, server.url).run("hi")).out == "Hello.\n"
        assert last_words(server) == "hi"


async def test_every_event_is_a_line_of_json(tmp_path: Path) -> None:
    async with ModelServer(
        ScriptedResponse(text="Look.", calls=(WRITE,)), "Done, as asked."
    ) as server:
        done = await InstalledHermes(tmp_path, server.url).run(
            "--json", "--approvals", "full", "-z", "write it"
        )
        assert (done.code, done.err) == (0, "")
        types = [event["type"] for event in done.events]
        order = [
            "session.created",
            "agent.message.user",
            "agent.turn.started",
            "agent.tool.started",
        ]
        order += ["agent.tool.finished", "agent.turn.ended"]
        assert [name for name in types if name in order] == order
        text = "".join(
            event["text"]
            for event in done.events
            if event["type"] == "agent.message.delta"
        )
        assert text == "Look.Done, as asked."
        assert len({event["session_id"] for event in done.events}) == 1
        numbers = [event["seq"] for event in done.events if "seq" in event]
        assert numbers == list(range(1, len(numbers) + 1))
        assert all({"type", "ts", "src"} <= event.keys() for event in done.events)


async def test_events_come_as_they_happen(tmp_path: Path) -> None:
    async with ModelServer(
        ScriptedResponse(text="one two three four", fault=ServerFault(hang="middle"))
    ) as server:
        process = await InstalledHermes(tmp_path, server.url).start(
            "--json", "-z", "count"
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        seen: list[str] = []
        while "agent.message.delta" not in seen:
            line = await asyncio.wait_for(process.stdout.readline(), 30)
            seen.append(msgspec.json.decode(line)["type"])
        process.send_signal(signal.SIGINT)
        rest, _ = await asyncio.wait_for(process.communicate(), 30)
        events = [msgspec.json.decode(line) for line in rest.splitlines()]
        assert process.returncode == 130
        assert [
            event["reason"] for event in events if event["type"] == "agent.turn.ended"
        ] == ["interrupted"]


async def test_an_interrupt_keeps_what_was_written(tmp_path: Path) -> None:
    async with ModelServer(
        ScriptedResponse(text="one two three four", fault=ServerFault(hang="middle"))
    ) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        process = await hermes.start("--json", "-z", "count")
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        session = ""
        while True:
            event = msgspec.json.decode(
                await asyncio.wait_for(process.stdout.readline(), 30)
            )
            session = event.get("session_id", session)
            if event["type"] == "agent.message.delta":
                break
        process.send_signal(signal.SIGINT)
        await asyncio.wait_for(process.communicate(), 30)
        kept = await hermes.run("sessions", "show", session)
        assert "one two" in kept.out
        assert "four" not in kept.out


async def test_an_interrupted_answer_is_printed_as_far_as_it_came(
    tmp_path: Path,
) -> None:
    async with ModelServer(
        ScriptedResponse(text="one two three four", fault=ServerFault(hang="middle"))
    ) as server:
        process = await InstalledHermes(tmp_path, server.url).start("-z", "count")
        assert process.stdin is not None
        process.stdin.close()
        await asyncio.wait_for(server.hanging.wait(), 30)
        process.send_signal(signal.SIGINT)
        out, err = await asyncio.wait_for(process.communicate(), 30)
        assert process.returncode == 130
        assert "one two three four".startswith(out.decode().strip())
        assert b"hermes --resume" in err


async def test_resume_goes_on_in_the_same_session(tmp_path: Path) -> None:
    async with ModelServer(
        "first answer", "second answer", "third answer", "fourth answer"
    ) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        first = (await hermes.run("--json", "-z", "first question")).events[0][
            "session_id"
        ]
        assert (
            await hermes.run("--continue", "-z", "second question")
        ).out == "second answer\n"
        assert (
            await hermes.run("--resume", first, "-z", "third question")
        ).out == "third answer\n"
        third = [
            message["content"]
            for message in msgspec.json.decode(server.posts[-1].body)["messages"]
        ]
        assert [
            text for text in third if text in {"first question", "second answer"}
        ] == [
            "first question",
            "second answer",
        ]
        assert (
            await hermes.run("--resume", "first question", "-z", "by its title")
        ).out == "fourth answer\n"
        assert first in (await hermes.run("sessions", "list", "--json")).out


async def test_one_answer_loads_no_editor_and_no_other_command(tmp_path: Path) -> None:
    code = "import sys; from hermes.surfaces.cli import main; main(sys.argv[1:]); print(*sys.modules)"
    async with ModelServer("hi") as server:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, "-z", "hi",
            env=InstalledHermes(tmp_path, server.url).environ(), stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, _ = await asyncio.wait_for(process.communicate(), 30)
    loaded = set(out.decode().split())
    assert "hermes.surfaces.cli.ask" in loaded
    assert not loaded & {
        "prompt_toolkit",
        "rich",
        "ruamel.yaml",
        "hermes.surfaces.tui.chat",
        "hermes.surfaces.cli.model",
    }


async def test_there_may_be_nothing_to_resume(tmp_path: Path) -> None:
    done = await InstalledHermes(tmp_path, "http://127.0.0.1:9/v1").run(
        "--continue", "-z", "go on"
    )
    assert (done.code, done.out) == (1, "")
    assert "no sessions yet" in done.err


async def test_the_model_and_the_folder_can_be_chosen(tmp_path: Path) -> None:
    async with ModelServer("ok") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        (tmp_path / "there").mkdir()
        done = await hermes.run(
            "--json",
            "--model",
            "special-1",
            "--cwd",
            str(tmp_path / "there"),
            "-z",
            "hi",
        )
        assert done.events[0]["cwd"] == str(tmp_path / "there")
        assert msgspec.json.decode(server.posts[0].body)["model"] == "special-1"


async def test_a_reader_that_goes_away_ends_the_run(tmp_path: Path) -> None:
    async with ModelServer(
        ScriptedResponse(text="one two three four", fault=ServerFault(hang="middle"))
    ) as server:
        process = await InstalledHermes(tmp_path, server.url).start(
            "--json", "-z", "count"
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        await asyncio.wait_for(process.stdout.readline(), 30)
        process._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]
        assert await asyncio.wait_for(process.wait(), 30) == 141


async def test_without_weights_and_without_a_person_it_says_what_to_run(
    tmp_path: Path,
) -> None:
    done = await InstalledHermes(tmp_path).run(
        "-z", "hi", HERMES_CACHE=str(tmp_path / "cache")
    )
    assert (done.code, done.out) == (1, "")
    assert "hermes model add base" in done.err
    assert "hermes setup" in done.err


async def test_a_full_disk_is_loud(tmp_path: Path) -> None:
    async with ModelServer("an answer") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        hermes.home.mkdir(mode=stat.S_IRWXU)
        (hermes.home / "state.db").mkdir()  # nothing can be written there
        done = await hermes.run("-z", "hi")
        assert done.code == 1
        assert done.err.startswith("hermes:")


async def test_a_picture_goes_to_the_model_with_the_question(tmp_path: Path) -> None:
    picture = tmp_path / "dot.png"
    await asyncio.to_thread(picture.write_bytes, b"\x89PNG\r\n\x1a\n" + bytes(20))
    async with ModelServer("a dot") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        asked = ("-z", "what is this?", "--model", "gpt-5.5", "--image", str(picture))
        done = await hermes.run(*asked, HERMES_MODEL_API="chat")
        assert (done.code, done.out) == (0, "a dot\n"), done.err
        assert b"data:image/png;base64,iVBOR" in server.posts[0].body


async def test_a_picture_that_the_model_does_not_get_is_said_on_stderr(
    tmp_path: Path,
) -> None:
    picture = tmp_path / "dot.png"
    await asyncio.to_thread(picture.write_bytes, b"\x89PNG\r\n\x1a\n" + bytes(20))
    async with ModelServer("I can't see it") as server:
        done = await InstalledHermes(tmp_path, server.url).run(
            "-z", "what is this?", "--image", str(picture)
        )
        assert (done.code, done.out) == (0, "I can't see it\n"), done.err
        assert "A picture was not sent to" in done.err
        assert "images: true" in done.err


async def test_a_file_that_is_no_picture_is_wrong_usage(tmp_path: Path) -> None:
    async with ModelServer() as server:
        hermes = InstalledHermes(tmp_path, server.url)
        done = await hermes.run("-z", "what?", "--image", __file__)
        assert (done.code, done.out) == (2, "")
        assert "not an image" in done.err
