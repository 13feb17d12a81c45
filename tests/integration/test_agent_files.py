"""What the fields of an agent's file do in a session: model, tools, mode, budget, skills and prompt."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.integration.test_delegation import (
    agent_argument,
    answering,
    delegating,
    family,
)

from hermes.app.agent import Agent
from hermes.errors import SettingsError
from hermes.schema.events import SessionAgentChosen, SessionCreated
from hermes.settings import Secrets
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

_TODO = ServedCall("todo", '{"items": [{"text": "x", "status": "pending"}]}')


def write_agent(root: Path, name: str, head: str, body: str = "You help.") -> Path:
    path = root / "home" / "agents" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\n{head}\n---\n{body}")
    return path


def asked(server: ModelServer) -> list[Any]:
    return [
        msgspec.json.decode(one.body) for one in server.requests if one.method == "POST"
    ]


def names(request: Any) -> set[str]:
    return {one["function"]["name"] for one in request["tools"]}


async def test_without_agents_delegate_has_no_argument_for_them(tmp_path: Path) -> None:
    respond = answering([ScriptedResponse(text="hi")], lambda _: ScriptedResponse())
    async with family(tmp_path, respond) as (work, server):
        await work.say("hello")
        assert agent_argument(asked(server)[0]) is None


async def test_the_prompt_stays_the_same_when_agents_come_and_go(
    tmp_path: Path,
) -> None:
    path = write_agent(tmp_path, "reader", "description: reads")
    replies = [ScriptedResponse(text="one"), ScriptedResponse(text="two")]
    respond = answering(replies, lambda _: ScriptedResponse())
    async with family(tmp_path, respond) as (work, server):
        await work.say("hello")
        path.unlink()
        write_agent(tmp_path, "writer", "description: writes")
        await work.say("again")
        first, second = asked(server)
        assert first["tools"] == second["tools"]
        assert first["messages"][0] == second["messages"][0]
        assert "reader: reads" in agent_argument(second)["description"]


async def test_an_agent_that_is_broken_is_offered_to_nobody(tmp_path: Path) -> None:
    write_agent(tmp_path, "broken", "tool: [files]")
    call = delegating("@broken look")
    respond = answering([call, ScriptedResponse(text="ok")], lambda _: ScriptedResponse())  # fmt: skip
    async with family(tmp_path, respond) as (work, server):
        await work.say("hello")
        assert agent_argument(asked(server)[0]) is None
        (result,) = work.results()
        assert "broken.md:2: unknown key 'tool'" in result.text
        assert work.app.store.sessions.children(work.session) == []


async def test_an_agent_whose_tools_name_nothing_does_not_start(tmp_path: Path) -> None:
    write_agent(tmp_path, "lost", "description: x\ntools: [nothing, at_all]")
    call = delegating("look", agent="lost")
    respond = answering([call, ScriptedResponse(text="ok")], lambda _: ScriptedResponse())  # fmt: skip
    async with family(tmp_path, respond) as (work, _):
        await work.say("hello")
        (result,) = work.results()
        assert "lost.md:3: the agent lost would have no tools" in result.text
        assert work.app.store.sessions.children(work.session) == []
        work.app.record(work.session, SessionAgentChosen(agent="lost"))
        ended = await work.say("and now?")
        assert ended.reason == "failed"
        assert "lost.md:3: " in ended.detail


async def test_a_skill_of_an_agent_is_in_its_prompt_and_must_exist(
    tmp_path: Path,
) -> None:
    skill = tmp_path / "home" / "skills" / "rhymes"
    skill.mkdir(parents=True)
    text = (
        "---\nname: rhymes\ndescription: how to rhyme\n---\nOrange rhymes with nothing."
    )
    (skill / "SKILL.md").write_text(text)
    write_agent(tmp_path, "poet", "skills: [rhymes]")
    write_agent(tmp_path, "bad", "description: x\nskills: [missing]")
    calls = [delegating("a poem", agent="poet"), delegating("x", agent="bad")]
    respond = answering(
        [*calls, ScriptedResponse(text="ok")], lambda _: ScriptedResponse(text="ode")
    )
    async with family(tmp_path, respond) as (work, server):
        await work.say("hello")
        poem, bad = work.results()
        assert poem.text.startswith("ode")
        assert "bad.md:3: There is no skill 'missing'" in bad.text
        child = next(one for one in asked(server) if "agent poet" in str(one["messages"][0]))  # fmt: skip
        assert "Orange rhymes with nothing." in str(child["messages"][0])


async def test_an_agent_stops_at_its_own_steps(tmp_path: Path) -> None:
    write_agent(tmp_path, "short", "budget: {steps: 2}")
    respond = answering(
        [delegating("x", agent="short"), ScriptedResponse(text="ok")],
        lambda _: ScriptedResponse(calls=(_TODO,)),
    )
    async with family(tmp_path, respond) as (work, _):
        await work.say("hello")
        (result,) = work.results()
        assert not result.ok
        assert "stopped after 2 steps" in result.text


async def test_an_agent_stops_at_its_own_tokens_and_its_children_too(
    tmp_path: Path,
) -> None:
    path = write_agent(tmp_path, "cheap", "description: x\nbudget: 100 tokens")
    respond = answering(
        [delegating("x", agent="cheap"), ScriptedResponse(text="ok")],
        lambda _: ScriptedResponse(text="never"),
    )
    async with family(tmp_path, respond) as (work, server):
        ended = await work.say("hello")
        assert ended.reason == "done"
        (result,) = work.results()
        assert "stopped before exceeding the budget of the agent cheap" in result.text
        assert f"{path}:3" in result.text
        assert len(asked(server)) == 2  # the agent itself never asked the model


async def test_what_works_for_an_agent_has_no_tool_that_the_agent_has_not(
    tmp_path: Path,
) -> None:
    write_agent(tmp_path, "lead", "tools: [read_file, delegate]")
    write_agent(tmp_path, "writer", "tools: [files]")
    tasks = iter(
        [
            delegating("below", agent="writer"),
            ScriptedResponse(text="read it"),
            ScriptedResponse(text="all read"),
        ]
    )
    parent = [delegating("x", agent="lead"), ScriptedResponse(text="ok")]
    respond = answering(parent, lambda _: next(tasks))
    async with family(tmp_path, respond) as (work, server):
        await work.say("hello")
        lead, below = asked(server)[1:3]
        assert names(lead) == {"read_file", "delegate"}
        assert names(below) == {"read_file"}


async def test_a_resumed_session_keeps_the_model_and_the_mode_of_its_agent(
    tmp_path: Path,
) -> None:
    write_agent(tmp_path, "careful", "model: small-1\nmode: plan")
    write_agent(tmp_path, "reckless", "mode: full")
    respond = answering([ScriptedResponse(text="hi")] * 2, lambda _: ScriptedResponse())
    async with family(tmp_path, respond) as (work, server):
        work.app.record(work.session, SessionAgentChosen(agent="careful"))
        key = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"}
        later = Agent(work.app, Secrets({}, key), approvals="auto-edit")
        try:
            assert later.mode(work.session) == "plan"
            assert later.describe(work.session).name == "small-1"
            await later.set_mode(work.session, "ask")  # the user says so
            assert later.mode(work.session) == "ask"
            reckless = work.app.begin(SessionCreated(cwd=str(tmp_path))).session
            work.app.record(reckless, SessionAgentChosen(agent="reckless"))
            assert later.mode(reckless) == "auto-edit"
        finally:
            await later.close()


async def test_an_agent_of_the_project_that_changes_can_loosen_nothing(
    tmp_path: Path,
) -> None:
    folder = tmp_path / ".hermes" / "agents"
    folder.mkdir(parents=True)
    path = folder / "guest.md"
    path.write_text("---\nmode: plan\ntools: [files]\n---\nLook.")
    respond = answering([ScriptedResponse(text="hi")] * 2, lambda _: ScriptedResponse())
    async with family(tmp_path, respond) as (work, server):
        files = work.agent.prompt_files
        files.agree(files.untrusted(tmp_path))
        work.app.record(work.session, SessionAgentChosen(agent="guest"))
        await work.say("hello")
        path.write_text("---\nmode: full\n---\nDo anything.")
        ended = await work.say("again")
        assert ended.reason == "failed"
        assert "you have not agreed to it yet" in ended.detail
        assert work.agent.mode(work.session) == "plan"
        assert len(asked(server)) == 1


async def test_a_model_without_a_key_is_named_with_the_line_of_the_agent(
    tmp_path: Path,
) -> None:
    path = write_agent(tmp_path, "odd", "description: x\nmodel: anthropic:claude-x")
    respond = answering([ScriptedResponse(text="hi")], lambda _: ScriptedResponse())
    async with family(tmp_path, respond) as (work, _):
        file = work.agent.prompt_files.find(tmp_path, "agent", "odd")
        with pytest.raises(SettingsError, match=f"{path}:3: "):
            work.agent.check_agent(work.session, file)
