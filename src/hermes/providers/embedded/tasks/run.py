"""Runs tasks against a model: a plain loop of request, call and result, in a temporary folder."""

import tempfile
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Protocol

import msgspec

from hermes.core.arguments import arguments_by_name
from hermes.core.ports import Model
from hermes.errors import ModelError
from hermes.providers.embedded.tasks.task import Called, Kind, Task, TaskOutcome
from hermes.schema.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolFinished,
    UserMessage,
)
from hermes.schema.model import ModelRequest, ReplyFinished
from hermes.schema.tool_spec import ToolSpec
from hermes.text.translation import translator

t = translator(__name__)

MODEL_FAILED = "the model failed"
"""How the problem of a task begins if the model gave no answer."""

_SYSTEM = "You are an assistant with tools that work in the current folder. Use them when needed, then answer shortly."


class ToolRunner(Protocol):
    """The tools that a task may use, confined to a folder."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]: ...

    async def run(self, call: ToolCall, folder: Path) -> ToolFinished: ...


class TaskResult(msgspec.Struct, frozen=True, kw_only=True):
    """How one task went. `problem` is empty when it passed."""

    task: Task
    problem: str
    calls: tuple[Called, ...]
    answer: str
    seconds: float

    @property
    def passed(self) -> bool:
        return not self.problem


class Score(msgspec.Struct, frozen=True):
    """The number of passed tasks and of all tasks, in total and by kind."""

    passed: int
    total: int
    by_kind: dict[Kind, tuple[int, int]]

    @property
    def percent(self) -> float:
        return 100 * self.passed / self.total if self.total else 0.0


async def run_tasks(
    model: Model, tools: ToolRunner, tasks: Iterable[Task]
) -> AsyncIterator[TaskResult]:
    """Runs the tasks one after another, each in its own folder. A failing model call fails the task, not the run."""
    for task in tasks:
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="hermes-task-") as name:
            folder = Path(name)
            _lay_out(task, folder)
            calls: list[Called] = []
            try:
                answer = await _turn(model, tools, task, folder, calls)
                problem = task.check(
                    TaskOutcome(folder=folder, calls=tuple(calls), answer=answer)
                )
            except ModelError as error:
                answer, problem = "", f"{MODEL_FAILED}: {error.message}"
        seconds = time.monotonic() - started
        yield TaskResult(
            task=task,
            problem=problem,
            calls=tuple(calls),
            answer=answer,
            seconds=seconds,
        )


def score(results: Iterable[TaskResult]) -> Score:
    """Counts the passed tasks."""
    by_kind: dict[Kind, tuple[int, int]] = {}
    for result in results:
        passed, total = by_kind.get(result.task.kind, (0, 0))
        by_kind[result.task.kind] = (passed + result.passed, total + 1)
    return Score(
        sum(p for p, _ in by_kind.values()),
        sum(tokens for _, tokens in by_kind.values()),
        by_kind,
    )


async def _turn(
    model: Model, tools: ToolRunner, task: Task, folder: Path, calls: list[Called]
) -> str:
    """Asks until the model answers without a call, or has made too many calls. Choosing ends with the choice."""
    messages: list[Message] = [UserMessage(text=task.request)]
    enough = 2 if task.kind == "choose" else task.max_calls
    while len(calls) < enough:
        reply = await _ask(
            model,
            ModelRequest(
                system=(_SYSTEM,),
                messages=tuple(messages),
                tools=tools.specs,
                folder=str(folder),
            ),
        )
        messages.append(reply)
        if not reply.tool_calls:
            return reply.text
        for call in reply.tool_calls:
            calls.append(Called(call.name, _arguments(call)))
            messages.append(await tools.run(call, folder))
    return ""


async def _ask(model: Model, request: ModelRequest) -> AssistantMessage:
    message: AssistantMessage | None = None
    async for event in model.stream(request):
        if isinstance(event, ReplyFinished):
            message = event.message
    if message is not None:
        return message
    raise ModelError(t.later("the stream ended early"), reason="malformed")


def _arguments(call: ToolCall) -> dict[str, object]:
    return arguments_by_name(call.arguments)


def _lay_out(task: Task, folder: Path) -> None:
    for name, text in task.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
