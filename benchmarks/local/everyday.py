"""Everyday requests, as a person would type them, to the local model with real tools in throwaway folders.

Six sets: `tuned`, which prompts were tuned on; `unseen` and `fresh`, which were looked at after their first runs; and
`held-out`, `final` and `last`, which are only run to report. A person is assumed to approve every call. Prints the score by
topic, answers of the kind "there is no file" to a question that is not about files, and the medians of the decision,
the first token of talk and the whole answer, with the machine's load and how many prompt tokens were read. `--busy 2`
keeps two cores busy meanwhile; `--priority -20` puts itself, the engine and these loops before everything else on the
machine.
"""

import argparse
import asyncio
import contextlib
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path

import msgspec

from benchmarks.local.everyday_case import EverydayCase
from benchmarks.local.everyday_final import FINAL
from benchmarks.local.everyday_fresh import FRESH
from benchmarks.local.everyday_held_out import HELD_OUT
from benchmarks.local.everyday_last import LAST
from benchmarks.local.everyday_tuned import TUNED
from benchmarks.local.everyday_unseen import UNSEEN
from hermes.core.arguments import arguments_by_name
from hermes.errors import ModelError
from hermes.providers.embedded import (
    CATALOGUE,
    EmbeddedModel,
    engine_for,
    find,
    models_folder,
)
from hermes.providers.embedded.completion import (
    Completion,
    CompletionEnded,
    CompletionText,
)
from hermes.providers.embedded.decision import chat_grammar
from hermes.providers.embedded.engine import LocalEngine
from hermes.providers.embedded.small_prompt import TALK_MARK
from hermes.providers.embedded.tasks.task import Called, TaskOutcome
from hermes.schema.messages import AssistantMessage, Message, UserMessage
from hermes.schema.model import ModelRequest, ReplyFinished, TextDelta
from hermes.surfaces.cli.model_tasks import TaskTools
from hermes.surfaces.cli.question import joined

SETS = {
    "tuned": TUNED,
    "unseen": UNSEEN,
    "held-out": HELD_OUT,
    "fresh": FRESH,
    "final": FINAL,
    "last": LAST,
}
USEFUL_SHARE = 0.85
_ABSURD = re.compile(
    r"there is no (?:file|folder)|no such file|\bfile\b.{0,40}(?:does not|doesn't) exist",
    re.IGNORECASE,
)
_MAX_CALLS = 8
_SYSTEM = "You are an assistant with tools that work in the current folder."


class TimedEngine:
    """The engine, with a stopwatch on decisions and a count of tokens that were read again."""

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self.decisions: list[float] = []
        self.decision_cpu: list[float] = []
        self.decision_costs: list[float] = []
        self.read_tokens: list[tuple[str, int, int]] = []

    @property
    def obeys_grammar(self) -> bool:
        return self._engine.obeys_grammar

    async def complete(
        self, prompt: Completion
    ) -> AsyncGenerator[CompletionText | CompletionEnded, None]:
        started, cpu = time.monotonic(), _cpu_seconds(self._engine.pid)
        is_alone = prompt.slot == "decide"
        decides = is_alone or prompt.grammar == chat_grammar(None)
        decided_at, reply = 0.0, ""
        async with contextlib.aclosing(self._engine.complete(prompt)) as reports:
            async for report in reports:
                if isinstance(report, CompletionEnded):
                    fresh = report.input_tokens - report.cached_tokens
                    self.read_tokens.append((prompt.slot, fresh, report.input_tokens))
                elif decides:
                    reply += report.text
                    decided_at = decided_at or time.monotonic()
                    decides = not is_alone and TALK_MARK.startswith(reply)
                    if not decides:
                        self._decided(reply, started, decided_at, cpu)
                yield report

    def _decided(self, reply: str, started: float, at: float, cpu: float) -> None:
        """Notes a decision. Where the chat goes on, it costs only the words that are not shown; elsewhere all of it."""
        goes_on = reply.startswith(TALK_MARK)
        self.decisions.append(at - started)
        self.decision_costs.append(time.monotonic() - (at if goes_on else started))
        self.decision_cpu.append(_cpu_seconds(self._engine.pid) - cpu)

    async def warm(self) -> None:
        await self._engine.warm()

    async def close(self) -> None:
        await self._engine.close()


