"""The input history of all sessions: a private file with one JSON string per line."""

import logging
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec
from prompt_toolkit.history import History

from hermes.primitives.files import open_private

log = logging.getLogger("hermes.chat")

_MAX_HISTORY_ENTRIES = 1_000  # entries loaded
_MAX_ENTRY_CHARS = 20_000  # of one entry
_MAX_FILE_BYTES = 4 * 1024 * 1024  # a larger file is trimmed to the loaded entries


class InputHistory(History):
    """Loads the newest entries and appends new ones. Without a usable file, nothing is saved."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._last = ""

    def load_history_strings(self) -> Iterable[str]:
        """Yields the entries, newest first."""
        entries = _read(self._path)
        self._last = entries[-1] if entries else ""
        return reversed(entries)

    # pyrefly: ignore[missing-override-decorator]
    def append_string(self, string: str) -> None:
        """Adds an entry, unless it repeats the last one or starts with a space."""
        if string != self._last and string.strip() and not string.startswith(" "):
            super().append_string(string)
            self._last = string

    def store_string(self, string: str) -> None:
        """Writes one entry to the file."""
        if len(string) > _MAX_ENTRY_CHARS:
            return
        try:
            if self._path.exists() and self._path.stat().st_size > _MAX_FILE_BYTES:
                self._shorten()
            handle = open_private(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(string) + b"\n")
        except OSError as error:  # a full disk or a read-only home must not end a chat
            log.warning("cannot write the input history to %s: %s", self._path, error)

    def _shorten(self) -> None:
        from hermes.settings import atomic

        lines = [msgspec.json.encode(entry).decode() for entry in _read(self._path)]
        atomic.replace(self._path, "\n".join(lines) + "\n", mode=0o600)


def _read(path: Path) -> list[str]:
    """Reads the newest entries, oldest first. Skips a line that a crash cut short."""
    try:
        lines = path.read_bytes().splitlines()[-_MAX_HISTORY_ENTRIES:]
    except FileNotFoundError:
        return []
    except OSError as error:
        log.warning("cannot read the input history from %s: %s", path, error)
        return []
    entries: list[str] = []
    for line in lines:
        try:
            entries.append(msgspec.json.decode(line, type=str))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            log.warning("skipping an unreadable line of %s: %s", path, error)
    return entries
