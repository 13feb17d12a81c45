"""`hermes model test`: tries a model, or measures it with many small tasks, in throwaway folders."""

import asyncio
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from hermes.app.model_info import ModelInfo
from hermes.commands.command import command
from hermes.commands.context import CommandContext
from hermes.commands.views import Block, line
from hermes.core.arguments import BadArguments, parse_arguments
from hermes.core.calls import check_arguments
from hermes.core.ports import Model, Tool, ToolContext
from hermes.errors import ToolFailed
from hermes.providers.build import build_model
from hermes.providers.embedded.tasks import (
    MODEL_FAILED,
    QUICK,
    TASKS,
    Score,
    Task,
    TaskResult,
    run_tasks,
    score,
)
from hermes.providers.routing import first_route, route_for
from hermes.schema.messages import ToolCall, ToolFinished
from hermes.schema.tool_spec import ToolResult, ToolSpec
from hermes.settings.load import environment
from hermes.surfaces.cli.shell import ShellSurface
from hermes.surfaces.terminal.stderr_message import say
from hermes.surfaces.terminal.style import stdout_style, terminal_width
from hermes.surfaces.terminal.text import cut, one_line
from hermes.surfaces.terminal.weights_download import have_weights
from hermes.text.translation import translator
from hermes.tools import ApprovalPolicy, default_tools
from hermes.tools.policy import Circumstances

t = translator(__name__)


_MAX_SILENT_TASKS = 2  # in a row without any answer, after which no other is tried
_KINDS = {"choose": "choose a tool", "finish": "finish a task", "answer": "just answer"}
_CHANGING = frozenset(
    ("mkdir", "mv", "cp", "touch", "rmdir", "rm", "ln")
)  # inside the folder, with plain arguments
_REFUSED = "Not run: a test may not do this."  # not translated: for the model


class TaskTools:
    """Runs calls in a folder, each folder with tools of its own. `approve` answers for the person, given a command."""

    def __init__(
        self,
        hermes_home: Path,
        environ: Mapping[str, str],
        *,
        approve: Callable[[str], bool] | None = None,
    ) -> None:
        self._home = hermes_home
        self._environ = environ
        self._approve = approve or is_harmless
        self._policy = ApprovalPolicy(
            "auto-edit", Circumstances(hermes_home, Path.home(), strict=True)
        )
        self._folder: Path | None = None
        self._tools = self._make(hermes_home)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is offered."""
        return tuple(tool.spec for tool in self._tools.values())

    async def run(self, call: ToolCall, folder: Path) -> ToolFinished:
        """Runs one call. A call that can't be run has a result that says so."""
        if folder != self._folder:
            self._folder, self._tools = folder, self._make(folder)
        try:
            result = await self._result(call, folder)
        except (ToolFailed, BadArguments) as error:
            result = ToolResult(text=str(error), ok=False)
        return ToolFinished(
            call_id=call.id, name=call.name, text=result.text, ok=result.ok
        )

    async def _result(self, call: ToolCall, folder: Path) -> ToolResult:
        tool = self._tools.get(call.name)
        if tool is None:
            why = f"There is no tool {call.name!r}."  # not translated: for the model
            return ToolResult(text=why, ok=False)
        arguments = parse_arguments(call.arguments)
        if not isinstance(arguments, dict):
            why = (
                "The arguments must be a JSON object."  # not translated: for the model
            )
            return ToolResult(text=why, ok=False)
        problem = check_arguments(arguments, tool.spec.parameters)
        if problem or not self._may(tool, arguments, folder):
            return ToolResult(text=problem or _REFUSED, ok=False)
        return await tool.run(
            arguments, ToolContext(call.id, "test", folder, lambda _: None)
        )

    def _may(self, tool: Tool, arguments: Mapping[str, Any], folder: Path) -> bool:
        inside = folder.resolve()
        if not all(
            path.resolve().is_relative_to(inside)
            for path in tool.paths(arguments, folder)
        ):
            return False
        verdict = self._policy.judge(tool, arguments, folder).verdict
        return verdict == "allow" or (
            verdict == "ask" and self._approve(str(arguments.get("command", "")))
        )

    def _make(self, folder: Path) -> dict[str, Tool]:
        return default_tools(
            folder / ".outputs", environment=self._environ, hermes_home=self._home
        )


def is_harmless(command: str) -> bool:
    """Whether a command changes at most what is in its folder: one program of a few, and plain relative names."""
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    if (
        not words
        or words[0] not in _CHANGING
        or any(sign in command for sign in ";|&`$<>*?~\n(")
    ):
        return False
    return not any(word.startswith("/") or ".." in word for word in words)


