"""Servers' tools that a model searches for: on an agent as it is put together, with real server processes."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from tests.integration.test_approvals import Bench, secrets

from hermes.app import build
from hermes.core.answers import approval_hash
from hermes.events import Bus
from hermes.schema.events import ApprovalRequested, ToolStarted
from hermes.schema.messages import ToolFinished
from hermes.settings import Home, Settings
from hermes.settings.mcp import McpServerSettings, McpSettings
from hermes.settings.models import AuxiliarySettings
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

PROGRAM = Path(__file__).with_name("many_tools_server.py")
MAX_FIRST_REQUEST_BYTES = 14 * 1024
CATALOGUE = {"tool_search", "tool_describe", "tool_call"}
ISSUE = {
    "name": "create_issue",
    "description": "Opens a new issue in a repository.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "labels": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["title"],
    },
}


def filler(number: int) -> dict[str, Any]:
    words = f"Reads sensor {number} of the greenhouse and reports its moisture. "
    schema = {"type": "object", "properties": {"unit": {"type": "string"}}}
    return {
        "name": f"sensor_{number}",
        "description": words * 5,
        "inputSchema": schema,
    }


def server(folder: Path, name: str, tools: list[dict[str, Any]]) -> McpServerSettings:
    file = folder / f"{name}.json"
    file.write_text(json.dumps(tools))
    return McpServerSettings(
        command=sys.executable,
        args=("-I", "-S", str(PROGRAM), str(file)),
        connect_timeout=20.0,
    )


@asynccontextmanager
async def agent_with(
    tmp_path: Path,
    model: ModelServer,
    servers: dict[str, McpServerSettings],
    mcp: McpSettings = McpSettings(),  # noqa: B008 - frozen
) -> AsyncIterator[Bench]:
    project, bus = tmp_path / "project", Bus()
    project.mkdir()
    settings = Settings(
        auxiliary=AuxiliarySettings(title="off"), mcp_servers=servers, mcp=mcp
    )
    with build(settings, Home(tmp_path / "home"), bus=bus) as app:
        one = Bench(app, bus, secrets(model), project)
        with one.agent.questions.attached("test"):
            assert one.agent.toolbox.servers is not None
            await one.agent.toolbox.servers.prepare(20.0)  # a busy machine is slow
            yield one
            await one.agent.close()


def calls(name: str, /, **arguments: Any) -> ScriptedResponse:
    text = json.dumps(arguments)
    return ScriptedResponse(
        calls=(ServedCall(id=f"id-{name}", name=name, arguments=text),)
    )


def offered(model: ModelServer, number: int) -> set[str]:
    sent = msgspec.json.decode(model.posts[number].body)
    return {tool["function"]["name"] for tool in sent["tools"]}


async def test_five_hundred_tools_are_found_described_and_called_under_their_own_names(
    tmp_path: Path,
) -> None:
    servers = {
        f"garden{number}": server(
            tmp_path, f"g{number}", [filler(i) for i in range(100)]
        )
        for number in range(4)
    }
    many = [*(filler(i) for i in range(99)), ISSUE]
    servers["forge"] = server(tmp_path, "forge", many)
    call = {"title": "It leaks", "labels": ["bug"]}
    replies = (
        calls("tool_search", query="file a bug in the repo"),
        calls("tool_describe", names=["mcp.forge.create_issue"]),
        calls("tool_call", name="forge.create_issue", arguments=call),
        "Done.",
    )
    async with (
        ModelServer(*replies) as model,
        agent_with(tmp_path, model, servers) as one,
    ):
        await one.agent.service.submit(one.session, "There is a leak")
        assert await one.asked.next() == "id-tool_call"
        (request,) = await one.agent.service.pending(one.session)
        assert isinstance(request, ApprovalRequested)
        assert request.name == "mcp.forge.create_issue"
        assert json.loads(request.arguments) == call
        assert await one.agent.service.answer(
            one.session,
            request.call_id,
            "once",
            by="test",
            shown=approval_hash(request),
        )
        async with asyncio.timeout(20):
            await one.agent.service.idle(one.session)
        rows = [row.event for row in one.app.store.log.every_event(one.session)]
    started = [row.name for row in rows if isinstance(row, ToolStarted)]
    finished = {row.name: row.text for row in rows if isinstance(row, ToolFinished)}
    assert started == ["tool_search", "tool_describe", "mcp.forge.create_issue"]
    assert "mcp.forge.create_issue(title: string, labels?: array)" in next(
        line for line in finished["tool_search"].splitlines() if line.startswith("mcp.")
    )
    assert "<untrusted source=" in finished["tool_search"]
    assert '"required":["title"]' in finished["tool_describe"]
    assert '["create_issue", {"title": "It leaks"' in finished["mcp.forge.create_issue"]
    assert offered(model, 0) >= CATALOGUE
    assert not any(name.startswith("mcp__") for name in offered(model, 0))
    assert len(model.posts[0].body) <= MAX_FIRST_REQUEST_BYTES
    first = model.posts[0].body.rpartition(b"]")[0][:4000]
    assert all(post.body.startswith(first) for post in model.posts)


async def test_few_tools_stand_in_the_prompt_and_the_search_does_not(
    tmp_path: Path,
) -> None:
    servers = {"forge": server(tmp_path, "forge", [ISSUE])}
    async with (
        ModelServer("Hello.") as model,
        agent_with(tmp_path, model, servers) as one,
    ):
        await one.agent.service.submit(one.session, "hi")
        await one.agent.service.idle(one.session)
    assert "mcp__forge__create_issue" in offered(model, 0)
    assert not CATALOGUE & offered(model, 0)


async def test_always_defers_even_one_tool_and_a_name_that_is_wrong_is_explained(
    tmp_path: Path,
) -> None:
    servers = {"forge": server(tmp_path, "forge", [ISSUE])}
    replies = (calls("tool_call", name="create_isue", arguments={}), "Sorry.")
    async with (
        ModelServer(*replies) as model,
        agent_with(tmp_path, model, servers, McpSettings(defer="always")) as one,
    ):
        await one.agent.service.submit(one.session, "hi")
        await one.agent.service.idle(one.session)
    assert offered(model, 0) >= CATALOGUE
    assert "mcp__forge__create_issue" not in offered(model, 0)
    assert b"Did you mean mcp.forge.create_issue?" in model.posts[1].body
