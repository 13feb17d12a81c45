"""`hermes batch run` and `resume`: runs rows until all are done, with a progress bar at a terminal and plain lines
elsewhere."""

import asyncio
import signal
import sys
import time
from typing import Annotated

import msgspec

from hermes.app.batches.batch import (
    Batch,
    Batches,
    BatchOptions,
    check_amount,
    name_of,
    parse_toolsets,
)
from hermes.app.batches.batch_runner import BatchProgress, BatchRunner
from hermes.app.batches.dataset import read_dataset
from hermes.app.batches.row_state import RowState
from hermes.commands.batches import BatchName, BatchStatus, status_of
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.schema.events import Mode
from hermes.surfaces.cli.logs import start as start_log
from hermes.surfaces.terminal.progress_line import (
    ProgressLine,
    bar,
    fitted,
)
from hermes.surfaces.terminal.stderr_message import remark
from hermes.surfaces.terminal.text import one_line
from hermes.text.formats import dollars, first_line, time_left
from hermes.text.translation import shown_reason, translator

t = translator(__name__)


_LINE_INTERVAL_S = 10.0  # between lines where there is no terminal
_MAX_WORKERS = 256

Workers = Annotated[int, Arg("rows that run at once (default: 4)", metavar="N", at_least=1)]  # fmt: skip
Amount = Annotated[str, Arg("the most that all rows may use, such as '$20' or 5m tokens", metavar="AMOUNT")]  # fmt: skip
Approvals = Annotated[Mode, Arg("what runs without asking; the rest is denied (auto-edit)", metavar="MODE")]  # fmt: skip
RowAmount = Annotated[str, Arg("the most that one row may use", metavar="AMOUNT")]


@command("batch run")
async def run_batch(  # noqa: PLR0913 - how the rows are run
    context: CommandContext,
    file: Annotated[str, Arg("prompts: JSON lines, or .csv with a header", metavar="FILE")],
    *,
    name: Annotated[str, Arg("its name (default: that of the file)", metavar="NAME")] = "",
    model: Annotated[str, Arg("the model that answers", metavar="MODEL", short="-m")] = "",
    workers: Workers = 4,
    toolsets: Annotated[str, Arg("sets of tools, each with a probability per row: terminal,web:0.3", metavar="LIST")] = "",
    steps: Annotated[int, Arg("model calls that a row may make", metavar="N", at_least=1)] = 0,
    budget: Amount = "",
    row_budget: RowAmount = "",
    time_limit: Annotated[int, Arg("stop a row after this many seconds (default: 3600)", metavar="S", at_least=1)] = 3600,
    approvals: Approvals = "auto-edit",
    check: Annotated[str, Arg("a command that scores a row 1 if it succeeds in its folder", metavar="CMD")] = "",
    seed: Annotated[str, Arg("the same seed draws the same toolsets", metavar="TEXT")] = "",
    limit: Annotated[int, Arg("only the first N rows", metavar="N", at_least=1)] = 0,
) -> BatchStatus:  # fmt: skip
    """Answer every prompt of a dataset in a session and a sandboxed folder of its own.

    Nobody is asked: a call that needs an approval is denied. Ctrl-C stops after writing everything down; `hermes batch
    resume` goes on, and no row is paid for twice.
    """
    source = context.path(file).resolve()
    rows = await asyncio.to_thread(read_dataset, source)
    options = BatchOptions(
        model=model,
        workers=min(workers, _MAX_WORKERS),
        toolsets=parse_toolsets(toolsets),
        max_steps=steps,
        row_budget=check_amount(row_budget, "--row-budget"),
        budget=check_amount(budget, "--budget"),
        time_limit_s=float(time_limit),
        approvals=approvals,
        check=check,
        seed=seed,
    )
    app = context.app
    batch = Batches(context.home).create(
        name or name_of(source), app.ids.session(), source,
        rows[:limit] if limit else rows, options, app.clock.now(),
    )  # fmt: skip
    return await _run(context, batch, retry=False)


