"""The screen interface of a chat, and the plain screen for terminals that only print lines."""

import asyncio
import signal
import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol, Self

import msgspec

from hermes.errors import HermesError
from hermes.schema.messages import Image
from hermes.surfaces.terminal.approval import menu_label, menu_lines
from hermes.surfaces.terminal.line_input import LineReader
from hermes.surfaces.terminal.question_menu import Act, PersonAnswer, QuestionMenu
from hermes.surfaces.terminal.spoken_text import SpokenText
from hermes.surfaces.terminal.style import Style, stdout_style, terminal_width
from hermes.surfaces.terminal.styled_text import Row
from hermes.surfaces.terminal.text import clean
from hermes.surfaces.terminal.tool_line import (
    LINEAR_MARKS,
    Marks,
    marks_of_this_run,
)
from hermes.text.translation import translator

t = translator(__name__)


class TypedInput(msgspec.Struct, frozen=True):
    """One complete message or command."""

    text: str
    images: tuple[Image, ...] = ()
    steers: bool = False
    at: float | None = None
    """When it was sent, in the event loop's time; None for lines from a pipe."""
    chosen: PersonAnswer | Act | None = None
    """What was chosen in the menu of a question, instead of a text."""
    by_key: bool = False
    """Whether a key sent it, so that nothing was typed that could be shown."""


class ChatScreen(Protocol):
    """What a chat needs from a screen."""

    style: Style
    marks: Marks
    echoes: bool
    """Whether typed input stays visible without being printed again."""
    animates: bool
    """Whether the live area can be redrawn."""

    @property
    def columns(self) -> int:
        """The current width."""
        ...

    def write(self, text: str) -> None:
        """Shows more of the reply at once. The text need not end with a newline."""
        ...

    def end_reply(self) -> None:
        """Marks the reply as complete."""
        ...

    def line(self, text: str = "") -> None:
        """Prints whole lines by Hermes."""
        ...

    def live(self, rows: Sequence[Row]) -> None:
        """Replaces the content of the live area."""
        ...

    def status(self, text: str) -> None:
        """Shows the status line."""
        ...

    def show_prompt(self) -> None:
        """Shows the prompt: nothing runs, and it is the person's turn."""
        ...

    def ask(self, label: str, *, keys: str = "") -> None:
        """Asks for input under a label; an empty one restores the usual prompt.

        A key in `keys` is sent without Enter, if the screen supports that.
        """
        ...

    def menu(self, menu: QuestionMenu | None) -> None:
        """Shows the menu of a question; None removes it."""
        ...

    @property
    def last_key_at(self) -> float:
        """When the person last pressed a key, in the event loop's time."""
        ...

    async def edit(self, text: str, suffix: str) -> str:
        """Returns a text as the person left it in their editor. Raises HermesError if there is none."""
        ...

    def suggest(self, text: str) -> None:
        """Puts a text into an empty input, to be edited and sent again."""
        ...

    async def read(self) -> TypedInput | None:
        """Returns the next input, or None when the person is gone."""
        ...

    def leave(self) -> None:
        """Makes `read` return None."""
        ...


class PlainScreen:
    """A terminal that only prints. It edits lines itself, and gets the prompt when nothing is being
    written.
    """

    echoes = True
    animates = False

    def __init__(self) -> None:
        self.style = stdout_style()
        self.marks = marks_of_this_run()
        self._spoken = SpokenText() if self.marks == LINEAR_MARKS else None
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
        self._leave_prompt()
        self._lines.__exit__(kind, error, trace)

    @property
    def columns(self) -> int:
        return max(20, terminal_width())

    def write(self, text: str) -> None:
        text = clean(text)
        self._put(self._spoken.feed(text) if self._spoken is not None else text)

    def end_reply(self) -> None:
        """Prints what waited for the rest of a mark; all other text stays as it is."""
        if self._spoken is not None:
            self._put(self._spoken.end())

    def _put(self, text: str) -> None:
        if not text:
            return
        self._leave_prompt()
        sys.stdout.write(text)
        sys.stdout.flush()
        self._at_start = text.endswith("\n")

    def line(self, text: str = "") -> None:
        self._leave_prompt()
        if not self._at_start:
            print()
        print(text, flush=True)
        self._at_start = True

    def live(self, rows: Sequence[Row]) -> None:
        """Does nothing: printed rows could not be replaced."""

    def status(self, text: str) -> None:
        """Does nothing: `/status` shows the same."""

    def show_prompt(self) -> None:
        if not self._label:
            self._prompt()

    def ask(self, label: str, *, keys: str = "") -> None:  # noqa: ARG002 - lines are all it gets
        self._label = label
        if label:
            self._prompt()

    def menu(self, menu: QuestionMenu | None) -> None:
        if menu is None:
            self._label = ""
            return
        for line in menu_lines(menu, self.columns - 1):
            self.line(line)
        self.ask(menu_label(menu))

    last_key_at = float("-inf")

    async def edit(self, text: str, suffix: str) -> str:  # noqa: ARG002 - the port's shape
        raise HermesError(
            t("This terminal only prints lines, so nothing can be edited here."),
            hint=t("Choose No and say what should be different."),
        )

    def suggest(self, text: str) -> None:
        """Does nothing: the terminal edits its own lines."""

    async def read(self) -> TypedInput | None:
        line = await self._lines.read()
        if line is None:
            self._leave_prompt()
            return None
        self._prompted, self._at_start = False, True
        while line.text.endswith("\\"):
            more = await self._lines.read()
            line = line._replace(
                text=line.text[:-1] + "\n" + (more.text if more else "")
            )
        return TypedInput(line.text, at=line.at)

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
