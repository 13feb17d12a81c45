"""The session service on a real database: durable submits, one runner, and other processes that take part by rows."""

import asyncio
import random
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal

import apsw
import pytest
from tests.fakes.session_events import watch
from tests.fakes.store_engines import sqlite_database

from hermes.app import App, build
from hermes.app.approvals import PendingQuestions
from hermes.app.dead_turns import DeadTurns
from hermes.app.partial_text import PartialText
from hermes.app.session_journal import SessionJournal
from hermes.app.session_runner import Runner, RunnerDeps
from hermes.app.session_service import SessionService
from hermes.app.session_tools import SessionTools
from hermes.children.helper_programs import find_program
from hermes.core.answers import approval_hash
from hermes.core.budget import TurnBudget
from hermes.core.calls import CallRunner
from hermes.core.history import ConversationHistory
from hermes.core.ports import Approver, Effect, Model, PolicyDecision, Tool, ToolContext
from hermes.core.turn import NativeRuntime
from hermes.errors import (
    AnsweredAlready,
    AnswerRefused,
    LeaseLost,
    SettingsError,
    StoreError,
    StoreFull,
    TitledAlready,
)
from hermes.events import Bus
from hermes.schema.event_base import Event
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    InterruptRequested,
    MessageDelta,
    ModelRetried,
    QuestionAnswered,
    QuestionAsked,
    SessionCreated,
    SessionPrompted,
    SessionTitled,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from hermes.schema.messages import AssistantMessage, ToolCall, ToolFinished, UserMessage
from hermes.schema.model import ModelEvent, ModelRequest, TextDelta
from hermes.schema.tool_spec import ToolResult, ToolSpec
from hermes.settings import Home, Secrets, Settings
from hermes.store.leases import Lease, Leases
from hermes.store.log_row import Row
from hermes.testing import Reply, ScriptedModel


class Wait:
    """A tool that waits until the test lets it go."""

    spec = ToolSpec(
        name="wait",
        description="waits",
        parameters={"type": "object", "properties": {}},
    )
    effect: Effect = "other"

    def __init__(self) -> None:
        self.running = asyncio.Event()
        self.go = asyncio.Event()
        self.question = ""

    def paths(self, arguments: Mapping[str, Any], cwd: Path) -> tuple[Path, ...]:
        return ()

    async def run(
        self, arguments: Mapping[str, Any], context: ToolContext
    ) -> ToolResult:
        self.running.set()
        if self.question:
            return ToolResult(text=await context.ask(self.question, ()))
        await self.go.wait()
        return ToolResult(text="waited")


class Fixed:
    def __init__(self, verdict: str) -> None:
        self._decision = PolicyDecision(verdict, "wait a while")  # type: ignore[arg-type]

    def judge(
        self, tool: Tool, arguments: Mapping[str, Any], cwd: Path
    ) -> PolicyDecision:
        return self._decision

    def remember(self, request: ApprovalRequested, rule: str = "") -> None:
        raise AssertionError(request)


class Desktop:
    """An app with a service over a scripted model, and the engine of its sessions."""

    attended = True

    def __init__(self, root: Path, model: Model, verdict: str = "allow") -> None:
        self.bus = Bus()
        self.app: App = build(Settings(), Home(root), bus=self.bus)
        self.tool = Wait()
        self.questions = PendingQuestions()
        self.finished: list[str] = []
        self.closing = asyncio.Event()
        self.hold: asyncio.Event | None = None
        self.failure: Exception | None = None
        self.prompt_failure: Exception | None = None
        self.prepare_failure: Exception | None = None
        self._model, self._policy = model, Fixed(verdict)
        self.deps = RunnerDeps(
            app=self.app,
            questions=self.questions,
            engine=lambda session: self,
            keep_files=self._keep_files,
            prepare=self._prepare,
        )
        self.service = SessionService(self.deps)

    def adapted(self, session: str, prompt: SessionPrompted) -> SessionPrompted:
        return prompt

    async def prompt(self, session: str, cwd: Path, agent: str = "") -> SessionPrompted:
        if self.prompt_failure is not None:
            raise self.prompt_failure
        return SessionPrompted(system=("be brief",), tools=(self.tool.spec,))

    async def _prepare(self, session: str, history: ConversationHistory) -> None:
        if self.prepare_failure is not None:
            raise self.prepare_failure

    async def _keep_files(self, turn: str, cwd: Path) -> None:
        self.finished.append(turn)
        self.closing.set()
        if self.hold is not None:
            await self.hold.wait()
        if self.failure is not None:
            raise self.failure

    def runtime(
        self, session: str, approvals: Approver, agent: str = ""
    ) -> NativeRuntime:
        return NativeRuntime(
            self._model,
            CallRunner({"wait": self.tool}, self._policy, approvals),
            max_steps=20,
        )

    def budget(self, session: str) -> TurnBudget:
        return TurnBudget()

    def written(self, row: Row) -> None:
        """Nothing was claimed."""

    def title(self, session: str, history: ConversationHistory) -> None:
        """Nobody looks for a better title."""

    def begin(self) -> str:
        return self.app.begin(SessionCreated(surface="test", cwd="/")).session

    def events(self, session: str) -> list[Event | None]:
        return [row.event for row in self.app.store.log.every_event(session)]


@asynccontextmanager
async def desktop(
    root: Path, model: Model, verdict: str = "allow"
) -> AsyncIterator[Desktop]:
    desk = Desktop(root, model, verdict)
    try:
        async with asyncio.timeout(30):
            yield desk
    finally:
        await desk.service.close()
        desk.app.close()


WAIT = Reply(calls=(("wait", "{}"),))


async def test_when_submit_returns_the_words_are_on_disk(tmp_path: Path) -> None:
    async with desktop(tmp_path, ScriptedModel("hello")) as desk:
        session = desk.begin()
        epoch, seq = await desk.service.submit(session, "hi")
        row = desk.app.store.log.events(session, after=seq - 1)[0]
        assert (row.epoch, row.event) == (epoch, UserMessage(text="hi"))
        ended = await desk.service.idle(session)
        assert ended is not None
        assert ended.reason == "done"


async def test_the_folder_of_a_session_gives_no_helper_programs(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "git").touch(mode=0o755)
    environ = {"PATH": str(project)}
    assert find_program("git", environ) == str(project / "git")
    async with desktop(tmp_path / "home", ScriptedModel("hello")) as desk:
        session = desk.app.begin(
            SessionCreated(surface="test", cwd=str(project))
        ).session
        await desk.service.submit(session, "hi")
        await desk.service.idle(session)
    assert find_program("git", environ) is None


