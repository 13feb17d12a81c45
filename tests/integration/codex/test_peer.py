"""What the real codex can't be made to do on command, played by the test: silence, drift, wedging, odd questions."""

import asyncio
import contextlib
import logging
import os
import shlex
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.fakes.codex_judge import FixedJudge
from tests.fakes.codex_peer import CodexPeer

from hermes import __version__
from hermes.app import build
from hermes.app.agent import Agent
from hermes.codex.approvals import CodexApprovals
from hermes.codex.approver import CodexApprover
from hermes.codex.client import Client, CodexLaunch, CodexListener
from hermes.codex.failures import CodexGone, CodexSilent
from hermes.codex.projector import CodexInput, Projector
from hermes.codex.session import CodexSession, Setup, TurnOpening
from hermes.codex.turn import CodexTimeouts, CodexTurnDeps
from hermes.codex.wire import MAX_LINE
from hermes.core.answers import approval_hash
from hermes.core.ports import PolicyDecision
from hermes.events import Bus
from hermes.schema.event_base import Event
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    CodexThread,
    QuestionAnswered,
    QuestionAsked,
    SessionCreated,
    TurnEnded,
    TurnStarted,
)
from hermes.schema.messages import AssistantMessage, ToolCall, ToolFinished, UserMessage
from hermes.settings import Home, Secrets, Settings
from hermes.settings.models import AuxiliarySettings, ModelSettings
from hermes.settings.sections import CodexSettings

COMMAND = {
    "type": "commandExecution",
    "id": "c1",
    "command": "/bin/bash -lc 'make'",
    "cwd": "/w",
    "status": "inProgress",
}


async def test_words_come_through_before_and_after_the_answer_to_the_request(
    played: Any,
) -> None:
    async with played.bench() as (bench, codex):
        session = bench.begin()
        await bench.service.submit(session, "hi")
        asked = await codex.receive("turn/start")
        codex.say("Early.")  # before the request is answered
        codex.send({"id": asked["id"], "result": {"turn": {"id": "turn-1"}}})
        codex.end_turn()
        ended = await bench.service.idle(session)
        (message,) = bench.events(session, AssistantMessage)
    assert asked["params"]["input"] == [{"type": "text", "text": "hi"}]
    assert (ended.reason, message.text, message.model) == ("done", "Early.", "gpt-peer")


async def test_the_thread_is_told_who_it_is_and_asks_on_request(played: Any) -> None:
    async with played.bench() as (bench, codex):
        session = bench.begin()
        await bench.service.submit(session, "hi")
        await codex.begin_turn()
        codex.end_turn()
        await bench.service.idle(session)
    (start,) = [
        one["params"] for one in codex.received if one.get("method") == "thread/start"
    ]
    assert start["approvalPolicy"] == "on-request"
    assert (
        start["developerInstructions"]
        == "You are Hermes.\n\nMemory: the user likes tea."
    )
    assert start["cwd"] == str(bench.cwd)
    assert "project_doc_max_bytes" not in start.get("config", {})


def _may_not_read(_: Path) -> bool:
    return False


async def test_notes_that_nobody_accepted_are_not_read_by_codex(played: Any) -> None:
    played.may_read_notes = _may_not_read
    async with played.bench() as (bench, codex):
        session = bench.begin()
        await bench.service.submit(session, "hi")
        await codex.begin_turn()
        codex.end_turn()
        await bench.service.idle(session)
    (start,) = [
        one["params"] for one in codex.received if one.get("method") == "thread/start"
    ]
    assert start["config"]["project_doc_max_bytes"] == 0


async def test_a_process_without_a_sign_in_is_not_used(played: Any) -> None:
    async with played.bench(signed_in=False) as (bench, codex):
        session = bench.begin()
        ended = await bench.say(session, "hi")
        assert bench.engine.pid(session) == 0
        codex.answers["account/read"] = {
            "account": {"type": "chatgpt"},
            "requiresOpenaiAuth": True,
        }
        await bench.service.submit(session, "again")
        await codex.begin_turn()
        codex.end_turn()
        again = await bench.service.idle(session)
    assert ended.reason == "failed"
    assert "Run `codex login`" in ended.detail
    assert again.reason == "done"
    assert codex.starts == 2


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("0.129.0", "older than 0.130"),
        ("0.999.1", "newer than 0.166"),
        ("0.130.0", ""),
        ("0.166.7", ""),
    ],
)
async def test_another_version_is_warned_about_once_and_used(
    played: Any, caplog: pytest.LogCaptureFixture, version: str, words: str
) -> None:
    caplog.set_level(logging.WARNING, "hermes.codex")
    async with played.bench(version=version) as (bench, codex):
        session = bench.begin()
        for turn in ("turn-1", "turn-2"):
            await bench.service.submit(session, "hi")
            await codex.begin_turn(turn)
            codex.end_turn(turn=turn)
            assert (await bench.service.idle(session)).reason == "done"
            await bench.engine.retire(session)
    said = [
        record.message
        for record in caplog.records
        if "Hermes is tested with" in record.message
    ]
    assert len(said) == (1 if words else 0)
    assert all(words in text for text in said)


