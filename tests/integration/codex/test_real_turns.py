"""Turns with the real codex program against a fake model service: words, commands, patches, and what is written."""

import zlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.fakes.codex_judge import FixedJudge

from hermes.core.answers import approval_hash
from hermes.core.budget import Cap, TurnBudget
from hermes.core.ports import PolicyDecision
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    AuxiliaryCalled,
    TurnEnded,
    TurnStarted,
)
from hermes.schema.messages import AssistantMessage, Image, ToolFinished, UserMessage
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall, ServerFault


def command(script: str, number: str = "call_1", **more: Any) -> ScriptedResponse:
    return ScriptedResponse(
        calls=(
            ServedCall(
                "exec_command",
                msgspec.json.encode({"cmd": script, **more}).decode(),
                number,
            ),
        )
    )


def escalated(script: str, number: str = "call_1") -> ScriptedResponse:
    return command(
        script, number, sandbox_permissions="require_escalated", justification="May I?"
    )


async def test_words_stream_and_are_kept_with_their_thinking_and_cost(
    real: Any,
) -> None:
    async with (
        ModelServer(
            ScriptedResponse(text="Hello from here.", reasoning="A greeting.")
        ) as server,
        real.bench(server.url) as bench,
    ):
        session = bench.begin()
        ended = await bench.say(session, "hi")
        (message,) = bench.events(session, AssistantMessage)
        streamed = [event async for event in _drained(bench, "agent.message.delta")]
        (started,) = bench.events(session, TurnStarted)
        said = [row.text for row in bench.events(session, UserMessage)]
    assert said == ["hi"]
    assert ended.reason == "done"
    assert (message.text, message.reasoning, message.provider) == (
        "Hello from here.",
        "A greeting.",
        "codex",
    )
    assert (message.usage.input_tokens, message.usage.output_tokens) == (20, 8)
    assert "".join(event["text"] for event in streamed) == "Hello from here."
    assert started.runtime == "codex"
    assert ended.usage.input_tokens == 20


async def _drained(bench: Any, topic: str) -> Any:
    while not bench.published.empty():
        event = bench.published.get_nowait()
        if event["type"] == topic:
            yield event


async def test_the_system_prompt_with_memory_reaches_the_model_as_developer_words(
    real: Any,
) -> None:
    async with ModelServer("ok") as server, real.bench(server.url) as bench:
        await bench.say(bench.begin(), "hi")
        sent = msgspec.json.decode(server.posts[0].body)["input"]
    developer = [
        str(item["content"]) for item in sent if item.get("role") == "developer"
    ]
    assert any("You are Hermes." in text and "likes tea" in text for text in developer)


async def test_a_command_is_a_call_with_a_result_and_a_failure_shows_its_exit_code(
    real: Any,
) -> None:
    replies = [
        command("echo one; echo two"),
        command("echo oops >&2; exit 3", "call_2"),
        "done",
    ]
    async with ModelServer(*replies) as server, real.bench(server.url) as bench:
        session = bench.begin()
        ended = await bench.say(session, "go")
        results = bench.events(session, ToolFinished)
        calls = [
            call
            for message in bench.events(session, AssistantMessage)
            for call in message.tool_calls
        ]
        asides = bench.events(session, AuxiliaryCalled)
    assert ended.reason == "done"
    assert [call.name for call in calls] == ["exec_command"] * 2
    assert msgspec.json.decode(calls[0].arguments) == {
        "command": "echo one; echo two",
        "cwd": str(real.cwd),
    }
    assert results[0].ok
    assert "one\ntwo\n" in results[0].text
    assert not results[1].ok
    assert results[1].text.endswith("oops\n[exit code 3]")
    assert [aside.task for aside in asides] == ["codex", "codex"]


async def test_the_output_of_every_command_is_kept_and_each_call_is_counted_once(
    real: Any,
) -> None:
    """Quick ones in a row: an older codex leaves out some, and tells the end of others after that of the turn."""
    number = 8
    replies = [
        command(f"echo number {index}", f"call_{index}") for index in range(number)
    ]
    async with (
        ModelServer(*replies, "done", "again") as server,
        real.bench(server.url) as bench,
    ):
        session = bench.begin()
        ended = await bench.say(session, "go")
        results = bench.events(session, ToolFinished)
        again = await bench.say(session, "more")
    assert [(result.text, result.ok) for result in results] == [
        (f"number {n}\n", True) for n in range(number)
    ]
    assert (ended.usage.input_tokens, again.usage.input_tokens) == (
        20 * (number + 1),
        20,
    )


