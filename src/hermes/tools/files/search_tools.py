"""`list_files` and `search_files`: finding files and text in a folder. ripgrep searches if it is installed, otherwise
Python; the answer looks the same.
"""

import asyncio
import contextlib
import os
import re
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from msgspec import Meta

from hermes.core.ports import ToolContext
from hermes.errors import ToolFailed
from hermes.schema.tool_spec import ToolResult
from hermes.tools.files.file_content import unreadable
from hermes.tools.process.long_output import OutputFolder
from hermes.tools.sensitive import Guard
from hermes.tools.tool import judged, tool

if TYPE_CHECKING:  # the code that does the work is loaded at the first call
    from hermes.tools.files.file_search import Query, SearchMatches
    from hermes.tools.files.walk import Halt

_MAX_DEPTH = 64  # levels; a `Walk` itself goes this deep

Result = TypeVar("Result")
_MAX_EXCLUDED_FILES_NAMED = 5


class SearchTools:
    """The search tools.

    Files that `guard` calls secret are not searched. `ripgrep` is the program to use, if there is one. `outputs` knows
    which files contain text from outside.
    """

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
        """Finds ripgrep at the first search, because many sessions never search."""
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
                le=_MAX_DEPTH,
                description="Levels; if 0, 2 without a glob and all with one.",
            ),
        ] = 0,
    ) -> str:
        """Lists a directory and what is below it, without what .gitignore excludes. Directories end with /."""
        from hermes.tools.files.file_search import glob_filter, listing
        from hermes.tools.files.walk import Walk

        top = _folder(path, context)
        fits = glob_filter(glob).fits if glob else None

        def look(halt: "Halt") -> str:
            walk = Walk(top, halt, depth or (_MAX_DEPTH if glob else 2))
            return listing(path, walk, fits)

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
        from hermes.tools.files.file_search import (
            Query,
            find_matches,
            gathered,
            glob_filter,
            report,
            searched_files,
        )

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
            glob_filter(glob)
        query = Query(compiled, top, glob, ignore_case)

        def look(halt: "Halt") -> ToolResult:
            excluded = SearchExclusions(self._guard, top)
            files = searched_files(query, halt, self._ripgrep) if top.is_dir() else []
            note = excluded.note(files) if top.is_dir() else ""
            found_here = find_matches(query, halt, self._ripgrep)
            with contextlib.closing(found_here) as matches:
                open_ones = (
                    match
                    for match in matches
                    if not (top.is_dir() and excluded.holds(match.relative))
                )
                found = gathered(open_ones, query.pattern)
            text = "\n".join(
                filter(
                    None,
                    [*(list(report(path, query, found)) or ["No matches."]), note],
                )
            )
            return ToolResult(text=text, source=self._source(query, found))

        return await _stoppable(look)

    def _source(self, query: "Query", found: "SearchMatches") -> str:
        """The source of the matches, if some of them are not the user's own text."""
        if self._outputs is None:
            return ""
        files = (
            [query.top / file for file in found.files]
            if query.top.is_dir()
            else [query.top]
        )
        return next(filter(None, map(self._outputs.source_of, files)), "")


def _folder(path: str, context: ToolContext) -> Path:
    top = judged(path, context)
    if top.is_dir():
        return top
    if top.exists():
        raise ToolFailed(f"{path} is a file.", hint="Use read_file.")
    raise unreadable(path, top, FileNotFoundError())


async def _stoppable(look: "Callable[[Halt], Result]") -> Result:
    """Searches in a thread, which stops soon when this is cancelled."""
    from hermes.tools.files.walk import Halt

    halt = Halt()
    try:
        return await asyncio.to_thread(look, halt)
    finally:
        halt.stop()


class SearchExclusions:
    """Checks paths below `top`. Each name and each folder is checked once, because there are many files but few names
    and folders.
    """

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
