"""The live screen: the input stays at the bottom and can be typed into while replies stream in above it.

Only what is unfinished is drawn again: the block that is being written, the calls that run, the input, the status
line. What is finished is printed above for good, so that the terminal's own scrollback holds the whole conversation.
"""

import asyncio
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from prompt_toolkit.application import Application
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText, StyleAndTextTuples
from prompt_toolkit.layout import (
    ConditionalContainer,
    Dimension,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.layout.screen import Char

from hermes.surfaces.terminal.style import Style, stdout_style
from hermes.surfaces.terminal.text import cut, width
from hermes.surfaces.terminal.tool_line import Marks, marks_for
from hermes.surfaces.tui.completion import Skills
from hermes.surfaces.tui.frame_output import FrameOutput, terminal_size
from hermes.surfaces.tui.input_box import InputBox
from hermes.surfaces.tui.redraw_throttle import RedrawThrottle
from hermes.surfaces.tui.styled_text import DIM, Row, painted, plain
from hermes.surfaces.tui.typed_input import TypedInput

if TYPE_CHECKING:
    from hermes.surfaces.tui.markdown.render import Markdown

_MAX_INPUT_ROWS = 8  # a longer input scrolls
_MAX_MENU_ROWS = 6
_DIRECT_ROWS = 3  # rows that are drawn without a frame
_STALE, _BLANK = (
    Char("?", "reverse blink"),
    Char(" ", ""),
)  # a cell that no frame has, and one of every frame
_LOOKS = {
    "1": "bold",
    "2": "dim",
    "3": "italic",
    "4": "underline",
    "9": "strike",
    "31": "ansired",
    "32": "ansigreen",
    "33": "ansiyellow",
    "35": "ansimagenta",
    "36": "ansicyan",
}


class _App(Application[None]):
    """Leaves it to the screen what to do when the window's size changes."""

    erase: Callable[[], None]

    # pyrefly: ignore[missing-override-decorator]
    def _on_resize(self) -> None:
        self.erase()
        self._redraw()


class LiveScreen:
    """A chat at a terminal that can move its cursor."""

    echoes = False
    animates = True

    def __init__(self, entry: InputBox) -> None:
        self.style: Style = stdout_style()
        self.marks: Marks = marks_for(sys.stdout.encoding)
        self.on_gone: Callable[[], object] = lambda: None
        self._entry = entry
        self._markdown: Markdown | None = None
        self._tail: Sequence[Row] = ()
        self._pace = RedrawThrottle()
        self._later: asyncio.Handle | None = None
        self._framed: list[Row] = []  # of the tail, as they are on the screen
        self._rows: Sequence[Row] = ()
        self._foot = ""
        self._label = ""
        self._typed: asyncio.Queue[TypedInput | None] = asyncio.Queue()
        self._output = FrameOutput(sys.stdout, self._gone)
        self._app = self._build()
        self._app.erase = self._erase
        self._app.before_render += self._adapt
        self._app.after_render += self._drawn
        self._running: asyncio.Task[None] | None = None
        entry.send = self._typed.put_nowait
        entry.leave = self.leave

    @property
    def on_interrupt(self) -> Callable[[], object]:
        """What Ctrl-C does."""
        return self._entry.interrupt

    @on_interrupt.setter
    def on_interrupt(self, action: Callable[[], object]) -> None:
        self._entry.interrupt = action

    def on_keys(
        self,
        *,
        stop: Callable[[], object],
        touched: Callable[[], object],
        skills: Skills,
    ) -> None:
        """What Esc on an empty input does, who is told that something is typed, and which skills are commands."""
        self._entry.stop, self._entry.touched, self._entry.skills = (
            stop,
            touched,
            skills,
        )

    async def __aenter__(self) -> Self:
        self._output.write_raw(
            "\r"
        )  # a prompt may stand here already; this one takes its place
        self._running = asyncio.ensure_future(self._app.run_async(handle_sigint=False))
        self._running.add_done_callback(
            lambda _: self.leave()
        )  # it also ends when the terminal is gone
        return self

    def recover(self) -> bool:
        """Brings back what was typed and not sent before."""
        self._entry.say = self.line
        return self._entry.recover()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.whole()
        self._entry.close()
        if self._app.is_running:
            self._app.exit()
        if self._running is not None:
            await asyncio.wait({self._running})
        self._output.release(self.columns)

    @property
    def columns(self) -> int:
        return max(20, terminal_size().columns)

    def write(self, text: str) -> None:
        if self._markdown is None:
            from hermes.surfaces.tui.markdown.render import Markdown

            self._markdown = Markdown(
                colours=self.style.enabled, ascii_only=self.marks.bar == "|"
            )
        rows = self._markdown.feed(text, self.columns - 1)
        self._print(rows)
        self._pace.ask(
            now=bool(rows)
        )  # what is printed for good must not be shown below as well
        if (
            not rows and self._later is None
        ):  # with the pieces that come at the same moment
            self._later = asyncio.get_running_loop().call_soon(self._draw_piece)

    def whole(self) -> None:
        if self._markdown is None:
            return
        rows, self._markdown, self._tail = (
            self._markdown.end(self.columns - 1),
            None,
            (),
        )
        self._pace.forget()
        self._print(rows)

    def line(self, text: str = "") -> None:
        self._emit(text.split("\n"))

    def live(self, rows: Sequence[Row]) -> None:
        if list(rows) != list(self._rows):
            self._rows = rows
            self._app.invalidate()

    def foot(self, text: str) -> None:
        if text != self._foot:
            self._foot = text
            self._app.invalidate()

    def settle(self) -> None:
        """The prompt is always there."""

    def ask(self, label: str, *, keys: str = "") -> None:
        """What is being typed is put aside while there is a question, and comes back after it."""
        self._entry.hot = keys
        if label and not self._label:
            self._entry.put_aside()
        elif self._label and not label:
            self._entry.bring_back()
        self._label = label
        self._app.invalidate()

    def offer(self, text: str) -> None:
        self._entry.offer(text)

    async def read(self) -> TypedInput | None:
        return await self._typed.get()

    def leave(self) -> None:
        self._typed.put_nowait(None)

    def _gone(self) -> None:
        self.on_gone()

    def _adapt(self, _: object) -> None:
        """Before a frame. The window may have become narrower a moment ago, and nobody has been told yet."""
        if terminal_size().columns < self._output.columns:
            self._erase()
        if self._markdown is not None and self._pace.is_wanted and self._pace.wait <= 0:
            self._lay_out(self._markdown)
        self._framed = self._visible_tail()

    def _draw_piece(self) -> None:
        """Shows what has been written since: only the rows that are another now, and no whole frame if that will do.
        Less often when it takes long."""
        self._later = None
        if self._markdown is None or not self._pace.is_wanted:
            return
        if (wait := self._pace.wait) > 0:
            self._later = asyncio.get_running_loop().call_later(wait, self._draw_piece)
            return
        self._lay_out(self._markdown)
        if not self._draw_over(self._visible_tail()):
            self._app.invalidate()

    def _lay_out(self, markdown: "Markdown") -> None:
        with self._pace:
            self._tail = markdown.rest(self.columns - 1, terminal_size().rows)

    def _draw_over(self, rows: list[Row]) -> bool:
        """Draws the rows of the tail that differ from those on the screen; False when that takes a frame."""
        screen = self._app.renderer.last_rendered_screen
        changed = [
            number
            for number, (old, new) in enumerate(zip(self._framed, rows, strict=False))
            if old != new
        ]
        is_same_place = (
            screen is not None
            and terminal_size().columns == self._output.columns
            and not self._output.held
        )
        if (
            not is_same_place
            or len(rows) != len(self._framed)
            or len(changed) > _DIRECT_ROWS
            or screen is None
        ):
            return False
        cursor = screen.get_cursor_position(self._app.layout.current_window)
        back = f"\r\x1b[{cursor.x}C" if cursor.x else "\r"
        for number in changed:
            text, up = (
                painted(rows[number], enabled=self.style.enabled),
                cursor.y - number,
            )
            self._output.write_raw(f"\x1b[{up}A\r{text}\x1b[K\x1b[{up}B{back}")
            # The next frame is compared with the last one: every cell of this row differs from it now.
            cells = dict.fromkeys(range(width(plain(rows[number]))), _STALE)
            screen.data_buffer[number] = defaultdict(lambda: _BLANK, cells)
        self._framed = rows
        self._output.flush()
        return True

    def _drawn(self, _: object) -> None:
        self._output.release(self.columns)

    def _print(self, rows: Sequence[Row]) -> None:
        if rows:
            self._emit([painted(row, enabled=self.style.enabled) for row in rows])

    def _emit(self, lines: Sequence[str]) -> None:
        """Prints lines above the live area, which is drawn again below them, all in one go."""
        if self._app.is_running:
            self._output.hold()
            self._erase()
        self._output.write_raw("".join(f"{line}\r\n" for line in lines))
        self._output.flush()
        self._app.invalidate()

    def _erase(self) -> None:
        """Takes the live area away, also where the terminal has broken its rows to fit a narrower window."""
        screen = self._app.renderer.last_rendered_screen
        columns = terminal_size().columns
        if (
            screen is None
            or columns >= self._output.columns
            or not self._output.reflows
        ):
            self._app.renderer.erase(leave_alternate_screen=False)
            return
        at = screen.get_cursor_position(self._app.layout.current_window)
        above = at.x // columns
        for number in range(at.y):
            cells = screen.data_buffer[number].items()
            used = max(
                (place + char.width for place, char in cells if char.char.strip()),
                default=0,
            )
            above += max(1, -(-used // columns))
        self._output.write_raw("\r")
        self._output.cursor_up(above)
        self._output.erase_down()
        self._app.renderer.reset(leave_alternate_screen=False)

    def _build(self) -> _App:
        entry = Window(
            BufferControl(
                self._entry.buffer, input_processors=[BeforeInput(self._prompt)]
            ),
            wrap_lines=True,
            height=Dimension(min=1, max=_MAX_INPUT_ROWS),
            dont_extend_height=True,
        )
        parts = HSplit(
            [
                _shown(self._tail_text, lambda: bool(self._framed)),
                _shown(lambda: self._fragments(self._rows), lambda: bool(self._rows)),
                entry,
                _shown(
                    self._menu, lambda: self._entry.buffer.complete_state is not None
                ),
                _shown(
                    self._foot_text,
                    lambda: (
                        bool(self._foot) and self._entry.buffer.complete_state is None
                    ),
                ),
            ]
        )
        app = _App(
            Layout(parts, focused_element=entry),
            key_bindings=self._entry.keys(),
            output=self._output,
            erase_when_done=True,
            max_render_postpone_time=0,
        )
        app.ttimeoutlen = 0.05
        app.timeoutlen = (
            0.2  # after which Esc is a key of its own, and not the beginning of another
        )
        return app

    def _tail_text(self) -> AnyFormattedText:
        return self._fragments(self._framed)

    def _visible_tail(self) -> list[Row]:
        """The end of what is being written, as much as there is room for."""
        room = (
            terminal_size().rows
            - len(self._rows)
            - min(self._entry.buffer.document.line_count, _MAX_INPUT_ROWS)
            - 3
        )
        return list(self._tail[-max(room, 1) :])

    def _fragments(self, rows: Sequence[Row]) -> StyleAndTextTuples:
        found: StyleAndTextTuples = []
        for number, row in enumerate(rows):
            found += [("", "\n")] if number else []
            for text, look in row:
                names = (
                    [_LOOKS[code] for code in look.split(";") if code]
                    if self.style.enabled
                    else []
                )
                found.append((" ".join(names), text))
        return found

    def _menu(self) -> AnyFormattedText:
        state = self._entry.buffer.complete_state
        if state is None:
            return []
        chosen = state.complete_index
        first = max(
            0,
            min(
                (chosen or 0) - _MAX_MENU_ROWS // 2,
                len(state.completions) - _MAX_MENU_ROWS,
            ),
        )
        lines: StyleAndTextTuples = []
        for number, completion in enumerate(
            state.completions[first : first + _MAX_MENU_ROWS], first
        ):
            mark = self.marks.prompt if number == chosen else "  "
            text = f"{mark}{completion.display_text:<14} {completion.display_meta_text}".rstrip()
            look = "bold" if number == chosen else "dim"
            lines += [("", "\n")] if lines else []
            lines.append(
                (look if self.style.enabled else "", cut(text, self.columns - 1))
            )
        return lines

    def _foot_text(self) -> AnyFormattedText:
        return self._fragments([((cut(self._foot, self.columns - 1), DIM),)])

    def _prompt(self) -> AnyFormattedText:
        if self._label:
            return ANSI(f"{self.style.bold(self._label)} {self.marks.prompt}")
        return ANSI(self.style.bold(self.marks.prompt))


def _shown(
    text: Callable[[], AnyFormattedText], when: Callable[[], bool]
) -> ConditionalContainer:
    """Rows that are there only when there is something to show."""
    window = Window(
        FormattedTextControl(text), wrap_lines=True, dont_extend_height=True
    )
    return ConditionalContainer(window, Condition(when))