async def test_words_said_to_a_busy_session_wait_and_are_answered(
    tmp_path: Path,
) -> None:
    model = ScriptedModel(WAIT, "first", "second")
    async with desktop(tmp_path, model) as desk:
        session = desk.begin()
        await desk.service.submit(session, "one")
        await desk.tool.running.wait()
        await desk.service.submit(session, "two")
        desk.tool.go.set()
        await desk.service.idle(session)
        assert [message.text for message in model.requests[-1].messages] == [
            "one",
            "",
            "waited",
            "first",
            "two",
        ]
        assert sum(isinstance(event, TurnEnded) for event in desk.events(session)) == 2


async def test_words_that_are_written_while_the_runner_reads_the_log_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = SessionJournal.load

    async def overtaken(journal: SessionJournal) -> None:
        await reading(journal)
        monkeypatch.setattr(SessionJournal, "load", reading)
        desk.app.record(journal.session, UserMessage(text="second"))

    async with desktop(tmp_path, ScriptedModel("one", "two")) as desk:
        monkeypatch.setattr(SessionJournal, "load", overtaken)
        session = desk.begin()
        await desk.service.submit(session, "first")
        await desk.service.idle(session)
        texts = [message.text for message in desk.app.store.log.messages(session)]
        assert sorted(texts) == ["first", "one", "second", "two"]


async def test_a_steer_goes_into_the_running_turn(tmp_path: Path) -> None:
    model = ScriptedModel(WAIT, "done")
    async with desktop(tmp_path, model) as desk:
        session = desk.begin()
        await desk.service.submit(session, "one")
        await desk.tool.running.wait()
        await desk.service.submit(session, "rather this", delivery="steer")
        desk.tool.go.set()
        await desk.service.idle(session)
        assert model.requests[-1].messages[-1].text == "rather this"
        assert sum(isinstance(event, TurnEnded) for event in desk.events(session)) == 1


async def test_another_process_steers_answers_and_interrupts_by_writing_rows(
    tmp_path: Path,
) -> None:
    model = ScriptedModel(WAIT, WAIT)
    async with desktop(tmp_path, model, "ask") as desk:
        with (
            desk.questions.attached("test"),
            build(Settings(), Home(tmp_path), bus=Bus()) as elsewhere,
        ):
            session = desk.begin()
            asked = _on(desk.bus, "agent.approval.requested")
            await desk.service.submit(session, "one")
            request = await asked
            answer = ApprovalAnswered(
                call_id=request["call_id"],
                answer="session",
                by="elsewhere",
                shown=approval_hash(request),
            )
            await asyncio.to_thread(elsewhere.record, session, answer)
            await desk.tool.running.wait()
            await asyncio.to_thread(
                elsewhere.record, session, UserMessage(text="stop that")
            )
            await asyncio.to_thread(
                elsewhere.record, session, InterruptRequested(by="elsewhere")
            )
            model_ended = _on(desk.bus, "agent.turn.ended")
            assert (await model_ended)["reason"] == "interrupted"


async def test_the_first_answer_counts_and_a_second_is_told_so(tmp_path: Path) -> None:
    async with desktop(tmp_path, ScriptedModel(WAIT, "ok"), "ask") as desk:
        with desk.questions.attached("test"):
            session = desk.begin()
            asked = _on(desk.bus, "agent.approval.requested")
            await desk.service.submit(session, "one")
            call = (await asked)["call_id"]
            assert await desk.service.answer(session, call, "deny", by="test")
            assert not await desk.service.answer(session, call, "once", by="late")
            await desk.service.idle(session)
        assert not desk.tool.running.is_set()


@pytest.mark.parametrize("theirs", ["deny", "once"])
async def test_between_two_processes_the_answer_that_was_written_first_counts(
    tmp_path: Path, theirs: Literal["deny", "once"]
) -> None:
    """Theirs lies in the log, and nobody here has looked yet, when ours is given."""
    ours: Literal["deny", "once"] = "once" if theirs == "deny" else "deny"
    async with desktop(tmp_path, ScriptedModel(WAIT, "ok"), "ask") as desk:
        with (
            desk.questions.attached("test"),
            build(Settings(), Home(tmp_path), bus=Bus()) as elsewhere,
        ):
            session = desk.begin()
            asked = _on(desk.bus, "agent.approval.requested")
            await desk.service.submit(session, "one")
            request = await asked
            call, shown = request["call_id"], approval_hash(request)
            answer = ApprovalAnswered(
                call_id=call, answer=theirs, by="elsewhere", shown=shown
            )
            elsewhere.record(session, answer)  # without a pause
            assert not await desk.service.answer(
                session, call, ours, by="test", shown=shown
            )
            if theirs == "once":
                await desk.tool.running.wait()
                await desk.service.interrupt(session, by="test")
            await desk.service.idle(session)
        assert desk.tool.running.is_set() is (theirs == "once")


async def test_an_answer_that_comes_second_from_another_process_is_not_written(
    tmp_path: Path,
) -> None:
    async with desktop(tmp_path, ScriptedModel(WAIT, "ok"), "ask") as desk:
        with (
            desk.questions.attached("test"),
            build(Settings(), Home(tmp_path), bus=Bus()) as elsewhere,
        ):
            session = desk.begin()
            asked = _on(desk.bus, "agent.approval.requested")
            await desk.service.submit(session, "one")
            request = await asked
            call, shown = request["call_id"], approval_hash(request)
            elsewhere.record(
                session, ApprovalAnswered(call_id=call, answer="deny", by="first")
            )
            with pytest.raises(AnsweredAlready):
                elsewhere.record(
                    session,
                    ApprovalAnswered(
                        call_id=call, answer="once", by="second", shown=shown
                    ),
                )
            await desk.service.idle(session)
        assert not desk.tool.running.is_set()


async def test_of_ten_identical_answers_at_once_one_counts(tmp_path: Path) -> None:
    async with desktop(tmp_path, ScriptedModel(WAIT, "ok"), "ask") as desk:
        desk.tool.go.set()
        with desk.questions.attached("test"):
            session = desk.begin()
            asked = _on(desk.bus, "agent.approval.requested")
            await desk.service.submit(session, "one")
            request = await asked
            call, shown = request["call_id"], approval_hash(request)
            answers = (
                desk.service.answer(session, call, "once", by="test", shown=shown)
                for _ in range(10)
            )
            assert sorted(await asyncio.gather(*answers)) == [False] * 9 + [True]
            await desk.service.idle(session)
        assert (
            sum(isinstance(event, ApprovalAnswered) for event in desk.events(session))
            == 1
        )