@pytest.mark.parametrize(
    ("field", "before", "words"),
    [
        ("progress_timeout", [], "no progress"),
        (
            "tool_silence_timeout",
            [{**COMMAND, "status": "completed", "exitCode": 0}],
            "silent",
        ),
        ("turn_timeout", [], "longer than 0.3 seconds"),
    ],
)
async def test_each_deadline_interrupts_reports_and_retires(
    played: Any, field: str, before: list[dict[str, Any]], words: str
) -> None:
    played.codex = msgspec.convert({field: 0.3}, CodexSettings)
    async with played.bench() as (bench, codex):
        session = bench.begin()
        await bench.service.submit(session, "hi")
        await codex.begin_turn()
        for item in before:
            codex.item("completed", item)
        asked = await codex.receive("turn/interrupt")
        codex.send({"id": asked["id"], "result": {}})
        codex.end_turn("interrupted")
        ended = await bench.service.idle(session)
        assert bench.engine.pid(session) == 0
        await bench.service.submit(session, "again")
        await codex.begin_turn("turn-2")
        codex.end_turn(turn="turn-2")
        again = await bench.service.idle(session)
        resumed = [
            one["params"]["threadId"]
            for one in codex.received
            if one.get("method") == "thread/resume"
        ]
    assert ended.reason == "failed"
    assert words in ended.detail
    assert field in ended.detail
    assert again.reason == "done"
    assert resumed == ["thread-1"]


async def test_a_command_may_be_silent_and_a_person_may_take_their_time(
    played: Any,
) -> None:
    played.codex = CodexSettings(
        progress_timeout=0.3, tool_silence_timeout=0.3, turn_timeout=0.6
    )
    async with played.bench() as (bench, codex):
        session = bench.begin()
        with bench.questions.attached("test"):
            await bench.service.submit(session, "hi")
            await codex.begin_turn()
            codex.item("started", COMMAND)
            params = {
                "itemId": "c1",
                "command": "make",
                "cwd": "/w",
                "turnId": "turn-1",
                "threadId": "thread-1",
            }
            codex.send(
                {
                    "id": 0,
                    "method": "item/commandExecution/requestApproval",
                    "params": params,
                }
            )
            asked = await bench.see("agent.approval.requested")
            loop = asyncio.get_running_loop()
            waited = loop.create_future()
            loop.call_later(1.0, waited.set_result, None)  # longer than every limit
            await waited
            await bench.service.answer(
                session, asked["call_id"], "once", by="test", shown=approval_hash(asked)
            )
            assert await codex.receive(number=0) == {
                "id": 0,
                "result": {"decision": "accept"},
            }
            codex.item(
                "completed",
                {
                    **COMMAND,
                    "status": "completed",
                    "exitCode": 0,
                    "aggregatedOutput": "made",
                },
            )
            codex.say("Done.")
            codex.end_turn()
            ended = await bench.service.idle(session)
    assert ended.reason == "done"


async def test_a_wedged_process_is_ended_and_replaced(played: Any) -> None:
    async with played.bench() as (bench, codex):
        session = bench.begin()
        await bench.service.submit(session, "hi")
        await codex.begin_turn()
        codex.delta("x")
        await bench.see("agent.message.delta")
        leash = bench.engine.pid(session)
        (child,) = _children(leash)
        os.kill(child, signal.SIGSTOP)
        await bench.service.interrupt(session, by="test")
        ended = await bench.service.idle(session)
        assert bench.engine.pid(session) == 0
        assert not _exists(child)
    assert ended.reason == "interrupted"


def _children(pid: int) -> list[int]:
    return [
        int(number)
        for number in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    ]


