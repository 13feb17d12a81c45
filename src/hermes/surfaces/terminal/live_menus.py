"""Menus that are drawn in place and answered with arrow keys, numbers or one key. A menu disappears once it is
answered."""

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeAlias, TypeVar

from prompt_toolkit.application import Application, get_app
from prompt_toolkit.data_structures import Size
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import (
    KeyBindings,
    KeyPressEvent,
    merge_key_bindings,
)
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import Layout, Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.output import ColorDepth

from hermes.surfaces.terminal.menus import (
    MenuItem,
    MenuText,
    PasteChoice,
    WaitNotes,
    takes_nothing,
)
from hermes.surfaces.terminal.mouse import ClickOutput, MouseClicks
from hermes.surfaces.terminal.style import stderr_style
from hermes.surfaces.terminal.text import clean, cut, pad, width, wrap
from hermes.text.translation import translator

t = translator(__name__)

_Found = TypeVar("_Found")
_Row: TypeAlias = tuple[str, str]
_KEY_TIMEOUT_S = 0.05  # after Esc, for the rest of an arrow key
_SPINNER_S = 0.1
_MAX_LISTED_ROWS = 12
_MIN_COLUMNS = 20
_DIM, _BOLD, _RED = "dim", "bold", "ansired"
_CHOSEN = "bold ansicyan"


