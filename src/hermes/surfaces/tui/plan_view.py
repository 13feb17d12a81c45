"""The model's todo list: pinned above the input, and updated in place."""

from collections.abc import Iterator
from typing import TypeAlias

from hermes.surfaces.terminal.styled_text import BOLD, DIM, GREEN, Row
from hermes.surfaces.terminal.text import clean, cut
from hermes.surfaces.terminal.tool_line import Marks
from hermes.text.translation import translator

t = translator(__name__)


_MAX_PINNED_STEPS = 7
_MAX_LISTS = 200  # that an undo can bring back

_Steps: TypeAlias = list[tuple[str, str]]  # mark and text


class PlanView:
    """The latest list. `text` is a result of the `todo` tool."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._steps: _Steps = []
        self._lists: list[tuple[int, _Steps]] = []  # earlier ones too, with their rows
        self._undone: list[list[tuple[int, _Steps]]] = []  # by each undo
        self._is_current = False  # it changed in this turn
        self._is_folded = False

    @property
    def is_done(self) -> bool:
        """Whether every step is done."""
        return all(mark == "x" for mark, _ in self._steps)

    def update(self, text: str, seq: int = 0) -> None:
        """Replaces the list by that of a result, which is in this row of the log."""
        self._is_current, self._is_folded = True, False
        lines = clean(text).split("\n")
        self._steps = [
            (line[1], line[4:])
            for line in lines
            if len(line) > 4 and line[0] == "[" and line[2:4] == "] "
        ]
        self._lists = [*self._lists[1 - _MAX_LISTS :], (seq, self._steps)]

    def undo(self, since: int) -> None:
        """Goes back to the list before this row of the log."""
        self._undone.append([one for one in self._lists if one[0] >= since])
        self._lists = [one for one in self._lists if one[0] < since]
        self._show_last()

    def redo(self) -> None:
        """Takes back the last undo."""
        if self._undone:
            self._lists += self._undone.pop()
            self._show_last()

    def _show_last(self) -> None:
        self._steps = self._lists[-1][1] if self._lists else []
        if self.is_done:
            self._steps = []

    def end_turn(self) -> None:
        """Forgets a list that is done. Folds one that the turn did not change: the conversation is about something
        else.
        """
        if self.is_done:
            self._steps = []
        self._is_folded, self._is_current = not self._is_current, False

    def rows(self, columns: int) -> Iterator[Row]:
        """Yields the list: done steps dimmed, the current one bold; of a long list the part around the current step."""
        steps, total = self._steps, len(self._steps)
        if not steps:
            return
        done = sum(mark == "x" for mark, _ in steps)
        yield (
            (t("Plan"), BOLD),
            (f" {t('{done} of {total} done', done=done, total=total)}", DIM),
        )
        if self._is_folded:
            return
        current = next(
            (number for number, (mark, _) in enumerate(steps) if mark != "x"), total
        )
        first = max(0, min(current - 1, total - _MAX_PINNED_STEPS))
        shown = steps[first : first + _MAX_PINNED_STEPS]
        for mark, text in shown:
            yield self._row(mark, cut(text, columns - 4))
        hidden = total - first - len(shown)
        if hidden > 0:
            more = t("{count:,} more step", "{count:,} more steps", count=hidden)
            yield ((f"  {self._marks.runs} {more}", DIM),)

    def _row(self, mark: str, text: str) -> Row:
        match mark:
            case "x":
                return ((f"  {self._marks.done} ", GREEN), (text, DIM))
            case ">":
                return ((f"  {self._marks.prompt.strip()} ", BOLD), (text, BOLD))
            case _:
                return ((f"  {self._marks.item} ", DIM), (text, ""))