def _exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def test_an_interrupt_reaches_a_codex_that_does_not_even_begin_the_turn(
    played: Any,
) -> None:
    async with played.bench() as (bench, codex):
        session = bench.begin()
        await bench.service.submit(session, "hi")
        await codex.receive("turn/start")
        await bench.service.interrupt(session, by="test")
        ended = await asyncio.wait_for(bench.service.idle(session), 10)
        assert bench.engine.pid(session) == 0
    assert ended.reason == "interrupted"


async def test_a_dead_process_ends_the_turn_with_words_and_the_next_one_resumes(
    played: Any,
) -> None:
    async with played.bench() as (bench, codex):
        session = bench.begin()
        await bench.service.submit(session, "hi")
        await codex.begin_turn()
        codex.item("started", COMMAND)
        codex.delta("half")
        await bench.see("agent.message.delta")
        codex.hang_up()
        ended = await bench.service.idle(session)
        (result,) = bench.events(session, ToolFinished)
        kept = bench.events(session, AssistantMessage)[-1]
        await bench.service.submit(session, "again")
        await codex.begin_turn("turn-2")
        codex.end_turn(turn="turn-2")
        assert (await bench.service.idle(session)).reason == "done"
    assert ended.reason == "failed"
    assert "codex process ended" in ended.detail
    assert "`hermes codex off`" in ended.detail
    assert not result.ok
    assert (kept.text, kept.finish) == ("half", "interrupted")


async def test_a_thread_that_codex_has_lost_is_begun_anew_with_everything_said(
    played: Any,
) -> None:
    async with played.bench() as (bench, codex):
        session = bench.begin()
        await bench.service.submit(session, "question one")
        await codex.begin_turn()
        codex.say("answer one")
        codex.end_turn()
        await bench.service.idle(session)
        await bench.engine.retire(session)
        del codex.answers["thread/resume"]
        codex.answers["thread/start"] = {"thread": {"id": "thread-2"}, "model": "m"}
        await bench.service.submit(session, "question two")
        asked = await codex.receive("thread/resume")
        codex.send(
            {
                "id": asked["id"],
                "error": {"code": -32600, "message": "no rollout found for thread id"},
            }
        )
        await codex.begin_turn("turn-2")
        codex.end_turn(turn="turn-2")
        assert (await bench.service.idle(session)).reason == "done"
        threads = [row.thread for row in bench.events(session, CodexThread)]
        told = [
            one["params"]["items"]
            for one in codex.received
            if one.get("method") == "thread/inject_items"
        ]
    assert threads[-1] == "thread-2"
    assert [item["content"][0]["text"] for item in told[-1]] == [
        "question one",
        "answer one",
    ]


async def test_a_process_that_no_longer_reacts_is_noticed_without_anybody_asking(
    tmp_path: Path,
) -> None:
    async with CodexPeer(tmp_path) as codex:
        launch = CodexLaunch(codex.program, codex.arguments, dict(os.environ), tmp_path)
        deadlines = CodexTimeouts(sign_of_life=0.2, reaction=0.2)
        session = CodexSession(Setup(launch=lambda _: launch, deadlines=deadlines))
        events: list[Event] = []

        async def write(new: Sequence[Event]) -> None:
            events.extend(new)

        threads: list[str] = []

        async def begun() -> None:
            assert threads == ["thread-1"]

        def asking(projector: Projector) -> CodexApprovals:
            approver = CodexApprover(Denying(), write, projector.refusals)
            return CodexApprovals(
                approver, FixedJudge(PolicyDecision("ask")), projector.items, tmp_path
            )

        stage = CodexTurnDeps(
            write=write,
            show=events.append,
            asking=asking,
            opened=threads.append,
            begun=begun,
        )
        words = CodexInput(({"type": "text", "text": "hi"},), "w")
        running = asyncio.ensure_future(
            session.run_turn(TurnOpening(tmp_path), words, stage)
        )
        await codex.begin_turn()
        alive = await codex.receive("thread/loaded/list")
        codex.send({"id": alive["id"], "result": {"data": []}})
        await codex.receive("thread/loaded/list")  # and this one is not answered
        result = await asyncio.wait_for(running, 20)
        await session.close()
    assert "stopped responding" in result.error
    assert (result.should_retire, result.turn_id, result.thread_id) == (
        True,
        "turn-1",
        "thread-1",
    )


