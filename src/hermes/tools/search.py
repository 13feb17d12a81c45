"""`list_files` and `search_files`: finding one's way around a folder. ripgrep searches if there is one, else Python;
the answer looks the same."""

import asyncio
import contextlib
import re
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from hermes.core.ports import ToolContext
from hermes.errors import ToolFailed
from hermes.tools.content import unreadable
from hermes.tools.escapes import clean
from hermes.tools.ripgrep import Match, NotSearched, ripgrep_matches
from hermes.tools.sensitive import Guard
from hermes.tools.tool import judged, tool
from hermes.tools.walk import MAX_DEPTH, GlobFilter, Halt, Walk

_ENTRIES = 500
_COUNTED = 20_000
"""How many more are counted before it is just "more"."""
_MATCHES = 200
_BYTES = 30_000
_WIDTH = 250
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


class Search:
    """The search tools. What `guard` calls secret is not shown; `ripgrep` is the program to use, if there is one."""

    def __init__(self, guard: Guard, ripgrep: Path | None = None) -> None:
        self._guard = guard
        self._ripgrep = ripgrep

    @tool("list_files", effect="read", paths=("path",))
    async def list_files(
        self,
        context: ToolContext,
        path: str = ".",
        glob: Annotated[str, Meta(description="Only files that fit, at any depth, e.g. *.py or src/**/*.ts")] = "",
        depth: Annotated[
            int, Meta(ge=0, le=MAX_DEPTH, description="Levels; if 0, 2 without a glob and all with one.")
        ] = 0,
    ) -> str:
        """Lists a directory and what is below it, without what .gitignore excludes. Directories end with /."""
        top = _folder(path, context)
        fits = _glob(glob).fits if glob else None

        def look(halt: Halt) -> str:
            walk = Walk(top, halt, depth or (MAX_DEPTH if glob else 2))
            return _listing(path, walk, fits)

        return await _stoppable(look)

    @tool("search_files", effect="read", paths=("path",))
    async def search_files(
        self,
        context: ToolContext,
        pattern: Annotated[str, Meta(min_length=1, description="Regular expression.")],
        path: Annotated[str, Meta(description="File or directory.")] = ".",
        glob: Annotated[str, Meta(description="Only files that fit, e.g. *.py")] = "",
        ignore_case: bool = False,
    ) -> str:
        """Searches the contents of files line by line, without what .gitignore excludes. Shows line numbers by file."""
        top = judged(path, context)
        if not top.exists():
            raise unreadable(path, top, FileNotFoundError())
        try:
            compiled = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
        except re.error as error:
            raise ToolFailed(f"The pattern is not a regular expression: {error}.") from error
        if glob:
            _glob(glob)
        query = Query(compiled, top, glob, ignore_case)

        def look(halt: Halt) -> str:
            with contextlib.closing(self._matches(query, halt)) as matches:
                return _report(path, query, matches, self._guard)

        return await _stoppable(look)

    def _matches(self, query: Query, halt: Halt) -> Generator[Match, None, None]:
        if self._ripgrep is not None:
            try:
                yield from ripgrep_matches(self._ripgrep, query.pattern.pattern, query, halt)
            except (NotSearched, OSError):
                pass
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
        if not entry.is_folder and not entry.is_link and (fits is None or fits(entry.relative)):
            yield from _file_matches(query.top / entry.relative, entry.relative, query.pattern)


def _file_matches(path: Path, relative: str, pattern: re.Pattern[str]) -> Iterator[Match]:
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


def _report(path: str, query: Query, matches: Iterator[Match], guard: Guard) -> str:
    """Matches by file, capped; what is left out is counted."""
    lines: list[str] = []
    size = shown = more = 0
    file, files, withheld = "", set[str](), set[str]()
    is_folder = query.top.is_dir()
    for match in matches:
        if is_folder and match.relative != file and guard.secret([query.top / match.relative]):
            withheld.add(match.relative)
            continue
        if shown >= _MATCHES or size >= _BYTES:
            more += 1
            files.add(match.relative)
            if more >= _COUNTED:
                break
            continue
        if match.relative != file:
            file = match.relative
            lines.append(_place(path, file, is_folder=is_folder))
        lines.append(f"{match.line}: {_excerpt(match.text, query.pattern)}")
        size += len(lines[-1]) + 1
        shown += 1
    if more:
        count = f"{more:,}{'+' if more >= _COUNTED else ''} more matches in {len(files):,} files"
        lines.append(f"[{count}; narrow the pattern, path or glob]")
    if withheld:
        names = ", ".join(sorted(withheld)[:5])
        lines.append(f"[matches in files that may hold secrets are not shown: {names}]")
    return "\n".join(lines) or "No matches."


def _place(path: str, relative: str, *, is_folder: bool) -> str:
    if not is_folder:
        return path
    return relative if path in (".", "./") else f"{path.rstrip('/')}/{relative}"


def _excerpt(line: str, pattern: re.Pattern[str]) -> str:
    """The line, or of a long one the part around the match."""
    if len(line) <= _WIDTH:
        return clean(line)
    match = pattern.search(line)
    start = max(0, (match.start() if match else 0) - _WIDTH // 3)
    part = line[start : start + _WIDTH]
    return f"{'...' if start else ''}{clean(part)}{'...' if start + _WIDTH < len(line) else ''}"


def _listing(path: str, walk: Walk, fits: Callable[[str], bool] | None) -> str:
    names: list[str] = []
    more = 0
    for entry in walk.entries():
        if fits is not None and (entry.is_folder or not fits(entry.relative)):
            continue
        if len(names) < _ENTRIES:
            names.append(clean(entry.relative) + ("/" if entry.is_folder else "@" if entry.is_link else ""))
        else:
            more += 1
            if more >= _COUNTED:
                break
    if not names:
        return f"No files in {path} fit." if fits else f"{path} is empty."
    if more:
        names.append(f"[{more:,}{'+' if more >= _COUNTED else ''} more; narrow with path, glob or depth]")
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
