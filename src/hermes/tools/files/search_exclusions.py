"""Which files of a folder may hold secrets, so that a search leaves them out, whatever it searches for."""

import os
from collections.abc import Iterable
from pathlib import Path

from hermes.tools.sensitive import Guard

_MAX_NAMED_FILES = 5


class Withheld:
    """Looks at paths below `top`. A name and a folder are looked at once: there are many files and few of those."""

    def __init__(self, guard: Guard, top: Path) -> None:
        self._guard = guard
        self._top = top
        self._names: dict[str, bool] = {}
        self._folders: dict[str, bool] = {}

    def holds(self, relative: str) -> bool:
        """Whether a file, by its path below the top, is left out."""
        folder, _, name = relative.rpartition("/")
        if name not in self._names:
            self._names[name] = bool(self._guard.secret([Path(os.sep, name)]))
        if folder not in self._folders:
            self._folders[folder] = bool(
                self._guard.secret([self._top / folder / "file"])
            )
        return self._names[name] or self._folders[folder]

    def note(self, files: Iterable[str]) -> str:
        """A line that names what is left out of these files; empty when nothing is."""
        secret = sorted(filter(self.holds, files))
        if not secret:
            return ""
        more = (
            f" and {len(secret) - _MAX_NAMED_FILES:,} more"
            if len(secret) > _MAX_NAMED_FILES
            else ""
        )
        return f"[not searched, as they may hold secrets: {', '.join(secret[:_MAX_NAMED_FILES])}{more}]"
