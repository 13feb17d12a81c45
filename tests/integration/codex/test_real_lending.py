"""Tools that Hermes lends the real codex program: they come back to the running session, with its policy and user."""

import asyncio
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hermes.codex.tool_lending import (
    LendingContext,
    LendingRequest,
    send_lending_request,
)
from hermes.codex.tools_server import serve_command
from hermes.core.answers import approval_hash
from hermes.core.ports import Approver, PolicyDecision, Tool, ToolContext
from hermes.schema.events import ApprovalRequested, ToolStarted
from hermes.schema.messages import AssistantMessage, ToolFinished
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall
from hermes.tools.ask_user import ask_user
from hermes.tools.tool import tool

SERVE = serve_command()


@tool("web_search", effect="network")
def web_search(context: ToolContext, query: str) -> str:
    """Searches."""
    return f"found {query} in session {context.session}"


@tool("write_file", effect="files", paths=("path",))
def write_file(context: ToolContext, path: str) -> str:
    """Writes."""
    raise AssertionError("a file tool was lent")


@tool("terminal", effect="other")
def terminal(context: ToolContext, command: str) -> str:
    """Runs."""
    raise AssertionError("a shell was lent")


@tool("delegate", effect="read")
async def delegate(context: ToolContext, task: str) -> str:
    """Waits for ever."""
    await asyncio.Event().wait()
    return task


TOOLS: dict[str, Tool] = {
    one.spec.name: one for one in (web_search, write_file, terminal, ask_user, delegate)
}


class Asks:
    """A policy that asks about searches."""

    def judge(
        self, tool: Tool, arguments: Mapping[str, Any], cwd: Path
    ) -> PolicyDecision:
        return PolicyDecision(
            "ask" if tool.spec.name == "web_search" else "allow",
            summary="search the web",
        )

    def remember(self, request: ApprovalRequested, rule: str = "") -> None:
        raise AssertionError("not asked for")


def lending(approvals: Approver) -> LendingContext:
    return LendingContext(TOOLS, Asks(), approvals)


def lent(
    real: Any, name: str, arguments: dict[str, Any], number: str = "call_1"
) -> ScriptedResponse:
    text = msgspec.json.encode(arguments).decode()
    return ScriptedResponse(
        calls=(
            ServedCall(
                name, text, number, "mcp__hermes" if real.is_newest else "mcp__hermes__"
            ),
        )
    )


@pytest.fixture
def lender(real: Any) -> Any:
    real.lend_command = SERVE
    return real


async def test_a_lent_tool_runs_in_the_session_under_its_policy_with_its_user(
    lender: Any,
) -> None:
    replies = [
        lent(lender, "web_search", {"query": "tea"}),
        lent(lender, "ask_user", {"question": "green?"}, "call_2"),
        "done",
    ]
    async with ModelServer(*replies) as server, lender.bench(server.url) as bench:
        bench.lending = lending
        session = bench.begin()
        with bench.questions.attached("test"):
            await bench.service.submit(session, "search")
            asked = await bench.see("agent.approval.requested")
            await bench.service.answer(
                session, asked["call_id"], "once", by="test", shown=approval_hash(asked)
            )
            question = await bench.see("agent.question.asked")
            await bench.service.reply(session, question["call_id"], "black", by="test")
            ended = await bench.service.idle(session)
        calls = [
            call.name
            for message in bench.events(session, AssistantMessage)
            for call in message.tool_calls
        ]
        texts = [row.text for row in bench.events(session, ToolFinished)]
        started = [row.name for row in bench.events(session, ToolStarted)]
        sent = server.posts[-1].body
    assert ended.reason == "done"
    assert (asked["name"], asked["summary"]) == ("web_search", "search the web")
    assert calls == ["mcp.hermes.web_search", "mcp.hermes.ask_user"]
    assert f"found tea in session {session}" in texts
    assert "black" in texts
    assert started.count("web_search") == 1
    assert b"found tea in session" in sent


async def test_only_what_codex_lacks_is_offered(lender: Any) -> None:
    async with ModelServer("hi") as server, lender.bench(server.url) as bench:
        bench.lending = lending
        session = bench.begin()
        await bench.say(session, "hi")
        _, lent_by = bench.engine._sessions[session]
        reply = await send_lending_request(
            str(lent_by._path), LendingRequest(lent_by._token)
        )
        assert sorted(offer.spec.name for offer in reply.offers) == [
            "ask_user",
            "delegate",
            "web_search",
        ]


async def test_an_interrupt_ends_a_lent_call(lender: Any) -> None:
    async with (
        ModelServer(lent(lender, "delegate", {"task": "wait"}), "on") as server,
        lender.bench(server.url) as bench,
    ):
        bench.lending = lending
        session = bench.begin()
        await bench.service.submit(session, "wait")
        await bench.see("agent.tool.started", name="delegate")
        await bench.service.interrupt(session, by="test")
        ended = await asyncio.wait_for(bench.service.idle(session), 10)
        assert (await bench.say(session, "on")).reason == "done"
    assert ended.reason == "interrupted"


async def test_the_socket_is_private_and_wants_its_token_and_a_turn(
    lender: Any,
) -> None:
    async with ModelServer("hi") as server:
        async with lender.bench(server.url) as bench:
            bench.lending = lending
            session = bench.begin()
            await bench.say(session, "hi")
            _, lent_by = bench.engine._sessions[session]
            path = lent_by._path
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            wrong = await send_lending_request(
                str(path), LendingRequest("guess", "web_search", {"query": "x"})
            )
            late = await send_lending_request(
                str(path), LendingRequest(lent_by._token, "web_search", {"query": "x"})
            )
        assert not path.exists()
    assert (wrong.result, wrong.refusal) == (None, "The token is wrong.")
    assert late.result is None
    assert "No turn is running" in late.refusal
