"""Tool calls as cards: running ones with their last output, finished ones with result, duration and
diff.
"""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from hermes.surfaces.terminal.text import clean, count, cut, one_line, width
from hermes.surfaces.terminal.tool_line import (
    COMMAND_TOOLS,
    Marks,
    duration,
    label_of,
    last_lines,
    outcome,
    printed,
)
from hermes.surfaces.tui.styled_text import BOLD, CYAN, DIM, GREEN, RED, YELLOW, Row

_RUNNING_LINES = 3  # of output, while it runs
_RESULT_LINES = 3  # ... when it is done
_FAILED_LINES = 5  # ... when it failed
_MAX_PLAN_STEPS = 20
_MAX_DIFF_LINES = 24
_DIFF_MARKS = frozenset("@+- \\.")
_MAX_OUTPUT_CHARS = 2_000  # of output, per call

_SANDBOX = {
    "\n[The sandbox may have stopped this:": "Probably stopped by the sandbox.",
    "\n[Hidden from commands, as they may hold secrets:": "Files that may hold secrets are hidden from commands.",
}


class ToolCard(msgspec.Struct):
    """One running call."""

    label: str
    since: float | None
    """When it started; None if unknown."""
    is_waiting: bool = False
    diff_shown: bool = False
    """Whether its diff was shown with the question."""
    output: str = ""


class ToolCards:
    """The running calls of one session."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._open: dict[str, ToolCard] = {}

    @property
    def running(self) -> str:
        """The label of the running call that started last."""
        return next((card.label for card in reversed(self._open.values())), "")

    @property
    def all_waiting(self) -> bool:
        """Whether every call waits for a person."""
        return all(card.is_waiting for card in self._open.values())

    def label_among(self, call_id: str) -> str:
        """The label of a call, if others are open too, so that a remark about it must say which it means."""
        card = self._open.get(call_id)
        return card.label if card is not None and len(self._open) > 1 else ""

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Updates the cards from an event."""
        call_id = event.get("call_id", "")
        match event["type"]:
            case "agent.tool.started":
                self._open[call_id] = ToolCard(
                    label_of(event["name"], event["arguments"]), event["ts"]
                )
            case "agent.tool.progress" if call_id in self._open:
                card = self._open[call_id]
                card.output = (card.output + event["text"])[-_MAX_OUTPUT_CHARS:]
            case "agent.approval.requested" | "agent.question.asked" if (
                call_id in self._open
            ):
                self._open[call_id].is_waiting = True
                self._open[call_id].diff_shown = "@@ " in event.get("summary", "")
            case "agent.approval.answered" | "agent.question.answered" if (
                call_id in self._open
            ):
                self._open[call_id].is_waiting = False
                self._open[call_id].since = event["ts"]
            case "agent.turn.ended":
                self._open.clear()
            case _:
                pass

    def rows(self, now: float, spinner: str, columns: int) -> Iterator[Row]:
        """Yields the rows of the running calls."""
        for card in self._open.values():
            tail = _elapsed(card, now)
            head = cut(card.label, columns - 3 - width(tail))
            yield (
                (f"{'?' if card.is_waiting else spinner} ", CYAN),
                (head, ""),
                (f" {tail}" if tail else "", DIM),
            )
            yield from self._output(last_lines(card.output, _RUNNING_LINES), columns)

    def finish(self, event: Mapping[str, Any], columns: int) -> Iterator[Row]:
        """Yields the rows of a finished call."""
        name, text, ok = event["name"], event.get("text", ""), event.get("ok", True)
        card = self._open.pop(event["call_id"], None)
        if card is None:
            card = ToolCard(one_line(name), None)
        exit_status = outcome(text) if name in COMMAND_TOOLS else ""
        took = "" if card.since is None else duration(event["ts"] - card.since)
        if ok:
            yield self._heading(GREEN, self._marks.done, card.label, took, columns)
        else:
            reason = exit_status or one_line(text)
            tail = f" {self._marks.bullet} ".join(filter(None, (took, reason)))
            yield self._heading(
                RED,
                self._marks.failed,
                card.label,
                tail,
                columns,
                shares_row=not exit_status,
            )
        yield from self._result(card, name, text, columns, ok=ok, status=exit_status)
        if not ok:
            yield from self._sandbox_notes(text, columns)

    def _heading(
        self,
        colour: str,
        mark: str,
        label: str,
        tail: str,
        columns: int,
        *,
        shares_row: bool = False,
    ) -> Row:
        """Returns the first row of a finished call. With `shares_row`, a long tail takes at most half of it."""
        room = max(columns - 3, 16)
        min_label = room // 2 if shares_row else 0
        head = cut(label, max(min_label, room - width(tail) - 1, 8))
        rest = cut(tail, room - width(head) - 1)
        return (mark, colour), (f" {head}", ""), (f" {rest}" if rest else "", DIM)

    def _result(
        self,
        card: ToolCard,
        name: str,
        text: str,
        columns: int,
        *,
        ok: bool,
        status: str,
    ) -> Iterator[Row]:
        """Yields the result of a call: a diff, a plan or the last lines of output."""
        diff = diff_in(text)
        if diff and not card.diff_shown:
            yield from diff_rows(diff, columns, self._marks, _MAX_DIFF_LINES)
            return
        if ok and name == "todo":
            yield from _plan(text, columns)
            return
        has_output = bool(status) or (ok and name in COMMAND_TOOLS)
        if has_output and not diff:
            output = card.output or (printed(text) if status else "")
            max_lines = _RESULT_LINES if ok else _FAILED_LINES
            yield from self._output(last_lines(output, max_lines), columns)

    def _sandbox_notes(self, text: str, columns: int) -> Iterator[Row]:
        for sign, note in _SANDBOX.items():
            if sign in text:
                yield (
                    (f"  {self._marks.bar} ", DIM),
                    (cut(note, columns - 5), YELLOW),
                )

    def _output(self, lines: list[str], columns: int) -> Iterator[Row]:
        for line in lines:
            yield ((f"  {self._marks.bar} {cut(line, columns - 5)}", DIM),)


def _elapsed(card: ToolCard, now: float) -> str:
    if card.is_waiting:
        return "waiting for you"
    seconds = 0.0 if card.since is None else now - card.since
    return duration(seconds) if seconds >= 1 else ""


def _plan(text: str, columns: int) -> Iterator[Row]:
    """Yields the steps of a plan: done ones dimmed, the current one bold."""
    for line in clean(text).split("\n")[:_MAX_PLAN_STEPS]:
        look = {"[x]": DIM, "[>]": BOLD}.get(line[:3], "")
        yield (
            ("  ", ""),
            (cut(line, columns - 3), look if line.startswith("[") else DIM),
        )


def diff_in(text: str) -> list[str]:
    """Returns the lines of the diff in a result, if there is one."""
    lines = clean(text).split("\n")
    before = itertools.takewhile(lambda line: not line.startswith("@@ "), lines)
    start = sum(1 for _ in before)
    return list(itertools.takewhile(_is_diff_line, lines[start:]))


def _is_diff_line(line: str) -> bool:
    return line[:1] in _DIFF_MARKS


def diff_rows(lines: list[str], columns: int, marks: Marks, most: int) -> Iterator[Row]:
    """Yields the rows of a diff, coloured."""
    for line in lines[:most]:
        look = {"+": GREEN, "-": RED, "@": CYAN}.get(line[:1], DIM)
        yield ((f"  {marks.bar} ", DIM), (cut(line, columns - 5), look))
    hidden = len(lines) - most
    if hidden > 0:
        yield ((f"  {marks.bar} {marks.runs} {count(hidden, 'more line')}", DIM),)