async def test_an_answer_of_the_wrong_kind_is_refused_and_the_turn_goes_on(
    tmp_path: Path,
) -> None:
    """Also one that another process writes into the log by itself."""
    async with desktop(tmp_path, ScriptedModel(WAIT, "ok"), "ask") as desk:
        desk.tool.go.set()
        with (
            desk.questions.attached("test"),
            build(Settings(), Home(tmp_path), bus=Bus()) as elsewhere,
        ):
            session = desk.begin()
            asked = _on(desk.bus, "agent.approval.requested")
            await desk.service.submit(session, "one")
            request = await asked
            call = request["call_id"]
            with pytest.raises(AnswerRefused, match="take different kinds of answers"):
                await desk.service.reply(session, call, "yes", by="test")
            with pytest.raises(AnswerRefused, match="take different kinds of answers"):
                elsewhere.record(
                    session, QuestionAnswered(call_id=call, text="yes", by="elsewhere")
                )
            assert [one.call_id for one in await desk.service.pending(session)] == [
                call
            ]
            assert await desk.service.answer(
                session, call, "once", by="test", shown=approval_hash(request)
            )
            ended = await desk.service.idle(session)
        assert ended is not None
        assert ended.reason == "done"
        assert desk.tool.running.is_set()


async def test_a_question_is_not_answered_by_a_word_about_a_call(
    tmp_path: Path,
) -> None:
    async with desktop(tmp_path, ScriptedModel()) as desk:
        session = desk.begin()
        desk.app.record(session, QuestionAsked(call_id="q", text="Which?"))
        for answer in ("once", "deny"):
            with pytest.raises(AnswerRefused):
                desk.app.record(session, ApprovalAnswered(call_id="q", answer=answer))  # type: ignore[arg-type]
        desk.app.record(session, QuestionAnswered(call_id="q", text="this"))
        with pytest.raises(AnsweredAlready):
            desk.app.record(session, QuestionAnswered(call_id="q", text="this"))
        with pytest.raises(AnsweredAlready):
            desk.app.record(
                session, QuestionAnswered(call_id="never asked", text="this")
            )


async def test_whoever_allows_a_call_must_have_seen_that_call(tmp_path: Path) -> None:
    async with desktop(tmp_path, ScriptedModel(WAIT, "ok"), "ask") as desk:
        with desk.questions.attached("test"):
            session = desk.begin()
            asked = _on(desk.bus, "agent.approval.requested")
            await desk.service.submit(session, "one")
            request = await asked
            call = request["call_id"]
            other = approval_hash({**request, "summary": "wait a little"})
            for shown in ("", other):
                with pytest.raises(AnswerRefused, match="not the one that was shown"):
                    await desk.service.answer(
                        session, call, "once", by="test", shown=shown
                    )
            assert not desk.tool.running.is_set()
            assert await desk.service.answer(
                session, call, "deny", by="test"
            )  # no is no, whatever was shown
            await desk.service.idle(session)
        assert not desk.tool.running.is_set()


async def test_nobody_to_ask_means_no(tmp_path: Path) -> None:
    async with desktop(tmp_path, ScriptedModel(WAIT, "ok"), "ask") as desk:
        session = desk.begin()
        await desk.service.submit(session, "one")
        await desk.service.idle(session)
        answers = [
            event
            for event in desk.events(session)
            if isinstance(event, ApprovalAnswered)
        ]
        assert [(answer.answer, answer.by) for answer in answers] == [
            ("deny", "nobody")
        ]


async def test_a_crashed_turn_is_closed_and_nothing_is_run_again(
    tmp_path: Path,
) -> None:
    model = ScriptedModel("I see")
    async with desktop(tmp_path, model) as desk:
        session = desk.begin()
        calls = tuple(ToolCall(id=name, name="wait", arguments="{}") for name in "ab")
        desk.app.record(
            session,
            UserMessage(text="go"),
            SessionPrompted(system=("x",)),
            TurnStarted(inputs=(2,)),
            AssistantMessage(tool_calls=calls),
            ToolStarted(call_id="a", name="wait", arguments="{}"),
            turn="old",
        )
        await desk.service.submit(session, "what happened?")
        await desk.service.idle(session)
        results = [
            event for event in desk.events(session) if isinstance(event, ToolFinished)
        ]
        assert results[0].text.startswith("Outcome unknown")
        assert results[1].text.startswith("Not run")
        ends = [
            event.reason
            for event in desk.events(session)
            if isinstance(event, TurnEnded)
        ]
        assert ends == ["crashed", "done"]
        assert not desk.tool.running.is_set()


def _crash_while_asking(
    desk: Desktop, *, expires: float = 0.0, question: str = ""
) -> str:
    """A session whose process ended while a call waited for a person and another ran."""
    session = desk.begin()
    request: Event = ApprovalRequested(
        call_id="b",
        name="wait",
        arguments="{}",
        summary="wait a while",
        shape="wait {}",
        expires=expires,
    )
    if question:
        request = QuestionAsked(call_id="b", text=question)
    calls = tuple(ToolCall(id=name, name="wait", arguments="{}") for name in "ab")
    desk.app.record(
        session,
        UserMessage(text="go"),
        SessionPrompted(system=("x",)),
        TurnStarted(inputs=(2,)),
        AssistantMessage(tool_calls=calls),
        ToolStarted(call_id="a", name="wait", arguments="{}"),
        ToolStarted(call_id="b", name="wait", arguments="{}"),
        request,
        turn="old",
    )
    return session


async def test_a_request_that_waited_when_the_process_ended_is_asked_again_and_then_runs(
    tmp_path: Path,
) -> None:
    model = ScriptedModel("all done", "and you?")
    async with desktop(tmp_path, model, "ask") as desk:
        session = _crash_while_asking(desk)
        with desk.questions.attached("test"):
            asked = _on(desk.bus, "agent.approval.requested")
            desk.tool.go.set()
            await desk.service.submit(session, "still there?")
            request = await asked
            assert request["call_id"] == "b"
            assert [one.call_id for one in await desk.service.pending(session)] == ["b"]
            assert await desk.service.answer(
                session, "b", "once", by="test", shown=approval_hash(request)
            )
            await desk.service.idle(session)
        results = {
            event.call_id: event.text
            for event in desk.events(session)
            if isinstance(event, ToolFinished)
        }
        assert results["a"].startswith("Outcome unknown")
        assert results["b"] == "waited"
        ends = [
            event.reason
            for event in desk.events(session)
            if isinstance(event, TurnEnded)
        ]
        assert ends == ["crashed", "done", "done"]
        roles = [message.role for message in model.requests[-1].messages]
        assert roles == ["user", "assistant", "tool", "tool", "assistant", "user"]


