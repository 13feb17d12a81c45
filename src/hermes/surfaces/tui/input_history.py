"""What was typed before, over all sessions: a file of this user's own, one JSON string per line."""

import logging
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec
from prompt_toolkit.history import History

from hermes.primitives.files import open_private

log = logging.getLogger("hermes.chat")

_MAX_ENTRIES = 1_000  # entries that are loaded
_MAX_ENTRY_CHARS = 20_000  # characters of an entry that is kept
_MAX_FILE_BYTES = 4 * 1024 * 1024  # past this the file is cut to what is loaded


class InputHistory(History):
    """Loads the newest entries and appends new ones; a file that can't be used only means that nothing is kept."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._last = ""

    def load_history_strings(self) -> Iterable[str]:
        """The newest first."""
        entries = _read(self._path)
        self._last = entries[-1] if entries else ""
        return reversed(entries)

    # pyrefly: ignore[missing-override-decorator]
    def append_string(self, string: str) -> None:
        """Adds an entry, unless it is the same again or begins with a blank, which keeps it out."""
        if string != self._last and string.strip() and not string.startswith(" "):
            super().append_string(string)
            self._last = string

    def store_string(self, string: str) -> None:
        """Writes one entry for good."""
        if len(string) > _MAX_ENTRY_CHARS:
            return
        try:
            if self._path.exists() and self._path.stat().st_size > _MAX_FILE_BYTES:
                self._shorten()
            handle = open_private(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(string) + b"\n")
        except (
            OSError
        ) as error:  # a full disk or a home that can only be read must not end a chat
            log.warning("what was typed is not kept in %s: %s", self._path, error)

    def _shorten(self) -> None:
        from hermes.settings import atomic

        lines = [msgspec.json.encode(entry).decode() for entry in _read(self._path)]
        atomic.replace(self._path, "\n".join(lines) + "\n", mode=0o600)


def _read(path: Path) -> list[str]:
    """The newest entries, oldest first; a line that a crash cut short is left out."""
    try:
        lines = path.read_bytes().splitlines()[-_MAX_ENTRIES:]
    except FileNotFoundError:
        return []
    except OSError as error:
        log.warning("what was typed before can't be read from %s: %s", path, error)
        return []
    entries: list[str] = []
    for line in lines:
        try:
            entries.append(msgspec.json.decode(line, type=str))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            log.warning("a line of %s can't be read and is left out: %s", path, error)
    return entries