class LiveMenus:
    """Menus on a terminal that can move its cursor."""

    def __init__(self) -> None:
        encoding = (sys.stderr.encoding or "").lower().replace("-", "")
        self._is_utf8 = encoding.startswith("utf")
        self._colours = stderr_style().enabled

    @property
    def _mark(self) -> str:
        return "›" if self._is_utf8 else ">"

    @property
    def _arrows(self) -> str:
        return "↑↓" if self._is_utf8 else "Arrows"

    def choose(
        self,
        text: MenuText,
        items: Sequence[MenuItem],
        updates: Sequence["Future[Any]"] = (),
        paste: PasteChoice = takes_nothing,
    ) -> int | None:
        """Returns the index of the chosen item, or of the one that pasted text chooses; None to go back."""
        at = text.start
        clickable: dict[int, int] = {}

        def rows(size: Size) -> list[_Row]:
            shown = self._head(text, size.columns)
            for number, item in enumerate(items):
                drawn = self._item(number, item, size.columns, chosen=number == at)
                clickable.update(
                    (len(shown) + row, number) for row in range(len(drawn))
                )
                shown += drawn
            back = t("Ctrl-C quits") if text.is_first else t("Esc goes back")
            ways = t(
                "{arrows} or 1-{last}, Enter", arrows=self._arrows, last=len(items)
            )
            keys = f"{ways} · {back}"
            return [*shown, ("", ""), *_wrapped(keys, size.columns, _DIM)]

        keys = KeyBindings()

        def move(step: int) -> Callable[[KeyPressEvent], None]:
            def handle(_: KeyPressEvent) -> None:
                nonlocal at
                at = (at + step) % len(items)

            return handle

        for key, step in (("up", -1), ("k", -1), ("down", 1), ("j", 1), ("tab", 1)):
            keys.add(key)(move(step))
        keys.add("enter")(lambda event: event.app.exit(result=at))
        for number in range(min(9, len(items))):
            keys.add(str(number + 1))(_exits_with(number))

        def take_paste(event: KeyPressEvent) -> None:
            if (chosen := paste(event.data)) is not None:
                event.app.exit(result=chosen)

        keys.add(Keys.BracketedPaste)(take_paste)
        click, can_go_back = _clicking(clickable), not text.is_first
        return self._run(rows, keys, updates, can_go_back=can_go_back, click=click)

    def search(self, text: MenuText, items: Sequence[MenuItem]) -> str | None:
        """Returns the label of an item, or what was typed; None to go back."""
        typed, at = "", 0
        clickable: dict[int, str] = {}

        def found() -> list[MenuItem]:
            words = typed.lower().split()
            return [
                item
                for item in items
                if all(word in item.label.lower() for word in words)
            ]

        def rows(size: Size) -> list[_Row]:
            matching = found()
            shown = self._head(text, size.columns)
            prompt = (
                f"{self._mark} {typed}"
                if typed
                else f"{self._mark} {t('type to search')}"
            )
            shown += [("" if typed else _DIM, cut(prompt, size.columns)), ("", "")]
            listed = self._listed(matching, at, size)
            clickable.clear()
            clickable.update(enumerate((label for label, _ in listed), len(shown)))
            shown += [row for _, row in listed]
            keys = f"{self._arrows}, Enter · {t('Esc goes back')}"
            return [*shown, ("", ""), *_wrapped(keys, size.columns, _DIM)]

        keys = KeyBindings()

        def move(step: int) -> Callable[[KeyPressEvent], None]:
            def handle(_: KeyPressEvent) -> None:
                nonlocal at
                at = max(0, min(len(found()) - 1, at + step))

            return handle

        def change(text: str) -> None:
            nonlocal typed, at
            typed, at = text, 0

        def accept(event: KeyPressEvent) -> None:
            matching = found()
            if matching:
                event.app.exit(result=matching[at].label)
            elif typed.strip():
                event.app.exit(result=typed.strip())

        steps = (("up", -1), ("down", 1), ("c-p", -1), ("c-n", 1))
        pages = (("pageup", -_MAX_LISTED_ROWS), ("pagedown", _MAX_LISTED_ROWS))
        for key, step in (*steps, *pages):
            keys.add(key)(move(step))
        keys.add("enter")(accept)
        _edits(keys, lambda: typed, change)
        return self._run(rows, keys, can_go_back=True, click=_clicking(clickable))

    def read_line(
        self,
        text: MenuText,
        *,
        secret: bool = False,
        remark: Callable[[str], str] = lambda _: "",
        typed: str = "",
    ) -> str | None:
        """Returns a typed or pasted line; None to go back."""

        def rows(size: Size) -> list[_Row]:
            shown = self._head(text, size.columns)
            content = f"({len(typed)} characters)" if secret and typed else typed
            shown.append(("", cut(f"{self._mark} {content}", size.columns)))
            shown += _wrapped(remark(typed) or " ", size.columns, _DIM)
            keys = f"{t('Enter continues')} · {t('Esc goes back')}"
            return [*shown, ("", ""), *_wrapped(keys, size.columns, _DIM)]

        def change(text: str) -> None:
            nonlocal typed
            typed = text

        keys = KeyBindings()

        def accept(event: KeyPressEvent) -> None:
            if typed.strip():
                event.app.exit(result=typed.strip())

        keys.add("enter")(accept)
        _edits(keys, lambda: typed, change)
        return self._run(rows, keys, can_go_back=True)

    def wait(
        self,
        text: str,
        work: Coroutine[Any, Any, _Found],
        notes: WaitNotes | None = None,
    ) -> _Found | None:
        """Runs the work; None if the person gave up."""
        frames = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" if self._is_utf8 else "|/-\\"
        drawn = 0

        def rows(size: Size) -> list[_Row]:
            nonlocal drawn
            drawn += 1
            line = f"{frames[drawn % len(frames)]} {text} ..."
            above = notes.lines if notes else ()
            return [
                *(row for one in above for row in _wrapped(one, size.columns, "")),
                ("", cut(line, size.columns)),
                *_wrapped(t("Esc goes back"), size.columns, _DIM),
            ]

        app = self._application(rows, KeyBindings(), can_go_back=True, moves=True)

        async def run() -> _Found | None:
            working = asyncio.ensure_future(work)
            working.add_done_callback(lambda _: app.exit() if app.is_running else None)
            try:
                await app.run_async(handle_sigint=False)
            finally:
                is_over = working.done()
                if not is_over:
                    working.cancel()
                    await asyncio.wait({working})
            return working.result() if is_over else None

        return asyncio.run(run())

    def _run(
        self,
        rows: Callable[[Size], list[_Row]],
        keys: KeyBindings,
        updates: Sequence["Future[Any]"] = (),
        *,
        can_go_back: bool,
        click: Callable[[int], object] | None = None,
    ) -> Any:
        app = self._application(rows, keys, can_go_back=can_go_back, click=click)

        async def run() -> Any:
            loop = asyncio.get_running_loop()
            is_open = True

            def redraw(_: "Future[Any]") -> None:
                if is_open:
                    loop.call_soon_threadsafe(app.invalidate)

            for future in updates:
                future.add_done_callback(redraw)
            try:
                return await app.run_async(handle_sigint=False)
            finally:
                is_open = False

        return asyncio.run(run())

    def _application(
        self,
        rows: Callable[[Size], list[_Row]],
        keys: KeyBindings,
        *,
        can_go_back: bool,
        moves: bool = False,
        click: Callable[[int], object] | None = None,
    ) -> "Application[Any]":
        # No query for the cursor's position: a late answer would be read as a key.
        output = ClickOutput(sys.stderr, _window_size, enable_cpr=False)

        def content() -> StyleAndTextTuples:
            size = output.get_size()
            usable = Size(rows=size.rows, columns=max(_MIN_COLUMNS, size.columns - 1))
            drawn: StyleAndTextTuples = []
            for style, text in rows(usable):
                drawn += [(style, text), ("", "\n")]
            return drawn[:-1]

        def leave(event: KeyPressEvent) -> None:
            event.app.exit(exception=KeyboardInterrupt)

        def go_back(event: KeyPressEvent) -> None:
            if can_go_back:
                event.app.exit(result=None)

        keys.add("c-c")(leave)
        keys.add("c-d")(leave)
        keys.add("escape", eager=True)(go_back)

        def clicked(row_from_cursor: int) -> None:
            screen = app.renderer.last_rendered_screen
            if screen is not None and click is not None:
                cursor = screen.get_cursor_position(app.layout.current_window)
                click(cursor.y + row_from_cursor)

        clicks = MouseClicks(lambda: clicked)
        control = FormattedTextControl(content, focusable=True, show_cursor=False)
        app: Application[Any] = Application(
            layout=Layout(Window(control, always_hide_cursor=True)),
            key_bindings=merge_key_bindings([keys, clicks.keys()]),
            mouse_support=click is not None,
            erase_when_done=True,
            output=output,
            input=create_input(sys.stdin),
            color_depth=None if self._colours else ColorDepth.DEPTH_1_BIT,
            refresh_interval=_SPINNER_S if moves else None,
        )
        app.ttimeoutlen = app.timeoutlen = _KEY_TIMEOUT_S
        return app

    def _head(self, text: MenuText, columns: int) -> list[_Row]:
        rows: list[_Row] = []
        if text.problem:
            rows += [*_wrapped(clean(text.problem), columns, _RED), ("", "")]
        rows += _wrapped(clean(text.title), columns, _BOLD)
        if text.intro:
            rows += _wrapped(clean(text.intro), columns, _DIM)
        return [*rows, ("", "")]

    def _item(
        self, number: int, item: MenuItem, columns: int, *, chosen: bool
    ) -> list[_Row]:
        mark = self._mark if chosen else " "
        rows = _wrapped(item.label, columns - 5, _CHOSEN if chosen else "")
        details = _wrapped(clean(item.detail()), columns - 5, _DIM)
        first = (rows[0][0], f"{mark} {number + 1}  {rows[0][1]}")
        rest = [(style, f"     {line}") for style, line in (*rows[1:], *details)]
        return [first, *(row for row in rest if row[1].strip())]

    def _listed(
        self, items: Sequence[MenuItem], at: int, size: Size
    ) -> list[tuple[str, _Row]]:
        """The part of a long list around the chosen item: rows, with the label that a click on them chooses."""
        if not items:
            nothing = t("Nothing matches. Enter takes what you typed.")
            return [("", row) for row in _wrapped(nothing, size.columns, _DIM)]
        room = max(3, min(_MAX_LISTED_ROWS, size.rows - 9))
        start = max(0, min(at - room // 2, len(items) - room))
        shown = items[start : start + room]
        longest = max(width(clean(item.label)) for item in shown)
        rows: list[tuple[str, _Row]] = []
        for index, item in enumerate(shown, start):
            label = pad(clean(item.label), longest)
            mark = self._mark if index == at else " "
            line = f"{mark} {label}  {clean(item.detail())}".rstrip()
            look = _CHOSEN if index == at else ""
            rows.append((item.label, (look, cut(line, size.columns))))
        if len(items) > room:
            rows.append(("", (_DIM, f"  {at + 1:,} of {len(items):,}")))
        return rows


def _window_size() -> Size:
    try:
        found = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError):
        return Size(rows=24, columns=80)
    return Size(rows=found.lines or 24, columns=found.columns or 80)


def _clicking(clickable: Mapping[int, Any]) -> Callable[[int], None]:
    """Returns a handler of clicks: a row chooses what it stands for."""

    def click(row: int) -> None:
        if clickable.get(row, "") != "":
            get_app().exit(result=clickable[row])

    return click


def _exits_with(number: int) -> Callable[[KeyPressEvent], None]:
    return lambda event: event.app.exit(result=number)


def _edits(
    keys: KeyBindings, current: Callable[[], str], change: Callable[[str], None]
) -> None:
    """Adds the keys that type, paste and delete."""

    def type_key(event: KeyPressEvent) -> None:
        if event.data.isprintable():
            change(current() + event.data)

    def paste(event: KeyPressEvent) -> None:
        change(current() + " ".join(event.data.split()))

    keys.add(Keys.Any)(type_key)
    keys.add(Keys.BracketedPaste)(paste)
    keys.add("backspace")(lambda _: change(current()[:-1]))
    keys.add("c-u")(lambda _: change(""))
    keys.add("c-w")(lambda _: change(current().rstrip().rpartition(" ")[0]))


def _wrapped(text: str, columns: int, style: str) -> list[_Row]:
    return [(style, line) for line in wrap(text, columns)]
