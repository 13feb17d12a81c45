"""What was typed and not sent, kept on disk while it is there: a crash, a kill or a lost terminal loses no words."""

import contextlib
import os
from pathlib import Path

import msgspec

from hermes.errors import HermesError
from hermes.settings import atomic
from hermes.settings.home import Home


class InputDraft(msgspec.Struct, frozen=True):
    """The words, and where they were typed."""

    text: str
    folder: str


class Drafts:
    """The draft of this process, and those that dead ones left in the same folder."""

    def __init__(self, home: Home, folder: Path) -> None:
        self._home = home
        self._folder = str(folder)
        self._place = home.root / "drafts"
        self._mine = self._place / f"{os.getpid()}.json"

    def keep(self, text: str) -> None:
        """Writes the words down; none removes the file. What can't be written is not kept, and nothing fails."""
        with contextlib.suppress(OSError, HermesError):
            if not text.strip():
                self._mine.unlink(missing_ok=True)
                return
            self._home.ensure(self._place)
            atomic.replace(
                self._mine,
                msgspec.json.encode(InputDraft(text, self._folder)).decode(),
                mode=0o600,
            )

    def recover(self) -> str:
        """The newest words that a process of this folder left when it died; they are this process' now."""
        found: list[tuple[float, Path, InputDraft]] = []
        with contextlib.suppress(OSError):
            for path in self._place.glob("*.json"):
                draft = _read(path)
                if (
                    draft is not None
                    and draft.folder == self._folder
                    and not _lives(path.stem)
                ):
                    found.append((path.stat().st_mtime, path, draft))
        if not found:
            return ""
        _, path, draft = max(found, key=lambda entry: entry[0])
        with contextlib.suppress(OSError):
            path.replace(self._mine)
        return draft.text


def _read(path: Path) -> InputDraft | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=InputDraft)
    except (OSError, msgspec.DecodeError):
        return None


def _lives(pid: str) -> bool:
    if not pid.isdecimal() or int(pid) == os.getpid():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
