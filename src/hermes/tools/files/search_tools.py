"""`list_files` and `search_files`: finding one's way around a folder. ripgrep searches if there is one, else Python;
the answer looks the same."""

import asyncio
import contextlib
import itertools
import logging
import re
from collections.abc import Callable, Generator, Iterator
from functools import cached_property
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from hermes.core.ports import ToolContext
from hermes.errors import ToolFailed
from hermes.schema.tool_spec import ToolResult
from hermes.text.plurals import count
from hermes.tools.escapes import clean
from hermes.tools.files.file_content import unreadable
from hermes.tools.files.ripgrep import (
    Match,
    NotSearched,
    ripgrep_files,
    ripgrep_matches,
)
from hermes.tools.files.search_exclusions import Withheld
from hermes.tools.files.walk import MAX_WALK_DEPTH, GlobFilter, Halt, Walk
from hermes.tools.process.long_output import OutputFolder
from hermes.tools.sensitive import Guard
from hermes.tools.tool import judged, tool

log = logging.getLogger("hermes.tools")

_MAX_LISTED_ENTRIES = 500
_MAX_COUNTED_ENTRIES = 20_000
"""How many more are counted before it is just "more"."""
_MAX_CHECKED_FILES = 100_000
"""Files that are looked through for names of secrets."""
_MAX_MATCHES = 200
_BYTES = 30_000
_MAX_MATCH_LINE_CHARACTERS = 250
_MAX_FILE = 5 * 1024 * 1024

_ABOUT_PLACES = re.compile(r"[\^$\\(]")
"""What may make a pattern fit a line without fitting the text as a whole."""

Result = TypeVar("Result")


class Query(msgspec.Struct, frozen=True):
    """What is searched for, and where."""

    pattern: re.Pattern[str]
    top: Path
    glob: str
    ignore_case: bool


class SearchTools:
    """The search tools. What `guard` calls secret is not searched; `ripgrep` is the program to use, if there is one;
    `outputs` knows which files hold the words of others."""

    def __init__(
        self,
        guard: Guard,
        ripgrep: Callable[[], Path | None] = lambda: None,
        outputs: OutputFolder | None = None,
    ) -> None:
        self._guard = guard
        self._find_ripgrep = ripgrep
        self._outputs = outputs

    @cached_property
    def _ripgrep(self) -> Path | None:
        """Looked for at the first search: many a session has none."""
        return self._find_ripgrep()

    @tool("list_files", effect="read", paths=("path",))
    async def list_files(
        self,
        context: ToolContext,
        path: str = ".",
        glob: Annotated[
            str,
            Meta(
                description="Only matching files, at any depth, e.g. *.py or src/**/*.ts"
            ),
        ] = "",
        depth: Annotated[
            int,
            Meta(
                ge=0,
                le=MAX_WALK_DEPTH,
                description="Levels; if 0, 2 without a glob and all with one.",
            ),
        ] = 0,
    ) -> str:
        """Lists a directory and what is below it, without what .gitignore excludes. Directories end with /."""
        top = _folder(path, context)
        fits = _glob(glob).fits if glob else None

        def look(halt: Halt) -> str:
            walk = Walk(top, halt, depth or (MAX_WALK_DEPTH if glob else 2))
            return _listing(path, walk, fits)

        return await _stoppable(look)

    @tool("search_files", effect="read", paths=("path",))
    async def search_files(
        self,
        context: ToolContext,
        pattern: Annotated[str, Meta(min_length=1, description="Regular expression.")],
        path: Annotated[str, Meta(description="File or directory.")] = ".",
        glob: Annotated[str, Meta(description="Only matching files, e.g. *.py")] = "",
        ignore_case: bool = False,
    ) -> ToolResult:
        """Searches the contents of files line by line, without what .gitignore excludes. Shows line numbers by file."""
        top = judged(path, context)
        if not top.exists():
            raise unreadable(path, top, FileNotFoundError())
        try:
            compiled = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
        except re.error as error:
            raise ToolFailed(
                f"The pattern is not a regular expression: {error}."
            ) from error
        if glob:
            _glob(glob)
        query = Query(compiled, top, glob, ignore_case)

        def look(halt: Halt) -> ToolResult:
            withheld = Withheld(self._guard, top)
            note = withheld.note(self._files(query, halt)) if top.is_dir() else ""
            with contextlib.closing(self._matches(query, halt)) as matches:
                open_ones = (
                    match
                    for match in matches
                    if not (top.is_dir() and withheld.holds(match.relative))
                )
                found = _gathered(open_ones, query.pattern)
            text = "\n".join(
                filter(
                    None,
                    [*(list(_report(path, query, found)) or ["No matches."]), note],
                )
            )
            return ToolResult(text=text, source=self._source(query, found))

        return await _stoppable(look)

    def _files(self, query: Query, halt: Halt) -> list[str]:
        """The files below a folder that a search looks into."""
        if self._ripgrep is not None:
            with contextlib.suppress(NotSearched, OSError):  # then our own walk tells
                return ripgrep_files(self._ripgrep, query, halt)
        fits = _glob(query.glob).fits if query.glob else None
        entries = (
            one
            for one in Walk(query.top, halt).entries()
            if not one.is_folder and not one.is_link
        )
        names = (one.relative for one in entries if fits is None or fits(one.relative))
        return list(itertools.islice(names, _MAX_CHECKED_FILES))

    def _source(self, query: Query, found: "SearchMatches") -> str:
        """Whose words the matches may be, if any of them are not the user's."""
        if self._outputs is None:
            return ""
        files = (
            [query.top / file for file in found.files]
            if query.top.is_dir()
            else [query.top]
        )
        return next(filter(None, map(self._outputs.source_of, files)), "")

    def _matches(self, query: Query, halt: Halt) -> Generator[Match, None, None]:
        if self._ripgrep is not None:
            try:
                yield from ripgrep_matches(
                    self._ripgrep, query.pattern.pattern, query, halt
                )
            except (NotSearched, OSError) as error:
                log.debug(
                    "searched without ripgrep: %s", error
                )  # it knows fewer kinds of patterns
            else:
                return
        yield from python_matches(query, halt)


