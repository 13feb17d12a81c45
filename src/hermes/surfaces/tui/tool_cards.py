"""Tool calls as cards: running ones with their last output, finished ones on one line with the end of their output or
their diff. Calls that only read are shown together: `Read 6 files`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from hermes.core.fence import unfenced
from hermes.primitives.lazy_pattern import lazy_pattern
from hermes.surfaces.terminal.call_words import CallWords, call_words, calls_in_words
from hermes.surfaces.terminal.diff_view import FileDiff, diff_rows, diffs_in
from hermes.surfaces.terminal.styled_text import CYAN, DIM, GREEN, RED, YELLOW, Row, Run
from hermes.surfaces.terminal.text import cut, width
from hermes.surfaces.terminal.tool_line import (
    COMMAND_TOOLS,
    Marks,
    failure_reason,
    last_lines,
    outcome,
    printed,
    reason_lines,
)
from hermes.surfaces.tui.details import Details
from hermes.text.formats import duration
from hermes.text.translation import to_translate, translator

t = translator(__name__)

NOT_BY_PERSON = frozenset(("remembered", "nobody", "policy"))
"""Who gives an answer that the person has not seen."""
_RUNNING_LINES = 3  # of output, while it runs
_RESULT_LINES = 3  # ... when it is done
_FAILED_LINES = 5  # ... when it failed
_MAX_DIFF_ROWS = 24
_MAX_OUTPUT_CHARS = 2_000  # of output, per running call

_LEFT_OUT = lazy_pattern(r"\[([\d,]+) lines?, [\d,]+ of [\d,]+ bytes left out here")
_SANDBOX = {
    "\n[The sandbox may have stopped this:": to_translate(  # not translated: a tool says it
        "Probably stopped by the sandbox."
    ),
    "\n[Hidden from commands, as they may hold secrets:": to_translate(  # not translated
        "Files that may hold secrets are hidden from commands."
    ),
}


class ToolCard(msgspec.Struct):
    """One running call."""

    words: CallWords
    since: float | None
    """When it started; None if unknown."""
    is_waiting: bool = False
    diff_shown: bool = False
    """Whether its diff was shown with the question."""
    answer_shown: bool = False
    """Whether the person's answer to its question, or their no, is on the screen."""
    output: str = ""
    """The end of what it has printed so far."""

    @property
    def label(self) -> str:
        """The call on one line."""
        return self.words.label


class _Together(msgspec.Struct, frozen=True):
    """A finished call that is shown together with its neighbours."""

    words: CallWords
    since: float | None
    ended: float