class TaskScores(msgspec.Struct, frozen=True, kw_only=True):
    """How many tasks a model did. `is_quick` for the quick check, in which every task counts."""

    results: tuple[TaskResult, ...]
    is_quick: bool = False

    @property
    def exit_code(self) -> int:
        """1 when the model failed to answer, did not do one task, or failed the quick check."""
        if self.is_quick:
            return int(len(self._passed) < len(QUICK))
        failed = any(one.problem.startswith(MODEL_FAILED) for one in self.results)
        return int(failed or not self._passed)

    @property
    def _passed(self) -> list[TaskResult]:
        return [one for one in self.results if one.passed]

    def document(self) -> Any:
        total = score(list(self.results))
        tasks = [
            {
                "id": result.task.id,
                "kind": result.task.kind,
                "passed": result.passed,
                "problem": result.problem,
                "seconds": round(result.seconds, 2),
            }
            for result in self.results
        ]
        return {
            "passed": total.passed,
            "total": total.total,
            "by_kind": total.by_kind,
            "tasks": tasks,
        }

    def view(self, _now: float) -> Iterable[Block]:
        total: Score = score(list(self.results))
        yield line("")
        if self.is_quick:
            verdict = t("It does not work.") if self.exit_code else t("It works.")
            yield line(
                t(
                    "{verdict} For {count} tasks: hermes model test --full",
                    verdict=verdict,
                    count=len(TASKS),
                )
            )
            return
        for kind, (passed, of) in total.by_kind.items():
            yield line(
                t(
                    "  {kinds:<15} {passed:>3} of {of}",
                    kinds=_KINDS.get(kind, kind),
                    passed=passed,
                    of=of,
                )
            )
        share = f"{total.passed:>3} of {total.total}  ({total.percent:.0f} %)"
        yield line(f"  {'in all':<15} {share}", "bold")


@command("model test")
def run_model_tasks(
    context: CommandContext,
    model: Annotated[str, "the model to test; the current one by default"] = "",
    *,
    full: Annotated[bool, "run the whole set of tasks and print the score"] = False,
    kind: Annotated[
        Literal["choose", "finish", "answer"] | None,
        "only this kind of tasks of the whole set",
    ] = None,
) -> TaskScores:
    """Try whether the model answers and calls a tool; exit code 1 if it does not."""
    settings, secrets = context.settings, context.secrets
    route = first_route(settings, secrets)
    if model:
        route = route_for(settings, secrets, model, route)
    if route.embedded:
        have_weights(route.model)
    is_quick = not full and kind is None
    tasks = [
        task
        for task in (QUICK if is_quick else TASKS)
        if kind is None or task.kind == kind
    ]
    quiet = isinstance(context.surface, ShellSurface) and context.surface.quiet
    run = _Run(build_model(settings, secrets, model=model), tasks, quiet=quiet)
    tools = TaskTools(context.home.root, environment())
    results = tuple(asyncio.run(run.results(tools)))
    return TaskScores(results=results, is_quick=is_quick)


class _Run:
    """Runs the tasks and shows each result as it comes."""

    def __init__(self, model: Model, tasks: list[Task], *, quiet: bool) -> None:
        self._model = model
        self._tasks = tasks
        self._quiet = quiet
        self._style = stdout_style()
        self._live = sys.stdout.isatty()
        self._max_silent = min(_MAX_SILENT_TASKS, len(tasks) - 1)

    async def results(self, tools: TaskTools) -> list[TaskResult]:
        """Every result, in order."""
        results: list[TaskResult] = []
        if not self._quiet:
            who = ModelInfo(self._model.provider, self._model.name).full_label
            print(
                t(
                    "{count:,} task for {who}, each in its own folder",
                    "{count:,} tasks for {who}, each in its own folder",
                    count=len(self._tasks),
                    who=who,
                )
            )
        self._announce(0)
        async for result in run_tasks(self._model, tools, self._tasks):
            results.append(result)
            self._show(result)
            failed = [one.problem.startswith(MODEL_FAILED) for one in results]
            if len(results) == self._max_silent and all(failed):
                say(
                    t("Stopped: the model did not answer."),
                    t("Try the connection with: hermes setup"),
                )
                break
            self._announce(len(results))
        return results

    def _announce(self, done: int) -> None:
        """The task that runs now, until its result takes its place."""
        if self._live and not self._quiet and done < len(self._tasks):
            request = one_line(self._tasks[done].request)
            text = f"{done + 1}/{len(self._tasks)} {request}"
            print(self._style.dim(cut(text, terminal_width() - 1)), end="", flush=True)

    def _show(self, result: TaskResult) -> None:
        if self._quiet:
            return
        if self._live:
            print("\r\x1b[K", end="")
        mark = self._style.green("ok  ") if result.passed else self._style.red("fail")
        text = f"{result.task.id}  {result.seconds:.1f} s  {one_line(result.problem)}"
        room = max(20, terminal_width() - 6) if self._live else sys.maxsize
        print(mark, cut(text.rstrip(), room), flush=True)
