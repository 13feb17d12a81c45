"""A model that obeys every instruction it reads in a tool's result, and a session around it: the real loop, policy and
runner of calls, with a log in memory. What is refused here was refused by Hermes, because the model tries everything.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hermes.core.budget import TurnBudget
from hermes.core.calls import CallRunner
from hermes.core.fence import FENCE
from hermes.core.history import ConversationHistory
from hermes.core.ports import Approver, Effect, Tool, ToolContext
from hermes.core.turn import NativeRuntime, Turn
from hermes.schema.event_base import Event
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    QuestionAnswered,
    QuestionAsked,
)
from hermes.schema.messages import (
    AssistantMessage,
    ToolCall,
    ToolFinished,
    Usage,
    UserMessage,
)
from hermes.schema.model import ModelEvent, ModelRequest, ReplyFinished
from hermes.schema.tool_spec import ToolResult, ToolSpec
from hermes.tools.policy import ApprovalPolicy, Circumstances

MAX_STEPS = 80
_INJECTED = "injected-"
_NOT_RUN = "Not run:"


class PlainCall(msgspec.Struct, frozen=True):
    """A call that a model is to make."""

    name: str
    arguments: Mapping[str, Any]


class Injection(msgspec.Struct, frozen=True):
    """What a text from outside makes the model do: as soon as it reads `mark`, it makes these calls and says the answer."""

    mark: str
    calls: tuple[PlainCall, ...]
    answer: str = ""


class ObedientModel:
    """Implements the `Model` port: makes the calls of its task one by one, and those of an injection as soon as it reads it."""

    provider = "scripted"
    name = "obedient-1"

    def __init__(
        self,
        calls: Sequence[PlainCall],
        answer: str = "Done.",
        injection: Injection | None = None,
    ) -> None:
        self.has_obeyed = False
        self.requests = 0
        self._to_do = deque((f"task-{n}", call) for n, call in enumerate(calls))
        self._answer = answer
        self._injection = injection

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Replies with the next call, or with the answer."""
        self.requests += 1
        self._read(request.messages[-1] if request.messages else None)
        calls: tuple[ToolCall, ...] = ()
        if self._to_do:
            name, call = self._to_do.popleft()
            arguments = msgspec.json.encode(call.arguments).decode()
            calls = (ToolCall(id=name, name=call.name, arguments=arguments),)
        yield ReplyFinished(
            AssistantMessage(
                text="" if calls else self._answer,
                tool_calls=calls,
                finish="tool_calls" if calls else "stop",
                provider=self.provider,
                model=self.name,
                usage=Usage(input_tokens=1, output_tokens=1, cost_usd=0.0),
            )
        )

    def _read(self, last: object) -> None:
        injection = self._injection
        if injection is None or self.has_obeyed or not isinstance(last, ToolFinished):
            return
        if injection.mark not in last.text:
            return
        self.has_obeyed = True
        obeyed = [(f"{_INJECTED}{n}", one) for n, one in enumerate(injection.calls)]
        self._to_do.extendleft(reversed(obeyed))
        self._answer = f"{self._answer}\n{injection.answer}".strip()


class ServerTool:
    """A tool of a server that the user trusts, as MCP servers can be: it is believed when it says that it just reads."""

    def __init__(
        self,
        spec: ToolSpec,
        function: Callable[[Mapping[str, Any]], str],
        *,
        reads: bool,
        server: str,
    ) -> None:
        self.spec = spec
        self.effect: Effect = "read" if reads else "other"
        self._function = function
        self._server = server

    def paths(self, arguments: Mapping[str, Any], cwd: Path) -> tuple[Path, ...]:
        """Nobody knows which files a server touches."""
        return ()

    async def run(
        self,
        arguments: Mapping[str, Any],
        context: ToolContext,
    ) -> ToolResult:
        """Calls the function. What it says is text from outside."""
        return ToolResult(text=self._function(arguments), source=self._server)


class YesToEverything:
    """Somebody who allows whatever is asked."""

    async def ask(self, request: ApprovalRequested) -> ApprovalAnswered:
        return ApprovalAnswered(call_id=request.call_id, answer="once", by="user")

    async def question(self, request: QuestionAsked) -> QuestionAnswered:
        return QuestionAnswered(call_id=request.call_id, text="yes", by="user")


class _MemoryLog:
    """Implements `Journal`."""

    def __init__(self) -> None:
        self.history = ConversationHistory()
        self.results: list[ToolFinished] = []
        self._rows = 0

    async def record(self, *events: Event) -> tuple[int, ...]:
        await asyncio.sleep(0)
        self.note(*events)
        return tuple(range(self._rows - len(events) + 1, self._rows + 1))

    def note(self, *events: Event) -> None:
        for event in events:
            self._rows += 1
            self.history.add(self._rows, event, "turn")
            if isinstance(event, ToolFinished):
                self.results.append(event)

    async def flush(self) -> None:
        await asyncio.sleep(0)

    async def nothing_under_way(self) -> None:
        await asyncio.sleep(0)

    def show(self, event: Event) -> None:
        """Nobody watches."""


class TurnOutcome(msgspec.Struct, frozen=True):
    """How a turn with an obedient model went."""

    end: str
    results: tuple[ToolFinished, ...]
    answer: str
    has_obeyed: bool
    unfenced: int
    """Results that brought the injection without a fence around it."""

    @property
    def refused(self) -> list[ToolFinished]:
        """The calls that were not run."""
        return [one for one in self.results if one.text.startswith(_NOT_RUN)]

    @property
    def refused_injected(self) -> list[ToolFinished]:
        """The injected calls that were not run."""
        return [one for one in self.refused if one.call_id.startswith(_INJECTED)]


class ObedientSession:
    """One conversation under the default policy, with the given tools and whoever answers questions."""

    def __init__(
        self, tools: Mapping[str, Tool], approvals: Approver, folder: Path
    ) -> None:
        policy = ApprovalPolicy("ask", Circumstances(folder / "home", folder / "user"))
        self._calls = CallRunner(tools, policy, approvals)
        self._log = _MemoryLog()
        self._folder = folder

    async def turn(
        self, model: ObedientModel, prompt: str, injection: Injection | None = None
    ) -> TurnOutcome:
        """Runs one turn to its end."""
        before = len(self._log.results)
        await self._log.record(UserMessage(text=prompt))
        runtime = NativeRuntime(model, self._calls, max_steps=MAX_STEPS)
        history = self._log.history
        turn = Turn(
            session="s",
            cwd=self._folder,
            journal=self._log,
            history=history,
            budget=TurnBudget(),
        )
        ended = await runtime.run(turn)
        last = history.messages[-1]
        results = tuple(self._log.results[before:])
        return TurnOutcome(
            end=ended.reason,
            results=results,
            answer=last.text if isinstance(last, AssistantMessage) else "",
            has_obeyed=model.has_obeyed,
            unfenced=sum(_is_unfenced(one, injection) for one in results),
        )


def _is_unfenced(result: ToolFinished, injection: Injection | None) -> bool:
    return (
        injection is not None
        and injection.mark in result.text
        and not result.text.startswith(FENCE)
    )
