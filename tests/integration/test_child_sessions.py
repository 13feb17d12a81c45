"""Sessions that work for another one: seen and steered from everywhere, under their parent's limits, never ending unsaid."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from tests.integration.test_delegation import answering, delegating, family
from tests.integration.test_side_work import chat_in, echo

from hermes.app.child_sessions import child_status, running_children
from hermes.commands.context import CommandContext
from hermes.commands.goals import change_subgoals, set_goal
from hermes.commands.side_work import begin_background, stop_agent, tell_agent
from hermes.commands.views import TextResult
from hermes.errors import NotFound, SessionBusy, UsageError
from hermes.schema.events import (
    InterruptRequested,
    SessionCreated,
    TurnEnded,
    TurnStarted,
)
from hermes.schema.goals import ChildAttached, ChildEnded, GoalSet
from hermes.schema.messages import UserMessage
from hermes.settings import Settings
from hermes.settings.models import BudgetSettings
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall


class Nowhere:
    """A surface without a chat, as the shell is."""

    name = "cli"


def child_of(app: Any, parent: str, surface: str = "background") -> str:
    created = SessionCreated(
        kind="child", parent=parent, root=parent, surface=surface, cwd="/"
    )
    return str(app.begin(created).session)


def ends(app: Any, session: str) -> list[ChildEnded]:
    rows = [row.event for row in app.store.log.every_event(session)]
    return [one for one in rows if isinstance(one, ChildEnded)]


async def test_children_share_the_steps_of_their_parent(tmp_path: Path) -> None:
    again = ScriptedResponse(calls=(ServedCall("todo", '{"items": []}'),))
    parent = [delegating("work"), ScriptedResponse(text="all of us are out of steps")]
    respond = answering(parent, lambda _: again)
    settings = Settings(budget=BudgetSettings(max_steps=6))
    async with family(tmp_path, respond, settings) as (work, server):
        ended = await work.say("go")

        assert ended.limit == "steps"
        (result,) = work.results()
        assert "stopped after 6 steps" in result.text
        asked = [one for one in server.requests if one.method == "POST"]
        assert len(asked) <= 6 + 2  # and a summary of each


async def test_a_child_that_outlives_its_parents_turn_says_how_it_ended(
    tmp_path: Path,
) -> None:
    parent = [delegating("work", background=True), ScriptedResponse(text="started")]
    respond = answering(parent, lambda _: ScriptedResponse(text="found it"))
    async with family(tmp_path, respond) as (work, _):
        assert (await work.say("go")).reason == "done"
        async with asyncio.timeout(20):
            await work.agent.service.all_idle()

        (told,) = ends(work.app, work.session)
        assert (told.kind, told.reason, told.text) == ("delegate", "done", "found it")


async def test_a_child_whose_process_was_killed_is_told_by_whoever_looks_next(
    tmp_path: Path,
) -> None:
    async with chat_in(tmp_path, echo) as (chat, _):
        child = child_of(chat.app, chat.session)
        chat.app.record(child, TurnStarted(), turn="t1")  # and then kill -9
        assert child_status(chat.app, child).state == "cut off"

        await chat.agent.service.tell_ends(chat.session)
        await chat.agent.service.tell_ends(chat.session)  # told once

        (told,) = ends(chat.app, chat.session)
        assert (told.child, told.reason) == (child, "crashed")


async def test_one_in_another_process_is_stopped_and_told_from_the_shell(
    tmp_path: Path,
) -> None:
    async with chat_in(tmp_path, echo) as (chat, _):
        child = child_of(chat.app, chat.session)
        lease = chat.app.store.leases.acquire(child)
        chat.app.record(child, TurnStarted(), turn="t1", lease=lease)
        assert running_children(chat.app) == [(child, chat.session)]

        with CommandContext(cast("Any", Nowhere()), app=chat.app) as context:
            await tell_agent.run(context, {"id": child[-6:], "text": "use tabs"})
            await stop_agent.run(context, {"id": child[-6:]})

        rows = [row.event for row in chat.app.store.log.every_event(child)]
        assert UserMessage(text="use tabs", delivery="steer") in rows
        assert rows[-1] == InterruptRequested(by="cli")
        chat.app.store.leases.release(lease)


async def test_a_child_is_seen_with_what_it_does_now(tmp_path: Path) -> None:
    from hermes.schema.events import ToolStarted

    async with chat_in(tmp_path, echo) as (chat, _):
        child = child_of(chat.app, chat.session)
        lease = chat.app.store.leases.acquire(child)
        command = '{"timeout": 9, "command": "make\\n test"}'
        started = ToolStarted(call_id="1", name="terminal", arguments=command)
        task = UserMessage(text="measure the memory\nof all parts")
        chat.app.record(child, task, TurnStarted(), started, turn="t1", lease=lease)

        status = child_status(chat.app, child)

        assert status.title == "measure the memory of all parts", (
            "before it has a title"
        )
        assert (status.state, status.doing) == ("working", "run make test")
        chat.app.store.leases.release(lease)


async def test_a_running_turn_moves_to_the_background_and_its_end_is_told(
    tmp_path: Path,
) -> None:
    async with chat_in(tmp_path, echo) as (chat, _):
        first = chat.session
        with pytest.raises(UsageError, match="No turn is running"):
            await chat.give(begin_background)
        lease = chat.app.store.leases.acquire(first)

        async def leave_running() -> str:
            chat.session = chat.app.begin(SessionCreated(surface="cli")).session
            return chat.session

        cast("Any", chat).leave_running = leave_running
        result = await chat.give(begin_background)
        assert isinstance(result, TextResult)
        chat.app.store.leases.release(lease)
        await chat.agent.service.submit(first, "work")
        await chat.idle()

        rows = [row.event for row in chat.app.store.log.every_event(chat.session)]
        assert ChildAttached(child=first, is_moved=True) in rows
        (told,) = ends(chat.app, chat.session)
        assert (told.child, told.kind, told.reason) == (first, "background", "done")


async def test_a_goal_is_set_and_reached_in_a_chat(tmp_path: Path) -> None:
    def respond(request: Any) -> ScriptedResponse:
        if b"You judge whether" in request.body:
            return ScriptedResponse(text='{"verdict": "done", "reason": "it is"}')
        return echo(request)

    async with chat_in(tmp_path, respond) as (chat, _):
        await chat.give(set_goal, "write a poem  stop when: it rhymes  turns: 3")
        await chat.idle()
        report = await chat.give(set_goal, "show")

        assert (report.status, report.why, report.turns) == ("done", "it is", 1)
        assert report.goal.stop_when == "it rhymes"
        assert report.goal.max_turns == 3


async def test_the_verify_command_of_a_goal_runs_in_the_sandbox(tmp_path: Path) -> None:
    """The model writes nothing; the judge says done; the command decides."""

    def respond(request: Any) -> ScriptedResponse:
        if b"You judge whether" in request.body:
            return ScriptedResponse(text='{"verdict": "done", "reason": "trust me"}')
        return echo(request)

    async with chat_in(tmp_path, respond) as (chat, _):
        outside = tmp_path / "outside"
        command = f"touch {outside}; test -e made.txt"
        await chat.give(set_goal, f"make it  turns: 1 verify: {command}")
        await chat.idle()
        report = await chat.give(set_goal, "show")

        assert report.status == "paused"
        assert report.check.outcome == "failed"
        assert not outside.exists()


async def test_subgoals_are_added_listed_and_removed(tmp_path: Path) -> None:
    async with chat_in(tmp_path, echo) as (chat, _):
        with pytest.raises(NotFound, match="no goal"):
            await chat.give(change_subgoals, "one")
        chat.app.record(chat.session, GoalSet(text="x", is_draft=True))
        await chat.give(change_subgoals, "one")
        await chat.give(change_subgoals, "two")
        left = await chat.give(change_subgoals, "remove 1")

        assert left.lines[0] == "1. two"
        assert "/goal resume" in left.lines[1]  # a draft is not worked on


async def test_a_drafted_goal_waits_until_a_person_has_read_it(tmp_path: Path) -> None:
    def respond(request: Any) -> ScriptedResponse:
        if b"Write a contract" in request.body:
            text = (
                "goal: All tests pass.\nverify: `make test`\nstop when: an API changes"
            )
            return ScriptedResponse(text=text)
        return echo(request)

    async with chat_in(tmp_path, respond) as (chat, _):
        await chat.give(set_goal, "draft fix the tests")
        await chat.idle()
        report = await chat.give(set_goal, "show")

        assert report.status == "paused"
        assert report.goal.verify == "make test"
        rows = [row.event for row in chat.app.store.log.every_event(chat.session)]
        assert not any(isinstance(one, TurnStarted | TurnEnded) for one in rows)


async def test_a_goal_ends_at_its_budget_in_dollars(tmp_path: Path) -> None:
    def respond(request: Any) -> ScriptedResponse:
        if b"You judge whether" in request.body:
            return ScriptedResponse(text='{"verdict": "continue", "reason": "no"}')
        said = f"step {len(request.body)}"
        return ScriptedResponse(text=said, input_tokens=100_000, output_tokens=10)

    async with chat_in(tmp_path, respond) as (chat, server):
        chat.agent.use(model="gpt-4.1")
        await chat.give(set_goal, "write a poem  budget: $0.50")
        await chat.idle()
        report = await chat.give(set_goal, "show")

        assert report.status == "paused"
        assert "$0.5" in report.why
        turns = [one for one in server.posts if b"You judge" not in one.body]
        assert len(turns) == 2, "a third turn could pass it"
        assert 0.2 < report.used_usd < 0.5


async def test_a_goal_goes_on_with_another_model(tmp_path: Path) -> None:
    chats: list[Any] = []

    def respond(request: Any) -> ScriptedResponse:
        if b"You judge whether" not in request.body:
            return ScriptedResponse(text=f"step {len(request.body)}")
        chats[0].agent.use(model="gpt-4.1-mini")
        turns = sum(b"You judge" not in one.body for one in chats[1].posts)
        verdict = "done" if turns == 3 else "continue"
        text = f'{{"verdict": "{verdict}", "reason": "turn {turns}"}}'
        return ScriptedResponse(text=text)

    async with chat_in(tmp_path, respond) as (chat, server):
        chats += [chat, server]
        chat.agent.use(model="gpt-4.1")
        await chat.give(set_goal, "write a poem")
        await chat.idle()
        report = await chat.give(set_goal, "show")

        assert (report.status, report.turns) == ("done", 3)
        models = [
            "mini" if b"gpt-4.1-mini" in one.body else "large"
            for one in server.posts
            if b"You judge" not in one.body
        ]
        assert models == ["large", "mini", "mini"]


async def test_a_parent_is_not_deleted_while_its_child_works(tmp_path: Path) -> None:
    async with chat_in(tmp_path, echo) as (chat, _):
        child = child_of(chat.app, chat.session)
        lease = chat.app.store.leases.acquire(child)

        with pytest.raises(SessionBusy, match="works for session") as refused:
            chat.app.delete(chat.session)
        assert f"hermes agents stop {child}" in refused.value.hint
        assert chat.app.store.sessions.find(chat.session)

        chat.app.store.leases.release(lease)
        chat.app.delete(chat.session)
        assert chat.app.store.sessions.missing([chat.session]) == {chat.session}
