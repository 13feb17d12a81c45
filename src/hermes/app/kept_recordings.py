"""Recordings of what people dictate: kept until the message is sent, then with its session.

A recording is named by the hash of its content, so one that is sent twice is one file.
"""

import contextlib
import hashlib
import re
import time
from pathlib import Path

from hermes.media.audio import sound_type
from hermes.primitives.files import replace_file
from hermes.settings import Home

MAX_PLAYED_BYTES = 200 * 1024**2
_UNSENT = "unsent"
_MAX_UNSENT_AGE_S = 7 * 24 * 3600
_NAME = re.compile(r"[0-9a-f]{32}")


class KeptRecordings:
    """The recordings of one home."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._unsent = home.media / _UNSENT

    def keep(self, recording: bytes) -> str:
        """Keeps a recording for a message that is still being written. Returns its name."""
        self._home.ensure(self._home.media, self._unsent)
        self._forget_old()
        name = hashlib.sha256(recording).hexdigest()[:32]
        replace_file(self._unsent / name, recording, durable=False, alone=False)
        return name

    def take(self, session: str, names: list[str]) -> tuple[str, ...]:
        """The files of recordings that are sent now, in the session's folder. One that is gone is left out."""
        folder = self._home.media / session
        taken: list[str] = []
        for name in filter(_NAME.fullmatch, dict.fromkeys(names)):
            path = folder / f"recording-{name}"
            if not path.exists():
                self._home.ensure(self._home.media, folder)
                try:
                    (self._unsent / name).rename(path)
                except FileNotFoundError:
                    continue
            taken.append(str(path))
        return tuple(taken)

    def _forget_old(self) -> None:
        """Deletes recordings whose messages were never sent."""
        oldest = time.time() - _MAX_UNSENT_AGE_S
        for path in self._unsent.iterdir():
            with contextlib.suppress(FileNotFoundError):  # sent at this moment
                if path.stat().st_mtime < oldest:
                    path.unlink()


def played(path: Path) -> tuple[bytes, str] | None:
    """A recording and its media type; None if the file is gone, or is none that a browser plays."""
    try:
        if path.stat().st_size > MAX_PLAYED_BYTES:
            return None
        content = path.read_bytes()
    except (OSError, ValueError):
        return None
    kind = sound_type(content)
    return (content, kind) if kind else None