class CaseResult(msgspec.Struct, kw_only=True):
    """How one case went; times are those of its last request."""

    case: EverydayCase
    answer: str = ""
    calls: list[Called] = []
    problem: str = ""
    first_s: float = 0.0
    total_s: float = 0.0

    @property
    def absurd(self) -> bool:
        """Whether it speaks of a missing file where nobody spoke of files."""
        about_files = self.case.about_files or self.case.piped
        return not about_files and _ABSURD.search(self.answer) is not None


class Run:
    """Runs cases against one model."""

    def __init__(self, model: EmbeddedModel, tools: TaskTools) -> None:
        self._model = model
        self._tools = tools

    async def result(self, case: EverydayCase) -> CaseResult:
        """One case in a folder of its own."""
        result = CaseResult(case=case, calls=[])
        with tempfile.TemporaryDirectory(prefix="hermes-everyday-") as name:
            folder = Path(name)
            for path, text in case.files.items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text(text)
            try:
                await self._talk(result, folder)
                outcome = TaskOutcome(
                    folder=folder, calls=tuple(result.calls), answer=result.answer
                )
                result.problem = case.check(outcome)
            except ModelError as error:
                result.problem = f"the model failed: {error.message}"
        return result

    async def _talk(self, result: CaseResult, folder: Path) -> None:
        messages: list[Message] = []
        for request in result.case.requests:
            messages.append(UserMessage(text=joined(request, result.case.piped)))
            started = time.monotonic()
            result.first_s = 0.0
            for _ in range(_MAX_CALLS):
                reply = await self._reply(messages, folder, result, started)
                messages.append(reply)
                result.answer = reply.text
                if not reply.tool_calls:
                    break
                for call in reply.tool_calls:
                    arguments = arguments_by_name(call.arguments)
                    result.calls.append(Called(call.name, arguments))
                    messages.append(await self._tools.run(call, folder))
            result.total_s = time.monotonic() - started

    async def _reply(
        self,
        messages: list[Message],
        folder: Path,
        result: CaseResult,
        started: float,
    ) -> AssistantMessage:
        request = ModelRequest(
            system=(_SYSTEM,),
            messages=tuple(messages),
            tools=self._tools.specs,
            folder=str(folder),
        )
        async for event in self._model.stream(request):
            if isinstance(event, TextDelta) and not result.first_s:
                result.first_s = time.monotonic() - started
            if isinstance(event, ReplyFinished):
                return event.message
        raise ModelError("the stream ended without an end", reason="malformed")


def main(argv: Sequence[str]) -> int:
    """Runs a set and prints its score; 1 when it is below 85 % or an answer is absurd."""
    parser = argparse.ArgumentParser(prog="benchmarks local everyday")
    parser.add_argument("--set", choices=[*SETS, "all"], default="all")
    parser.add_argument("--model", default="base", choices=list(CATALOGUE))
    parser.add_argument(
        "--only", default="", help="parts of ids, or topics, with commas"
    )
    parser.add_argument("--save", default="", help="a file for the transcripts")
    parser.add_argument(
        "--busy", type=int, default=0, help="busy loops to run beside it"
    )
    parser.add_argument(
        "--priority",
        type=int,
        help="nice value of itself, the engine and busy loops (needs root)",
    )
    args = parser.parse_args(argv)
    folder = models_folder(os.environ, Path.home())
    if find(CATALOGUE[args.model], folder) is None:
        print(f"local everyday: skipped, `hermes model add {args.model}` fetches it")
        return 0
    names = list(SETS) if args.set == "all" else [args.set]
    if args.priority is not None:
        _prioritise(os.getpid(), args.priority)
    with _busy_loops(args.busy, args.priority):
        return max(asyncio.run(_run_set(name, args, folder)) for name in names)


@contextlib.contextmanager
def _busy_loops(count: int, priority: int | None) -> Iterator[None]:
    """Keeps cores busy, each loop in a session and so in a scheduling group of its own. A loop ends with this process."""
    script = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
    command = [sys.executable, "-I", "-S", "-c", script]
    loops = [subprocess.Popen(command, start_new_session=True) for _ in range(count)]
    if priority is not None:
        for loop in loops:
            _prioritise(loop.pid, priority)
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def _cpu_seconds(pid: int | None) -> float:
    """The CPU time of a process and of those below it, in seconds."""
    if pid is None:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(map(_cpu_seconds, _children(pid)))