@pytest.mark.parametrize(("attached", "expires"), [(False, 0.0), (True, 1.0)])
async def test_a_request_that_nobody_can_answer_any_more_is_closed_as_refused(
    tmp_path: Path, attached: bool, expires: float
) -> None:
    async with desktop(tmp_path, ScriptedModel("I see"), "ask") as desk:
        session = _crash_while_asking(desk, expires=expires)
        with desk.questions.attached("test") if attached else nullcontext():
            await desk.service.submit(session, "still there?")
            await desk.service.idle(session)
        results = {
            event.call_id: event.text
            for event in desk.events(session)
            if isinstance(event, ToolFinished)
        }
        assert results["b"] == "Not run: it was not approved."
        assert not desk.tool.running.is_set()


async def test_a_request_that_nobody_answers_expires_and_the_log_says_so(
    tmp_path: Path,
) -> None:
    async with desktop(tmp_path, ScriptedModel(WAIT, "too bad"), "ask") as desk:
        desk.questions.timeout_s = 0.05
        with desk.questions.attached("test"):
            session = desk.begin()
            await desk.service.submit(session, "one")
            await desk.service.idle(session)
        answers = [
            event
            for event in desk.events(session)
            if isinstance(event, ApprovalAnswered)
        ]
        assert [(answer.answer, answer.by) for answer in answers] == [
            ("deny", "expired")
        ]
        assert not desk.tool.running.is_set()


async def test_the_time_a_request_has_does_not_begin_anew_with_a_restart(
    tmp_path: Path,
) -> None:
    async with desktop(tmp_path, ScriptedModel("all done"), "ask") as desk:
        end = time.time() + 3_000
        session = _crash_while_asking(desk, expires=end)
        desk.questions.timeout_s = 9_000
        with desk.questions.attached("test"):
            asked = _on(desk.bus, "agent.approval.requested")
            await desk.service.resume(session)
            assert (await asked)["expires"] == end
            await desk.service.answer(session, "b", "deny", by="test")
            await desk.service.idle(session)


async def test_whoever_looks_ends_a_turn_whose_process_is_gone_and_keeps_what_it_had_said(
    tmp_path: Path,
) -> None:
    async with desktop(tmp_path, ScriptedModel("unused")) as desk:
        session = desk.begin()
        said = (
            UserMessage(text="go"),
            SessionPrompted(system=("x",)),
            TurnStarted(inputs=(2,)),
        )
        desk.app.record(session, *said, ModelRetried(reason="overloaded"), turn="old")
        void, shown = (
            PartialText(desk.app.home, session),
            PartialText(desk.app.home, session),
        )
        void.add("what was said before the retry", "old 0")
        void.close()
        shown.add("Half of ", "old 1")
        shown.add("an answ", "old 1")
        shown.close()
        assert await desk.service.end_dead_turn(session)
        *_, partial, ended = desk.events(session)
        assert partial == AssistantMessage(text="Half of an answ", finish="interrupted")
        assert isinstance(ended, TurnEnded)
        assert ended.reason == "crashed"
        assert not list(desk.app.home.root.glob("run/partial/*"))
        assert not await desk.service.end_dead_turn(session)
        assert not desk.service.works_on(session)


async def test_a_call_within_a_call_has_a_result_after_a_crash_too(
    tmp_path: Path,
) -> None:
    async with desktop(tmp_path, ScriptedModel("unused")) as desk:
        session = desk.begin()
        call = ToolCall(id="a", name="run_python", arguments="{}")
        desk.app.record(
            session,
            TurnStarted(),
            AssistantMessage(tool_calls=(call,)),
            ToolStarted(call_id="a", name="run_python", arguments="{}"),
            ToolStarted(call_id="a/1", name="wait", arguments="{}"),
            turn="old",
        )
        assert await desk.service.end_dead_turn(session)
        results = [one for one in desk.events(session) if isinstance(one, ToolFinished)]
        assert sorted(one.call_id for one in results) == ["a", "a/1"]
        assert all(one.text.startswith("Outcome unknown") for one in results)


async def test_a_part_of_a_reply_that_is_in_the_log_already_is_not_kept_twice(
    tmp_path: Path,
) -> None:
    async with desktop(tmp_path, ScriptedModel("unused")) as desk:
        session = desk.begin()
        desk.app.record(
            session, TurnStarted(), AssistantMessage(text="Whole."), turn="old"
        )
        late = PartialText(desk.app.home, session)
        late.add("Who", "old 0")
        late.close()
        assert await desk.service.end_dead_turn(session)
        assert [message.text for message in desk.app.store.log.messages(session)] == [
            "Whole."
        ]


async def test_a_turn_that_runs_elsewhere_is_left_alone(tmp_path: Path) -> None:
    async with desktop(tmp_path, ScriptedModel("unused")) as desk:
        session = desk.begin()
        lease = desk.app.store.leases.acquire(session)
        desk.app.record(session, TurnStarted(), turn="old", lease=lease)
        assert not await desk.service.end_dead_turn(session)
        await desk.service.interrupt(session, by="test")
        assert isinstance(desk.events(session)[-1], InterruptRequested)
        desk.app.store.leases.release(lease)
        await desk.service.interrupt(session, by="test")
        assert isinstance(desk.events(session)[-1], TurnEnded)


async def test_an_answer_lets_a_turn_go_on_whose_process_is_gone(
    tmp_path: Path,
) -> None:
    async with desktop(tmp_path, ScriptedModel("all done"), "ask") as desk:
        session = _crash_while_asking(desk)
        with desk.questions.attached("test"):
            assert await desk.service.end_dead_turn(session)
            (request,) = await desk.service.pending(session)
            assert request.call_id == "b"
            assert isinstance(request, ApprovalRequested)
            desk.tool.go.set()
            assert await desk.service.answer(
                session, "b", "once", by="test", shown=approval_hash(request)
            )
            await desk.service.idle(session)
            assert not await desk.service.answer(session, "b", "once", by="late")
        results = {
            event.call_id: event.text
            for event in desk.events(session)
            if isinstance(event, ToolFinished)
        }
        assert results["a"].startswith("Outcome unknown")
        assert results["b"] == "waited"
        ends = [
            event.reason
            for event in desk.events(session)
            if isinstance(event, TurnEnded)
        ]
        assert ends == ["crashed", "done"]


