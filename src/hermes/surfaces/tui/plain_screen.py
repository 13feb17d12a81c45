"""What a chat needs of a screen, and the plain one: lines out, lines in, for terminals that can do no more."""

import asyncio
import signal
import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol, Self

from hermes.surfaces.terminal.line_input import LineReader
from hermes.surfaces.terminal.style import Style, stdout_style, terminal_width
from hermes.surfaces.terminal.text import clean
from hermes.surfaces.terminal.tool_line import Marks, marks_for
from hermes.surfaces.tui.styled_text import Row
from hermes.surfaces.tui.typed_input import TypedInput


class ChatScreen(Protocol):
    """Where a chat takes place."""

    style: Style
    marks: Marks
    echoes: bool
    """Whether what is typed stays on the screen by itself."""
    animates: bool
    """Whether what goes on now can be drawn again and again."""

    @property
    def columns(self) -> int:
        """How wide it is now."""
        ...

    def write(self, text: str) -> None:
        """Shows more of the reply that is being written, at once; it need not end with a line."""
        ...

    def whole(self) -> None:
        """The reply that was being written is complete."""
        ...

    def line(self, text: str = "") -> None:
        """Shows whole lines of our own making."""
        ...

    def live(self, rows: Sequence[Row]) -> None:
        """Shows what goes on now, in place of what it showed before."""
        ...

    def foot(self, text: str) -> None:
        """The status line."""
        ...

    def settle(self) -> None:
        """Nothing goes on any more: it is the person's turn."""
        ...

    def ask(self, label: str, *, keys: str = "") -> None:
        """Asks for a line under this label; empty for the usual prompt. One of `keys` counts without Enter, where the
        screen can do that."""
        ...

    def offer(self, text: str) -> None:
        """Puts words into the input, to be changed and sent again; nothing that is being typed is lost."""
        ...

    async def read(self) -> TypedInput | None:
        """The next thing that was typed; None when the person is gone."""
        ...

    def leave(self) -> None:
        """Lets `read` return None."""
        ...


class PlainScreen:
    """A terminal that only prints. It edits lines by itself, and shows the prompt when nothing is being written."""

    echoes = True
    animates = False

    def __init__(self) -> None:
        self.style = stdout_style()
        self.marks = marks_for(sys.stdout.encoding)
        self.on_interrupt: Callable[[], object] = self.leave
        self._label = ""
        self._at_start = True
        self._prompted = False
        self._lines = LineReader()

    async def __aenter__(self) -> Self:
        self._lines.__enter__()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._interrupted)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
        self._lines.__exit__(kind, error, trace)

    @property
    def columns(self) -> int:
        return max(20, terminal_width())

    def write(self, text: str) -> None:
        self._leave_prompt()
        sys.stdout.write(clean(text))
        sys.stdout.flush()
        self._at_start = text.endswith("\n")

    def whole(self) -> None:
        """What is printed stays where it is, in any case."""

    def line(self, text: str = "") -> None:
        self._leave_prompt()
        if not self._at_start:
            print()
        print(text, flush=True)
        self._at_start = True

    def live(self, rows: Sequence[Row]) -> None:
        """Nothing that would have to be taken back is printed."""

    def foot(self, text: str) -> None:
        """There is none; `/status` tells the same."""

    def settle(self) -> None:
        if not self._label:
            self._prompt()

    def ask(self, label: str, *, keys: str = "") -> None:  # noqa: ARG002 - lines are all it gets
        self._label = label
        if label:
            self._prompt()

    def offer(self, text: str) -> None:
        """The terminal edits its lines itself."""

    async def read(self) -> TypedInput | None:
        line = await self._lines.read()
        self._prompted, self._at_start = False, True
        while line is not None and line.text.endswith("\\"):
            more = await self._lines.read()
            line = line._replace(
                text=line.text[:-1] + "\n" + (more.text if more else "")
            )
        return None if line is None else TypedInput(line.text, at=line.at)

    def leave(self) -> None:
        self._lines.end()

    def _interrupted(self) -> None:
        self.on_interrupt()

    def _prompt(self) -> None:
        if not self._at_start:
            print()
            self._at_start = True
        if not self._prompted:
            print(f"{self._label} {self.marks.prompt}".lstrip(), end="", flush=True)
            self._prompted = True

    def _leave_prompt(self) -> None:
        if self._prompted:
            print()
            self._prompted = False
