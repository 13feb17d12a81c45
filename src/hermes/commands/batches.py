"""Batches: lists, progress, statistics, exports and scores."""

import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec

from hermes.app.batches.batch import Batch, Batches
from hermes.app.batches.row_state import RowState, RowStatus, row_states
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.output_file import check_output, write_lines
from hermes.commands.views import (
    Block,
    Column,
    RawText,
    Record,
    TextResult,
    line,
    message,
    table,
)
from hermes.errors import SessionBusy, UsageError, os_reason
from hermes.schema.events import SessionScored
from hermes.text.formats import ago, dollars, first_line, short_number
from hermes.text.translation import shown_reason, to_translate, translator
from hermes.trajectories.formats import ExportChoice, TrajectoryFormat
from hermes.trajectories.statistics import TrajectoryStatistics, statistics_of

t = translator(__name__)


EXAMPLES = to_translate("""\
examples:
  hermes batch run tasks.jsonl --workers 8 --budget '$20'       one session per line
  hermes batch run tasks.csv --toolsets terminal,web:0.3        the web for 3 rows in 10
  hermes batch resume tasks                                     go on after an interruption
  hermes batch export tasks --format sharegpt --finished -o trajectories.jsonl
""")

BatchName = Annotated[str, Arg("which batch", metavar="NAME")]
_MAX_SHOWN_FAILURES = 10
_TROUBLE: tuple[RowStatus, ...] = ("failed", "refused", "budget", "timed_out", "stopped")  # fmt: skip


class BatchListing(msgspec.Struct, frozen=True):
    """The batches of this home."""

    batches: tuple[Batch, ...]

    def view(self, now: float) -> Iterable[Block]:
        if not self.batches:
            yield line(t("No batches yet. Start one: hermes batch run FILE"))
            return
        columns = (t("NAME"), Column(t("ROWS"), right=True), t("BEGAN"), t("DATASET"))
        rows = [
            (one.name, f"{one.rows:,}", ago(one.created, now), one.dataset)
            for one in self.batches
        ]
        yield table(columns, rows, narrow=((0, 1, 2), (3,)))


class BatchStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How far a batch is."""

    batch: str
    rows: int
    counts: dict[RowStatus, int]
    cost_usd: float
    tokens: int
    unpriced_calls: int
    scored: int
    mean_score: float | None
    problems: tuple[RowState, ...]
    stopped_by: str = ""
    signal: int = 0
    """The signal that stopped it."""

    @property
    def exit_code(self) -> int:
        if self.signal:
            return 128 + self.signal
        return int(self.counts.get("done", 0) < self.rows)

    def view(self, _now: float) -> Iterable[Block]:
        states = ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in self.counts.items())  # fmt: skip
        score = (
            ""
            if self.mean_score is None
            else t(
                "{mean_score:.3f} over {count:,} row",
                "{mean_score:.3f} over {count:,} rows",
                count=self.scored,
                mean_score=self.mean_score,
            )
        )
        yield Record(
            (
                (t("Batch"), self.batch),
                (t("Rows"), f"{self.rows:,}: {states}"),
                (t("Cost"), cost_text(self.cost_usd, self.unpriced_calls)),
                (t("Tokens"), short_number(self.tokens)),
                (t("Score"), score),
            )
        )
        if self.problems:
            rows = [
                (str(one.number), one.status.replace("_", " "), one.session, first_line(shown_reason(one.detail)))
                for one in self.problems[:_MAX_SHOWN_FAILURES]
            ]  # fmt: skip
            yield line("")
            yield table(
                (Column(t("ROW"), right=True), t("ENDED"), t("SESSION"), t("WHY")),
                rows,
                narrow=((0, 1, 2), (3,)),
            )
            if len(self.problems) > _MAX_SHOWN_FAILURES:
                more = len(self.problems) - _MAX_SHOWN_FAILURES
                yield line(
                    t(
                        "… and {count:,} other row",
                        "… and {count:,} other rows",
                        count=more,
                    )
                )
        if self.stopped_by:
            yield line(
                t("Stopped early: {stopped_by}.", stopped_by=self.stopped_by),
                "warn",
                fit="wrap",
            )
        yield from self._next()

    def _next(self) -> Iterable[Block]:
        begun = self.counts.get("begun", 0) + self.counts.get("waiting", 0)
        if begun:
            text = t(
                "{count:,} row left. Continue with: hermes batch resume {batch}",
                "{count:,} rows left. Continue with: hermes batch resume {batch}",
                count=begun,
                batch=self.batch,
            )
            yield line(text, "dim", fit="wrap")
        elif self.problems:
            text = t("Run the unfinished rows again: hermes batch resume {batch} --retry", batch=self.batch)  # fmt: skip
            yield line(text, "dim", fit="wrap")


class BatchStatistics(msgspec.Struct, frozen=True):
    """Sums over the trajectories of a batch."""

    batch: str
    statistics: TrajectoryStatistics

    def view(self, _now: float) -> Iterable[Block]:
        found = self.statistics
        endings = ", ".join(f"{number:,} {name}" for name, number in found.endings.items())  # fmt: skip
        share = found.replies_with_reasoning / found.replies if found.replies else 0
        tokens = t(
            "{read} in, {written} out",
            read=short_number(found.input_tokens),
            written=short_number(found.output_tokens),
        )
        yield Record(
            (
                (t("Trajectories"), f"{found.trajectories:,}: {endings}"),
                (t("Replies"), t("{replies:,}, {share:.0%} with reasoning", replies=found.replies, share=share)),
                (t("Tool calls"), f"{found.tool_calls:,}"),
                (t("Tokens"), tokens),
                (t("Cost"), cost_text(found.cost_usd, found.unpriced)),
                (t("Score"), "" if found.mean_score is None else f"{found.mean_score:.3f}"),
            )
        )  # fmt: skip
        if found.tools:
            rows = [
                (one.name, f"{one.calls:,}", f"{one.failures:,}") for one in found.tools
            ]
            yield line("")
            columns = (t("TOOL"), Column(t("CALLS"), right=True), Column(t("FAILED"), right=True))  # fmt: skip
            yield table(columns, rows)


def cost_text(usd: float, unpriced: int) -> str:
    """What something cost, and whether that is all of it."""
    if not unpriced:
        return dollars(usd)
    return (
        t("{dollars} plus an unknown amount", dollars=dollars(usd))
        if usd
        else t("unknown (no price for this model)")
    )


def status_of(context: CommandContext, batch: Batch, stopped_by: str = "") -> BatchStatus:  # fmt: skip
    """The progress of a batch, computed from the session log."""
    states = row_states(context.app, batch)
    scores = [one.score for one in states if one.score is not None]
    return BatchStatus(
        batch=batch.name,
        rows=batch.rows,
        counts=dict(Counter(one.status for one in states).most_common()),
        cost_usd=sum(one.cost_usd + one.earlier_usd for one in states),
        tokens=sum(one.tokens + one.earlier_tokens for one in states),
        unpriced_calls=sum(one.unpriced_calls for one in states),
        scored=len(scores),
        mean_score=sum(scores) / len(scores) if scores else None,
        problems=tuple(one for one in states if one.status in _TROUBLE),
        stopped_by=stopped_by,
    )


@command("batch list")
def list_batches(context: CommandContext) -> BatchListing:
    """List the batches."""
    return BatchListing(tuple(Batches(context.home).all()))


@command("batch status")
def show_batch_status(context: CommandContext, name: BatchName) -> BatchStatus:
    """Show a batch's progress, cost and failed rows. Exit code 1 until every row is done."""
    return status_of(context, Batches(context.home).find(name))


@command("batch stats")
def show_batch_statistics(context: CommandContext, name: BatchName) -> BatchStatistics:
    """Count endings, tool calls, failures and reasoning over all rows of a batch."""
    from hermes.app.batches.row_state import trajectories

    batch = Batches(context.home).find(name)
    return BatchStatistics(batch.name, statistics_of(trajectories(context.app, batch)))