async def test_an_answer_counts_while_the_dead_turn_is_being_ended(
    tmp_path: Path,
) -> None:
    async with desktop(tmp_path, ScriptedModel("all done"), "ask") as desk:
        session = _crash_while_asking(desk)
        with desk.questions.attached("test"):
            (request,) = await desk.service.pending(session)
            assert isinstance(request, ApprovalRequested)
            desk.tool.go.set()
            desk.hold = asyncio.Event()
            ending = asyncio.ensure_future(desk.service.end_dead_turn(session))
            await asyncio.wait_for(desk.closing.wait(), 20)
            answering = asyncio.ensure_future(
                desk.service.answer(
                    session, "b", "once", by="test", shown=approval_hash(request)
                )
            )
            desk.hold.set()
            assert await asyncio.wait_for(answering, 20)
            await asyncio.wait_for(ending, 20)
            await asyncio.wait_for(desk.service.idle(session), 20)
        ends = [one for one in desk.events(session) if isinstance(one, TurnEnded)]
        assert [one.reason for one in ends] == ["crashed", "done"]


@pytest.mark.parametrize("is_ended", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("verdict", ["once", "deny"])
async def test_an_answer_counts_while_another_process_ends_the_dead_turn(
    tmp_path: Path, *, verdict: Literal["once", "deny"], is_ended: bool
) -> None:
    model = ScriptedModel("all done")
    async with desktop(tmp_path, model, "ask") as desk:
        session = _crash_while_asking(desk)
        with desk.questions.attached("test"):
            (request,) = await desk.service.pending(session)
            assert isinstance(request, ApprovalRequested)
            desk.tool.go.set()

            async def answer() -> bool:
                return await desk.service.answer(
                    session,
                    "b",
                    verdict,
                    by="test",
                    shown=approval_hash(request),
                    reason="not today" if verdict == "deny" else "",
                )

            await _answer_while_another_ends(desk, session, answer, is_ended=is_ended)
        (result,) = [
            one.text
            for one in desk.events(session)
            if isinstance(one, ToolFinished) and one.call_id == "b"
        ]
        assert ("waited" if verdict == "once" else "not today") in result
        assert result in [one.text for one in model.requests[-1].messages]


@pytest.mark.parametrize("is_ended", [False, True], ids=["before", "after"])
async def test_a_typed_answer_counts_while_another_process_ends_the_dead_turn(
    tmp_path: Path, *, is_ended: bool
) -> None:
    async with desktop(tmp_path, ScriptedModel("all done")) as desk:
        desk.tool.question = "Which one?"
        session = _crash_while_asking(desk, question=desk.tool.question)
        with desk.questions.attached("test"):

            async def answer() -> bool:
                return await desk.service.reply(session, "b", "the left one", by="test")

            await _answer_while_another_ends(desk, session, answer, is_ended=is_ended)
        (result,) = [
            one.text
            for one in desk.events(session)
            if isinstance(one, ToolFinished) and one.call_id == "b"
        ]
        assert "the left one" in result


async def _answer_while_another_ends(
    desk: Desktop,
    session: str,
    answer: Callable[[], Awaitable[bool]],
    *,
    is_ended: bool,
) -> None:
    """A person answers the request of call b while another process ends its dead turn, before or after that is written."""
    unknown = ToolFinished(call_id="a", name="wait", text="?", ok=False)
    end = (unknown, TurnEnded(reason="crashed"))
    other = Leases(desk.app.store._db, desk.app.clock)
    lease = other.acquire(session)
    if is_ended:
        desk.app.record(session, *end, turn="old", lease=lease)
    ran = _on(desk.bus, "agent.turn.ended")
    assert await answer()
    if not is_ended:
        desk.app.record(session, *end, turn="old", lease=lease)
        await asyncio.wait_for(ran, 20)
        ran = _on(desk.bus, "agent.turn.ended")
    assert await desk.service.pending(session)
    other.release(lease)
    await asyncio.wait_for(ran, 20)
    await asyncio.wait_for(desk.service.idle(session), 20)
    ends = [one.reason for one in desk.events(session) if isinstance(one, TurnEnded)]
    assert ends == ["crashed", "done"]


async def test_words_that_interrupt_a_turn_which_is_ending_are_answered(
    tmp_path: Path,
) -> None:
    async with desktop(tmp_path, ScriptedModel("one", "two")) as desk:
        session = desk.begin()
        desk.hold = asyncio.Event()
        await desk.service.submit(session, "first")
        await asyncio.wait_for(desk.closing.wait(), 20)
        await desk.service.submit(session, "instead do this", delivery="interrupt")
        desk.hold.set()
        ended = await desk.service.idle(session)
        assert ended is not None
        assert ended.reason == "done"
        assert [message.text for message in desk.app.store.log.messages(session)][
            -1
        ] == "two"


async def test_a_question_that_died_with_its_turn_is_pending_no_more(
    tmp_path: Path,
) -> None:
    async with desktop(tmp_path, ScriptedModel(WAIT), "ask") as desk:
        with desk.questions.attached("test"):
            session = desk.begin()
            asked = _on(desk.bus, "agent.approval.requested")
            await desk.service.submit(session, "one")
            call = (await asked)["call_id"]
            await desk.service.interrupt(session, by="test")
            await desk.service.idle(session)
            assert await desk.service.pending(session) == []
            assert not await desk.service.answer(session, call, "session", by="late")


async def test_what_was_noted_and_could_not_be_written_stops_the_turn(
    tmp_path: Path,
) -> None:
    async with desktop(tmp_path, ScriptedModel("x")) as desk:
        session = desk.begin()
        lease = desk.app.store.leases.acquire(session)
        journal = SessionJournal(desk.app, session, lease)
        await journal.load()
        desk.app.store.leases.release(
            lease
        )  # from here on nothing can be written with it
        journal.note(ToolFinished(call_id="c", name="wait", text="read"))
        await journal.all_written()
        with pytest.raises(LeaseLost):
            await journal.record(SessionTitled(title="after"))


async def test_an_answer_is_written_with_the_end_of_its_turn(tmp_path: Path) -> None:
    async with desktop(tmp_path, ScriptedModel("x")) as desk:
        session = desk.begin()
        lease = desk.app.store.leases.acquire(session)
        shown = PartialText(desk.app.home, session)
        journal = SessionJournal(desk.app, session, lease, partial=shown)
        await journal.load()
        journal.turn = "t1"
        await journal.record(TurnStarted(inputs=()))
        journal.show(MessageDelta(text="It rains."))
        journal.note(AssistantMessage(text="It rains."))
        await journal.nothing_under_way()
        await journal.record(TurnEnded(reason="done"))
        *_, answer, end = desk.app.store.log.every_event(session)
        assert isinstance(answer.event, AssistantMessage)
        assert isinstance(end.event, TurnEnded)
        assert answer.ts == end.ts, "they were written one after the other"
        assert not shown.recover("t1 0"), "the streamed text was kept beside its row"
        assert len(journal.history.messages) == 1


async def test_an_answer_is_not_lost_when_the_title_beside_it_is_refused(
    tmp_path: Path,
) -> None:
    async with desktop(tmp_path, ScriptedModel("x")) as desk:
        session = desk.begin()
        lease = desk.app.store.leases.acquire(session)
        journal = SessionJournal(desk.app, session, lease)
        await journal.load()
        desk.app.record(session, SessionTitled(title="mine", by="user"))
        journal.note(AssistantMessage(text="It rains."))
        ended = TurnEnded(reason="done")
        with pytest.raises(TitledAlready):
            await journal.record(ended, SessionTitled(title="Rain", by="hermes"))
        await journal.record(ended)
        *_, answer, end = desk.app.store.log.every_event(session)
        assert isinstance(answer.event, AssistantMessage)
        assert isinstance(end.event, TurnEnded)


async def test_an_answer_is_not_lost_when_its_writer_is_cancelled_and_the_title_refused(
    tmp_path: Path,
) -> None:
    async with desktop(tmp_path, ScriptedModel("x")) as desk:
        session = desk.begin()
        lease = desk.app.store.leases.acquire(session)
        journal = SessionJournal(desk.app, session, lease)
        await journal.load()
        desk.app.record(session, SessionTitled(title="mine", by="user"))
        journal.note(AssistantMessage(text="It rains."))
        title = SessionTitled(title="Rain", by="hermes")
        ending = asyncio.ensure_future(journal.record(TurnEnded(reason="done"), title))
        await asyncio.sleep(0)
        ending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ending
        await journal.nothing_under_way()
        await journal.flush()
        *_, answer = desk.app.store.log.every_event(session)
        assert isinstance(answer.event, AssistantMessage)


async def test_an_answer_for_the_session_is_remembered_after_a_restart(
    tmp_path: Path,
) -> None:
    async with desktop(tmp_path, ScriptedModel(WAIT, "once"), "ask") as desk:
        desk.tool.go.set()
        with desk.questions.attached("test"):
            session = desk.begin()
            asked = _on(desk.bus, "agent.approval.requested")
            await desk.service.submit(session, "one")
            request = await asked
            shown = approval_hash(request)
            assert await desk.service.answer(
                session, request["call_id"], "session", by="test", shown=shown
            )
            await desk.service.idle(session)
    async with desktop(tmp_path, ScriptedModel(WAIT, "twice"), "ask") as desk:
        desk.tool.go.set()
        with desk.questions.attached("test"):
            await desk.service.submit(session, "two")
            await desk.service.idle(session)
        answers = [
            event.by
            for event in desk.events(session)
            if isinstance(event, ApprovalAnswered)
        ]
        assert answers == ["test", "remembered"]
        assert desk.tool.running.is_set()


async def test_a_session_that_another_process_runs_is_left_to_it(
    tmp_path: Path,
) -> None:
    async with desktop(tmp_path, ScriptedModel("mine")) as desk:
        session = desk.begin()
        with build(Settings(), Home(tmp_path), bus=Bus()) as elsewhere:
            lease = elsewhere.store.leases.acquire(session)
            _, seq = await desk.service.submit(session, "hi")
            await asyncio.to_thread(
                elsewhere.record,
                session,
                TurnStarted(inputs=(seq,)),
                AssistantMessage(text="theirs"),
                lease=lease,
            )
            assert await desk.service.idle(session) is None
        assert [message.text for message in desk.app.store.log.messages(session)] == [
            "hi",
            "theirs",
        ]


async def test_watching_replays_from_a_cursor_and_goes_on_live_without_holes_or_doubles(
    tmp_path: Path,
) -> None:
    async with desktop(tmp_path, ScriptedModel(WAIT, "done")) as desk:
        session = desk.begin()
        await desk.service.submit(session, "one")
        await desk.tool.running.wait()
        seen: list[int] = []
        async for event in watch(desk.app, session, after=1):
            if "seq" in event:
                seen.append(event["seq"])
            desk.tool.go.set()
            if event["type"] == "session.titled":
                break
        assert seen == list(range(2, seen[-1] + 1))


async def test_an_interrupt_at_any_moment_leaves_each_call_with_exactly_one_result(
    tmp_path: Path,
) -> None:
    chance = random.Random(5)
    replies = [Reply(calls=(("wait", "{}"),) * 2) for _ in range(4000)]
    async with desktop(tmp_path, ScriptedModel(*replies)) as desk:
        desk.tool.go.set()
        for _ in range(60):
            session = desk.begin()
            await desk.service.submit(session, "go")
            await asyncio.sleep(chance.uniform(0, 0.03))
            await desk.service.interrupt(session, by="test")
            await desk.service.idle(session)
            events = desk.events(session)
            calls = [
                call.id
                for event in events
                if isinstance(event, AssistantMessage)
                for call in event.tool_calls
            ]
            results = [
                event.call_id for event in events if isinstance(event, ToolFinished)
            ]
            assert sorted(results) == sorted(calls)


async def test_an_interrupt_before_the_turn_has_begun_counts(tmp_path: Path) -> None:
    async with desktop(tmp_path, ScriptedModel("never said")) as desk:
        session = desk.begin()
        await desk.service.submit(session, "hi")
        await desk.service.interrupt(session, by="test")
        ended = await desk.service.idle(session)
        assert ended is not None
        assert ended.reason == "interrupted"


async def test_closing_begins_nothing_new_and_what_waits_stays(tmp_path: Path) -> None:
    async with desktop(tmp_path, ScriptedModel(WAIT, "second")) as desk:
        session = desk.begin()
        await desk.service.submit(session, "one")
        await desk.tool.running.wait()
        await desk.service.submit(session, "two")
        await desk.service.close()
        ends = [
            event.reason
            for event in desk.events(session)
            if isinstance(event, TurnEnded)
        ]
        assert ends == ["interrupted"]
        assert (
            sum(isinstance(event, TurnStarted) for event in desk.events(session)) == 1
        )


async def test_what_waits_behind_a_turn_that_is_held_is_answered_when_it_is_wanted(
    tmp_path: Path,
) -> None:
    async with desktop(tmp_path, ScriptedModel(WAIT, "two")) as desk:
        session = desk.begin()
        await desk.service.submit(session, "one")
        await desk.tool.running.wait()
        await desk.service.submit(session, "then this")
        holding = asyncio.ensure_future(desk.service.hold(session))
        await asyncio.sleep(0)
        await desk.service.resume(session)  # before the turn has ended
        await holding
        ended = await desk.service.idle(session)
        assert ended is not None
        assert ended.reason == "done"
        ends = [
            event.reason
            for event in desk.events(session)
            if isinstance(event, TurnEnded)
        ]
        assert ends == ["interrupted", "done"]


async def test_a_turn_that_is_held_leaves_the_next_words_waiting(
    tmp_path: Path,
) -> None:
    async with desktop(tmp_path, ScriptedModel(WAIT)) as desk:
        session = desk.begin()
        await desk.service.submit(session, "one")
        await desk.tool.running.wait()
        await desk.service.submit(session, "then this")
        await desk.service.hold(session)
        assert not desk.service.works_on(session)
        assert (
            sum(isinstance(event, TurnStarted) for event in desk.events(session)) == 1
        )


async def test_a_session_is_busy_during_its_turn_and_not_once_the_end_is_shown(
    tmp_path: Path,
) -> None:
    async with desktop(tmp_path, ScriptedModel(WAIT, "done")) as desk:
        session = desk.begin()
        ended = _on(desk.bus, "agent.turn.ended")
        await desk.service.submit(session, "one")
        await desk.tool.running.wait()
        assert await desk.service.is_busy(session)
        desk.tool.go.set()
        await ended
        assert desk.service.works_on(session)  # not released yet
        assert not await desk.service.is_busy(session)
        assert not desk.service.works_on(session)


async def test_a_session_that_another_process_is_about_to_release_is_not_busy(
    tmp_path: Path,
) -> None:
    async with desktop(tmp_path, ScriptedModel("unused")) as desk:
        session = desk.begin()
        leases = desk.app.store.leases
        lease = leases.take(session).result()
        looking = asyncio.ensure_future(desk.service.is_busy(session))
        await asyncio.sleep(0)
        leases.give_back(lease).result()
        assert not await looking
        lease = leases.take(session).result()
        desk.app.record(session, UserMessage(text="go"), TurnStarted(inputs=(2,)))
        assert await desk.service.is_busy(session)
        leases.give_back(lease).result()


async def test_a_title_of_the_user_is_kept(tmp_path: Path) -> None:
    async with desktop(tmp_path, ScriptedModel(WAIT, "done")) as desk:
        session = desk.begin()
        await desk.service.submit(session, "one")
        await desk.tool.running.wait()
        await asyncio.to_thread(desk.app.record, session, SessionTitled(title="my own"))
        desk.tool.go.set()
        await desk.service.idle(session)
        assert desk.app.store.sessions.find(session).title == "my own"


async def test_a_row_written_beside_the_runner_is_published_once(
    tmp_path: Path,
) -> None:
    async with desktop(tmp_path, ScriptedModel(WAIT, "done")) as desk:
        session = desk.begin()
        seen: list[int] = []
        desk.bus.subscribe(
            "**", lambda event: seen.append(event["seq"]) if "seq" in event else None
        )
        await desk.service.submit(session, "one")
        await desk.tool.running.wait()
        await asyncio.to_thread(desk.app.record, session, SessionTitled(title="beside"))
        await asyncio.sleep(0.4)  # long enough for the runner to find it in the log
        desk.tool.go.set()
        await desk.service.idle(session)
        assert sorted(seen) == sorted(set(seen))


class Cut:
    """A model whose disk fills up while it speaks."""

    provider = "cut"
    name = "cut"

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield TextDelta("so far")
        raise StoreFull("not saved: no space left")


async def test_what_could_not_be_saved_reaches_whoever_waits(tmp_path: Path) -> None:
    async with desktop(tmp_path, Cut()) as desk:
        session = desk.begin()
        await desk.service.submit(session, "hi")
        with pytest.raises(StoreFull, match="not saved"):
            await desk.service.idle(session)
        assert await desk.service.end_dead_turn(session)
        assert [message.text for message in desk.app.store.log.messages(session)] == [
            "hi",
            "so far",
        ]


async def test_a_log_that_can_not_be_read_just_now_leaves_the_session_free(
    tmp_path: Path,
) -> None:
    async with desktop(tmp_path, ScriptedModel("hello")) as desk:
        session = desk.begin()
        await desk.service.submit(session, "hi")
        reader = sqlite_database(desk.app.store)._reader
        reader.set_authorizer(_no_event_data)
        with pytest.raises(StoreError):
            await desk.service.idle(session)
        reader.set_authorizer(None)
        assert desk.app.store.leases.holder(session) is None
        await desk.service.resume(session)
        await desk.service.idle(session)
        assert [message.text for message in desk.app.store.log.messages(session)] == [
            "hi",
            "hello",
        ]


async def test_a_runner_that_is_cancelled_while_it_takes_the_session_leaves_it_free(
    tmp_path: Path,
) -> None:
    async with desktop(tmp_path, ScriptedModel("unused")) as desk:
        session = desk.begin()
        store = desk.app.store
        store.share()  # so that the thread writes
        at_commit, go = threading.Event(), threading.Event()

        def wait() -> bool:
            at_commit.set()
            return not go.wait(20)

        sqlite_database(store)._writer.set_commit_hook(wait)
        running = asyncio.ensure_future(Runner(desk.deps, session).run())
        assert await asyncio.to_thread(at_commit.wait, 20)
        running.cancel()
        await asyncio.wait({running})
        go.set()
        await asyncio.wrap_future(
            store._db.submit(lambda _: None)
        )  # comes after the lease
        await asyncio.wrap_future(
            store._db.submit(lambda _: None)
        )  # comes after its return
        assert store.leases.holder(session) is None


def _no_event_data(
    action: int, table: str | None, column: str | None, *_: str | None
) -> int:
    denied = action == apsw.SQLITE_READ and (table, column) == ("events", "data")
    return apsw.SQLITE_DENY if denied else apsw.SQLITE_OK


def _left_open(desk: Desktop) -> str:
    """A session with a turn whose process is gone."""
    session = desk.begin()
    desk.app.record(
        session, UserMessage(text="go"), TurnStarted(inputs=(2,)), turn="old"
    )
    return session


async def test_whoever_settles_a_turn_learns_that_it_failed(tmp_path: Path) -> None:
    async with desktop(tmp_path, ScriptedModel("unused")) as desk:
        session = _left_open(desk)
        desk.prepare_failure = RuntimeError("a fault of the program")
        with pytest.raises(RuntimeError, match="a fault of the program"):
            await desk.service.end_dead_turn(session)
        assert desk.app.store.log.has_open_turn(session)


async def test_a_turn_that_can_not_be_ended_keeps_nobody_from_the_others_and_is_not_tried_all_the_time(
    tmp_path: Path,
) -> None:
    async with desktop(tmp_path, ScriptedModel("unused")) as desk:
        bad, good = _left_open(desk), _left_open(desk)
        desk.prepare_failure = RuntimeError("a fault of the program")
        looks: list[int] = []
        third = asyncio.Event()

        def sessions() -> list[str]:
            looks.append(len(desk.finished))
            if len(looks) == 2:
                desk.prepare_failure = None
            if len(looks) == 3:
                third.set()
            return [bad] if len(looks) == 1 else [bad, good]

        watching = asyncio.ensure_future(
            DeadTurns(sessions, lambda: desk.service).run()
        )
        await third.wait()
        watching.cancel()
        assert desk.app.store.log.has_open_turn(bad)
        assert not desk.app.store.log.has_open_turn(good)


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (RuntimeError("a fault of the program"), "RuntimeError: a fault"),
        (SettingsError("there is no provider own", hint="Add it."), "Add it."),
    ],
)
async def test_a_turn_that_can_not_begin_fails_in_the_log_where_every_surface_sees_it(
    tmp_path: Path, failure: Exception, told: str
) -> None:
    async with desktop(tmp_path, ScriptedModel("answered")) as desk:
        session = desk.begin()
        desk.prompt_failure = failure
        await desk.service.submit(session, "go")
        ended = await desk.service.idle(session)
        assert ended is not None
        assert ended.reason == "failed"
        assert told in ended.detail
        assert ended in desk.events(session)
        desk.prompt_failure = None
        await desk.service.submit(session, "again")
        ended = await desk.service.idle(session)
        assert ended is not None
        assert ended.reason == "done"


