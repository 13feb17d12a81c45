"""Parses a patch: the format with `*** Begin Patch`, and unified diffs as diff and git write them. Pure.

Line counts and line numbers are only hints, because models count badly. A truncated patch is refused.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from hermes.errors import ToolFailed

# The patterns are strings: `re` compiles them on first use, so that starting up does not wait for it.
_SECTION = r"\*\*\* (Add|Update|Delete) File:(.*)"
_MOVE = "*** Move to:"
_BEGIN, _END, _AT_END = "*** Begin Patch", "*** End Patch", "*** End of File"
_NUMBERS = r"@@+ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@+ ?(.*)"
_ANY_PATH = r"(?:\*\*\* (?:Add File|Update File|Delete File|Move to):|(?:---|\+\+\+) (?:[ab]/)?)(.+)"
_PATH_MARKS = ("*** ", "--- ", "+++ ")
_NOTHING = "Nothing was changed."


class Hunk(msgspec.Struct, frozen=True, kw_only=True):
    """A change in one place. A line is its mark (` `, `-` or `+`) and its text."""

    lines: tuple[tuple[str, str], ...]
    headings: tuple[str, ...] = ()
    """Lines of the file that precede the place, outermost first."""
    line: int | None = None
    """The line of the file at which it begins, or after which it adds lines, if the patch has one."""
    at_end: bool = False
    is_unended: bool | None = None
    """Whether the file ends without a line end afterwards; None keeps that as it is."""

    @property
    def old(self) -> list[str]:
        """The lines that must be in the file."""
        return [text for mark, text in self.lines if mark != "+"]


class FilePatch(msgspec.Struct, frozen=True, kw_only=True):
    """What a patch does to one file. `hunks` for an update, `content` for a new file."""

    kind: str
    path: str
    hunks: tuple[Hunk, ...] = ()
    content: str = ""
    new_path: str = ""


def read_patch(text: str) -> list[FilePatch]:
    """The files of a patch, in order. Raises ToolFailed with what is wrong with it."""
    lines = _unwrapped(text)
    files = (
        _Sections(lines).read()
        if any(line.startswith("*** ") for line in lines)
        else _Unified(lines).read()
    )
    if not files:
        raise _broken(
            "there is no file in it; it begins with `*** Begin Patch`, or is a unified diff"
        )
    return files


def patch_paths(text: str) -> list[str]:
    """Every path in a patch, even if the patch can't be applied: what it may touch is known before it is tried."""
    try:
        return [
            path
            for file in read_patch(text)
            for path in (file.path, file.new_path)
            if path
        ]
    except ToolFailed:
        may_name = [line for line in text.split("\n") if line.startswith(_PATH_MARKS)]
        named = (re.fullmatch(_ANY_PATH, line.rstrip()) for line in may_name)
        return [found[1].strip() for found in named if found]


def _broken(what: str) -> ToolFailed:
    return ToolFailed(f"The patch can't be read: {what}.", hint=_NOTHING)


def _unwrapped(text: str) -> list[str]:
    """The patch's own lines, without a code fence or a here-document around it."""
    lines = text.replace("\r\n", "\n").split("\n")
    while lines and not lines[-1]:  # a line with a space is an unchanged empty one
        lines.pop()
    first = next((at for at, line in enumerate(lines) if line.strip()), len(lines))
    lines = lines[first:]
    if lines and lines[0].startswith("```"):
        lines = lines[1:-1] if lines[-1].strip() == "```" else lines[1:]
    wrapped = (
        re.fullmatch(r"(?:apply_patch\s+)?<<-?\s*(['\"]?)(\w+)\1", lines[0].strip())
        if lines
        else None
    )
    if wrapped:
        lines = lines[1:-1] if lines[-1].strip() == wrapped[2] else lines[1:]
    return lines