class ToolCards:
    """The calls of one session that are running, or finished and not printed yet."""

    def __init__(self, marks: Marks, hint: str = " (Ctrl-O)") -> None:
        self.details = Details()
        """The whole results."""
        self._marks = marks
        self._hint = hint  # behind the number of hidden lines
        self._open: dict[str, ToolCard] = {}
        self._requested: dict[str, CallWords] = {}  # by the last reply
        self._together: list[_Together] = []

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
        if card is not None and len(self._open) > 1:
            return card.label
        return ""

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Updates the cards from an event."""
        call_id = event.get("call_id", "")
        match event["type"]:
            case "agent.message.assistant":
                self._requested = {
                    call["id"]: call_words(call["name"], call["arguments"])
                    for call in event.get("tool_calls", ())
                }
            case "agent.tool.started":
                words = call_words(event["name"], event["arguments"])
                self._open[call_id] = ToolCard(words, event["ts"])
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
                self._open[call_id].answer_shown = shows_answer(event)
            case "agent.turn.ended":
                self._open.clear()
            case _:
                pass

    def rows(
        self, now: float, spinner: str, columns: int, *, asked: str = ""
    ) -> Iterator[Row]:
        """Yields the rows of finished calls that are not printed yet, and of the running ones.

        The call `asked` is left out: its question is on the screen.
        """
        yield from self._together_row(columns)
        for call_id, card in self._open.items():
            if call_id == asked:
                continue
            tail = _elapsed(card, now)
            head = cut(card.label, columns - 3 - width(tail))
            yield (
                (f"{'?' if card.is_waiting else spinner} ", CYAN),
                (head, ""),
                (f" {tail}" if tail else "", DIM),
            )
            yield from self._output(last_lines(card.output, _RUNNING_LINES), columns)

    def finish(self, event: Mapping[str, Any], columns: int) -> Iterator[Row]:
        """Yields the rows of a finished call; nothing yet if its neighbours may be shown with it."""
        ok = event.get("ok", True)
        text = unfenced(event.get("text", ""))
        card = self._closed(event)
        self.details.add(card.label, text, card.words.object)
        if ok and card.answer_shown:
            return
        if ok and card.words.kind:
            self._together.append(_Together(card.words, card.since, event["ts"]))
            return
        yield from self.flush(columns)
        yield from self._finished(card, event, text, columns, ok=ok)
        if not ok:
            yield from self._sandbox_notes(text, columns)

    def _closed(self, event: Mapping[str, Any]) -> ToolCard:
        """Removes the card of a finished call from the open ones, and returns it."""
        call_id = event["call_id"]
        card = self._open.pop(call_id, None)
        if card is not None:
            return card
        # The call did not start: its arguments were wrong, for example.
        words = self._requested.get(call_id) or call_words(event["name"], "{}")
        return ToolCard(words, None)

    def _finished(
        self,
        card: ToolCard,
        event: Mapping[str, Any],
        text: str,
        columns: int,
        *,
        ok: bool,
    ) -> Iterator[Row]:
        """Yields the heading of a finished call, then its diffs or its output."""
        took = "" if card.since is None else duration(event["ts"] - card.since)
        is_command = event["name"] in COMMAND_TOOLS
        exit_status = outcome(text) if is_command else ""
        diffs = diffs_in(text)
        if ok:
            yield self._heading(card.label, took, columns, changes=_changes(diffs))
        else:
            why = "" if card.answer_shown else failure_reason(text)
            reason = exit_status or why
            yield from self._failed(
                card.label, took, reason, columns, is_short=bool(exit_status)
            )
        has_output = is_command or event["name"] == "ask_user"
        if not diffs and (exit_status or (ok and has_output)):
            yield from self._folded(card, text, columns, ok=ok)
        if diffs and not card.diff_shown:
            yield from diff_rows(
                diffs,
                columns,
                self._marks,
                _MAX_DIFF_ROWS,
                name=card.words.object,
                hint=self._hint,
            )

    def flush(self, columns: int) -> Iterator[Row]:
        """Yields the row of the calls that are shown together, and forgets them."""
        yield from self._together_row(columns)
        self._together.clear()

    def _together_row(self, columns: int) -> Iterator[Row]:
        calls = self._together
        if not calls:
            return
        starts = [call.since for call in calls if call.since is not None]
        took = duration(calls[-1].ended - min(starts)) if starts else ""
        if len(calls) == 1:
            yield self._heading(calls[0].words.label, took, columns)
            return
        words = [call.words for call in calls]
        objects = dict.fromkeys(one.object for one in words if one.object)
        yield self._heading(
            calls_in_words(words), took, columns, objects=", ".join(objects)
        )

    def _heading(
        self, label: str, took: str, columns: int, *, objects: str = "", changes: tuple[Run, ...] = ()
    ) -> Row:  # fmt: skip
        """Returns the first row of a successful call."""
        room = max(columns - 3, 16)
        changed = sum(width(text) for text, _ in changes)
        head = cut(label, max(room - width(took) - changed - 1, 8))
        rest = cut(objects, room - width(head) - width(took) - 3)
        return (
            (self._marks.done, GREEN),
            (f" {head}", ""),
            (f"  {rest}" if len(rest) > 3 else "", DIM),
            *changes,
            (f" {took}" if took else "", DIM),
        )

    def _failed(
        self, label: str, took: str, reason: str, columns: int, *, is_short: bool
    ) -> Iterator[Row]:
        """Yields the first row of a failed call. A reason that would be cut there comes below, wrapped."""
        room = max(columns - 3, 16)
        tail = self._marks.separator.join(filter(None, (took, reason)))
        below: list[str] = []
        if not is_short and width(label) + width(tail) + 1 > room:
            tail, below = took, reason_lines(reason, max(columns - 5, 8))
        head = cut(label, max(room - width(tail) - 1, 8))
        rest = cut(tail, room - width(head) - 1)
        yield (
            (self._marks.failed, RED),
            (f" {head}", ""),
            (f" {rest}" if rest else "", DIM),
        )
        yield from self._output(below, columns)

    def _folded(
        self, card: ToolCard, text: str, columns: int, *, ok: bool
    ) -> Iterator[Row]:
        """Yields the end of a command's output, below the number of lines before it."""
        most = _RESULT_LINES if ok else _FAILED_LINES
        yield from self.folded(printed(text) or card.output, columns, most)

    def folded(self, output: str, columns: int, most: int) -> Iterator[Row]:
        """Yields the last lines of an output, below the number of lines before them."""
        lines = last_lines(output, len(output))
        hidden = len(lines) - most
        if hidden > 1:
            hidden += sum(map(_left_out, lines[:-most]))
            more = t("{count:,} more line", "{count:,} more lines", count=hidden)
            note = f"{self._marks.runs} {more}{self._hint}"
            lines = [note, *lines[-most:]]
        yield from self._output(lines, columns)

    def _sandbox_notes(self, text: str, columns: int) -> Iterator[Row]:
        for sign, note in _SANDBOX.items():
            if sign in text:
                for line in reason_lines(t.marked(note), max(columns - 5, 8)):
                    yield (f"  {self._marks.bar} ", DIM), (line, YELLOW)

    def _output(self, lines: list[str], columns: int) -> Iterator[Row]:
        for line in lines:
            yield ((f"  {self._marks.bar} {cut(line, columns - 5)}", DIM),)


def shows_answer(event: Mapping[str, Any]) -> bool:
    """Whether what a person answered, or that they said no, is shown."""
    by_person = event.get("by") not in {*NOT_BY_PERSON, "expired"}
    return by_person and bool(event.get("text") or event.get("answer") == "deny")


def _left_out(line: str) -> int:
    """How many more lines a line stands for, if the tool has left them out there."""
    found = _LEFT_OUT.match(line)
    return int(found[1].replace(",", "")) - 1 if found else 0


def _elapsed(card: ToolCard, now: float) -> str:
    if card.is_waiting:
        return t("waiting for you")
    seconds = 0.0 if card.since is None else now - card.since
    return duration(seconds) if seconds >= 1 else ""


def _changes(diffs: list[FileDiff]) -> tuple[Run, ...]:
    """Returns how many lines diffs add and remove."""
    added, removed = (
        sum(diff.added for diff in diffs),
        sum(diff.removed for diff in diffs),
    )
    if not diffs:
        return ()
    return ((f" +{added}", GREEN), (f" -{removed}", RED))