async def test_a_turn_ends_though_its_files_can_not_be_saved(tmp_path: Path) -> None:
    async with desktop(tmp_path, ScriptedModel("answered")) as desk:
        session, dead = desk.begin(), _left_open(desk)
        desk.failure = OSError("no space left")
        assert await desk.service.end_dead_turn(dead)
        assert not desk.app.store.log.has_open_turn(dead)
        await desk.service.submit(session, "go")
        ended = await desk.service.idle(session)
        assert ended is not None
        assert ended.reason == "done"
        assert not desk.app.store.log.has_open_turn(session)
        assert "no space left" in [one.error for one in desk.app.errors.problems()]


@pytest.mark.parametrize("by", ["looking", "stopping"])
async def test_a_message_queued_before_a_crash_is_answered(
    tmp_path: Path, by: str
) -> None:
    async with desktop(tmp_path, ScriptedModel("answered late")) as desk:
        session = desk.begin()
        desk.app.record(
            session,
            UserMessage(text="go"),
            SessionPrompted(system=("x",)),
            TurnStarted(inputs=(2,)),
            UserMessage(text="and then this"),
            turn="old",
        )
        if by == "looking":
            looking = DeadTurns(lambda: [session], lambda: desk.service).run()
            begun = _on(desk.bus, "agent.turn.started")
            watching = asyncio.ensure_future(looking)
            await asyncio.wait_for(begun, 20)
            watching.cancel()
            await desk.service.idle(session)
        else:
            await desk.service.interrupt(session, by="test")
            await desk.service.idle(session)
        texts = [one.text for one in desk.app.store.log.messages(session)]
        assert texts == ["go", "and then this", "answered late"]