class _Sections:
    """Reads the format with `*** Begin Patch`."""

    def __init__(self, lines: Sequence[str]) -> None:
        starts = [number for number, line in enumerate(lines) if line.strip() == _BEGIN]
        ends = [number for number, line in enumerate(lines) if line.strip() == _END]
        if not ends:
            raise _broken(f"it does not end with `{_END}`, so it may be cut off")
        self._lines = lines[starts[0] + 1 if starts else 0 : ends[-1]]

    def read(self) -> list[FilePatch]:
        return [self._file(*section) for section in self._sections()]

    def _sections(self) -> Iterator[tuple[str, str, list[str]]]:
        kind = path = ""
        body: list[str] = []
        for line in self._lines:
            section = re.fullmatch(_SECTION, line.rstrip())
            if not section:
                if not kind and line.strip():
                    raise _broken(f"{line[:80]!r} comes before the first file")
                body.append(line)
                continue
            if kind:
                yield kind, path, body
            kind, path, body = section[1].lower(), section[2].strip(), list[str]()
            if not path:
                raise _broken(f"{line[:80]!r} names no file")
        if kind:
            yield kind, path, body

    def _file(self, kind: str, path: str, body: list[str]) -> FilePatch:
        if kind == "delete":
            if any(line.strip() for line in body):
                raise _broken(f"there are lines below `*** Delete File: {path}`")
            return FilePatch(kind=kind, path=path)
        if kind == "add":
            return FilePatch(kind=kind, path=path, content=_added(path, body))
        new_path = ""
        if body and body[0].startswith(_MOVE):
            new_path = body[0].removeprefix(_MOVE).strip()
            body = body[1:]
        hunks = tuple(self._hunks(path, body))
        if not hunks and not new_path:
            raise _broken(f"`*** Update File: {path}` has no changes below it")
        return FilePatch(kind=kind, path=path, hunks=hunks, new_path=new_path)

    def _hunks(self, path: str, body: list[str]) -> Iterator[Hunk]:
        headings: list[str] = []
        numbers: re.Match[str] | None = None
        at_end = False
        lines: list[tuple[str, str]] = []
        for line in [*body, "@@"]:
            if line.startswith("@@"):
                if lines:
                    yield _hunk(
                        path,
                        lines,
                        headings=tuple(headings),
                        line=_line(numbers, lines),
                        at_end=at_end,
                    )
                    lines, headings = list[tuple[str, str]](), list[str]()
                    at_end = False
                numbers = re.fullmatch(_NUMBERS, line)
                heading = numbers[5] if numbers else line.strip("@").strip()
                headings += [heading] if heading else []
            elif line.rstrip() == _AT_END:
                at_end = True
            elif line.startswith(("+", "-", " ", "\t")):
                mark = " " if line[0] == "\t" else line[0]
                lines.append((mark, line if line[0] == "\t" else line[1:]))
            elif not line:
                lines.append(("", ""))
            elif not line.startswith("\\"):
                raise _broken(
                    f"in {path}, {line[:80]!r} begins with neither `+`, `-`, a space nor `@@`"
                )


def _added(path: str, body: list[str]) -> str:
    while body and not body[-1]:
        body = body[:-1]
    for line in body:
        if not line.startswith("+"):
            raise _broken(
                f"each line of the new file {path} must begin with `+`, not {line[:80]!r}"
            )
    return "".join(f"{line[1:]}\n" for line in body)


def _hunk(path: str, lines: list[tuple[str, str]], **more: object) -> Hunk:
    while len(lines) > 1 and not lines[-1][0]:
        lines = lines[:-1]  # empty lines between hunks belong to neither
    lines = [
        (mark or " ", text) for mark, text in lines
    ]  # elsewhere, only the space was lost
    if all(mark == " " for mark, _ in lines):
        raise _broken(f"a hunk of {path} changes nothing ({lines[0][1][:60]!r})")
    return msgspec.convert({"lines": lines, **more}, Hunk)