@pytest.mark.parametrize(
    ("answer", "written"),
    [("once", True), ("session", True), ("always", True), ("deny", False)],
)
async def test_a_command_that_leaves_the_sandbox_is_asked_about_in_the_usual_place(
    real: Any, answer: Any, written: bool
) -> None:
    outside = real.folder / "outside.txt"
    async with (
        ModelServer(escalated(f"echo data > {outside}"), "done") as server,
        real.bench(server.url) as bench,
    ):
        session = bench.begin()
        with bench.questions.attached("test"):
            await bench.service.submit(session, "go")
            asked = await bench.see("agent.approval.requested")
            assert not outside.exists()
            await bench.service.answer(
                session, asked["call_id"], answer, by="test", shown=approval_hash(asked)
            )
            ended = await bench.service.idle(session)
        (result,) = bench.events(session, ToolFinished)
    assert asked["name"] == "exec_command"
    assert asked["summary"] == f"echo data > {outside}\nin {real.cwd}"
    assert asked["reason"] == "May I?"
    assert outside.exists() is written
    assert result.ok is written
    assert ended.reason == "done"


async def test_an_answer_for_the_session_is_not_asked_for_again(real: Any) -> None:
    script = f"echo data >> {real.folder}/outside.txt"
    async with (
        ModelServer(escalated(script), escalated(script, "call_2"), "done") as server,
        real.bench(server.url) as bench,
    ):
        session = bench.begin()
        with bench.questions.attached("test"):
            await bench.service.submit(session, "go")
            asked = await bench.see("agent.approval.requested")
            await bench.service.answer(
                session,
                asked["call_id"],
                "session",
                by="test",
                shown=approval_hash(asked),
            )
            await bench.service.idle(session)
        answers = bench.events(session, ApprovalAnswered)
    assert (real.folder / "outside.txt").read_text() == "data\ndata\n"
    assert [answer.by for answer in answers if answer.by == "test"] == ["test"]


async def test_with_nobody_to_ask_it_is_declined(real: Any) -> None:
    outside = real.folder / "outside.txt"
    async with (
        ModelServer(escalated(f"echo data > {outside}"), "done") as server,
        real.bench(server.url) as bench,
    ):
        session = bench.begin()
        await bench.say(session, "go")
        (answered,) = bench.events(session, ApprovalAnswered)
    assert not outside.exists()
    assert answered.by == "nobody"


def capped(session: str) -> TurnBudget:
    return TurnBudget([Cap("turn", "tokens", 100)])


async def test_what_the_policy_forbids_is_declined_without_a_question(
    real: Any,
) -> None:
    outside = real.folder / "outside.txt"
    async with (
        ModelServer(escalated(f"echo data > {outside}"), "done") as server,
        real.bench(server.url) as bench,
    ):
        bench.judge = FixedJudge(PolicyDecision("forbid", reason="not that"))
        session = bench.begin()
        with bench.questions.attached("test"):
            await bench.say(session, "go")
        (answered,) = bench.events(session, ApprovalAnswered)
        (result,) = bench.events(session, ToolFinished)
    assert not outside.exists()
    assert (answered.answer, answered.by) == ("deny", "policy")
    assert result.text == "Not run: forbidden by policy: not that."


@pytest.mark.parametrize(("reach", "asked"), [("machine", 0), ("workspace", 1)])
async def test_only_a_policy_that_allows_the_whole_machine_spares_the_question(
    real: Any, reach: Any, asked: int
) -> None:
    outside = real.folder / "outside.txt"
    async with (
        ModelServer(escalated(f"echo data > {outside}"), "done") as server,
        real.bench(server.url) as bench,
    ):
        bench.judge = FixedJudge(PolicyDecision("allow", reach=reach))
        session = bench.begin()
        await bench.say(session, "go")
        assert len(bench.events(session, ApprovalRequested)) == asked
    assert outside.exists() is not bool(asked)


PATCH = """*** Begin Patch
*** Add File: {new}
+hello
*** Update File: {old}
@@
-before
+after
*** End Patch
"""


def patch(new: Path, old: Path) -> ScriptedResponse:
    script = f"apply_patch <<'EOF'\n{PATCH.format(new=new, old=old)}EOF\n"
    return command(script)