async def test_a_queued_message_waits_behind_a_question_of_a_dead_turn(
    tmp_path: Path,
) -> None:
    async with desktop(tmp_path, ScriptedModel("unused"), "ask") as desk:
        session = _crash_while_asking(desk)
        desk.app.record(session, UserMessage(text="and then this"))
        with desk.questions.attached("test"):
            assert await desk.service.end_dead_turn(session)
            await desk.service.answer_queued(session)
            await asyncio.wait_for(desk.service.idle(session), 20)
            assert await desk.service.pending(session)
            started = [
                one for one in desk.events(session) if isinstance(one, TurnStarted)
            ]
            assert len(started) == 1


async def test_a_stop_reaches_the_process_that_takes_the_session_first(
    tmp_path: Path,
) -> None:
    async with desktop(tmp_path, ScriptedModel("unused")) as desk:
        session = _left_open(desk)
        store = desk.app.store
        other = Leases(store._db, desk.app.clock)
        taken: list[Lease] = []

        def take_meanwhile(action: int, table: str | None, *_: str | None) -> int:
            if (
                table == "events" and not taken
            ):  # nobody had the session a moment ago; now its turn is looked at
                taken.append(other.acquire(session))
            return apsw.SQLITE_OK

        sqlite_database(store)._reader.set_authorizer(take_meanwhile)
        await desk.service.interrupt(session, by="test")
        assert taken
        assert isinstance(desk.events(session)[-1], InterruptRequested)
        other.release(*taken)


