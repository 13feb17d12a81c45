"""Lists the files of the working directory for completion, without those that git ignores."""

import time
from collections.abc import Iterable
from pathlib import Path

from hermes.tools.files.walk import Halt, Walk

_MAX_COMPLETION_FILES = 20_000
_LISTING_TIMEOUT_S = 1.0
_LIST_LIFETIME_S = 5.0  # how long a list is used


class FileList:
    """The file list of one folder. Safe to use from one other thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: list[str] = []
        self._listed_at = float("-inf")

    def find(self, word: str, limit: int = 20) -> list[str]:
        """Returns the best matches for a word. Lists the folder again if the list is stale."""
        if time.monotonic() - self._listed_at > _LIST_LIFETIME_S:
            self._names = self._list()
            self._listed_at = time.monotonic()
        return best(self._names, word, limit)

    def _list(self) -> list[str]:
        names: list[str] = []
        end = time.monotonic() + _LISTING_TIMEOUT_S
        for entry in Walk(self._folder, Halt()).entries():
            names.append(f"{entry.relative}/" if entry.is_folder else entry.relative)
            if len(names) >= _MAX_COMPLETION_FILES or time.monotonic() > end:
                break
        return names


def best(names: Iterable[str], word: str, limit: int) -> list[str]:
    """Ranks names: those that start with the word, contain it, then contain its letters in order.
    Short names first.
    """
    wanted = word.lower()
    ranked: list[tuple[int, int, str]] = []
    for name in names:
        rank = _rank(name.lower(), wanted)
        if rank is not None:
            ranked.append((rank, name.count("/") * 100 + len(name), name))
    return [name for _, _, name in sorted(ranked)[:limit]]


def _rank(name: str, wanted: str) -> int | None:
    base = name.rstrip("/").rpartition("/")[2]
    if name.startswith(wanted):
        return 0
    if base.startswith(wanted):
        return 1
    if wanted in base:
        return 2
    if wanted in name:
        return 3
    letters = iter(name)
    return 4 if all(letter in letters for letter in wanted) else None
