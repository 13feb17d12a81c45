"""Keeps the part of a reply that is not in the log yet in a file. A killed process leaves the file behind, and the
process that ends its turn writes the text to the log."""

import asyncio
import hashlib
import logging
import os
from pathlib import Path

from hermes.errors import HomeError
from hermes.primitives.files import open_private
from hermes.settings import Home

log = logging.getLogger("hermes.app")

_DELAY_S = 0.05  # a reply that is complete sooner never touches the disk


class PartialText:
    """The file of one session. Each piece is written at once but never synced: the text survives a killed process, not
    a power cut. If the file can't be written, only a crash loses text."""

    def __init__(self, home: Home, session: str) -> None:
        self._home = home
        self._path = partial_path(home, session)
        self._pieces: list[str] = []  # before the file is opened
        self._later: asyncio.TimerHandle | None = None
        self._mark = ""
        self._file = -1
        self._failed = False

    def add(self, piece: str, mark: str) -> None:
        """Appends a piece of the reply identified by `mark`."""
        if self._file >= 0:
            self._write(piece)
        elif not self._failed:
            self._pieces.append(piece)
            if self._later is None:
                self._mark = mark
                self._later = asyncio.get_running_loop().call_later(
                    _DELAY_S, self._open
                )

    def clear(self) -> None:
        """Deletes the text, because the reply is in the log, or void."""
        if self._later is not None:
            self._later.cancel()
            self._later = None
        self._pieces.clear()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Closes the file but keeps it, for the process that will end the turn."""
        if self._later is not None:
            self._later.cancel()
            self._open()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def recover(self, mark: str) -> str:
        """The text that a vanished process wrote of the reply identified by `mark`."""
        try:
            head, _, text = self._path.read_text(
                encoding="utf-8", errors="ignore"
            ).partition("\n")
        except OSError:
            return ""
        return text if head == mark else ""

    def drop(self) -> None:
        """Deletes the text that `recover` has read, once the log has it."""
        self._path.unlink(missing_ok=True)

    def _open(self) -> None:
        self._later = None
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        try:
            self._home.ensure(self._path.parent.parent, self._path.parent)
            self._file = open_private(self._path, flags)
        except (OSError, HomeError) as error:
            self._fail(error)
            return
        self._write(f"{self._mark}\n{''.join(self._pieces)}")
        self._pieces.clear()

    def _write(self, text: str) -> None:
        try:
            os.write(self._file, text.encode(errors="replace"))
        except OSError as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Logs the error once per run of the session; the reply continues."""
        log.warning(
            "the reply being written can't be saved, so a crash would lose it: %s",
            error,
        )
        self._failed = True
        self.clear()


def partial_path(home: Home, session: str) -> Path:
    """The file of a session's partial reply. Ids of imported sessions may not be file names, so the name is a hash."""
    return (
        home.root
        / "run"
        / "partial"
        / hashlib.sha256(session.encode(errors="surrogatepass")).hexdigest()[:32]
    )
