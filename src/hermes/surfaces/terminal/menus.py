"""Questions at a terminal as menus: choosing, searching a list, typing a line or a secret, waiting.

`Menus` is what a flow of questions needs. `live_menus` draws them with arrow keys; `PlainMenus` here prints them as
numbered lines, for a terminal that can't move its cursor. Both write to stderr, so that stdout holds only the answer.
"""

import asyncio
import getpass
import sys
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, Protocol, TypeAlias, TypeVar

import msgspec

from hermes.settings.load import environment
from hermes.surfaces.terminal.style import stderr_style, terminal_width
from hermes.surfaces.terminal.text import one_line, wrap
from hermes.text.translation import translator

t = translator(__name__)

_Found = TypeVar("_Found")
_MAX_PLAIN_ITEMS = 30


class MenuItem(msgspec.Struct, frozen=True):
    """One choice. `detail` is computed at each drawing, because it may become known only while the menu is shown."""

    label: str
    detail: Callable[[], str] = str


class MenuText(msgspec.Struct, frozen=True, kw_only=True):
    """The texts around the choices of one screen."""

    title: str
    intro: str = ""
    problem: str = ""
    is_first: bool = False
    """Whether there is no screen to go back to."""
    start: int = 0
    """The item that is marked at first."""


class WaitNotes:
    """Lines that appear while something is waited for, such as a link to open."""

    def __init__(self) -> None:
        self.lines: tuple[str, ...] = ()
        self.on_change: Callable[[], None] = lambda: None

    def put(self, *lines: str) -> None:
        self.lines = lines
        self.on_change()


PasteChoice: TypeAlias = Callable[[str], int | None]


def takes_nothing(_: str) -> int | None:
    """For a menu on which nothing can be pasted."""
    return None


class Menus(Protocol):
    """Asks a person. None is the wish to go back; KeyboardInterrupt the wish to leave."""

    def choose(
        self,
        text: MenuText,
        items: Sequence[MenuItem],
        updates: Sequence["Future[Any]"] = (),
        paste: PasteChoice = takes_nothing,
    ) -> int | None:
        """Returns the index of the chosen item. Draws again when one of `updates` is done.

        `paste` returns the item that a pasted text chooses, if any.
        """
        ...

    def search(self, text: MenuText, items: Sequence[MenuItem]) -> str | None:
        """Returns the label of an item from a list of any length, or what was typed if it is none of them."""
        ...

    def read_line(
        self,
        text: MenuText,
        *,
        secret: bool = False,
        remark: Callable[[str], str] = lambda _: "",
        typed: str = "",
    ) -> str | None:
        """Returns a typed or pasted line. A secret is not shown; `remark` comments on what is there so far.

        `typed` is there from the start, to be corrected.
        """
        ...

    def wait(
        self,
        text: str,
        work: Coroutine[Any, Any, _Found],
        notes: WaitNotes | None = None,
    ) -> _Found | None:
        """Runs the work and shows that it runs. Raises what it raises; None if the person gave up."""
        ...


def terminal_menus() -> Menus | None:
    """Returns the menus for this terminal; None if nobody can be asked."""
    if sys.stdin is None or sys.stderr is None:
        return None
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    if environment().get("TERM", "dumb") == "dumb":
        return PlainMenus()
    from hermes.surfaces.terminal.live_menus import LiveMenus

    return LiveMenus()


class PlainMenus:
    """Menus as numbered lines."""

    def choose(
        self,
        text: MenuText,
        items: Sequence[MenuItem],
        updates: Sequence["Future[Any]"] = (),
        paste: PasteChoice = takes_nothing,
    ) -> int | None:
        for future in updates:
            _ = future.exception()  # waits: a printed line can't be corrected
        self._head(text)
        for number, item in enumerate(items, 1):
            self._print(f"{number:>3}  {item.label}")
            if detail := item.detail():
                self._print(detail, indent=5)
        while True:
            last = len(items)
            if text.is_first:
                ask = t("Type a number from 1 to {last}:", last=last)
            else:
                ask = t(
                    "Type a number from 1 to {last}, or Enter to go back:", last=last
                )
            answer = self._ask(f"{ask} ")
            if not answer and not text.is_first:
                return None
            if answer.isdecimal() and 1 <= int(answer) <= len(items):
                return int(answer) - 1
            if (chosen := paste(answer)) is not None:
                return chosen

    def search(self, text: MenuText, items: Sequence[MenuItem]) -> str | None:
        self._head(text)
        for item in items[:_MAX_PLAIN_ITEMS]:
            self._print(f"{item.label}  {item.detail()}".rstrip(), indent=2)
        if len(items) > _MAX_PLAIN_ITEMS:
            more = t("... and {count:,} more", count=len(items) - _MAX_PLAIN_ITEMS)
            self._print(more, indent=2)
        return self._ask(f"{t('Type a name, or Enter to go back:')} ") or None

    def read_line(
        self,
        text: MenuText,
        *,
        secret: bool = False,
        remark: Callable[[str], str] = lambda _: "",  # noqa: ARG002 - the line is not seen before its end
        typed: str = "",
    ) -> str | None:
        self._head(text)
        if secret:
            prompt = f"{t('Paste it (it is not shown), or Enter to go back:')} "
            return getpass.getpass(prompt, stream=sys.stderr).strip() or None
        if typed:
            self._print(t("It was: {typed}", typed=typed))
        return self._ask(f"{t('Type it, or Enter to go back:')} ") or None

    def wait(
        self,
        text: str,
        work: Coroutine[Any, Any, _Found],
        notes: WaitNotes | None = None,
    ) -> _Found | None:
        self._print(f"{text} ...")
        shown = notes or WaitNotes()

        def tell() -> None:
            for one in shown.lines:
                self._print(one)

        shown.on_change = tell
        return asyncio.run(work)

    def _head(self, text: MenuText) -> None:
        style = stderr_style()
        print(file=sys.stderr)
        for line in wrap(text.problem, terminal_width(sys.stderr) - 1):
            print(style.red(line), file=sys.stderr)
        self._print(text.title)
        if text.intro:
            self._print(text.intro)

    def _print(self, text: str, indent: int = 0) -> None:
        for line in wrap(text, terminal_width(sys.stderr) - 1 - indent):
            print(" " * indent + line, file=sys.stderr)

    def _ask(self, prompt: str) -> str:
        print(prompt, end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:  # the terminal is gone
            raise KeyboardInterrupt
        return one_line(line)
