"""Saves unsent input to disk, so that a crash, a kill or a lost terminal does not lose it."""

import contextlib
import os
from pathlib import Path

import msgspec

from hermes.errors import HermesError
from hermes.settings import atomic
from hermes.settings.home import Home


class InputDraft(msgspec.Struct, frozen=True):
    """An unsent text and the directory in which it was typed."""

    text: str
    folder: str


class Drafts:
    """The draft of this process, and those that dead processes left for the same directory."""

    def __init__(self, home: Home, folder: Path) -> None:
        self._home = home
        self._folder = str(folder)
        self._drafts_dir = home.root / "drafts"
        self._own_file = self._drafts_dir / f"{os.getpid()}.json"

    def save(self, text: str) -> None:
        """Saves the text; an empty one removes the file. Write errors are ignored."""
        with contextlib.suppress(OSError, HermesError):
            if not text.strip():
                self._own_file.unlink(missing_ok=True)
                return
            self._home.ensure(self._drafts_dir)
            atomic.replace(
                self._own_file,
                msgspec.json.encode(InputDraft(text, self._folder)).decode(),
                mode=0o600,
            )

    def recover(self) -> str:
        """Returns the newest draft that a dead process left for this directory, and takes over its file."""
        found: list[tuple[float, Path, InputDraft]] = []
        with contextlib.suppress(OSError):
            for path in self._drafts_dir.glob("*.json"):
                draft = _read(path)
                if (
                    draft is not None
                    and draft.folder == self._folder
                    and not _is_alive(path.stem)
                ):
                    found.append((path.stat().st_mtime, path, draft))
        if not found:
            return ""
        _, path, draft = max(found, key=lambda entry: entry[0])
        with contextlib.suppress(OSError):
            path.replace(self._own_file)
        return draft.text


def _read(path: Path) -> InputDraft | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=InputDraft)
    except (OSError, msgspec.DecodeError):
        return None


def _is_alive(pid: str) -> bool:
    if not pid.isdecimal() or int(pid) == os.getpid():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