@command("batch export")
def export_batch(  # noqa: PLR0913 - what is exported and how
    context: CommandContext,
    name: BatchName,
    *,
    format_: Annotated[TrajectoryFormat, Arg("sharegpt, openai or atif (default: sharegpt)", metavar="FORMAT")] = "sharegpt",
    output: Annotated[str, Arg("the file to write (default: stdout)", metavar="FILE", short="-o")] = "-",
    finished: Annotated[bool, "only rows that ended with an answer"] = False,
    with_reasoning: Annotated[bool, "only rows in which the model showed reasoning"] = False,
    min_score: Annotated[float | None, Arg("only rows with at least this score", metavar="SCORE")] = None,
    max_tokens: Annotated[int, Arg("shorten longer trajectories to this many tokens", metavar="N", at_least=1000)] = 0,
    force: Annotated[bool, "replace FILE if it exists"] = False,
) -> RawText | TextResult:  # fmt: skip
    """Write the trajectories of a batch as JSON lines, one per row, in the order of the dataset."""
    from hermes.app.batches.row_state import trajectories
    from hermes.trajectories.formats import BatchExport

    batch = Batches(context.home).find(name)
    choice = ExportChoice(
        finished=finished,
        with_reasoning=with_reasoning,
        min_score=min_score,
        max_tokens=max_tokens,
    )
    export = BatchExport(choice, format_)
    lines = export.lines(trajectories(context.app, batch))
    if output == "-":
        return RawText(lines=lines)
    target = check_output(context.path(output).resolve(), force=force)
    write_lines(target, lines)
    told = [
        t(
            "Wrote {count:,} row to {target}.",
            "Wrote {count:,} rows to {target}.",
            count=export.written,
            target=target,
        )
    ]
    told += [
        t("Left out {number:,} {why}.", number=number, why=why)
        for why, number in export.left_out.items()
    ]
    return message(*told)


class _RowScore(msgspec.Struct):
    row: int
    score: float


@command("batch score")
def score_batch(
    context: CommandContext,
    name: BatchName,
    file: Annotated[str, 'JSON lines such as {"row": 1, "score": 0.5}'],
) -> TextResult:
    """Score rows yourself, for `hermes batch export --min-score`."""
    batch = Batches(context.home).find(name)
    states = {one.number: one for one in row_states(context.app, batch)}
    scores = list(_read_scores(context.path(file), states))
    for state, score in scores:
        scored = SessionScored(score=score, by="user")
        context.app.record(state.session, scored)
    return message(
        t("Scored {count:,} row.", "Scored {count:,} rows.", count=len(scores))
    )


def _read_scores(
    path: Path, states: dict[int, RowState]
) -> Iterable[tuple[RowState, float]]:
    """Reads every score before the first one is written."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = (
            os_reason(error)
            if isinstance(error, OSError)
            else t("it is not UTF-8 text")
        )
        raise UsageError(
            t("{path} can't be read ({why}).", path=path, why=why)
        ) from error
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            found = msgspec.json.decode(text, type=_RowScore)
        except msgspec.MsgspecError as error:
            raise UsageError(
                t(
                    "{path}, line {number}: {error}. Nothing was scored.",
                    path=path,
                    number=number,
                    error=error,
                )
            ) from error
        state = states.get(found.row)
        if state is None or state.status == "waiting":
            raise UsageError(
                t(
                    "{path}, line {number}: row {row} has not run. Nothing was scored.",
                    path=path,
                    number=number,
                    row=found.row,
                )
            )
        yield state, found.score


@command("batch delete")
def delete_batch(
    context: CommandContext,
    name: BatchName,
    *,
    yes: Annotated[bool, "don't ask"] = False,
) -> TextResult:
    """Delete a batch with its sessions and folders, permanently."""
    batches = Batches(context.home)
    batch = batches.find(name)
    if not yes:
        rows = t("{count:,} row", "{count:,} rows", count=batch.rows)
        context.confirm(
            t("Delete the batch {name} with {rows} permanently?", name=name, rows=rows),
            t("Nothing was deleted."),
        )
    with batches.running(batch):
        deleted = 0
        for state in row_states(context.app, batch):
            for attempt in range(1, state.attempt + 1):
                session = batch.session(state.number, attempt)
                if context.app.store.sessions.missing([session]):
                    continue
                try:
                    context.app.delete(session)
                except SessionBusy as busy:
                    context.surface.warn(busy.message, busy.hint)
                    return message(
                        t(
                            "Deleted {count:,} session; the rest is still there.",
                            "Deleted {count:,} sessions; the rest is still there.",
                            count=deleted,
                        ),
                        failed=True,
                    )
                deleted += 1
        shutil.rmtree(batches.workspace(batch, 1).parent, ignore_errors=True)
        shutil.rmtree(batches.folder(batch))
    return message(
        t(
            "Deleted the batch {name} and {count:,} session.",
            "Deleted the batch {name} and {count:,} sessions.",
            count=deleted,
            name=name,
        )
    )
