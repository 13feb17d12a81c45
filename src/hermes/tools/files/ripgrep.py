"""Searches with ripgrep: the same files in the same order as our own walk, many times faster."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Protocol

import msgspec

from hermes.children.helper_programs import beside_python, find_program
from hermes.tools.files.gitignore import repository
from hermes.tools.files.walk import GlobFilter, Halt

_OPTIONS = (
    *(
        "--no-config",
        "--color=never",
        "--no-heading",
        "--with-filename",
        "--line-number",
        "--null",
        "--sort=path",
    ),
    *("--hidden", "--no-messages", "--max-filesize=5M"),
    *("--no-ignore-dot", "--no-ignore-exclude", "--no-ignore-global"),
)
_MAX_LINE_BYTES = 6 * 1024 * 1024
_MAX_LISTING_BYTES = 8 * 1024 * 1024
"""The maximum bytes of file names that are listed."""


class NotSearched(Exception):
    """ripgrep did not search, because it does not support this kind of pattern or did not start."""


class Match(msgspec.Struct, frozen=True):
    """A line that matches."""

    relative: str
    line: int
    text: str


class Scope(Protocol):
    """The facts about a search that ripgrep needs."""

    @property
    def top(self) -> Path: ...
    @property
    def glob(self) -> str: ...
    @property
    def ignore_case(self) -> bool: ...


def find_ripgrep(environment: Mapping[str, str]) -> Path | None:
    """Returns the `rg` on PATH, else the one that the extra `search` installed beside our Python."""
    found = find_program("rg", environment) or beside_python("rg")
    return Path(found) if found else None


def ripgrep_matches(
    program: Path, pattern: str, scope: Scope, halt: Halt
) -> Iterator[Match]:
    """Searches with ripgrep. Raises NotSearched, before the first match, if it can't."""
    folder = scope.top if scope.top.is_dir() else scope.top.parent
    fits = GlobFilter(scope.glob).fits if scope.glob and scope.top.is_dir() else None
    found = 0
    with subprocess.Popen(
        _command(program, pattern, scope),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        halt.on_stop(process.kill)
        try:
            for match in _parse(process.stdout, scope):
                if fits is None or fits(match.relative):
                    found += 1
                    yield match
        except GeneratorExit:
            process.kill()
            raise
    if process.returncode not in (0, 1) and not found and not halt.stopped:
        raise NotSearched


def ripgrep_files(program: Path, scope: Scope, halt: Halt) -> list[str]:
    """The first files below a folder that would be searched. Raises NotSearched if ripgrep can't list them."""
    fits = GlobFilter(scope.glob).fits if scope.glob else None
    command = [*_program(program, scope), "--files", "--", "./"]
    with subprocess.Popen(
        command,
        cwd=scope.top,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        halt.on_stop(process.kill)
        out = process.stdout.read(_MAX_LISTING_BYTES) if process.stdout else b""
        process.kill()  # it has listed all, or enough
    if process.returncode not in (0, 1) and not out and not halt.stopped:
        raise NotSearched
    names = (os.fsdecode(name).removeprefix("./") for name in out.split(b"\0") if name)
    return [name for name in names if fits is None or fits(name)]


def _command(program: Path, pattern: str, scope: Scope) -> list[str]:
    where = "./" if scope.top.is_dir() else str(scope.top)
    return [*_program(program, scope), f"--regexp={pattern}", "--", where]


def _program(program: Path, scope: Scope) -> list[str]:
    command = [str(program), *_OPTIONS, "--glob=!.git", "--glob=!.hg", "--glob=!.svn"]
    if (
        scope.glob and "/" not in scope.glob
    ):  # a --glob would include ignored files again
        command += [f"--type-add=wanted:{scope.glob}", "--type=wanted"]
    if (
        repository(scope.top) is None
    ):  # with these in a repository, rules from above it would apply
        command += ["--no-require-git", "--no-ignore-parent"]
    if scope.ignore_case:
        command.append("--ignore-case")
    return command


def _parse(stream: IO[bytes] | None, scope: Scope) -> Iterator[Match]:
    is_folder = scope.top.is_dir()
    while line := stream.readline(_MAX_LINE_BYTES) if stream else b"":
        name, zero, rest = line.partition(b"\0")
        number, _, text = rest.partition(b":")
        if zero and number.isdigit():
            relative = (
                os.fsdecode(name).removeprefix("./") if is_folder else scope.top.name
            )
            yield Match(
                relative, int(number), text.decode(errors="replace").rstrip("\r\n")
            )