@pytest.mark.parametrize(("answer", "done"), [("once", True), ("deny", False)])
async def test_a_patch_outside_is_asked_about_with_what_it_changes(
    real: Any, answer: Any, done: bool
) -> None:
    new, old = real.folder / "a.py", real.folder / "b.py"
    old.write_text("before\n")
    async with (
        ModelServer(patch(new, old), "done") as server,
        real.bench(server.url) as bench,
    ):
        session = bench.begin()
        with bench.questions.attached("test"):
            await bench.service.submit(session, "go")
            asked = await bench.see("agent.approval.requested")
            await bench.service.answer(
                session, asked["call_id"], answer, by="test", shown=approval_hash(asked)
            )
            await bench.service.idle(session)
        results = bench.events(session, ToolFinished)
    assert asked["name"] == "apply_patch"
    assert asked["summary"].startswith(
        f"1 add, 1 update: {new}, {old}\nin {real.cwd}\n"
    )
    assert "-before\n+after" in asked["summary"]
    assert new.exists() is done
    assert old.read_text() == ("after\n" if done else "before\n")
    assert results[0].ok is done


async def test_a_patch_inside_is_applied_and_told_with_its_diff(real: Any) -> None:
    (real.cwd / "b.py").write_text("before\n")
    async with (
        ModelServer(patch(Path("a.py"), Path("b.py")), "done") as server,
        real.bench(server.url) as bench,
    ):
        session = bench.begin()
        await bench.say(session, "go")
        (result,) = bench.events(session, ToolFinished)
    assert result.name == "apply_patch"
    assert result.text.startswith("Created a.py: 1 line.\nEdited b.py:\n@@ ")
    assert (real.cwd / "a.py").read_text() == "hello\n"


async def test_the_models_failure_is_told_and_the_next_turn_works(real: Any) -> None:
    replies = [
        ScriptedResponse(fault=ServerFault(status=400, message="no such thing")),
        "fine",
    ]
    async with ModelServer(*replies) as server, real.bench(server.url) as bench:
        session = bench.begin()
        first = await bench.say(session, "one")
        second = await bench.say(session, "two")
    assert first.reason == "failed"
    assert "no such thing" in first.detail
    assert second.reason == "done"


async def test_a_sign_in_that_is_not_accepted_says_how_to_sign_in(real: Any) -> None:
    async with (
        ModelServer(
            ScriptedResponse(fault=ServerFault(status=401, message="bad key"))
        ) as server,
        real.bench(server.url) as bench,
    ):
        session = bench.begin()
        ended = await bench.say(session, "hi")
        assert bench.engine.pid(session) == 0
    assert ended.reason == "failed"
    assert "run `codex login`" in ended.detail.lower()


async def test_without_a_sign_in_no_model_is_asked(real: Any) -> None:
    (real.home / "config.toml").write_text(
        "[features]\nplugins = false\n[analytics]\nenabled = false\n"
    )
    async with real.bench("") as bench:
        session = bench.begin()
        ended = await bench.say(session, "hi")
        assert bench.engine.pid(session) == 0
    assert ended.reason == "failed"
    assert ended.detail == (
        "Codex is not signed in, or its sign-in has expired. Run `codex login`, then send your message again."
        " To switch back to Hermes: /codex-runtime off, or `hermes codex off`."
    )


async def test_a_cap_that_is_passed_ends_the_turn(real: Any) -> None:
    replies = [command("echo one"), command("echo two", "call_2")]
    async with (
        ModelServer(*replies, repeat=True) as server,
        real.bench(server.url) as bench,
    ):
        bench.budget = capped
        session = bench.begin()
        ended = await bench.say(session, "go")
        assert bench.events(session, TurnEnded)
    assert ended.reason == "budget"
    assert "cap per turn" in ended.detail


async def test_pictures_are_handed_on(real: Any) -> None:
    def part(kind: bytes, data: bytes) -> bytes:
        return (
            len(data).to_bytes(4, "big")
            + kind
            + data
            + zlib.crc32(kind + data).to_bytes(4, "big")
        )

    size = (8).to_bytes(4, "big")
    rows = zlib.compress((b"\0" + b"\xff\0\0" * 8) * 8)
    dot = (
        b"\x89PNG\r\n\x1a\n"
        + part(b"IHDR", size + size + b"\x08\x02\0\0\0")
        + part(b"IDAT", rows)
        + part(b"IEND", b"")
    )
    picture = real.cwd / "dot.png"
    picture.write_bytes(dot)
    async with ModelServer("a dot") as server, real.bench(server.url) as bench:
        session = bench.begin()
        await bench.service.submit(
            session,
            "what is it?",
            images=(Image(source=str(picture), media_type="image/png"),),
        )
        await bench.service.idle(session)
        assert b"input_image" in server.posts[0].body
