"""A turn that changed files is checked by the project's rules before it counts as done."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from hermes.app import App, build
from hermes.app.agent import Agent
from hermes.app.answer_claims import claimed_files
from hermes.core.accepted_plan import STARTS
from hermes.core.answers import approval_hash
from hermes.events import Bus
from hermes.schema.events import (
    ApprovalRequested,
    SessionCreated,
    TurnChecked,
    TurnEnded,
)
from hermes.settings import Home, Secrets, Settings
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall


class CheckedProject:
    """A project with rules, an agent that works in it, and a person who answers questions about the rules."""

    def __init__(self, app: App, agent: Agent, session: str, folder: Path) -> None:
        self.app, self.agent, self.session, self.folder = app, agent, session, folder
        self.asked: list[str] = []

    async def say(self, text: str) -> TurnEnded:
        await self.agent.service.submit(self.session, text)
        async with asyncio.timeout(60):
            ended = await self.agent.service.idle(self.session)
        assert ended is not None
        return ended

    def checked(self) -> list[TurnChecked]:
        rows = self.app.store.log.every_event(self.session)
        return [row.event for row in rows if isinstance(row.event, TurnChecked)]


@asynccontextmanager
async def project(
    root: Path,
    rules: str,
    *replies: ScriptedResponse,
    answer: Literal["once", "deny", ""] = "once",
) -> AsyncIterator[tuple[CheckedProject, ModelServer]]:
    folder = root / "project"
    (folder / ".hermes").mkdir(parents=True)
    (folder / ".hermes" / "rules.yaml").write_text(rules)
    async with ModelServer(*replies) as server:
        with build(Settings(), Home(root / "home"), bus=Bus()) as app:
            secrets = Secrets(
                {}, {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"}
            )
            surface = "cli" if answer else ""
            agent = Agent(app, secrets, approvals="auto-edit", surface=surface)
            session = app.begin(SessionCreated(surface="cli", cwd=str(folder))).session
            work = CheckedProject(app, agent, session, folder)
            loop = asyncio.get_running_loop()

            def on_question(event: Mapping[str, Any]) -> None:
                loop.call_soon_threadsafe(answers.put_nowait, event)

            answers: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
            app.bus.subscribe("agent.approval.requested", on_question)

            async def answering() -> None:
                while True:
                    event = await answers.get()
                    work.asked.append(event["summary"])
                    (asked,) = await agent.service.pending(session)
                    assert isinstance(asked, ApprovalRequested)
                    shown = approval_hash(asked)
                    await agent.service.answer(
                        session, asked.call_id, answer or "deny", by="cli", shown=shown
                    )

            person = asyncio.ensure_future(answering()) if answer else None
            try:
                yield work, server
            finally:
                if person is not None:
                    person.cancel()
                    await asyncio.gather(person, return_exceptions=True)
                await agent.close()


def write(path: str, content: str) -> ScriptedResponse:
    arguments = msgspec.json.encode({"path": path, "content": content}).decode()
    return ScriptedResponse(calls=(ServedCall("write_file", arguments),))


DONE = ScriptedResponse(text="It is done.")


async def test_a_check_that_passes_is_evidence_and_is_asked_about_once(
    tmp_path: Path,
) -> None:
    replies = (write("a.txt", "good"), DONE, write("b.txt", "x"), DONE)
    async with project(tmp_path, "verify: grep good a.txt", *replies) as (work, _):
        assert (await work.say("write a")).reason == "done"
        assert (await work.say("write b")).reason == "done"
        assert [row.ok for row in work.checked()] == [True, True]
        assert "Verified: grep good a.txt (" in work.checked()[0].detail
        assert len(work.asked) == 1
        assert "grep good a.txt" in work.asked[0]
        assert work.checked()[0].changed == 1


async def test_a_check_that_fails_is_told_to_the_model_which_may_repair_it(
    tmp_path: Path,
) -> None:
    replies = (write("a.txt", "bad"), DONE, write("a.txt", "good"), DONE)
    async with project(tmp_path, "verify: cat a.txt; grep good a.txt", *replies) as (
        work,
        server,
    ):
        await work.say("write a")
        assert [row.ok for row in work.checked()] == [False, True]
        asked = [one for one in server.requests if one.method == "POST"]
        told = msgspec.json.decode(asked[2].body)["messages"][-1]["content"]
        assert "failed (exit code 1" in str(told)
        assert "bad" in str(told)


async def test_a_repair_that_takes_a_change_back_is_checked_too(tmp_path: Path) -> None:
    replies = (write("a.txt", "bad"), DONE, write("a.txt", "good"), DONE)
    async with project(tmp_path, "verify: grep good a.txt", *replies) as (work, _):
        (work.folder / "a.txt").write_text("good")
        await work.say("write a")
        assert [row.ok for row in work.checked()] == [False, True]


async def test_repairs_are_limited_and_then_it_is_said(tmp_path: Path) -> None:
    replies = (write("a.txt", "x"), DONE, DONE, DONE)
    async with project(tmp_path, "verify: 'false'", *replies) as (work, server):
        assert (await work.say("write a")).reason == "done"
        assert [row.ok for row in work.checked()] == [False, False, False]
        assert "Check failed: false (exit code 1" in work.checked()[-1].detail
        assert sum(one.method == "POST" for one in server.requests) == 4


@pytest.mark.parametrize(
    ("answer", "why"),
    [("deny", "you did not allow it"), ("", "nobody could be asked")],
)
async def test_what_was_not_verified_is_said(
    tmp_path: Path, answer: Literal["deny", ""], why: str
) -> None:
    replies = (write("a.txt", "x"), DONE, write("b.txt", "x"), DONE)
    async with project(tmp_path, "verify: touch ran", *replies, answer=answer) as (
        work,
        _,
    ):
        await work.say("write a")
        await work.say("write b")
        assert [one.checks[0].outcome for one in work.checked()] == ["not_run"] * 2
        assert why in work.checked()[0].detail
        assert not (work.folder / "ran").exists()
        assert len(work.asked) == (1 if answer else 0)


async def test_the_project_commands_run_in_the_sandbox(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    rules = f"verify: touch {outside}\nlint: echo {{files}} > linted"
    replies = (write("a.txt", "x"), DONE, DONE, DONE)
    async with project(tmp_path, rules, *replies) as (work, _):
        await work.say("write a")
        assert not outside.exists()
        assert (work.folder / "linted").read_text() == "a.txt\n"


async def test_nothing_runs_after_a_turn_that_changed_nothing(tmp_path: Path) -> None:
    async with project(tmp_path, "verify: touch ran", DONE) as (work, _):
        await work.say("hello")
        assert work.checked() == []
        assert work.asked == []


async def test_a_change_that_did_not_land_is_said(tmp_path: Path) -> None:
    claim = ScriptedResponse(text="I've updated `src/main.py` and wrote notes.md.")
    replies = (write("notes.md", "x"), claim)
    async with project(tmp_path, "", *replies) as (work, _):
        await work.say("do it")
        (row,) = work.checked()
        assert row.unchanged == ("src/main.py",)
        assert "claims changes to src/main.py" in row.detail


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("I created `a.py` and b.js.", ["a.py", "b.js"]),
        ("Updated src/x.toml to version 1.2.3.", ["src/x.toml"]),
        ("I have not changed a.py.", []),
        ("You could have updated a.py.", []),
        ("See https://x.org/a.py for more. I read b.py.", []),
        ("I fixed the bug, e.g. in os.path usage.", []),
        ("```\nI updated a.py\n```", []),
    ],
)
def test_only_plain_statements_about_files_are_claims(
    text: str, files: list[str]
) -> None:
    assert [
        one for one in claimed_files(text) if one not in ("e.g", "os.path")
    ] == files


async def test_a_change_that_was_denied_and_is_claimed_is_said(tmp_path: Path) -> None:
    replies = (write("a.txt", "x"), ScriptedResponse(text="I wrote `a.txt`."))
    async with project(tmp_path, "protect: [a.txt]", *replies) as (work, _):
        await work.say("write a")
        assert [row.unchanged for row in work.checked()] == [("a.txt",)]


async def test_a_plan_that_was_accepted_in_the_turn_is_checked_too(
    tmp_path: Path,
) -> None:
    plan = {"title": "t", "steps": ["s"], "files": ["f"], "risks": ["r"], "check": "c"}
    call = ServedCall("present_plan", msgspec.json.encode(plan).decode(), "plan")
    replies = (ScriptedResponse(calls=(call,)), write("a.txt", "good"), DONE)
    # A command that does more than read, which plan mode would not run.
    rules = "verify: cp a.txt checked.txt"
    async with project(tmp_path, rules, *replies) as (work, _):
        service, asked = work.agent.service, asyncio.Event()
        work.app.bus.subscribe("agent.question.asked", lambda _: asked.set())
        await work.agent.set_mode(work.session, "plan")
        await service.submit(work.session, "plan it")
        async with asyncio.timeout(60):
            await asked.wait()
            await service.reply(work.session, "plan", tuple(STARTS)[1], by="cli")
            await service.idle(work.session)
        assert [one.outcome for row in work.checked() for one in row.checks] == [
            "passed"
        ]


async def test_the_question_about_checks_hides_nothing(tmp_path: Path) -> None:
    rules = 'verify: "true \\u202e#\\x1b[8m && touch x"'
    replies = (write("a.txt", "good"), DONE)
    async with project(tmp_path, rules, *replies, answer="deny") as (work, _):
        await work.say("write a")
        (asked,) = work.asked
        assert "&& touch x" in asked
        (row,) = work.checked()
        for text in (asked, row.detail):
            assert not {"\u202e", "\x1b"} & set(text)