class _Unified:
    """Reads unified diffs."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._place = 0

    def read(self) -> list[FilePatch]:
        files: list[FilePatch] = []
        renamed: dict[str, str] = {}
        while self._place < len(self._lines):
            line = self._lines[self._place]
            if line.startswith(("Binary files ", "GIT binary patch")):
                raise _broken("binary files can't be patched")
            if line.startswith("diff --git "):
                files += _only_renamed(renamed)
            for start in ("rename from ", "rename to "):
                if line.startswith(start):
                    renamed[start] = line.removeprefix(start).strip()
            if self._is_header(self._place):
                files.append(self._file())
                renamed.clear()
            else:
                self._place += 1
        return files + _only_renamed(renamed)

    def _is_header(self, place: int) -> bool:
        lines = self._lines[place : place + 2]
        return (
            len(lines) == 2
            and lines[0].startswith("--- ")
            and lines[1].startswith("+++ ")
        )

    def _file(self) -> FilePatch:
        old, new = _names(*self._lines[self._place : self._place + 2])
        self._place += 2
        hunks: list[Hunk] = []
        while self._place < len(self._lines) and self._lines[self._place].startswith(
            "@@"
        ):
            hunks.append(self._hunk(new or old))
        if not hunks:
            raise _broken(f"there are no hunks for {new or old}")
        if not new:
            return FilePatch(kind="delete", path=old)
        if not old:
            content = "\n".join(
                text for hunk in hunks for mark, text in hunk.lines if mark == "+"
            )
            return FilePatch(
                kind="add",
                path=new,
                content=content + ("" if hunks[-1].is_unended else "\n"),
            )
        return FilePatch(
            kind="update",
            path=old,
            hunks=tuple(hunks),
            new_path=new if new != old else "",
        )

    def _hunk(self, path: str) -> Hunk:
        numbers = re.fullmatch(_NUMBERS, self._lines[self._place].rstrip())
        counts = (int(numbers[2] or 1), int(numbers[4] or 1)) if numbers else None
        self._place += 1
        lines: list[tuple[str, str]] = []
        is_unended: bool | None = None
        while self._place < len(self._lines) and not self._is_over(lines, counts):
            line = self._lines[self._place]
            self._place += 1
            if line.startswith("\\"):
                is_unended = bool(lines) and lines[-1][0] != "-"
            else:
                lines.append((line[:1], line[1:]))
        if not lines:
            raise _broken(f"a hunk of {path} is empty")
        return _hunk(path, lines, line=_line(numbers, lines), is_unended=is_unended)

    def _is_over(
        self, lines: list[tuple[str, str]], counts: tuple[int, int] | None
    ) -> bool:
        """Whether the hunk ends here. A removed line `-- a` before an added `++ b` looks like a new file's header;
        then the counts decide."""
        line = self._lines[self._place]
        if (line and line[0] not in " +-\\") or (
            line == "-- " and _counted(lines) == counts
        ):
            return True  # the latter is the signature below a mailed patch
        if not self._is_header(self._place):
            return False
        pair = [("-", ""), ("+", "")]
        return (
            counts is None
            or _counted(lines) == counts
            or _counted([*lines, *pair]) != counts
        )


def _line(
    numbers: "re.Match[str] | None", lines: Iterable[tuple[str, str]]
) -> int | None:
    """The line number of a hunk. One that should have old lines and has none has lost them: then it says nothing."""
    if numbers is None or (numbers[2] != "0" and _counted(lines)[0] == 0):
        return None
    return int(numbers[1])


def _counted(lines: Iterable[tuple[str, str]]) -> tuple[int, int]:
    marks = [mark for mark, _ in lines]
    return len(marks) - marks.count("+"), len(marks) - marks.count("-")


def _names(old_line: str, new_line: str) -> tuple[str, str]:
    """The paths in the `---` and `+++` lines, without git's `a/` and `b/`; empty for no file."""
    old, new = _named(old_line), _named(new_line)
    if (not old or old.startswith("a/")) and (not new or new.startswith("b/")):
        return old[2:], new[2:]
    return old, new


def _named(line: str) -> str:
    path = line[4:].split("\t", maxsplit=1)[0].strip()
    if path.startswith('"') and path.endswith('"') and len(path) > 1:
        path = path[1:-1]
    return "" if path == "/dev/null" else path


def _only_renamed(renamed: dict[str, str]) -> list[FilePatch]:
    """A file that got another name and was not changed otherwise."""
    old, new = renamed.pop("rename from ", ""), renamed.pop("rename to ", "")
    if old and new:
        return [FilePatch(kind="update", path=old, new_path=new)]
    return []
