"""The live screen: the input stays at the bottom and can be edited while replies stream in above
it.

Only unfinished parts are redrawn: the block being written, the running calls, the input and the
status line. Finished parts are printed above once, so that the terminal's scrollback holds the
whole conversation.
"""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.data_structures import Size
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText, StyleAndTextTuples
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import ConditionalKeyBindings, merge_key_bindings
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.layout import (
    ConditionalContainer,
    Dimension,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.processors import BeforeInput

from hermes.errors import HermesError, for_reader
from hermes.primitives.tasks import BackgroundTasks
from hermes.surfaces.terminal.external_editor import edit_text
from hermes.surfaces.terminal.question_menu import QuestionMenu
from hermes.surfaces.terminal.style import Style, stdout_style
from hermes.surfaces.terminal.styled_text import DIM, Row, painted
from hermes.surfaces.terminal.text import cut, one_line
from hermes.surfaces.terminal.tool_line import Marks, marks_for
from hermes.surfaces.tui.completion import Skills
from hermes.surfaces.tui.direct_drawing import replace_top_rows
from hermes.surfaces.tui.frame_output import FrameOutput, RedrawThrottle, terminal_size
from hermes.surfaces.tui.input_box import InputBox
from hermes.surfaces.tui.lexer_loader import LexerLoader
from hermes.surfaces.tui.menu_mouse import MenuMouse
from hermes.surfaces.tui.menu_rows import choice_at, menu_rows
from hermes.surfaces.tui.notifications import focus_keys
from hermes.surfaces.tui.overlays.overlay import Overlay
from hermes.surfaces.tui.overlays.overlay_window import OverlayWindow
from hermes.surfaces.tui.overlays.picker import Picker, PickerItem, PickerText
from hermes.surfaces.tui.plain_screen import TypedInput
from hermes.surfaces.tui.toolkit_style import toolkit_style
from hermes.text.translation import translator

if TYPE_CHECKING:
    from hermes.surfaces.terminal.markdown.render import Markdown

t = translator(__name__)

_MAX_INPUT_ROWS = 8  # a longer input scrolls
_MAX_MENU_ROWS = 6


class _App(Application[None]):
    """A prompt_toolkit application that leaves resizing to the screen."""

    erase: Callable[[], None]

    # pyrefly: ignore[missing-override-decorator]
    def _on_resize(self) -> None:
        self.erase()
        self._redraw()


class LiveScreen:
    """The screen of a chat at a terminal that can move its cursor."""

    echoes = False
    animates = True

    def __init__(self, entry: InputBox) -> None:
        self.style: Style = stdout_style()
        self.marks: Marks = marks_for(sys.stdout.encoding)
        self.on_gone: Callable[[], object] = lambda: None
        self.on_focus: Callable[[bool], object] = lambda _: None
        """Called when the window gets or loses the focus, if the terminal reports that."""
        self._entry = entry
        self._markdown: Markdown | None = None
        self._lexers = LexerLoader(self._draw_held)
        self._unread: list[str] = []  # pieces of the reply that are not drawn yet
        self._tail: Sequence[Row] = ()
        self._pace = RedrawThrottle()
        self._later: asyncio.Handle | None = None
        self._framed: list[Row] = []  # the tail's rows on the screen
        self._rows: Sequence[Row] = ()
        self._status = ""
        self._label = ""
        self._typed: asyncio.Queue[TypedInput | None] = asyncio.Queue()
        self._output = FrameOutput(sys.stdout, self._gone)
        self._overlay = OverlayWindow(self._fragments)
        self._covered_lines: list[str] = []  # printed while an overlay is open
        self._mouse = MenuMouse(entry.menu, self._overlay, self._choice_at)
        self._question = _shown(self._question_menu, lambda: entry.menu.is_open)
        self._app = self._build()
        self._app.erase = self._erase
        self._app.before_render += self._adapt
        self._app.after_render += self._drawn
        self._running: asyncio.Task[None] | None = None
        entry.send = self._typed.put_nowait
        entry.leave = self.leave
        entry.open_editor = lambda: self._tasks.start(self._edit_input())
        entry.search_history = lambda: self._tasks.start(self._search_history())
        self._tasks = BackgroundTasks("editing the input")
        entry.menu.send = lambda chosen: self._typed.put_nowait(
            TypedInput("", chosen=chosen)
        )
        entry.menu.redraw = self._app.invalidate

    @property
    def on_interrupt(self) -> Callable[[], object]:
        """Sets what Ctrl-C does."""
        return self._entry.interrupt

    @on_interrupt.setter
    def on_interrupt(self, action: Callable[[], object]) -> None:
        self._entry.interrupt = action

    def on_keys(
        self,
        *,
        stop: Callable[[], object],
        cycle_mode: Callable[[], object],
        touched: Callable[[], object],
        skills: Skills,
    ) -> None:
        """Sets the handler of Esc in an empty input, of Shift-Tab, the handler of every change, and the source of
        skills.
        """
        self._entry.cycle_mode = cycle_mode
        self._entry.stop, self._entry.touched, self._entry.skills = (
            stop,
            touched,
            skills,
        )

    def _focused(self, is_focused: bool) -> None:
        self.on_focus(is_focused)

    def send(self, sequence: str) -> None:
        """Writes a control sequence that draws nothing."""
        self._output.write_raw(sequence)
        self._output.flush()

    async def __aenter__(self) -> Self:
        self._output.write_raw("\r")  # replaces a prompt that `chat` printed
        self._running = asyncio.ensure_future(self._app.run_async(handle_sigint=False))
        self._running.add_done_callback(
            lambda _: self.leave()
        )  # it also ends when the terminal goes away
        return self

    def recover(self) -> bool:
        """Restores unsent input of an earlier chat."""
        self._entry.say = self.line
        return self._entry.recover()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end_reply()
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
        self._unread.append(text)
        if self._later is None:  # drawn together with other pieces of this moment
            self._later = asyncio.get_running_loop().call_soon(self._draw_text)

    async def warm(self) -> None:
        """Loads what the first reply needs, while the person types."""
        await self._lexers.warm()

    def _draw_held(self) -> None:
        """Draws code that was left without colours until its lexer was loaded."""
        if self._markdown is not None:
            self.write("")

    def end_reply(self) -> None:
        rows = self._read_text(self.columns - 1)
        if self._markdown is not None:
            rows += self._markdown.end(self.columns - 1)
        self._markdown, self._tail = None, ()
        self._print(rows)

    def line(self, text: str = "") -> None:
        if self._unread:
            self._print(self._read_text(self.columns - 1))
            self._lay_out(terminal_size())
        self._emit(text.split("\n"))

    def live(self, rows: Sequence[Row]) -> None:
        if list(rows) != list(self._rows):
            self._rows = rows
            self._app.invalidate()

    def status(self, text: str) -> None:
        if text != self._status:
            self._status = text
            self._app.invalidate()

    def show_prompt(self) -> None:
        """Does nothing: the prompt is always visible."""

    def ask(self, label: str, *, keys: str = "") -> None:
        """Shows a question's label. The input being typed is set aside and comes back afterwards."""
        self._entry.instant_keys = keys
        if label and not self._label:
            self._entry.set_aside()
        elif self._label and not label:
            self._entry.restore()
        self._label = label
        self._app.invalidate()

    def menu(self, menu: QuestionMenu | None) -> None:
        """Shows the menu of a question above the input; None removes it."""
        self._entry.menu.show(menu)
        self._app.invalidate()

    @property
    def last_key_at(self) -> float:
        return self._entry.last_key_at

    def insert(self, text: str) -> None:
        """Inserts a text into the input, where the cursor is."""
        self._entry.buffer.insert_text(text)

    def suggest(self, text: str) -> None:
        self._entry.suggest(text)

    @asynccontextmanager
    async def suspended_for_program(self) -> AsyncIterator[None]:
        """Leaves the terminal to another program for a while, Ctrl-C included."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, lambda: None)
        try:
            async with in_terminal():
                yield
        finally:
            loop.add_signal_handler(signal.SIGINT, self._entry.interrupt)

    async def edit(self, text: str, suffix: str) -> str:
        """Returns a text as the person left it in their editor."""
        async with self.suspended_for_program():
            return await asyncio.to_thread(edit_text, text, suffix)

    async def show(self, overlay: Overlay) -> None:
        """Shows a list or a text in the whole window until the person closes it. What is printed meanwhile follows."""
        await self._overlay.run(self._app, overlay)
        lines, self._covered_lines = self._covered_lines, list[str]()
        if lines:
            self._emit(lines)
        self._draw_text()

    def use_keys(self, keys: str) -> None:
        """Edits the input as `vim` or as `emacs` does."""
        self._app.editing_mode = EditingMode.VI if keys == "vim" else EditingMode.EMACS
        self._app.invalidate()

    def type_early(self, text: str) -> None:
        """Types what was typed before the screen was there."""
        keys: list[KeyPress] = []
        Vt100Parser(keys.append).feed_and_flush(text)
        store_typeahead(self._app.input, keys)

    def use_mouse(self, *, on: bool) -> None:
        """Lets clicks choose in menus and lists, or leaves the mouse to the terminal."""
        self._mouse.is_wanted = on

    def switch_keys(self) -> str:
        """Switches between the keys of vim and of emacs. Returns the name of those in use."""
        is_vim = self._app.editing_mode == EditingMode.VI
        self.use_keys("emacs" if is_vim else "vim")
        return "emacs" if is_vim else "vim"

    async def _edit_input(self) -> None:
        """Opens the input in the person's editor."""
        try:
            text = await self.edit(self._entry.whole_text, ".md")
        except HermesError as error:
            self.line(for_reader(error))
        else:
            self._entry.replace(text.rstrip("\n"))

    async def _search_history(self) -> None:
        """Offers earlier inputs and puts the chosen one into the input."""
        items = [
            PickerItem(text, one_line(text), preview=lambda text=text: text)
            for text in self._entry.earlier_inputs()
        ]
        text = PickerText(
            title=t("Earlier messages"), nothing=t("No messages yet."), enter="edit"
        )
        picker = Picker(text, items, self.marks)
        await self.show(picker)
        if picker.picked is not None:
            self._entry.replace(picker.picked.item.key)

    async def read(self) -> TypedInput | None:
        return await self._typed.get()

    def leave(self) -> None:
        self._overlay.end()
        self._typed.put_nowait(None)

    def _gone(self) -> None:
        self.on_gone()

    def _adapt(self, _: object) -> None:
        """Prepares a frame. The window may have become narrower without a signal so far."""
        if terminal_size().columns < self._output.columns:
            self._erase()
        self._framed = self._visible_tail(terminal_size())

    def _draw_text(self) -> None:
        """Draws what was written since the last time. Throttled when it comes fast or drawing is slow."""
        self._later = None
        if not self._unread or self._overlay.is_open:
            return
        if (wait := self._pace.wait) > 0:
            self._later = asyncio.get_running_loop().call_later(wait, self._draw_text)
            return
        with self._pace:
            size = terminal_size()
            rows = self._read_text(max(20, size.columns) - 1)
            self._lay_out(size)
            if not self._draw_over(rows, size):
                self._print(rows)
                self._app.invalidate()

    def _read_text(self, columns: int) -> list[Row]:
        """Renders what was written since the last time. Returns the rows that are final."""
        if not self._unread:
            return []
        text = "".join(self._unread)
        self._unread.clear()
        if self._markdown is None:
            from hermes.surfaces.terminal.markdown.render import Markdown

            self._markdown = Markdown(
                colours=self.style.enabled,
                ascii_only=self.marks.bar == "|",
                is_loaded=self._lexers.is_loaded,
            )
        return self._markdown.feed(text, columns)

    def _lay_out(self, size: Size) -> None:
        """Renders the text that is not final yet."""
        if self._markdown is not None:
            self._tail = self._markdown.rest(max(20, size.columns) - 1, size.rows)

    def _draw_over(self, final: Sequence[Row], size: Size) -> bool:
        """Draws new final rows and the rest of the text in place. Returns False if a whole frame is needed."""
        if size.columns != self._output.columns or self._output.held:
            return False
        tail = self._visible_tail(size)
        is_drawn = replace_top_rows(
            self._app, self._framed, [*final, *tail],
            printed=len(final), size=size, style=self.style,
        )  # fmt: skip
        if is_drawn:
            self._framed = tail
            self._output.flush()
        return is_drawn

    def _drawn(self, _: object) -> None:
        self._output.release(self.columns)
        self._mouse.note_frame(self._app, self._question.content)

    def _print(self, rows: Sequence[Row]) -> None:
        if rows:
            self._emit([painted(row, self.style) for row in rows])

    def _emit(self, lines: Sequence[str]) -> None:
        """Prints lines above the live area and redraws the area, in one write."""
        if self._overlay.is_open:
            self._covered_lines += lines
            return
        if self._app.is_running:
            self._output.hold()
            self._erase()
        self._output.write_raw("".join(f"{line}\r\n" for line in lines))
        self._output.flush()
        self._app.invalidate()

    def _erase(self) -> None:
        """Erases the live area, also where the terminal has rewrapped its rows for a narrower window."""
        screen = self._app.renderer.last_rendered_screen
        columns = terminal_size().columns
        if (
            screen is None
            or self._overlay.is_open
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
                self._question,
                entry,
                _shown(
                    self._menu, lambda: self._entry.buffer.complete_state is not None
                ),
                _shown(
                    self._status_text,
                    lambda: (
                        bool(self._status) and self._entry.buffer.complete_state is None
                    ),
                ),
            ]
        )
        is_covered = Condition(lambda: self._overlay.is_open)
        whole = HSplit(
            [
                ConditionalContainer(self._overlay.window, is_covered),
                ConditionalContainer(parts, ~is_covered),
            ]
        )
        app = _App(
            Layout(whole, focused_element=entry),
            key_bindings=merge_key_bindings(
                [
                    ConditionalKeyBindings(self._entry.keys(), ~is_covered),
                    focus_keys(self._focused),
                    self._mouse.keys,
                ]
            ),
            output=self._output,
            erase_when_done=True,
            max_render_postpone_time=0,
            mouse_support=Condition(self._mouse.is_on),
        )
        app.ttimeoutlen = 0.05
        app.timeoutlen = (
            0.2  # after this, Esc is a key of its own and not the start of a sequence
        )
        return app

    def _tail_text(self) -> AnyFormattedText:
        return self._fragments(self._framed)

    def _visible_tail(self, size: Size) -> list[Row]:
        """Returns the end of the text being written, as many rows as fit."""
        room = (
            size.rows
            - len(self._rows)
            - len(self._question_rows())
            - min(self._entry.buffer.document.line_count, _MAX_INPUT_ROWS)
            - 3
        )
        return list(self._tail[-max(room, 1) :])

    def _fragments(self, rows: Sequence[Row]) -> StyleAndTextTuples:
        found: StyleAndTextTuples = []
        for number, row in enumerate(rows):
            found += [("", "\n")] if number else []
            for text, look in row:
                sgr = self.style.theme.sgr(look) if self.style.enabled else ""
                found.append((toolkit_style(sgr), text))
        return found

    def _question_rows(self) -> Sequence[Row]:
        menu = self._entry.menu.menu
        if menu is None or not self._entry.menu.is_open:
            return ()
        return menu_rows(menu, self.columns - 1, self.marks)

    def _choice_at(self, row: int) -> int | None:
        menu = self._entry.menu.menu
        return (
            choice_at(menu, row, self.columns - 1, self.marks)
            if menu is not None
            else None
        )

    def _question_menu(self) -> AnyFormattedText:
        return self._fragments(self._question_rows())

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

    def _status_text(self) -> AnyFormattedText:
        return self._fragments([((cut(self._status, self.columns - 1), DIM),)])

    def _prompt(self) -> AnyFormattedText:
        if words := self._entry.menu.prompt:
            return ANSI(f"{self.style.bold(words)} {self.marks.prompt}")
        if (
            self._app.editing_mode == EditingMode.VI
            and self._app.vi_state.input_mode == InputMode.NAVIGATION
        ):
            return ANSI(self.style.bold(f"N{self.marks.prompt}"))
        if self._label:
            return ANSI(f"{self.style.bold(self._label)} {self.marks.prompt}")
        return ANSI(self.style.bold(self.marks.prompt))


def _shown(
    text: Callable[[], AnyFormattedText], when: Callable[[], bool]
) -> ConditionalContainer:
    """Builds a container that is visible only while it has content."""
    window = Window(
        FormattedTextControl(text), wrap_lines=True, dont_extend_height=True
    )
    return ConditionalContainer(window, Condition(when))