class Denying:
    """Nobody is there."""

    async def ask(self, request: ApprovalRequested) -> ApprovalAnswered:
        return ApprovalAnswered(call_id=request.call_id, answer="deny", by="nobody")

    async def question(self, request: QuestionAsked) -> QuestionAnswered:
        return QuestionAnswered(call_id=request.call_id, by="nobody")


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            "failed to load configuration: config.toml:3:1",
            "config.toml:3:1. Run `hermes doctor`",
        ),
        ("codex account authentication required", "Run `codex login`"),
    ],
)
async def test_a_turn_that_is_refused_says_why_and_the_next_one_starts_afresh(
    played: Any, message: str, words: str
) -> None:
    async with played.bench() as (bench, codex):
        session = bench.begin()
        await bench.service.submit(session, "hi")
        asked = await codex.receive("turn/start")
        codex.send({"id": asked["id"], "error": {"code": -32600, "message": message}})
        ended = await bench.service.idle(session)
        await bench.service.submit(session, "again")
        await codex.begin_turn()
        codex.end_turn()
        again = await bench.service.idle(session)
    assert ended.reason == "failed"
    assert words in ended.detail.replace("1 Run", "1. Run")
    assert again.reason == "done"
    assert codex.starts == 2


def told(codex: CodexPeer) -> list[str]:
    """What codex was told of earlier turns, oldest first."""
    asked = [
        one["params"]["items"]
        for one in codex.received
        if one.get("method") == "thread/inject_items"
    ]
    return [item["content"][0]["text"] for items in asked for item in items]


@pytest.mark.parametrize("how", ["refused", "interrupted", "died"])
async def test_words_of_a_turn_that_never_began_are_told_again(
    played: Any, how: str
) -> None:
    async with played.bench() as (bench, codex):
        session = bench.begin()
        await bench.service.submit(session, "my name is Ada")
        asked = await codex.receive("turn/start")
        if how == "refused":
            codex.send(
                {"id": asked["id"], "error": {"code": -32600, "message": "busy"}}
            )
        elif how == "interrupted":
            await bench.service.interrupt(session, by="test")
        else:
            codex.hang_up()
        ended = await asyncio.wait_for(bench.service.idle(session), 20)
        await bench.service.submit(session, "what is my name?")
        await codex.begin_turn()
        codex.say("Ada")
        codex.end_turn()
        await bench.service.idle(session)
        once = told(codex)
        await bench.service.submit(session, "thanks")
        await codex.begin_turn("turn-2")
        codex.end_turn(turn="turn-2")
        await bench.service.idle(session)
    assert ended.reason in ("failed", "interrupted")
    assert once == ["my name is Ada"]
    assert told(codex) == once


async def test_a_thread_is_not_said_to_know_words_before_codex_took_them(
    played: Any,
) -> None:
    """Hermes may end at any moment: what is in the log then must not claim more than codex has."""
    async with played.bench() as (bench, codex):
        session = bench.begin()
        await bench.service.submit(session, "hi")
        await codex.receive("turn/start")
        before = bench.events(session, CodexThread)
        await bench.service.interrupt(session, by="test")
        await asyncio.wait_for(bench.service.idle(session), 20)
        (after,) = bench.events(session, CodexThread)
    assert [row.turn for row in before if row.turn] == []
    assert (after.thread, after.turn) == ("thread-1", "")


async def ask(
    bench: Any, codex: CodexPeer, method: str, *, number: int = 0, **params: Any
) -> dict[str, Any]:
    """Codex's question in a turn of its own; the answer it gets."""
    session = bench.begin()
    await bench.service.submit(session, "hi")
    await codex.begin_turn()
    return await _ask(codex, method, number, params)


async def _ask(
    codex: CodexPeer, method: str, number: int, params: dict[str, Any]
) -> dict[str, Any]:
    codex.send(
        {
            "id": number,
            "method": method,
            "params": {"threadId": "thread-1", "turnId": "turn-1", **params},
        }
    )
    answer = await codex.receive(number=number)
    codex.end_turn()
    return answer


async def test_an_unknown_question_gets_an_error_and_never_silence(played: Any) -> None:
    async with played.bench() as (bench, codex):
        answer = await ask(bench, codex, "item/somethingNew/request")
    assert answer["error"]["code"] == -32601


