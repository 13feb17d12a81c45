"""What plugins add to the agent: tools, slash commands, a veto before a tool call, and context engines."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.fakes.codex_peer import CodexPeer
from tests.integration.test_agent import secrets

from hermes.app import build
from hermes.app.agent import Agent
from hermes.app.plugin_parts import (
    PluginVeto,
    run_plugin_command,
    summarise_by_plugin,
)
from hermes.codex.tool_lending import (
    SOCKET,
    TOKEN,
    LendingRequest,
    send_lending_request,
)
from hermes.core.compaction import CompactionCut, NotCompacted
from hermes.errors import HermesError
from hermes.events import Bus
from hermes.plugins import PluginRegistry
from hermes.plugins.agent_plugins import AgentPlugins
from hermes.schema.events import ApprovalAnswered, ApprovalRequested, SessionCreated
from hermes.schema.messages import AssistantMessage, ToolFinished, UserMessage
from hermes.settings import Home, Secrets, Settings
from hermes.settings.models import AuxiliarySettings, ModelSettings
from hermes.settings.sections import CodexSettings
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

_GUARD = """
from . import greetings

def register(ctx):
    schema = {"name": "greet", "description": "Greets somebody.",
              "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}
    ctx.register_tool(name="greet", toolset="guard", schema=schema, handler=greetings.greet)
    ctx.register_hook("pre_tool_call", greetings.judge)
    ctx.register_hook("post_llm_call", print)
    ctx.register_command("shout", handler=greetings.shout, description="Says it loud.")
    ctx.register_context_engine(greetings.Short())
    ctx.register_video_gen_provider(object())
"""
_GREETINGS = """
import json

def greet(params, **kwargs):
    return json.dumps({"greeting": "Hello, " + params["name"]})

def judge(tool_name, args, task_id="", **kwargs):
    if args.get("path") == "secret.txt":
        return {"action": "block", "message": "secret.txt is not yours to read"}
    if "publish" in args.get("command", "") or tool_name == "todo":
        return {"action": "block", "message": f"no {tool_name} today"}
    if args.get("path") == "broken.txt":
        raise KeyError("oops")

async def shout(words):
    return words.upper() + "!"

class Short:
    name = "short"

    def compress(self, messages, current_tokens=None):
        assert messages[0] == {"role": "assistant", "content": "one"}
        assert "hunter2" not in str(messages)
        return [{"role": "user", "content": f"{len(messages)} messages, in short; hunter2"}]
"""


def _enabled(home: Path, init: str = _GUARD) -> PluginRegistry:
    folder = home / "plugins" / "guard"
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text(
        "name: guard\nversion: 1.0\ndescription: Watches.\n"
    )
    (folder / "__init__.py").write_text(init)
    (folder / "greetings.py").write_text(_GREETINGS)
    registry = PluginRegistry(Home(home))
    registry.enable("guard")
    return registry


async def test_a_plugin_adds_a_tool_and_its_veto_reaches_user_and_model(
    tmp_path: Path,
) -> None:
    _enabled(tmp_path / "home")
    for name in ("secret.txt", "broken.txt", "open.txt"):
        (tmp_path / name).write_text(f"text of {name}")
    calls = [
        ServedCall("read_file", msgspec.json.encode({"path": name}).decode())
        for name in ("secret.txt", "broken.txt", "open.txt")
    ]
    greet = ServedCall("greet", '{"name": "Ada"}')
    script = (ScriptedResponse(calls=(*calls, greet)), "Done.")
    async with ModelServer(*script) as server:
        with build(Settings(), Home(tmp_path / "home"), bus=Bus()) as app:
            agent = Agent(app, secrets(server), approvals="full")
            session = app.begin(
                SessionCreated(surface="cli", cwd=str(tmp_path))
            ).session
            await agent.service.submit(session, "look")
            await asyncio.wait_for(agent.service.idle(session), 60)
            rows = [row.event for row in app.store.log.events(session)]
            await agent.close()
    results = [one for one in rows if isinstance(one, ToolFinished)]
    said = "plugin guard: secret.txt is not yours to read"
    assert [one.ok for one in results] == [False, False, True, True]
    assert said in results[0].text
    assert "plugin guard failed while it looked at the call" in results[1].text
    assert "text of open.txt" in results[2].text
    assert "Hello, Ada" in results[3].text
    asked = [one for one in rows if isinstance(one, ApprovalRequested)]
    assert said in [one.reason for one in asked]  # reads run at the same time
    denied = [one for one in rows if isinstance(one, ApprovalAnswered)]
    assert [one.answer for one in denied[:2]] == ["deny", "deny"]
    tools = msgspec.json.decode(server.posts[0].body)["tools"]
    assert "greet" in [one["function"]["name"] for one in tools]


async def test_a_veto_holds_for_codex_s_own_commands_and_for_the_tools_it_is_lent(
    tmp_path: Path,
) -> None:
    _enabled(tmp_path / "home")
    async with CodexPeer(tmp_path) as codex:
        program = tmp_path / "codex"
        program.write_text(
            f"#!/bin/sh\nexec {codex.program} {' '.join(codex.arguments)}\n"
        )
        program.chmod(0o755)
        settings = Settings(
            model=ModelSettings(openai_runtime="codex_app_server"),
            codex=CodexSettings(binary=str(program)),
            auxiliary=AuxiliarySettings(title="off"),
        )
        opened = codex.answers.pop("thread/start")
        with build(settings, Home(tmp_path / "home"), bus=Bus()) as app:
            agent = Agent(app, Secrets({}, {}))
            cwd = str(tmp_path)
            session = app.begin(SessionCreated(surface="cli", cwd=cwd)).session
            await agent.service.submit(session, "go")
            opening = await codex.receive("thread/start")
            codex.notify(
                "mcpServer/startupStatus/updated", name="hermes", status="ready"
            )
            codex.send({"id": opening["id"], "result": opened})
            await codex.begin_turn()
            for number, command in enumerate(("make publish", "make build")):
                asked = {"itemId": f"c{number}", "command": command, "cwd": cwd}
                method = "item/commandExecution/requestApproval"
                codex.send({"id": number, "method": method, "params": asked})
                answer = await codex.receive(number=number)
                assert answer["result"] == {"decision": "decline"}
            lent = opening["params"]["config"]["mcp_servers"]["hermes"]["env"]
            request = LendingRequest(lent[TOKEN], "todo", {"items": []})
            reply = await send_lending_request(lent[SOCKET], request)
            codex.end_turn()
            await asyncio.wait_for(agent.service.idle(session), 60)
            rows = [row.event for row in app.store.log.every_event(session)]
            await agent.close()
    by = [one.by for one in rows if isinstance(one, ApprovalAnswered)]
    assert by[:2] == ["policy", "nobody"]
    asked_for = [one for one in rows if isinstance(one, ApprovalRequested)]
    assert asked_for[0].reason == "plugin guard: no terminal today"
    assert reply.result is not None
    assert "plugin guard: no todo today" in reply.result.text


async def test_commands_and_engines_come_and_go_with_the_plugin(tmp_path: Path) -> None:
    registry = _enabled(tmp_path)
    plugins = AgentPlugins(Home(tmp_path))
    command = plugins.commands["shout"]
    assert await run_plugin_command(command, "hello") == "HELLO!"
    assert plugins.contexts()[0].ignored == {
        "hook post_llm_call",
        "register_video_gen_provider",
    }
    messages: list[Any] = [
        UserMessage(text="first"),
        AssistantMessage(text="one"),
        UserMessage(text="two hunter2"),
        AssistantMessage(text="last"),
    ]
    cut = CompactionCut(head=1, tail=1)

    def redact(text: str) -> str:
        return text.replace("hunter2", "***")

    row = await summarise_by_plugin(plugins, "short", messages, cut, redact)
    assert (row.summary, row.provider) == ("2 messages, in short; ***", "plugin guard")
    with pytest.raises(NotCompacted, match="No enabled plugin has"):
        await summarise_by_plugin(plugins, "long", messages, cut, redact)
    registry.disable("guard")
    assert not plugins.commands
    assert not plugins.tools


async def test_a_plugin_that_fails_adds_nothing_and_says_why(tmp_path: Path) -> None:
    _enabled(tmp_path, "def register(ctx):\n    raise SystemExit(3)\n")
    plugins = AgentPlugins(Home(tmp_path))
    assert plugins.contexts() == []
    assert plugins.errors == {"guard": "SystemExit: 3"}


async def _why(home: Path) -> str:
    """What a process that starts now says about a harmless call."""
    veto = PluginVeto(AgentPlugins(Home(home)))
    return await veto.reason("s", "c", "read_file", {"path": "open.txt"})


@pytest.mark.parametrize("harm", ["changed", "broken", "removed", "doubled"])
async def test_vetoes_that_can_t_be_loaded_any_more_forbid_every_call(
    tmp_path: Path, harm: str
) -> None:
    registry = _enabled(tmp_path)
    assert await _why(tmp_path) == ""
    folder = tmp_path / "plugins" / "guard"
    match harm:
        case "changed":
            (folder / "greetings.py").write_text("def judge(**_):\n    pass\n")
        case "broken":
            (folder / "plugin.yaml").write_text("{")
        case "removed":
            folder.rename(tmp_path / "guard")
        case _:
            shutil.copytree(folder, folder.with_name("another"))
    said = "plugin guard may veto calls but can't be loaded: enable it again"
    assert said in await _why(tmp_path)
    registry.disable("guard")
    assert await _why(tmp_path) == ""


async def test_a_plugin_with_vetoes_that_fails_forbids_until_it_loads_without_any(
    tmp_path: Path,
) -> None:
    registry = _enabled(tmp_path)
    assert await _why(tmp_path) == ""
    init = tmp_path / "plugins" / "guard" / "__init__.py"
    init.write_text("1 / 0\n")
    registry.enable("guard")
    assert "plugin guard may veto calls" in await _why(tmp_path)
    init.write_text("def register(ctx):\n    pass\n")
    registry.enable("guard")
    assert await _why(tmp_path) == ""
    init.write_text("1 / 0\n")
    assert await _why(tmp_path) == ""


async def test_a_list_of_plugins_that_can_t_be_read_forbids_every_call(
    tmp_path: Path,
) -> None:
    (tmp_path / "plugins.json").write_text("{")
    assert "list of enabled plugins can't be read" in await _why(tmp_path)


async def test_nothing_of_a_plugin_runs_before_it_is_enabled(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    registry = _enabled(tmp_path, f"open({str(mark)!r}, 'w').close()\n")
    registry.disable("guard")
    assert AgentPlugins(Home(tmp_path)).contexts() == []
    assert not mark.exists()


async def test_a_command_that_fails_says_whose_it_is(tmp_path: Path) -> None:
    _enabled(
        tmp_path, "def register(ctx):\n    ctx.register_command('x', lambda _: 1 / 0)\n"
    )
    command = AgentPlugins(Home(tmp_path)).commands["x"]
    with pytest.raises(HermesError, match="/x of the plugin guard failed"):
        await run_plugin_command(command, "")