@command("batch resume")
async def resume_batch(
    context: CommandContext,
    name: BatchName,
    *,
    workers: Workers = 0,
    budget: Amount = "",
    row_budget: RowAmount = "",
    retry: Annotated[bool, "also rerun rows that failed or ran out of budget"] = False,
) -> BatchStatus:  # fmt: skip
    """Go on with a batch: rows that were cut off continue where they were, rows that are done stay as they are."""
    batches = Batches(context.home)
    batch = batches.find(name)
    old = batch.options
    options = msgspec.structs.replace(
        old,
        workers=min(workers or old.workers, _MAX_WORKERS),
        budget=check_amount(budget, "--budget") or old.budget,
        row_budget=check_amount(row_budget, "--row-budget") or old.row_budget,
    )
    batch = msgspec.structs.replace(batch, options=options)
    if options != old:
        batches.save(batch)
    return await _run(context, batch, retry=retry)


async def _run(context: CommandContext, batch: Batch, *, retry: bool) -> BatchStatus:
    start_log()
    reporter = _Reporter()
    with Batches(context.home).running(batch):
        runner = BatchRunner(
            context.app, context.secrets, batch, retry=retry,
            on_row=reporter.row, on_change=reporter.change,
        )  # fmt: skip
        stopped = _Signals(runner)
        try:
            await runner.run()
        finally:
            reporter.end()
            await stopped.close()
    status = status_of(context, batch, runner.stopped_by)
    return msgspec.structs.replace(status, signal=stopped.number)


class _Signals:
    """The first Ctrl-C or SIGTERM ends the running turns in order; the second one ends the process."""

    def __init__(self, runner: BatchRunner) -> None:
        self._runner = runner
        self._stopping: asyncio.Task[None] | None = None
        self.number = 0
        self._loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            self._loop.add_signal_handler(number, self._stop, number)

    def _stop(self, number: int) -> None:
        self.number = number
        self._forget()
        remark(t("Stopping the running rows. Everything so far is saved."))
        stopping = self._runner.stop("you stopped it")  # not translated: for the log
        self._stopping = asyncio.ensure_future(stopping)

    def _forget(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._loop.remove_signal_handler(number)

    async def close(self) -> None:
        self._forget()
        if self._stopping is not None:
            await self._stopping


class _Reporter:
    """Reports the progress of the batch, and each row that did not finish."""

    def __init__(self) -> None:
        self._line = ProgressLine()
        self._began = self._printed = time.monotonic()
        self._last: BatchProgress | None = None

    def row(self, state: RowState) -> None:
        if state.status == "done" and not state.detail:
            return
        self._line.clear()
        what = f"row {state.number}: {state.status.replace('_', ' ')}"
        print(
            one_line(f"{what}: {first_line(shown_reason(state.detail))}"),
            file=sys.stderr,
            flush=True,
        )

    def change(self, progress: BatchProgress) -> None:
        self._last = progress
        if self._line.is_live:
            self._line.draw(progress_text(progress, self._seconds, self._line.columns))
        elif time.monotonic() - self._printed >= _LINE_INTERVAL_S:
            self._printed = time.monotonic()
            print(progress_text(progress, self._seconds), file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._last is None:
            return
        text = progress_text(self._last, self._seconds, self._line.columns)
        if self._line.is_live:
            self._line.draw(text, now=True)
            self._line.end()
        else:
            print(progress_text(self._last, self._seconds), file=sys.stderr, flush=True)

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._began


def progress_text(progress: BatchProgress, seconds: float, columns: int = 0) -> str:
    """`[####------]  40%  40 of 100 rows  2 failed  4 running  12.0 rows/min  $1.20  5 min left`; the bar if it has columns."""
    over = progress.done + progress.failed
    parts = [
        t(
            "{over:,} of {count:,} row",
            "{over:,} of {count:,} rows",
            count=progress.rows,
            over=over,
        )
    ]
    if columns:
        parts.insert(0, bar(over / progress.rows, columns))
    if progress.failed:
        parts.append(t("{failed:,} failed", failed=progress.failed))
    if progress.running:
        parts.append(t("{running:,} running", running=progress.running))
    rate = progress.finished_now / seconds if seconds > 0 else 0.0
    if rate:
        parts.append(t("{rate:,.1f} rows/min", rate=rate * 60))
    if progress.tokens:
        is_known = progress.cost_usd or not progress.unpriced_calls
        parts.append(dollars(progress.cost_usd) if is_known else t("cost unknown"))
    if rate and over < progress.rows:
        parts.append(t("{time} left", time=time_left((progress.rows - over) / rate)))
    return fitted(parts, columns) if columns else ", ".join(parts)