async def test_settling_a_turn_does_not_wait_for_the_next_one(tmp_path: Path) -> None:
    async with desktop(tmp_path, ScriptedModel(WAIT, "done")) as desk:
        session = _left_open(desk)
        desk.hold = asyncio.Event()
        settling = asyncio.ensure_future(desk.service.end_dead_turn(session))
        await asyncio.wait_for(desk.closing.wait(), 20)
        await desk.service.submit(session, "new words")
        desk.hold.set()
        assert await asyncio.wait_for(settling, 20)
        await asyncio.wait_for(desk.tool.running.wait(), 20)
        desk.tool.go.set()
        await desk.service.idle(session)


async def test_tools_that_are_made_in_a_thread_take_the_place_of_older_ones(
    tmp_path: Path,
) -> None:
    async with desktop(tmp_path, ScriptedModel("unused")) as desk:
        tools = SessionTools(desk.app, Secrets({}, {}), lambda _: (), max_sessions=1)
        await tools.prepare()
        for _ in range(3):
            assert await asyncio.to_thread(tools.of, desk.begin())
        await tools.close()


async def test_whoever_waits_for_a_question_is_not_cut_off_when_another_gives_up() -> (
    None
):
    desk = PendingQuestions()
    first, second = (asyncio.ensure_future(desk.opened("s", "c")) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait({first})
    place = desk.open("s", QuestionAsked(call_id="c", text="which?"))
    assert await asyncio.wait_for(second, 20) is place
    assert not desk._awaited


def _on(bus: Bus, topic: str) -> "asyncio.Future[Mapping[str, Any]]":
    """The next event of a topic."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Mapping[str, Any]] = loop.create_future()

    def see(event: Mapping[str, Any]) -> None:
        loop.call_soon_threadsafe(lambda: future.done() or future.set_result(event))

    bus.subscribe(topic, see)
    return future