def python_matches(query: Query, halt: Halt) -> Iterator[Match]:
    """Searches without ripgrep."""
    if query.top.is_file():
        yield from _file_matches(query.top, query.top.name, query.pattern)
        return
    fits = _glob(query.glob).fits if query.glob else None
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
    except OSError:  # gone, or not ours to read
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


def _gathered(matches: Iterator[Match], pattern: re.Pattern[str]) -> SearchMatches:
    """Takes matches in until there are enough; the rest is counted."""
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


def _report(path: str, query: Query, found: SearchMatches) -> Iterator[str]:
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
    """The line, or of a long one the part around the match."""
    if len(line) <= _MAX_MATCH_LINE_CHARACTERS:
        return clean(line)
    match = pattern.search(line)
    start = max(0, (match.start() if match else 0) - _MAX_MATCH_LINE_CHARACTERS // 3)
    part = line[start : start + _MAX_MATCH_LINE_CHARACTERS]
    return f"{'...' if start else ''}{clean(part)}{'...' if start + _MAX_MATCH_LINE_CHARACTERS < len(line) else ''}"


def _listing(path: str, walk: Walk, fits: Callable[[str], bool] | None) -> str:
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


def _folder(path: str, context: ToolContext) -> Path:
    top = judged(path, context)
    if top.is_dir():
        return top
    if top.exists():
        raise ToolFailed(f"{path} is a file.", hint="Use read_file.")
    raise unreadable(path, top, FileNotFoundError())


def _glob(glob: str) -> GlobFilter:
    try:
        return GlobFilter(glob)
    except re.error as error:
        raise ToolFailed(f"The glob {glob!r} can't be understood: {error}.") from error


async def _stoppable(look: Callable[[Halt], Result]) -> Result:
    """Looks in a thread, which stops soon when this is cancelled."""
    halt = Halt()
    try:
        return await asyncio.to_thread(look, halt)
    finally:
        halt.stop()
