"""Finds files and matches for `list_files` and `search_files`: with ripgrep if there is one, else in Python."""

import contextlib
import itertools
import logging
import re
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import msgspec

from hermes.errors import ToolFailed
from hermes.primitives.lazy_pattern import lazy_pattern
from hermes.text.formats import count
from hermes.tools.escapes import clean
from hermes.tools.files.ripgrep import (
    Match,
    NotSearched,
    ripgrep_files,
    ripgrep_matches,
)
from hermes.tools.files.walk import GlobFilter, Halt, Walk

log = logging.getLogger("hermes.tools")

_MAX_LISTED_ENTRIES = 500
_MAX_COUNTED_ENTRIES = 20_000
"""Up to this many further results are counted; beyond that, the answer says just "more"."""
_MAX_CHECKED_FILES = 100_000
"""How many files are checked for the names of secrets."""
_MAX_MATCHES = 200
_BYTES = 30_000
_MAX_MATCH_LINE_CHARACTERS = 250
_MAX_FILE = 5 * 1024 * 1024

_ABOUT_PLACES = lazy_pattern(r"[\^$\\(]")
"""Syntax that may make a pattern match a line but not the whole text."""


class Query(msgspec.Struct, frozen=True):
    """What to search for, and where."""

    pattern: re.Pattern[str]
    top: Path
    glob: str
    ignore_case: bool


def searched_files(query: Query, halt: Halt, ripgrep: Path | None) -> list[str]:
    """The files below a folder that a search looks into."""
    if ripgrep is not None:
        with contextlib.suppress(NotSearched, OSError):  # then our own walk is used
            return ripgrep_files(ripgrep, query, halt)
    fits = glob_filter(query.glob).fits if query.glob else None
    entries = (
        one
        for one in Walk(query.top, halt).entries()
        if not one.is_folder and not one.is_link
    )
    names = (one.relative for one in entries if fits is None or fits(one.relative))
    return list(itertools.islice(names, _MAX_CHECKED_FILES))


def find_matches(
    query: Query, halt: Halt, ripgrep: Path | None
) -> Generator[Match, None, None]:
    """Searches with ripgrep, if it is installed and supports the pattern."""
    if ripgrep is not None:
        try:
            yield from ripgrep_matches(ripgrep, query.pattern.pattern, query, halt)
        except (NotSearched, OSError) as error:
            log.debug(
                "searched without ripgrep: %s", error
            )  # it supports fewer kinds of patterns
        else:
            return
    yield from python_matches(query, halt)


def python_matches(query: Query, halt: Halt) -> Iterator[Match]:
    """Searches without ripgrep."""
    if query.top.is_file():
        yield from _file_matches(query.top, query.top.name, query.pattern)
        return
    fits = glob_filter(query.glob).fits if query.glob else None
    for entry in Walk(query.top, halt).entries():
        if (
            not entry.is_folder
            and not entry.is_link
            and (fits is None or fits(entry.relative))
        ):
            yield from _file_matches(
                query.top / entry.relative, entry.relative, query.pattern
            )


def _file_matches(
    path: Path, relative: str, pattern: re.Pattern[str]
) -> Iterator[Match]:
    try:
        if not path.is_file() or path.stat().st_size > _MAX_FILE:
            return
        data = path.read_bytes()
    except OSError:  # gone, or not readable for us
        return
    if b"\0" in data:
        return
    text = data.decode(errors="replace")
    if not _ABOUT_PLACES.search(pattern.pattern) and pattern.search(text) is None:
        return
    for number, line in enumerate(text.split("\n"), 1):
        if pattern.search(line.removesuffix("\r")):
            yield Match(relative, number, line.removesuffix("\r"))


class SearchMatches(msgspec.Struct, frozen=True):
    """Matches by file, as they are shown, and how many more there are."""

    files: dict[str, list[str]]
    more: int
    in_files: int


def gathered(matches: Iterator[Match], pattern: re.Pattern[str]) -> SearchMatches:
    """Collects matches until there are enough; the rest are counted."""
    files: dict[str, list[str]] = {}
    size = shown = more = 0
    others = set[str]()
    for match in matches:
        if shown < _MAX_MATCHES and size < _BYTES:
            line = f"{match.line}: {_excerpt(match.text, pattern)}"
            files.setdefault(match.relative, []).append(line)
            size += len(line) + 1
            shown += 1
            continue
        more += 1
        others.add(match.relative)
        if more >= _MAX_COUNTED_ENTRIES:
            break
    return SearchMatches(files, more, len(others))


def report(path: str, query: Query, found: SearchMatches) -> Iterator[str]:
    """The matches as lines for the model."""
    is_folder = query.top.is_dir()
    for file, lines in found.files.items():
        yield _place(path, file, is_folder=is_folder)
        yield from lines
    if found.more:
        more = "+ more" if found.more >= _MAX_COUNTED_ENTRIES else " more"
        matches = f"{found.more:,}{more} {'match' if found.more == 1 else 'matches'}"
        yield f"[{matches} in {count(found.in_files, 'file')}; narrow the pattern, path or glob]"


def _place(path: str, relative: str, *, is_folder: bool) -> str:
    if not is_folder:
        return path
    return relative if path in (".", "./") else f"{path.rstrip('/')}/{relative}"


def _excerpt(line: str, pattern: re.Pattern[str]) -> str:
    """The line or, if it is long, the part around the match."""
    if len(line) <= _MAX_MATCH_LINE_CHARACTERS:
        return clean(line)
    match = pattern.search(line)
    start = max(0, (match.start() if match else 0) - _MAX_MATCH_LINE_CHARACTERS // 3)
    part = line[start : start + _MAX_MATCH_LINE_CHARACTERS]
    return f"{'...' if start else ''}{clean(part)}{'...' if start + _MAX_MATCH_LINE_CHARACTERS < len(line) else ''}"


def listing(path: str, walk: Walk, fits: Callable[[str], bool] | None) -> str:
    """The contents of a folder, as lines for the model."""
    names: list[str] = []
    more = 0
    for entry in walk.entries():
        if fits is not None and (entry.is_folder or not fits(entry.relative)):
            continue
        if len(names) < _MAX_LISTED_ENTRIES:
            names.append(
                clean(entry.relative)
                + ("/" if entry.is_folder else "@" if entry.is_link else "")
            )
        else:
            more += 1
            if more >= _MAX_COUNTED_ENTRIES:
                break
    if not names:
        return f"No files in {path} match." if fits else f"{path} is empty."
    if more:
        names.append(
            f"[{more:,}{'+' if more >= _MAX_COUNTED_ENTRIES else ''} more; narrow with path, glob or depth]"
        )
    return "\n".join(names)


def glob_filter(glob: str) -> GlobFilter:
    """The files that match a glob. Raises ToolFailed for an invalid one."""
    try:
        return GlobFilter(glob)
    except re.error as error:
        raise ToolFailed(f"The glob {glob!r} can't be understood: {error}.") from error
