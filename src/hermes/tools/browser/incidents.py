"""Handles dialogs, downloads, crashes and new windows at once, and reports them later."""

import contextlib
from collections import deque
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from hermes.primitives.tasks import BackgroundTasks
from hermes.tools.escapes import one_line

if TYPE_CHECKING:
    from playwright.async_api import Dialog, Download, Page

_MAX_OPEN_PAGES = 5
_MAX_NOTES = 10
_MAX_CONSOLE_LINES = 100
_MAX_CONSOLE_CHARACTERS = 500  # of one line


class Incidents:
    """Watches pages, and collects notes for the model."""

    def __init__(self) -> None:
        self._told: list[str] = []
        self._console: deque[str] = deque(maxlen=_MAX_CONSOLE_LINES)
        self._answers = BackgroundTasks("answering a page")

    def note(self, words: str) -> None:
        """Adds a note; if there are many, only the latest are kept."""
        self._told = [*self._told, words][-_MAX_NOTES:]

    def take(self) -> list[str]:
        """Returns the notes since the last call."""
        told = self._told
        self._told = []
        return told

    def take_console(self) -> list[str]:
        """Returns what scripts wrote since the last call; if that is too much, the latest part."""
        lines = list(self._console)
        self._console.clear()
        return lines

    def watch(self, page: "Page") -> None:
        """Watches a page, and closes the oldest if there are too many."""
        page.on("dialog", self._dialog)
        page.on("download", self._download)
        page.on("crash", self._crash)
        page.on("console", lambda said: self._say(said.type, said.text))
        page.on("pageerror", lambda error: self._say("exception", error.message))
        pages = page.context.pages
        if len(pages) > _MAX_OPEN_PAGES:
            self.note("The oldest page was closed.")
            self._answer(pages[0].close())

    def _say(self, kind: str, text: str) -> None:
        self._console.append(f"{kind}: {one_line(text)[:_MAX_CONSOLE_CHARACTERS]}")

    def _dialog(self, dialog: "Dialog") -> None:
        """Dismisses a dialog, because nobody sees it. Leaving a page is allowed."""
        if dialog.type == "beforeunload":
            self._answer(dialog.accept())
            return
        self.note(
            f"The page showed a dialog ({dialog.type}), which was dismissed: {one_line(dialog.message)}"
        )
        self._answer(dialog.dismiss())

    def _crash(self, page: "Page") -> None:
        self.note("The page crashed and was closed.")
        self._answer(page.close())

    def _download(self, download: "Download") -> None:
        self.note(
            f"A download was refused: {one_line(download.suggested_filename)} from {one_line(download.url)}"
        )

    def _answer(self, work: Awaitable[None]) -> None:
        self._answers.start(_done(work))


async def _done(work: Awaitable[None]) -> None:
    from playwright.async_api import Error

    with contextlib.suppress(Error):  # the page closed first
        await work