@pytest.mark.parametrize(
    ("method", "params", "no"),
    [
        (
            "item/permissions/requestApproval",
            {"permissions": {"network": {"enabled": True}}, "reason": "to install it"},
            {"permissions": {}, "scope": "turn"},
        ),
        (
            "item/fileChange/requestApproval",
            {"itemId": "unknown", "reason": "to install it"},
            {"decision": "decline"},
        ),
        (
            "item/commandExecution/requestApproval",
            {
                "itemId": "c",
                "networkApprovalContext": {"host": "a.org", "protocol": "https"},
                "reason": "to install it",
            },
            {"decision": "decline"},
        ),
    ],
)
async def test_what_is_no_plain_command_is_declined_and_said_only_when_nobody_can_answer(
    played: Any, method: str, params: dict[str, Any], no: dict[str, Any]
) -> None:
    async with played.bench() as (bench, codex):
        assert (await ask(bench, codex, method, **params))["result"] == no
        asked = await bench.see("agent.approval.requested")
        assert (await bench.see("agent.approval.answered"))["by"] == "nobody"
        await bench.service.idle(asked["session_id"])
        with bench.questions.attached("test"):
            answering = asyncio.ensure_future(ask(bench, codex, method, **params))
            again = await bench.see("agent.approval.requested")
            shown = approval_hash(again)
            await bench.service.answer(
                again["session_id"], again["call_id"], "once", by="test", shown=shown
            )
            allowed = await answering
    assert asked["reason"] == again["reason"] == "to install it"
    assert allowed["result"] != no


async def test_the_folder_in_a_question_is_never_empty(played: Any) -> None:
    async with played.bench() as (bench, codex):
        params: dict[str, Any] = {
            "itemId": "c1",
            "command": "make",
            "cwd": None,
            "reason": None,
        }
        answer = await ask(
            bench, codex, "item/commandExecution/requestApproval", **params
        )
        asked = await bench.see("agent.approval.requested")
    assert answer["result"] == {"decision": "decline"}
    assert asked["summary"] == f"make\nin {bench.cwd}"
    assert asked["reason"]


FORM = {
    "type": "object",
    "properties": {
        "colour": {"type": "string", "enum": ["red"]},
        "sure": {"type": "boolean"},
    },
}


async def test_an_elicitation_of_hermes_own_server_is_accepted(played: Any) -> None:
    async with played.bench() as (bench, codex):
        answer = await ask(
            bench,
            codex,
            "mcpServer/elicitation/request",
            serverName="hermes",
            message="?",
        )
    assert answer["result"]["action"] == "accept"


@pytest.mark.parametrize("there", [True, False])
async def test_an_elicitation_of_another_server_is_put_to_the_user(
    played: Any, there: bool
) -> None:
    async with played.bench() as (bench, codex):
        session = bench.begin()
        with bench.questions.attached("test") if there else contextlib.nullcontext():
            await bench.service.submit(session, "hi")
            await codex.begin_turn()
            params = {
                "serverName": "lab",
                "message": "Which?",
                "mode": "form",
                "_meta": None,
                "requestedSchema": FORM,
            }
            asking = asyncio.ensure_future(
                _ask(codex, "mcpServer/elicitation/request", 0, params)
            )
            for said in ("red", "yes") if there else ():
                question = await bench.see("agent.question.asked")
                assert "lab: Which?" in question["text"]
                await bench.service.reply(session, question["call_id"], said, by="test")
            answer = await asking
            await bench.service.idle(session)
    expected = {
        "action": "accept",
        "content": {"colour": "red", "sure": True},
        "_meta": None,
    }
    assert answer["result"] == (
        expected if there else {"action": "decline", "content": None, "_meta": None}
    )


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ("once", {"action": "accept", "content": {}, "_meta": None}),
        (
            "session",
            {"action": "accept", "content": {}, "_meta": {"persist": "session"}},
        ),
        ("deny", {"action": "decline", "content": None, "_meta": None}),
    ],
)
async def test_a_tool_of_another_server_is_asked_about_like_any_call(
    played: Any, answer: Any, result: Any
) -> None:
    item = {
        "type": "mcpToolCall",
        "id": "m1",
        "server": "lab",
        "tool": "erase",
        "status": "inProgress",
        "arguments": {"name": "x"},
    }
    meta = {"codex_approval_kind": "mcp_tool_call", "tool_params": {"name": "x"}}
    params = {
        "serverName": "lab",
        "message": "Allow it?",
        "mode": "form",
        "_meta": meta,
        "requestedSchema": FORM,
    }
    async with played.bench() as (bench, codex):
        session = bench.begin()
        with bench.questions.attached("test"):
            await bench.service.submit(session, "hi")
            await codex.begin_turn()
            codex.item("started", item)
            asking = asyncio.ensure_future(
                _ask(codex, "mcpServer/elicitation/request", 0, params)
            )
            asked = await bench.see("agent.approval.requested")
            await bench.service.answer(
                session, asked["call_id"], answer, by="test", shown=approval_hash(asked)
            )
            got = await asking
            await bench.service.idle(session)
    assert (asked["name"], asked["call_id"]) == ("mcp.lab.erase", "m1")
    assert '{"name":"x"}' in asked["summary"]
    assert got["result"] == result


