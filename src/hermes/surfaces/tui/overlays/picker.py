"""A list to choose from, with search and a preview: sessions, models, rewind points, rules, agents."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

import msgspec

from hermes.surfaces.terminal.styled_text import BOLD, CYAN, DIM, Row
from hermes.surfaces.terminal.text import clean, cut, one_line, pad, width, wrap
from hermes.surfaces.terminal.tool_line import Marks
from hermes.text.translation import to_translate, translator

t = translator(__name__)

_MAX_LABEL_SHARE = 0.6  # of the window's width
_MIN_PREVIEW_ROWS = 4
_PREVIEW_SHARE = 0.5  # of the rows below the search, at least
_MAX_CACHED_PREVIEWS = 100
_MAX_TITLE_ROWS = 3


class PickerItem(msgspec.Struct, frozen=True):
    """One entry of the list."""

    key: str
    """What the caller knows the entry by."""
    label: str
    detail: str = ""
    """Shown dimmed after the label; the search finds it too."""
    preview: Callable[[], str] | None = None
    """Reads the text that is shown while the entry is selected. Runs in a thread."""


class PickerText(msgspec.Struct, frozen=True, kw_only=True):
    """The words around the list."""

    title: str
    nothing: str = to_translate("Nothing here yet.")
    """Shown for an empty list."""
    enter: str = to_translate("choose")
    """What Enter does."""
    actions: Mapping[str, str] = {}
    """More keys by name, and what they do: `{"c-x": "delete"}`. They close the list as Enter does."""


class Picked(msgspec.Struct, frozen=True):
    """The entry that was chosen, and the key that chose it."""

    item: PickerItem
    key: str = "enter"


class Picker:
    """One open list. `picked` is the choice, or None if the person left without one."""

    takes_clicks = True

    def __init__(
        self,
        text: PickerText,
        items: Sequence[PickerItem],
        marks: Marks,
        *,
        start: int = 0,
    ) -> None:
        self.picked: Picked | None = None
        self.is_closed = False
        self._text = text
        self._items = items
        self._marks = marks
        self._typed = ""
        self._at = max(0, min(start, len(items) - 1))
        self._page = 10
        self._first = 0  # the entry in the first row of the list
        self._head_rows = 0  # title, search and a blank row
        self._previews: dict[str, str] = {}

    @property
    def selected(self) -> PickerItem | None:
        """The entry that Enter would choose."""
        found = self._found()
        return found[self._at] if found else None

    def press(self, key: str) -> None:
        """Handles a key: arrows move, characters search, Enter chooses, Esc clears the search or leaves."""
        steps = {"up": -1, "c-p": -1, "down": 1, "c-n": 1, "tab": 1, "s-tab": -1}
        steps |= {"pageup": -self._page, "pagedown": self._page}
        match key:
            case _ if key in steps:
                self._move(self._at + steps[key])
            case "home" | "end":
                self._move(0 if key == "home" else len(self._items))
            case "enter":
                self._pick(key)
            case _ if key in self._text.actions:
                self._pick(key)
            case "escape" if self._typed:
                self._search("")
            case "escape" | "c-c" | "c-d":
                self.is_closed = True
            case "backspace" | "c-u" | "c-w":
                self._search(self._typed[:-1] if key == "backspace" else "")
            case _ if len(key) == 1:
                self._search(self._typed + key)
            case _:
                pass

    def click(self, row: int) -> None:
        """Handles a click on an entry: chooses it, or first shows its preview."""
        row -= self._head_rows
        number = self._first + row
        found = self._found()
        if not 0 <= row < self._page or number >= len(found):
            return
        is_known = number == self._at or found[number].preview is None
        self._move(number)
        if is_known:
            self._pick("enter")

    async def load(self) -> bool:
        """Reads the preview of the selected entry."""
        item = self.selected
        if item is None or item.preview is None or item.key in self._previews:
            return False
        text = await asyncio.to_thread(item.preview)
        if len(self._previews) >= _MAX_CACHED_PREVIEWS:
            self._previews.clear()
        self._previews[item.key] = text
        return True

    def rows(self, columns: int, height: int) -> list[Row]:
        """Returns the title, the search, the list around the selected entry, its preview and the keys."""
        found, item = self._found(), self.selected
        prompt = self._marks.prompt
        total = f"{len(found)} of {len(self._items)}" if self._typed else ""
        title, *more = _wrapped_title(self._text.title, columns - width(total) - 2)
        search = (f"{prompt}{self._typed}", "") if self._typed else (f"{prompt}{t('type to search')}", DIM)  # fmt: skip
        head: list[Row] = [
            ((title, BOLD), (f"  {total}" if total else "", DIM)),
            *(((line, BOLD),) for line in more),
            ((cut(search[0], columns), search[1]),),
            (),
        ]
        self._head_rows = len(head)
        room = max(height - len(head) - 2, 1)
        has_preview = item is not None and item.preview is not None
        spare = max(int(room * _PREVIEW_SHARE), room - len(self._items))
        below = min(spare, room - 1) if has_preview else 0
        below = below if below >= _MIN_PREVIEW_ROWS else 0
        self._page = max(room - below, 1)
        listed = self._listed(found, columns, self._page)
        shown = self._preview(item, columns, below) if item and below else []
        filler: list[Row] = [()] * (room - len(listed) - len(shown))
        return [*head, *listed, *filler, *shown, (), self._keys(columns)][:height]

    def _found(self) -> list[PickerItem]:
        words = self._typed.casefold().split()
        return [
            item
            for item in self._items
            if all(word in f"{item.label} {item.detail}".casefold() for word in words)
        ]

    def _move(self, to: int) -> None:
        self._at = max(0, min(len(self._found()) - 1, to))

    def _search(self, text: str) -> None:
        self._typed, self._at = text, 0

    def _pick(self, key: str) -> None:
        if (item := self.selected) is not None:
            self.picked, self.is_closed = Picked(item, key), True

    def _listed(
        self, found: Sequence[PickerItem], columns: int, room: int
    ) -> list[Row]:
        if not found:
            text = (
                t("Nothing matches.") if self._items else t.marked(self._text.nothing)
            )
            return [((cut(f"  {text}", columns), DIM),)]
        start = max(0, min(self._at - room // 2, len(found) - room))
        self._first = start
        shown = found[start : start + room]
        labels = [one_line(item.label) for item in shown]
        most = int(columns * _MAX_LABEL_SHARE) if columns >= 60 else columns - 3
        longest = min(max(map(width, labels)), most)
        rows: list[Row] = []
        for number, (item, label) in enumerate(zip(shown, labels, strict=True), start):
            is_chosen = number == self._at
            mark = self._marks.prompt if is_chosen else "  "
            look = f"{BOLD};{CYAN}" if is_chosen else ""
            detail = cut(one_line(item.detail), columns - longest - 5)
            rows.append(
                (
                    (mark, look),
                    (pad(cut(label, longest), longest), look),
                    (f"  {detail}" if columns - longest > 12 and detail else "", DIM),
                )
            )
        return rows

    def _preview(self, item: PickerItem, columns: int, room: int) -> list[Row]:
        text = self._previews.get(item.key, "")
        bar = f"  {self._marks.bar} "
        text = clean(text).strip("\n")
        lines = list(wrap(text, max(columns - 5, 10))) if text.strip() else []
        if len(lines) > room - 1:
            lines = [*lines[: room - 2], self._marks.runs]
        rows: list[Row] = [((bar, DIM), (cut(line, columns - 5), "")) for line in lines]
        return [(), *rows, *([()] * (room - 1 - len(rows)))]

    def _keys(self, columns: int) -> Row:
        arrows = "↑↓" if self._marks.bar == "│" else "Arrows"
        enter = t.marked(self._text.enter)
        parts = [t("{arrows} move", arrows=arrows), f"Enter {enter}"]
        parts += [
            f"{_in_words(key)} {what}" for key, what in self._text.actions.items()
        ]
        parts.append(t("Esc clears the search") if self._typed else t("Esc back"))
        bullet = f" {self._marks.bullet} "
        return ((cut(bullet.join(parts), columns), DIM),)


def _wrapped_title(title: str, columns: int) -> list[str]:
    lines = list(wrap(title, columns))
    rest = " ".join(lines[_MAX_TITLE_ROWS - 1 :])
    return [*lines[: _MAX_TITLE_ROWS - 1], *([cut(rest, columns)] if rest else [])]


def _in_words(key: str) -> str:
    return f"Ctrl-{key[2:].upper()}" if key.startswith("c-") else key.capitalize()
