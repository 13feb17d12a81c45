"""A long text in the whole window, to scroll and search: folded output, thinking, a whole diff, the keys."""

from collections.abc import Callable, Sequence

from hermes.surfaces.terminal.styled_text import BOLD, DIM, REVERSE, Row, plain
from hermes.surfaces.terminal.text import cut
from hermes.surfaces.terminal.tool_line import Marks
from hermes.text.translation import translator

t = translator(__name__)


class Pager:
    """One open text. `lay_out` returns its rows for a width."""

    takes_clicks = False

    def __init__(
        self,
        title: str,
        lay_out: Callable[[int], Sequence[Row]],
        marks: Marks,
        *,
        at_end: bool = False,
    ) -> None:
        self.is_closed = False
        self._title = title
        self._lay_out = lay_out
        self._marks = marks
        self._columns = 0
        self._laid_out: Sequence[Row] = ()
        self._top = -1 if at_end else 0
        self._page = 10
        self._typed: str | None = None
        self._searched = ""

    def press(self, key: str) -> None:
        """Handles a key: arrows and pages scroll, `/` searches, `n` finds the next, Esc or q leaves."""
        if self._typed is not None:
            self._type(key)
            return
        steps = {"up": -1, "k": -1, "c-p": -1, "c-y": -1, "down": 1, "j": 1}
        steps |= {"c-n": 1, "c-e": 1, "enter": 1}
        steps |= {"pageup": -self._page, "b": -self._page, "pagedown": self._page}
        steps |= {" ": self._page, "c-u": -self._page // 2, "c-d": self._page // 2}
        match key:
            case _ if key in steps:
                self._top += steps[key]
            case "home" | "g":
                self._top = 0
            case "end" | "G":
                self._top = len(self._laid_out)
            case "/":
                self._typed = ""
            case "n" | "N":
                self._find(-1 if key == "N" else 1)
            case "escape" | "q" | "c-c" | "c-o":
                self.is_closed = True
            case _:
                pass

    def click(self, row: int) -> None:
        """Does nothing: the mouse selects text here."""

    async def load(self) -> bool:
        """Returns False: the text is there from the start."""
        return False

    def rows(self, columns: int, height: int) -> list[Row]:
        """Returns the title, one page of the text and the keys."""
        if columns != self._columns:
            self._columns, self._laid_out = columns, self._lay_out(columns)
        self._page = max(height - 2, 1)
        last = max(0, len(self._laid_out) - self._page)
        self._top = last if self._top < 0 and self._top == -1 else self._top
        self._top = max(0, min(self._top, last))
        shown = [self._marked(row) for row in self._laid_out[self._top :][: self._page]]
        filler: list[Row] = [()] * (self._page - len(shown))
        return [self._head(columns), *shown, *filler, self._foot(columns)][:height]

    def _head(self, columns: int) -> Row:
        return ((cut(self._title, columns), BOLD),)

    def _foot(self, columns: int) -> Row:
        if self._typed is not None:
            return ((cut(f"/{self._typed}", columns), ""),)
        total = len(self._laid_out)
        end = min(total, self._top + self._page)
        arrows = "↑↓" if self._marks.bar == "│" else "Arrows"
        first = self._top + 1 if total else 0
        place = t("{first}-{last} of {total}", first=first, last=end, total=total)
        bullet = f" {self._marks.bullet} "
        keys = (
            t("Esc back"),
            place,
            t("{arrows} Space scroll", arrows=arrows),
            t("/ search"),
        )
        return ((cut(bullet.join(keys), columns), DIM),)

    def _type(self, key: str) -> None:
        typed = self._typed or ""
        match key:
            case "enter":
                self._searched, self._typed = typed or self._searched, None
                self._find(1)
            case "escape" | "c-c":
                self._typed = None
            case "backspace":
                self._typed = typed[:-1] if typed else None
            case _ if len(key) == 1:
                self._typed = typed + key
            case _:
                pass

    def _find(self, step: int) -> None:
        """Scrolls to the next row that has the word, also from the start again."""
        total, word = len(self._laid_out), self._searched.casefold()
        if not word:
            return
        for distance in range(1, total + 1):
            number = (self._top + step * distance) % total
            if word in plain(self._laid_out[number]).casefold():
                self._top = number
                return

    def _marked(self, row: Row) -> Row:
        """Marks a row that has the searched word."""
        if not self._searched or self._searched.casefold() not in plain(row).casefold():
            return row
        return ((plain(row), REVERSE),)
