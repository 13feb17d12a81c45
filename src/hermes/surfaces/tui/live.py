"""The live screen: the prompt stays at the bottom and can be typed into while text streams in above it.

The row that is still being written is part of the live area; a row that is complete is printed above it for good, so
that the terminal's own scrollback holds the whole conversation.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Self

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import ConditionalContainer, Dimension, HSplit, Layout, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.output.vt100 import Vt100_Output

from hermes.surfaces.terminal.style import Style, stdout_style
from hermes.surfaces.terminal.text import clean, wrap
from hermes.surfaces.terminal.toolline import Marks, marks_for

_MOST_ROWS = 8  # of the input; a longer one scrolls


class LiveScreen:
    """A chat at a terminal that can move its cursor."""

    echoes = False

    def __init__(self) -> None:
        self.style: Style = stdout_style()
        self.marks: Marks = marks_for(sys.stdout.encoding)
        self.on_interrupt: Callable[[], object] = self.leave
        self._row = ""
        self._whole = True
        self._status = ""
        self._label = ""
        self._aside = Document()
        self._typed: asyncio.Queue[str | None] = asyncio.Queue()
        # No questions to the terminal (where is the cursor?): an answer that comes late would be taken for input.
        self._output = Vt100_Output(sys.stdout, _terminal_size, enable_cpr=False)
        self._buffer = Buffer(multiline=True, accept_handler=self._accept)
        self._app: Application[None] = self._build()
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._output.write_raw("\r")  # a prompt may stand here already; this one takes its place
        self._running = asyncio.ensure_future(self._app.run_async(handle_sigint=False))
        self._running.add_done_callback(lambda _: self.leave())  # it also ends when the terminal is gone
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._finish_row()
        if self._app.is_running:
            self._app.exit()
        if self._running is not None:
            await asyncio.wait({self._running})

    @property
    def columns(self) -> int:
        return max(20, _terminal_size().columns)

    def write(self, text: str) -> None:
        self._whole = False
        *whole, rest = (self._row + clean(text)).split("\n")
        rows = [row for line in whole for row in wrap(line, self.columns - 1)]
        *full, self._row = wrap(rest, self.columns - 1) if rest else [""]
        if rest.endswith(" ") and not self._row.endswith(" "):
            self._row += " "  # the next word belongs after it
        self._print([*rows, *full])

    def line(self, text: str = "") -> None:
        begun = ""
        if not self._whole:  # the word that is being written goes on below
            head, space, begun = self._row.rpartition(" ")
            self._row = head + space
        self._finish_row()
        self._row = begun
        self._print(text.split("\n"))

    def whole(self) -> None:
        self._whole = True

    def status(self, text: str) -> None:
        self._status = text
        self._app.invalidate()

    def ask(self, label: str) -> None:
        """What is being typed is put aside while there is a question, and comes back after it."""
        if label and not self._label:
            self._aside = self._buffer.document
            self._buffer.document = Document()
        elif self._label and not label:
            self._buffer.document = self._aside
        self._label = label
        self._app.invalidate()

    async def read(self) -> str | None:
        return await self._typed.get()

    def leave(self) -> None:
        self._typed.put_nowait(None)

    def _print(self, rows: list[str]) -> None:
        """Prints rows above the live area, which is drawn again below them."""
        if not rows:
            self._app.invalidate()
            return
        text = "".join(f"{row}\r\n" for row in rows)
        if self._app.is_running:
            self._app.renderer.erase()
        self._output.write_raw(text)
        self._output.flush()
        self._app.invalidate()

    def _finish_row(self) -> None:
        if self._row:
            row, self._row = self._row, ""
            self._print([row.rstrip()])

    def _accept(self, buffer: Buffer) -> bool:
        text = buffer.text
        if text.strip() or self._label:
            self._typed.put_nowait(text)
        return False

    def _build(self) -> Application[None]:
        row = Window(FormattedTextControl(lambda: self._row), height=1)
        status = Window(FormattedTextControl(lambda: ANSI(self.style.dim(self._status))), height=1)
        entry = Window(
            BufferControl(self._buffer, input_processors=[BeforeInput(self._prompt)]),
            wrap_lines=True,
            height=Dimension(min=1, max=_MOST_ROWS),
            dont_extend_height=True,
        )
        parts = HSplit(
            [
                ConditionalContainer(row, Condition(lambda: bool(self._row))),
                ConditionalContainer(status, Condition(lambda: bool(self._status))),
                entry,
            ]
        )
        app: Application[None] = Application(
            Layout(parts, focused_element=entry),
            key_bindings=self._keys(),
            output=self._output,
            erase_when_done=True,
            max_render_postpone_time=0,
        )
        app.ttimeoutlen = 0.05
        return app

    def _prompt(self) -> AnyFormattedText:
        if self._label:
            return ANSI(f"{self.style.bold(self._label)} {self.marks.prompt}")
        return ANSI(self.style.bold(self.marks.prompt))

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("enter")
        def _(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if buffer.document.text_before_cursor.endswith("\\"):
                buffer.delete_before_cursor()
                buffer.insert_text("\n")
            else:
                buffer.validate_and_handle()

        @keys.add("escape", "enter")
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        @keys.add("c-c")
        @keys.add(Keys.SIGINT)
        def _(event: KeyPressEvent) -> None:
            if event.current_buffer.text:
                event.current_buffer.reset()
            else:
                self.on_interrupt()

        @keys.add("c-d", filter=Condition(lambda: not self._buffer.text))
        def _(_event: KeyPressEvent) -> None:
            self.leave()

        return keys


def _terminal_size() -> Size:
    try:
        found = os.get_terminal_size(sys.stdout.fileno())
    except OSError:  # the terminal is gone
        return Size(rows=24, columns=80)
    return Size(rows=found.lines or 24, columns=found.columns or 80)