async def test_a_question_that_codex_settles_itself_is_withdrawn(played: Any) -> None:
    async with played.bench() as (bench, codex):
        session = bench.begin()
        with bench.questions.attached("test"):
            await bench.service.submit(session, "hi")
            await codex.begin_turn()
            codex.item("started", COMMAND)
            codex.send(
                {
                    "id": 0,
                    "method": "item/commandExecution/requestApproval",
                    "params": {"itemId": "c1", "command": "x"},
                }
            )
            asked = await bench.see("agent.approval.requested")
            codex.notify("serverRequest/resolved", threadId="thread-1", requestId=0)
            codex.end_turn("interrupted")
            await bench.service.idle(session)
            assert not await bench.service.answer(
                session, asked["call_id"], "once", by="test"
            )


async def test_codex_is_interrupted_once_however_often_it_is_asked(played: Any) -> None:
    async with played.bench() as (bench, codex):
        session = bench.begin()
        await bench.service.submit(session, "hi")
        await codex.begin_turn()
        codex.delta("x")
        await bench.see("agent.message.delta")
        await bench.service.interrupt(session, by="test")
        await bench.service.interrupt(session, by="test")
        asked = await codex.receive("turn/interrupt")
        codex.send({"id": asked["id"], "result": {}})
        codex.end_turn("interrupted")
        ended = await bench.service.idle(session)
    assert ended.reason == "interrupted"
    assert sum(one.get("method") == "turn/interrupt" for one in codex.received) == 1


async def test_an_idle_process_is_ended_after_a_while_and_comes_back(
    played: Any,
) -> None:
    played.codex = CodexSettings(idle_timeout=0.2)
    async with played.bench() as (bench, codex):
        session = bench.begin()
        for turn in ("turn-1", "turn-2"):
            await bench.service.submit(session, "hi")
            await codex.begin_turn(turn)
            codex.end_turn(turn=turn)
            await bench.service.idle(session)
            async with asyncio.timeout(10):
                while bench.engine.pid(session):  # noqa: ASYNC110 - a process has no event
                    await asyncio.sleep(0.01)
    assert codex.starts == 2


@asynccontextmanager
async def client(
    codex: CodexPeer, folder: Path, heard: "asyncio.Queue[Any]", **more: Any
) -> AsyncIterator[Client]:
    async def answer(_: object) -> object:
        return None

    launch = CodexLaunch(
        codex.program, codex.arguments, dict(os.environ), folder, **more
    )
    made = await Client.start(launch, CodexListener(heard.put, answer))
    try:
        yield made
    finally:
        await made.close()


async def test_odd_lines_and_answers_to_nobody_are_passed_over_and_counted(
    tmp_path: Path,
) -> None:
    heard: asyncio.Queue[Any] = asyncio.Queue()
    async with CodexPeer(tmp_path) as codex, client(codex, tmp_path, heard) as made:
        codex.raw(b"not json\n\n[1]\n")
        codex.send({"id": 999, "result": {}}, {"id": None, "error": {"code": 1}})
        codex.notify("thread/started")
        notice = await asyncio.wait_for(heard.get(), 10)
        assert notice.method == "thread/started"
        assert made.noise == 4
        assert made.alive


async def test_a_line_past_the_limit_ends_the_process_soon(tmp_path: Path) -> None:
    heard: asyncio.Queue[Any] = asyncio.Queue()
    async with CodexPeer(tmp_path) as codex, client(codex, tmp_path, heard) as made:
        waiting = asyncio.ensure_future(
            made.request("never/answered", {}, dict[str, Any], timeout=60)
        )
        await codex.receive("never/answered")
        codex.raw(b"x" * (MAX_LINE + 1))
        with pytest.raises(CodexGone, match="more than 16 MiB"):
            await waiting
        assert await asyncio.wait_for(heard.get(), 10) is None


async def test_a_request_has_an_end(tmp_path: Path) -> None:
    heard: asyncio.Queue[Any] = asyncio.Queue()
    async with CodexPeer(tmp_path) as codex, client(codex, tmp_path, heard) as made:
        with pytest.raises(CodexSilent, match=r"never/answered within 0\.05 seconds"):
            await made.request("never/answered", {}, dict[str, Any], timeout=0.05)
        late = await codex.receive("never/answered")
        codex.send({"id": late["id"], "result": {}})
        codex.notify("x")
        await asyncio.wait_for(heard.get(), 10)
        assert made.noise == 1


