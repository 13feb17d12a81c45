"""A session of two thousand turns that was compressed thirty times has lost nothing a user said."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.fakes.turn_engine import FakeEngine

from hermes.app import build
from hermes.app.approvals import PendingQuestions
from hermes.app.compaction import context_of
from hermes.app.past_sessions import StoreRecall
from hermes.app.session_service import SessionService
from hermes.core.calls import CallRunner
from hermes.core.compaction import MARK, CompactionCut, compact
from hermes.core.context_window import ContextLimits, ContextWindow
from hermes.core.ports import Approver
from hermes.core.turn import NativeRuntime
from hermes.events import Bus
from hermes.schema.events import (
    SessionCompacted,
    SessionCreated,
    SessionPrompted,
    TurnEnded,
)
from hermes.schema.messages import AssistantMessage, ToolFinished, Usage, UserMessage
from hermes.schema.model import ModelEvent, ModelRequest
from hermes.settings import Home, Settings
from hermes.testing import FakeClock, Reply, ScriptedModel
from hermes.tools.policy import ApprovalPolicy, Circumstances
from hermes.tools.session_search import SessionSearchTool

TURNS = 2_000
WINDOW = 10_500  # tokens: the conversation fills it some thirty times
FIRST = "My sister's boat is called Xantippe and lies in Kiel."
LAST = "What is my sister's boat called?"


def question(turn: int) -> str:
    return {0: FIRST, TURNS - 1: LAST}.get(
        turn
    ) or f"question {turn}: {'wood and sails, ' * 20}"


class Person:
    """Says the next thing while the model still answers, or while room is made: one runner goes through all turns."""

    def __init__(self) -> None:
        self.said = 1
        self.was_early = False
        self.service: SessionService | None = None
        self.session = ""

    async def go_on(self) -> None:
        if self.said < TURNS and self.service is not None:
            self.said += 1
            await self.service.submit(self.session, question(self.said - 1))


class Answering:
    """A scripted model for a session whose length is its point: it looks up what it can no longer see."""

    provider, name = "scripted", "scripted-1"

    def __init__(self, person: Person) -> None:
        self._person = person
        self.largest = 0
        self.found = ""

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        letters = sum(len(message.text) for message in request.messages)
        self.largest = max(self.largest, letters)
        usage = Usage(input_tokens=letters // 3, output_tokens=5, cost_usd=0.0)
        last = request.messages[-1]
        if not self._person.was_early:
            await self._person.go_on()
        self._person.was_early = False
        if isinstance(last, ToolFinished):
            self.found = last.text
            reply = Reply(
                text="She is called Xantippe."
                if "Xantippe" in last.text
                else "I don't know.",
                usage=usage,
            )
        elif last.text == LAST:
            assert "Xantippe" not in str(request.messages)
            reply = Reply(
                calls=(
                    (
                        "session_search",
                        '{"query": "sister boat Kiel", "session": "this"}',
                    ),
                ),
                usage=usage,
            )
        else:
            reply = Reply(text=f"answer to {last.text[:14]}", usage=usage)
        async for event in ScriptedModel(reply).stream(request):
            yield event


class Notes:
    """Writes summaries, each of which brings the one before up to date; the person speaks meanwhile."""

    def __init__(self, person: Person) -> None:
        self._person = person
        self.written = 0

    async def summarise(
        self, session: str, messages: object, cut: CompactionCut
    ) -> SessionCompacted:
        self.written += 1
        self._person.was_early = True
        await self._person.go_on()
        model = ScriptedModel(
            Reply(
                text=f"## Goal\nBoats, with wood and sails; these are notes number {self.written}."
            )
        )
        row = await compact(model, messages, cut)  # type: ignore[arg-type]
        asked = model.requests[0].messages[0].text
        assert ("<notes from before>" in asked) == (self.written > 1)
        return row


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is such a place: eight thousand waits for a disk are not the point here."""
    memory = Path("/dev/shm")  # noqa: S108
    with tempfile.TemporaryDirectory(
        dir=memory if os.access(memory, os.W_OK) else tmp_path
    ) as folder:
        yield Path(folder)


async def test_two_thousand_turns_and_thirty_compactions_keep_every_word_and_find_the_first(
    home: Path, tmp_path: Path
) -> None:
    person = Person()
    notes, model = Notes(person), Answering(person)
    with build(Settings(), Home(home), bus=Bus()) as app:
        room = ContextWindow(
            notes.summarise, ContextLimits(WINDOW, 0.8, 0, 20), FakeClock()
        )
        search = SessionSearchTool(StoreRecall(lambda: app.store)).session_search
        policy = ApprovalPolicy(
            "ask", Circumstances(app.home.root, tmp_path, sandboxed=lambda: True)
        )

        def runtime(session: str, approvals: Approver) -> NativeRuntime:
            calls = CallRunner({"session_search": search}, policy, approvals)
            return NativeRuntime(model, calls, max_steps=5, context=room)

        prompt = SessionPrompted(system=("be brief",), tools=(search.spec,))
        engine = FakeEngine(runtime, lambda: prompt)
        person.service = service = SessionService(engine.deps(app, PendingQuestions()))
        person.session = session = app.begin(
            SessionCreated(surface="test", cwd=str(tmp_path))
        ).session
        await service.submit(session, question(0))
        async with asyncio.timeout(100):
            await service.idle(session)
        events = [row.event for row in app.store.log.every_event(session)]
        context = context_of(app, session, WINDOW)
        await service.close()
    said = [
        event.text
        for event in events
        if isinstance(event, UserMessage) and event.origin == "user"
    ]
    assert said == [question(turn) for turn in range(TURNS)]
    assert (
        sum(isinstance(event, TurnEnded) and event.reason == "done" for event in events)
        == TURNS
    )
    assert sum(isinstance(event, SessionCompacted) for event in events) >= 30
    assert not any(
        isinstance(event, UserMessage) and event.text.startswith(MARK)
        for event in events
    )
    assert model.largest < WINDOW * 3
    assert FIRST in model.found
    last = [event for event in events if isinstance(event, AssistantMessage)][-1]
    assert last.text == "She is called Xantippe."
    assert context.used < WINDOW
