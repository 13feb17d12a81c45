"""Finds the files of a folder that may hold secrets, which every search leaves out."""

import os
from collections.abc import Iterable
from pathlib import Path

from hermes.tools.sensitive import Guard

_MAX_EXCLUDED_FILES_NAMED = 5


class Withheld:
    """Checks paths below `top`. Each name and each folder is checked once, because files are many and those few."""

    def __init__(self, guard: Guard, top: Path) -> None:
        self._guard = guard
        self._top = top
        self._names: dict[str, bool] = {}
        self._folders: dict[str, bool] = {}

    def holds(self, relative: str) -> bool:
        """Whether a file is left out, by its path below the top."""
        folder, _, name = relative.rpartition("/")
        if name not in self._names:
            self._names[name] = bool(self._guard.secret([Path(os.sep, name)]))
        if folder not in self._folders:
            self._folders[folder] = bool(
                self._guard.secret([self._top / folder / "file"])
            )
        return self._names[name] or self._folders[folder]

    def note(self, files: Iterable[str]) -> str:
        """Returns a line that names the files left out; empty if there are none."""
        secret = sorted(filter(self.holds, files))
        if not secret:
            return ""
        more = (
            f" and {len(secret) - _MAX_EXCLUDED_FILES_NAMED:,} more"
            if len(secret) > _MAX_EXCLUDED_FILES_NAMED
            else ""
        )
        return f"[not searched, as they may hold secrets: {', '.join(secret[:_MAX_EXCLUDED_FILES_NAMED])}{more}]"