async def test_a_codex_that_never_says_hello_is_given_up(tmp_path: Path) -> None:
    heard: asyncio.Queue[Any] = asyncio.Queue()
    async with CodexPeer(tmp_path) as codex:
        del codex.answers["initialize"]
        with pytest.raises(CodexSilent, match=r"did not start within 0\.5 seconds"):
            async with client(codex, tmp_path, heard, startup_timeout=0.5):
                pass


async def test_a_program_that_ends_at_once_says_why(tmp_path: Path) -> None:
    async def nothing(_: object) -> None:
        return None

    launch = CodexLaunch(
        Path("/bin/sh"),
        ("-c", "echo 'no such config' >&2; exit 3"),
        dict(os.environ),
        tmp_path,
    )
    with pytest.raises(CodexGone, match=r"exit code 3.*no such config"):
        await Client.start(launch, CodexListener(nothing, nothing))


@pytest.mark.parametrize("begun", [False, True])
async def test_a_process_that_dies_of_its_login_says_how_to_sign_in(
    tmp_path: Path, begun: bool
) -> None:
    async def nothing(_: object) -> None:
        return None

    greet = """read line; echo '{"id":1,"result":{"userAgent":"hermes/0.166.0"}}'; read line; read line; """
    die = "echo 'ERROR token endpoint: {\"error\":\"invalid_grant\"}' >&2; echo 'thread main panicked' >&2; exit 1"
    launch = CodexLaunch(
        Path("/bin/sh"),
        ("-c", (greet if begun else "") + die),
        dict(os.environ),
        tmp_path,
    )

    async def use() -> None:
        made = await Client.start(launch, CodexListener(nothing, nothing))
        try:
            await made.request("account/read", {}, dict[str, Any])
        finally:
            await made.close()

    with pytest.raises(CodexGone) as raised:
        await use()
    assert raised.value.message == "Codex is not signed in, or its sign-in has expired."
    assert "Run `codex login`" in raised.value.hint
    assert "/codex-runtime off" in raised.value.hint


@pytest.mark.parametrize(
    "answer",
    [
        {"thread": {"id": "URN:UUID:01A1E4B2-CE9F-75C2-9B72-454845B4CFDD"}},
        {"thread": {"sessionId": "01a1e4b2ce9f75c29b72454845b4cfdd"}},
        {"threadId": "01a1e4b2-ce9f-75c2-9b72-454845b4cfdd"},
        {"thread": "01a1e4b2-ce9f-75c2-9b72-454845b4cfdd"},
        {"conversationId": "01a1e4b2-ce9f-75c2-9b72-454845b4cfdd"},
    ],
)
async def test_a_threads_id_is_known_however_codex_spells_it(
    played: Any, answer: dict[str, Any]
) -> None:
    async with played.bench() as (bench, codex):
        codex.answers["thread/start"] = answer
        session = bench.begin()
        for turn in ("turn-1", "turn-2"):
            await bench.service.submit(session, "hi")
            asked = await codex.begin_turn(turn)
            codex.end_turn(turn=turn)
            assert (await bench.service.idle(session)).reason == "done"
        threads = {row.thread for row in bench.events(session, CodexThread)}
    assert (
        threads
        == {asked["params"]["threadId"]}
        == {"01a1e4b2-ce9f-75c2-9b72-454845b4cfdd"}
    )
    assert not [one for one in codex.received if one.get("method") == "thread/resume"]


async def test_the_client_gives_its_name_and_version(played: Any) -> None:
    async with played.bench() as (bench, codex):
        session = bench.begin()
        await bench.service.submit(session, "hi")
        await codex.begin_turn()
        codex.end_turn()
        await bench.service.idle(session)
    (hello,) = [
        one["params"] for one in codex.received if one.get("method") == "initialize"
    ]
    assert hello["clientInfo"] == {
        "name": "hermes",
        "title": "Hermes",
        "version": __version__,
    }


async def test_a_turn_that_is_aborted_in_words_is_also_ended_in_codex(
    played: Any,
) -> None:
    async with played.bench() as (bench, codex):
        session = bench.begin()
        await bench.service.submit(session, "hi")
        await codex.begin_turn()
        codex.say("I had begun. <turn_aborted/>")
        asked = await codex.receive("turn/interrupt")
        codex.send({"id": asked["id"], "result": {}})
        ended = await bench.service.idle(session)
        (message,) = bench.events(session, AssistantMessage)
    assert ended.reason == "interrupted"
    assert (message.text, message.finish) == ("I had begun.", "interrupted")


