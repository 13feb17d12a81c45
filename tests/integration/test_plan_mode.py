"""Plan mode on an agent as it is put together: what runs, the plan that waits, accepting it, and what is kept."""

import asyncio
import json
from pathlib import Path

import msgspec
from tests.integration.test_approvals import SETTINGS, Bench, bench, secrets, writes

from hermes.app import build
from hermes.app.session_journal import read_history
from hermes.core.accepted_plan import PINNED, STARTS, accepted_plan
from hermes.core.compaction import CompactionCut, compact, compacted
from hermes.events import Bus
from hermes.schema.events import QuestionAsked
from hermes.schema.messages import ToolFinished
from hermes.settings import Home
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_model import Reply, ScriptedModel
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall
from hermes.tools.policy import ApprovalPolicy, Circumstances

ASK, EDIT, _FULL = STARTS
PLAN = {
    "title": "Write a file",
    "steps": ["Write a.txt", "Look at it"],
    "files": ["a.txt"],
    "risks": ["None"],
    "check": "cat a.txt",
}


def plans() -> ScriptedResponse:
    call = ServedCall(id="plan", name="present_plan", arguments=json.dumps(PLAN))
    return ScriptedResponse(calls=(call,))


async def waiting_plan(one: Bench) -> QuestionAsked:
    async with asyncio.timeout(20):
        while True:
            for asked in await one.agent.service.pending(one.session):
                if isinstance(asked, QuestionAsked):
                    return asked
            await asyncio.sleep(0.01)


def results(one: Bench) -> list[tuple[str, bool]]:
    events = [row.event for row in one.app.store.log.every_event(one.session)]
    return [(it.name, it.ok) for it in events if isinstance(it, ToolFinished)]


def offered(server: ModelServer, number: int) -> set[str]:
    sent = msgspec.json.decode(server.posts[number].body)
    return {tool["function"]["name"] for tool in sent["tools"]}


async def test_nothing_is_changed_before_the_plan_is_accepted_and_then_it_goes_on(
    tmp_path: Path,
) -> None:
    replies = (writes("a.txt"), plans(), writes("a.txt"), "done", "again")
    async with ModelServer(*replies) as server, bench(tmp_path, server) as one:
        service = one.agent.service
        await one.agent.set_mode(one.session, "plan")
        await service.submit(one.session, "plan it")
        asked = await waiting_plan(one)
        assert results(one) == [("write_file", False)]
        assert not (tmp_path / "project" / "a.txt").exists()
        assert "1. Write a.txt\n2. Look at it" in asked.plan
        assert asked.options == tuple(STARTS)
        assert await service.reply(
            one.session, "plan", EDIT, by="test", plan="1. Only this"
        )
        await service.idle(one.session)
        assert (tmp_path / "project" / "a.txt").read_text() == "x"
        assert one.agent.mode(one.session) == "auto-edit"
        assert results(one)[1:] == [
            ("todo", True),
            ("present_plan", True),
            ("write_file", True),
        ]
        history = read_history(one.app.store, one.session)
        assert accepted_plan(history.messages) == "1. Only this"
        await service.submit(one.session, "more")
        await service.idle(one.session)
        assert "present_plan" in offered(server, 0)
        assert "present_plan" not in offered(server, 4)


async def test_a_plan_is_sent_back_with_words(tmp_path: Path) -> None:
    async with (
        ModelServer(plans(), "I will think again.") as server,
        bench(tmp_path, server) as one,
    ):
        service = one.agent.service
        await one.agent.set_mode(one.session, "plan")
        await service.submit(one.session, "plan it")
        await waiting_plan(one)
        await service.reply(one.session, "plan", "smaller steps", by="test")
        await service.idle(one.session)
        assert one.agent.mode(one.session) == "plan"
        assert b"smaller steps" in server.posts[1].body


async def test_another_process_takes_the_answer_to_a_plan_whose_process_is_gone(
    tmp_path: Path,
) -> None:
    async with ModelServer(plans(), writes("a.txt"), "done") as server:
        async with bench(tmp_path, server) as one:
            await one.agent.set_mode(one.session, "plan")
            await one.agent.service.submit(one.session, "plan it")
            await waiting_plan(one)
            await one.agent.service.park()  # as a crash would
            session = one.session
        bus = Bus()
        with build(SETTINGS, Home(tmp_path / "home"), bus=bus) as app:
            other = Bench(app, bus, secrets(server), tmp_path / "project")
            other.session = session
            with other.agent.questions.attached("test"):
                assert other.agent.mode(session) == "plan"
                service = other.agent.service
                assert await service.reply(session, "plan", EDIT, by="test")
                await service.idle(session)
                assert (tmp_path / "project" / "a.txt").exists()
                assert other.agent.mode(session) == "auto-edit"
                await other.agent.close()


async def test_an_accepted_plan_survives_two_compactions_word_for_word(
    tmp_path: Path,
) -> None:
    async with (
        ModelServer(plans(), "one", "two", "three") as server,
        bench(tmp_path, server) as one,
    ):
        service = one.agent.service
        await one.agent.set_mode(one.session, "plan")
        await service.submit(one.session, "plan it")
        asked = await waiting_plan(one)
        await service.reply(one.session, "plan", ASK, by="test")
        await service.idle(one.session)
        messages = read_history(one.app.store, one.session).messages
        notes = (
            "## Goal\nWrite a file as the user asked, with a plan that was accepted."
        )
        for _ in range(2):
            row = await compact(
                ScriptedModel(Reply(text=notes)), messages, CompactionCut(0, 0)
            )
            assert row.summary == f"{notes}{PINNED}{asked.plan}"
            messages = compacted(messages, row)
        assert accepted_plan(messages) == asked.plan


async def test_commands_that_only_read_run_in_plan_mode_and_no_others(
    tmp_path: Path,
) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    (home / "policy.yaml").write_text("allow:\n  - {program: make}\n")
    (home / "policy.yaml").chmod(0o600)
    around = Circumstances(home, tmp_path / "user", sandboxed=True)
    policy = ApprovalPolicy("plan", around)
    verdicts = {
        command: policy.check(command, project).verdict
        for command in ("ls -la", "cat a.txt | head", "touch b", "make", "git push")
    }
    assert verdicts == {
        "ls -la": "allow",
        "cat a.txt | head": "allow",
        "touch b": "forbid",
        "make": "forbid",
        "git push": "forbid",
    }
    assert policy.check("uniq a b", project).read_only
    assert policy.check("ls", project, "network").verdict == "forbid"
    assert policy.check_files((project / "a",), project).verdict == "forbid"
    assert policy.check_tool("mcp.x.y").verdict == "forbid"
    assert policy.check_host("example.com").verdict == "forbid"
