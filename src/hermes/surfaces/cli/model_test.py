"""`hermes model test`: what the model can do, measured with small tasks in throwaway folders. And one tiny call."""

import asyncio
import sys
import time

import msgspec

from hermes.errors import ModelError, UsageError
from hermes.providers.build import build_model
from hermes.providers.embedded.tasks import (
    MODEL_FAILED,
    TASKS,
    Score,
    Task,
    TaskResult,
    run_tasks,
    score,
)
from hermes.providers.routing import first_route, route_for
from hermes.schema.messages import UserMessage
from hermes.schema.model import Finished, ModelRequest
from hermes.settings import Secrets, Settings
from hermes.settings.load import environment, find_home, load, load_secrets
from hermes.surfaces.cli.answer import DONE, FAILED
from hermes.surfaces.cli.task_tools import TaskTools
from hermes.surfaces.terminal.stderr_message import say
from hermes.surfaces.terminal.style import Style, stdout_style, terminal_width
from hermes.surfaces.terminal.text import cut, one_line
from hermes.surfaces.terminal.weights_download import have_weights

_TRY_TIMEOUT_S = 120.0  # for one tiny answer; a local model may have to be loaded
_TELLING = 2  # tasks in a row without any answer, after which no other is tried
_KINDS = {"choose": "choose a tool", "finish": "finish a task", "answer": "just answer"}


def test(model: str, *, kind: str, as_json: bool) -> int:
    """Runs the tasks and prints the score. Exit code 1 when not one task was done: that is no model to work with."""
    home = find_home()
    settings, secrets = load(home=home), load_secrets(home=home)
    route = first_route(settings, secrets)
    if model:
        route = route_for(settings, secrets, model, route)
    if route.embedded:
        have_weights(route.model)
    tasks = [task for task in TASKS if not kind or task.kind == kind]
    if not tasks:
        raise UsageError(f"There are no tasks of the kind {kind!r}.")
    runner = _Run(settings, secrets, model, tasks)
    results = asyncio.run(runner.results(quiet=as_json))
    if as_json:
        print(
            msgspec.json.format(
                msgspec.json.encode(_document(results)), indent=2
            ).decode()
        )
    else:
        for line in summary(score(results), stdout_style()):
            print(line)
    return DONE if any(result.passed for result in results) else FAILED


class _Run:
    """One run of the tasks, shown as it goes."""

    def __init__(
        self, settings: Settings, secrets: Secrets, model: str, tasks: list[Task]
    ) -> None:
        self._home = find_home()
        self._model = build_model(settings, secrets, model=model)
        self._tasks = tasks
        self._style = stdout_style()
        self._live = sys.stdout.isatty()

    async def results(self, *, quiet: bool) -> list[TaskResult]:
        """Every result, in order."""
        tools = TaskTools(self._home.root, environment())
        results: list[TaskResult] = []
        if not quiet:
            print(
                f"{len(self._tasks)} tasks for {self._model.provider} {self._model.name}, each in its own folder"
            )
            self._announce(0)
        async for result in run_tasks(self._model, tools, self._tasks):
            results.append(result)
            if not quiet:
                self._show(result)
            if len(results) == _TELLING and all(
                one.problem.startswith(MODEL_FAILED) for one in results
            ):
                say(
                    "Stopped: the model did not answer.",
                    "Try the connection with: hermes setup",
                )
                break
            if not quiet:
                self._announce(len(results))
        return results

    def _announce(self, done: int) -> None:
        """The task that runs now, until its result takes its place."""
        if self._live and done < len(self._tasks):
            text = (
                f"{done + 1}/{len(self._tasks)} {one_line(self._tasks[done].request)}"
            )
            print(self._style.dim(cut(text, terminal_width() - 1)), end="", flush=True)

    def _show(self, result: TaskResult) -> None:
        if self._live:
            print("\r\x1b[K", end="")
        mark = self._style.green("ok  ") if result.passed else self._style.red("fail")
        text = f"{result.task.id}  {result.seconds:.1f} s  {one_line(result.problem)}".rstrip()
        print(
            mark,
            cut(text, max(20, terminal_width() - 6)) if self._live else text,
            flush=True,
        )


def summary(total: Score, style: Style) -> list[str]:
    """The score in all and by kind."""
    lines = [""]
    for kind, (passed, of) in total.by_kind.items():
        lines.append(f"  {_KINDS.get(kind, kind):<15} {passed:>3} of {of}")
    return [
        *lines,
        style.bold(
            f"  {'in all':<15} {total.passed:>3} of {total.total}  ({total.percent:.0f} %)"
        ),
    ]


def try_once(
    settings: Settings, secrets: Secrets, *, timeout_s: float = _TRY_TIMEOUT_S
) -> float:
    """Asks the model that the settings name for one word. Returns the seconds it took; ModelError if it can't."""
    model = build_model(settings, secrets)
    request = ModelRequest(
        system=("Answer with one word.",), messages=(UserMessage(text="Say ok."),), max_output_tokens=64
    )  # fmt: skip

    async def call() -> None:
        async with asyncio.timeout(timeout_s):
            async for event in model.stream(request):
                if isinstance(event, Finished):
                    return
        raise ModelError("the stream ended without an end", reason="malformed")

    started = time.monotonic()
    try:
        asyncio.run(call())
    except TimeoutError as error:
        raise ModelError(
            f"no answer within {timeout_s:.0f} seconds", reason="timeout"
        ) from error
    return time.monotonic() - started


def _document(results: list[TaskResult]) -> dict[str, object]:
    total = score(results)
    tasks = [
        {
            "id": r.task.id,
            "kind": r.task.kind,
            "passed": r.passed,
            "problem": r.problem,
            "seconds": round(r.seconds, 2),
        }
        for r in results
    ]
    return {
        "passed": total.passed,
        "total": total.total,
        "by_kind": total.by_kind,
        "tasks": tasks,
    }