async def test_every_turn_ended_exactly_once(played: Any) -> None:
    async with played.bench() as (bench, codex):
        session = bench.begin()
        await bench.service.submit(session, "hi")
        await codex.begin_turn()
        codex.end_turn(
            "failed", error={"message": "boom", "codexErrorInfo": "usageLimitExceeded"}
        )
        codex.end_turn("completed")
        ended = await bench.service.idle(session)
        assert len(bench.events(session, TurnEnded)) == 1
    assert ended.detail.startswith(
        "Codex could not finish: boom Wait until the limit is reset"
    )


async def test_a_question_that_a_crash_left_open_is_closed_because_that_codex_is_gone(
    played: Any,
) -> None:
    async with played.bench() as (bench, codex):
        session = bench.begin()
        call = ToolCall(id="c1", name="exec_command", arguments="{}")
        request = ApprovalRequested(
            call_id="c1", name="exec_command", arguments="{}", summary="make"
        )
        rows = (
            UserMessage(text="hi"),
            TurnStarted(inputs=(2,), runtime="codex"),
            AssistantMessage(tool_calls=(call,)),
        )
        await asyncio.to_thread(bench.app.record, session, *rows, request)
        with bench.questions.attached("test"):
            await bench.service.resume(session)
            await bench.service.idle(session)
        (result,) = bench.events(session, ToolFinished)
        assert codex.starts == 0
    assert result.text == "Not run: codex ended before it was answered."


async def test_another_mode_settles_what_codex_asks_and_would_not_be_asked_any_more(
    tmp_path: Path,
) -> None:
    """A patch is asked about in every mode, so it stays open; it is not judged as a call of Hermes' own tool."""
    seen: asyncio.Queue[Any] = asyncio.Queue()
    bus, cwd = Bus(), tmp_path / "work"
    cwd.mkdir()
    async with CodexPeer(tmp_path) as codex:
        thread = codex.answers.pop("thread/start")
        program = tmp_path / "codex"
        program.write_text(
            f"#!/bin/sh\nexec {shlex.join([str(codex.program), *codex.arguments])}\n"
        )
        program.chmod(0o755)
        model = ModelSettings(openai_runtime="codex_app_server")
        settings = Settings(
            model=model,
            codex=CodexSettings(binary=str(program)),
            auxiliary=AuxiliarySettings(title="off"),
        )
        with build(settings, Home(tmp_path / "home"), bus=bus) as app:
            bus.subscribe("agent.approval.requested", seen.put_nowait)
            agent = Agent(app, Secrets({}, {}))
            session = app.begin(SessionCreated(surface="test", cwd=str(cwd))).session
            with agent.questions.attached("test"):
                await agent.service.submit(session, "hi")
                opening = await codex.receive("thread/start")
                codex.send({"id": opening["id"], "result": thread})
                codex.notify(
                    "mcpServer/startupStatus/updated", name="hermes", status="ready"
                )
                await codex.begin_turn()
                change = {
                    "path": str(cwd / "a"),
                    "kind": {"type": "add"},
                    "diff": "x\n",
                }
                codex.item(
                    "started",
                    {
                        "type": "fileChange",
                        "id": "p1",
                        "changes": [change],
                        "status": "inProgress",
                    },
                )
                about = {"threadId": "thread-1", "turnId": "turn-1", "cwd": str(cwd)}
                command = "item/commandExecution/requestApproval"
                asked: list[tuple[str, dict[str, Any]]] = [
                    (command, {"itemId": "c0", "command": "docker ps"}),
                    (
                        command,
                        {"itemId": "c1", "command": "docker ps", "kind": "writeStdin"},
                    ),
                    ("item/fileChange/requestApproval", {"itemId": "p1"}),
                ]
                for number, (method, params) in enumerate(asked):
                    codex.send(
                        {"id": number, "method": method, "params": {**about, **params}}
                    )
                    await asyncio.wait_for(seen.get(), 20)
                agent.use(approvals="full")
                assert await agent.settle_allowed(by="test") == 1
                assert (await codex.receive(number=0))["result"] == {
                    "decision": "accept"
                }
                assert {
                    one.call_id for one in await agent.service.pending(session)
                } == {"c1", "p1"}
                codex.end_turn()
                await agent.service.idle(session)
            await agent.close()
