"""A home with an app, a conversation that is written into its log, and a model that reviews by script."""

import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from hermes.app import App, build
from hermes.app.learning.learner import Learner
from hermes.app.learning.reviewer import ReviewDeps
from hermes.core.budget import BudgetSpent, Price
from hermes.core.ports import Model, Tool, ToolContext, Veto
from hermes.events import Bus
from hermes.schema.events import (
    SessionCreated,
    SessionKind,
    SessionPrompted,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from hermes.schema.learning import LearningReviewed
from hermes.schema.messages import AssistantMessage, ToolCall, ToolFinished, UserMessage
from hermes.schema.tool_spec import ToolResult
from hermes.settings import Home, Settings
from hermes.settings.sections import LearningSettings
from hermes.testing.scripted_model import Reply
from hermes.tools.tool import tool


def remember(text: str, file: str = "memory") -> Reply:
    return call("memory", {"edits": [{"action": "add", "text": text, "file": file}]})


def write_skill(name: str, body: str = "1. Do it.", file: str = "SKILL.md") -> Reply:
    text = f"---\nname: {name}\ndescription: Does {name}. Use it for {name}.\n---\n{body}\n"
    return call(
        "skill_manage", {"action": "write", "name": name, "file": file, "text": text}
    )


def call(name: str, arguments: object) -> Reply:
    return Reply(calls=((name, msgspec.json.encode(arguments).decode()),))


class Danger:
    """A tool that a review must not reach."""

    def __init__(self) -> None:
        self.ran = 0

    @tool("terminal", effect="other")
    def terminal(self, command: str) -> ToolResult:
        """Runs a command."""
        self.ran += 1
        return ToolResult(text=command)


class Agent:
    """What a review takes from an agent, with a scripted model."""

    def __init__(self, learner_tools: tuple[Tool, ...], model: Model) -> None:
        self._tools = learner_tools
        self._model = model
        self.danger = Danger()
        self.spent = False

    @asynccontextmanager
    async def model(self, session: str) -> AsyncIterator[Model]:
        yield self._model

    def tools(self, session: str) -> Mapping[str, Tool]:
        return {one.spec.name: one for one in (self.danger.terminal, *self._tools)}

    def room(self, session: str, input_tokens: int) -> None:
        if self.spent:
            raise BudgetSpent("stopped before exceeding the cap per day.")

    def price(self, session: str) -> Price | None:
        return None


class World:
    """One home at work. `say` adds a finished turn to the conversation."""

    def __init__(
        self,
        root: Path,
        model: Model,
        settings: LearningSettings | None = None,
        veto: Veto | None = None,
    ) -> None:
        chosen = Settings(learning=settings or LearningSettings(turns=2))
        self.app: App = build(chosen, Home(root), bus=Bus())
        plain = Learner(self.app)
        self.circle = agent = Agent(plain.tools(), model)
        self.learner = Learner(
            self.app,
            ReviewDeps(
                agent.model, agent.tools, agent.room, agent.price, veto=lambda: veto
            ),
        )
        self.learning = self.learner.learning
        self._turns = itertools.count(1)
        self.session = self.begin()

    def begin(self, kind: SessionKind = "root", parent: str = "") -> str:
        session = self.app.begin(
            SessionCreated(kind=kind, parent=parent, surface="test")
        ).session
        specs = tuple(one.spec for one in self.circle.tools(session).values())
        self.app.record(
            session, SessionPrompted(system=("stable", "circumstances"), tools=specs)
        )
        return session

    def say(
        self,
        text: str,
        *,
        answer: str = "fine",
        results: Mapping[str, str] | None = None,
        session: str = "",
    ) -> None:
        session, turn = session or self.session, f"turn-{next(self._turns)}"
        (row,) = self.app.record(session, UserMessage(text=text))
        self.app.record(session, TurnStarted(inputs=(row.seq,)), turn=turn)
        for name, result in (results or {}).items():
            made = ToolCall(id=f"{turn}-{name}", name=name, arguments="{}")
            self.app.record(
                session,
                AssistantMessage(tool_calls=(made,), finish="tool_calls"),
                turn=turn,
            )
            self.app.record(
                session,
                ToolStarted(call_id=made.id, name=name, arguments="{}"),
                turn=turn,
            )
            self.app.record(
                session,
                ToolFinished(call_id=made.id, name=name, text=result),
                turn=turn,
            )
        self.app.record(
            session, AssistantMessage(text=answer), TurnEnded(reason="done"), turn=turn
        )

    def reviews(self, session: str = "") -> list[LearningReviewed]:
        rows = self.app.store.log.every_event(session or self.session)
        return [row.event for row in rows if isinstance(row.event, LearningReviewed)]

    def context(self, turn: str = "turn-1") -> ToolContext:
        return ToolContext("call-1", self.session, Path("/"), lambda text: None, turn)


@asynccontextmanager
async def world(
    root: Path, model: Model, settings: LearningSettings | None = None
) -> AsyncIterator[World]:
    """A world that watches for what is due, until the end of the test."""
    place = World(root, model, settings)
    place.learner.start()
    try:
        yield place
    finally:
        await place.learner.close()
        place.app.close()
