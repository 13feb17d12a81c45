"""Tool calls as cards: at work with what they print last, done with their mark, how long they took, and a diff."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from hermes.surfaces.terminal.text import clean, cut, one_line, width
from hermes.surfaces.terminal.tool_line import (
    SHOWS,
    Marks,
    duration,
    label_of,
    last_lines,
    outcome,
    printed,
)
from hermes.surfaces.tui.styled_text import BOLD, CYAN, DIM, GREEN, RED, YELLOW, Row

_RUNNING_LINES = 3  # lines of output while it runs
_RESULT_LINES = 3  # lines of output when it is done
_FAILED_LINES = 5  # ... when it failed
_MAX_PLAN_STEPS = 20  # steps
_MAX_DIFF_LINES = 24  # lines of a diff
_MAX_OUTPUT_CHARS = 2_000  # characters of output that are remembered

_SANDBOX = {
    "\n[The sandbox may have stopped this:": "Probably stopped by the sandbox.",
    "\n[Hidden from commands, as they may hold secrets:": "Files that may hold secrets are hidden from commands.",
}


class ToolCard(msgspec.Struct):
    """One call at work."""

    label: str
    since: float | None
    """When it began; None if nobody saw that."""
    waits: bool = False
    seen: bool = False
    """Whether its diff was shown with the question."""
    output: str = ""


class ToolCards:
    """The calls of one session that run."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._open: dict[str, ToolCard] = {}

    @property
    def running(self) -> str:
        """The call that began last and still runs."""
        return next((card.label for card in reversed(self._open.values())), "")

    @property
    def all_wait(self) -> bool:
        """Whether every call waits for a person."""
        return all(card.waits for card in self._open.values())

    def see(self, event: Mapping[str, Any]) -> None:
        """Takes notice of a call's beginning, its output, and of a question that holds it up."""
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
                self._open[call_id].waits = True
                self._open[call_id].seen = "@@ " in event.get("summary", "")
            case "agent.approval.answered" | "agent.question.answered" if (
                call_id in self._open
            ):
                self._open[call_id].waits = False
                self._open[call_id].since = event["ts"]
            case "agent.turn.ended":
                self._open.clear()
            case _:
                pass

    def rows(self, now: float, spinner: str, columns: int) -> Iterator[Row]:
        """The cards of what runs now."""
        for card in self._open.values():
            seconds = 0.0 if card.since is None else now - card.since
            tail = (
                "waits for you"
                if card.waits
                else duration(seconds)
                if seconds >= 1
                else ""
            )
            head = cut(card.label, columns - 3 - width(tail))
            yield (
                (f"{'?' if card.waits else spinner} ", CYAN),
                (head, ""),
                (f" {tail}" if tail else "", DIM),
            )
            yield from self._output(last_lines(card.output, _RUNNING_LINES), columns)

    def done(self, event: Mapping[str, Any], columns: int) -> Iterator[Row]:
        """The rows of a call that ended."""
        card = self._open.pop(event["call_id"], None) or ToolCard(
            one_line(event["name"]), None
        )
        ok, text = event.get("ok", True), event.get("text", "")
        ended = outcome(text) if event["name"] in SHOWS else ""
        parts = ["" if card.since is None else duration(event["ts"] - card.since)]
        parts += [] if ok else [ended or one_line(text)]
        tail = f" {self._marks.bullet} ".join(filter(None, parts))
        room = max(columns - 3, 16)
        least = (
            0 if ok or ended else room // 2
        )  # a long reason must not take all the room
        head = cut(card.label, max(least, room - width(tail) - 1, 8))
        rest = cut(tail, room - width(head) - 1)
        yield (
            (self._marks.done if ok else self._marks.failed, GREEN if ok else RED),
            (f" {head}", ""),
            (f" {rest}" if rest else "", DIM),
        )
        diff = diff_in(text)
        if diff and not card.seen:
            yield from diff_rows(diff, columns, self._marks, _MAX_DIFF_LINES)
        elif ok and event["name"] == "todo":
            yield from _plan(text, columns)
        elif not diff and (ended or (ok and event["name"] in SHOWS)):
            output = card.output or (printed(text) if ended else "")
            yield from self._output(
                last_lines(output, _RESULT_LINES if ok else _FAILED_LINES), columns
            )
        for remark in [
            words for sign, words in _SANDBOX.items() if not ok and sign in text
        ]:
            yield ((f"  {self._marks.bar} ", DIM), (cut(remark, columns - 5), YELLOW))

    def _output(self, lines: list[str], columns: int) -> Iterator[Row]:
        for line in lines:
            yield ((f"  {self._marks.bar} {cut(line, columns - 5)}", DIM),)


def _plan(text: str, columns: int) -> Iterator[Row]:
    """The steps of a plan: what is done steps back, what goes on stands out."""
    for line in clean(text).split("\n")[:_MAX_PLAN_STEPS]:
        look = {"[x]": DIM, "[>]": BOLD}.get(line[:3], "")
        yield (
            ("  ", ""),
            (cut(line, columns - 3), look if line.startswith("[") else DIM),
        )


def diff_in(text: str) -> list[str]:
    """The lines of a diff in a result; none if there is none."""
    lines = clean(text).split("\n")
    start = next(
        (index for index, line in enumerate(lines) if line.startswith("@@ ")), None
    )
    if start is None:
        return []
    end = next(
        (
            index
            for index in range(start, len(lines))
            if lines[index][:1] not in set("@+- \\.")
        ),
        len(lines),
    )
    return lines[start:end]


def diff_rows(lines: list[str], columns: int, marks: Marks, most: int) -> Iterator[Row]:
    """A diff, each line in the colour of what it does."""
    for line in lines[:most]:
        look = {"+": GREEN, "-": RED, "@": CYAN}.get(line[:1], DIM)
        yield ((f"  {marks.bar} ", DIM), (cut(line, columns - 5), look))
    if len(lines) > most:
        yield (
            (
                f"  {marks.bar} {marks.runs} {len(lines) - most} more {'line' if len(lines) - most == 1 else 'lines'}",
                DIM,
            ),
        )