def _children(pid: int) -> list[int]:
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]


async def _run_set(name: str, args: argparse.Namespace, folder: Path) -> int:
    local = engine_for(CATALOGUE[args.model], folder)
    engine = TimedEngine(local)
    model = EmbeddedModel(engine, name=args.model)
    wanted = args.only.split(",")
    cases = [c for c in SETS[name] if any(w in c.id or w == c.topic for w in wanted)]
    results: list[CaseResult] = []
    with tempfile.TemporaryDirectory(prefix="hermes-home-") as home:
        run = Run(model, TaskTools(Path(home), os.environ, approve=lambda _: True))
        await model.warm()
        if args.priority is not None and local.pid is not None:
            _prioritise(local.pid, args.priority)
        try:
            for case in cases:
                results.append(await run.result(case))
                _print_result(results[-1])
                if args.save:
                    _save(Path(args.save), results)
        finally:
            await model.close()
    return _print_score(name, results, engine)


def _prioritise(pid: int, nice: int) -> None:
    """Gives the engine its cores on a busy machine: it runs in a session, and so in a scheduling group, of its own."""
    Path(f"/proc/{pid}/autogroup").write_text(str(nice))
    for child in _children(pid):
        _prioritise(child, nice)


def _print_result(result: CaseResult) -> None:
    mark = "fail" if result.problem else "ok  "
    mark = "ABSURD" if result.absurd else mark
    times = f"{result.first_s:5.1f} {result.total_s:5.1f} s"
    print(f"{mark} {times}  {result.case.id:20s} {result.problem}", flush=True)


def _print_score(name: str, results: list[CaseResult], engine: TimedEngine) -> int:
    if not results:
        print(f"local everyday {name}: no case")
        return 0
    useful, total = Counter[str](), Counter[str]()
    for result in results:
        total[result.case.topic] += 1
        useful[result.case.topic] += not result.problem
    for topic, count in total.items():
        print(f"  {topic:12s} {useful[topic]:3d} of {count}")
    passed = useful.total()
    absurd = sum(result.absurd for result in results)
    talk = [r for r in results if not r.calls and not r.case.piped and r.first_s]
    print(
        f"local everyday {name}: {passed} of {len(results)} useful ({passed / len(results):.0%}), {absurd} absurd"
    )
    print(
        f"  first token of talk {_median([r.first_s for r in talk])}, answer {_median([r.total_s for r in results])} "
        f"(talk {_median([r.total_s for r in talk])}), decided after {_median(engine.decisions)} "
        f"(95 %: {_percentile(engine.decisions)}; {_median(engine.decision_cpu)} of CPU time), "
        f"which cost {_median(engine.decision_costs)} (95 %: {_percentile(engine.decision_costs)}; medians); "
        f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )  # fmt: skip
    print(f"  prompt tokens: {_reading(engine.read_tokens)}")
    return int(absurd > 0 or passed < USEFUL_SHARE * len(results))


def _reading(prompts: list[tuple[str, int, int]]) -> str:
    """How much of the prompts was read, and how much was in the cache: the median for each slot, and the share of all."""
    read_by_slot: dict[str, list[int]] = {}
    for slot, read, _ in prompts:
        read_by_slot.setdefault(slot, []).append(read)
    medians = ", ".join(
        f"{slot} {statistics.median(counts):.0f}"
        for slot, counts in sorted(read_by_slot.items())
    )
    read = sum(fresh for _, fresh, _ in prompts)
    total = sum(tokens for _, _, tokens in prompts)
    return f"{read:,} of {total:,} read, the rest was in the cache; read per prompt (median): {medians}"


def _median(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} s" if values else "-"


def _percentile(values: list[float]) -> str:
    """The value that 95 % of all do not exceed."""
    if not values:
        return "-"
    return f"{sorted(values)[max(0, math.ceil(len(values) * 0.95) - 1)]:.2f} s"


def _save(path: Path, results: list[CaseResult]) -> None:
    rows = [
        {
            "id": result.case.id,
            "requests": result.case.requests,
            "calls": [[call.name, call.arguments] for call in result.calls],
            "answer": result.answer,
            "problem": result.problem,
            "seconds": round(result.total_s, 2),
        }
        for result in results
    ]
    path.write_text(json.dumps(rows, indent=1, ensure_ascii=False))
