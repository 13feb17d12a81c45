"""Draws diffs: line numbers, syntax colour, and the changed words of a line highlighted."""

import difflib
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

import msgspec

from hermes.surfaces.terminal.styled_text import BOLD, DIM, GREEN, RED, Row, Run
from hermes.surfaces.terminal.text import clean, cut, width, wrap
from hermes.surfaces.terminal.theme import ADDED, ADDED_WORD, REMOVED, REMOVED_WORD
from hermes.surfaces.terminal.tool_line import Marks
from hermes.text.translation import translator

t = translator(__name__)


_NUMBERS = r"([0-9]{1,9})(?:,([0-9]{1,9}))?"
_HUNK = re.compile(rf"@@ -{_NUMBERS} \+{_NUMBERS} @@(.*)")
_TITLE = re.compile(r"(?:Edited|Moved|Created|Deleted) (.+?):?$")
_ASKED_TITLE = re.compile(r"(?:Edit|Move|Create|Delete) (.+?):?$")
_DIFF_SIGNS = frozenset("+- ")
_DIFF_MARKS = frozenset("@+- \\.")
_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_MIN_SIMILARITY = 0.4  # of two lines whose words are compared
_MAX_COMPARED_CHARS = 400


class FileDiff(msgspec.Struct, frozen=True):
    """The changes of one file."""

    name: str
    """Empty if the text does not name it."""
    lines: Sequence[str]

    @property
    def added(self) -> int:
        """How many lines were added."""
        return sum(line.startswith("+") for line in self.lines)

    @property
    def removed(self) -> int:
        """How many lines were removed."""
        return sum(line.startswith("-") for line in self.lines)


class _DiffLine(msgspec.Struct):
    sign: str
    text: str
    number: int
    changed: tuple[tuple[int, int], ...] = ()
    """The changed parts of the text: where they begin and end."""


def diffs_in(text: str) -> list[FileDiff]:
    """Returns the diffs in a result or a question, by file."""
    found: list[FileDiff] = []
    name, lines, is_open = "", list[str](), False
    for line in [*clean(text).split("\n"), ""]:
        if line.startswith("@@ "):
            is_open = True
        elif is_open and not (line and line[0] in _DIFF_MARKS):
            found.append(FileDiff(name, lines))
            name, lines, is_open = "", list[str](), False
        if is_open:
            lines.append(line)
        elif title := _TITLE.match(line):
            name = title[1]
    return found


def diff_rows(
    diffs: Sequence[FileDiff], columns: int, marks: Marks, most: int, *, name: str = "", hint: str = ""
) -> Iterator[Row]:  # fmt: skip
    """Yields the rows of diffs, at most `most` and then how many are hidden. `name` is shown already."""
    rows = [
        row
        for diff in diffs
        for row in _file_rows(diff, columns, marks, known=name, several=len(diffs) > 1)
    ]
    if len(rows) <= most + 1:
        yield from rows
        return
    yield from rows[:most]
    more = t("{count:,} more line", "{count:,} more lines", count=len(rows) - most)
    note = f"  {marks.bar} {marks.runs} {more}{hint}"
    yield ((cut(note, columns), DIM),)


def whole_diff_rows(diff: FileDiff, columns: int, marks: Marks) -> Iterator[Row]:
    """Yields the rows of a diff that a person decides about: all of it, with long lines wrapped."""
    yield from _file_rows(
        diff, columns, marks, known=diff.name, several=False, wraps=True
    )


def parts_of(text: str, name: str) -> Iterator[str | FileDiff]:
    """Yields the diffs in a question's text, and each line beside them. `name` is the changed file, unless a line before
    a diff names another. Only for a text that is known to hold a diff: any other may just look like one.
    """
    hunks: list[str] = []
    old = new = 0  # lines that the hunk still has
    for line in text.split("\n"):
        if found := _HUNK.match(line):
            old, new = int(found[2] or 1), int(found[4] or 1)
        elif (old or new) and line[:1] in _DIFF_SIGNS:
            old -= line[:1] != "+"
            new -= line[:1] != "-"
        else:
            if hunks:
                yield FileDiff(name, hunks)
                hunks = []
            old = new = 0
            if title := _ASKED_TITLE.match(line):
                name = title[1]
            yield line
            continue
        hunks.append(line)
    if hunks:
        yield FileDiff(name, hunks)


def patch_parts(patch: str) -> Iterator[str | FileDiff]:
    """Yields the parts of a patch that is asked about. In place of the two lines above each diff, the name of its file is
    yielded, or nothing if there is only one.
    """
    parts = list(parts_of(patch, ""))
    named = {
        number: name
        for number in range(len(parts) - 2)
        if (name := _file_name(*parts[number : number + 3]))
    }
    name = ""
    for number, part in enumerate(parts):
        if number in named:
            name = named[number]
            if len(named) > 1:
                yield name
        elif isinstance(part, FileDiff):
            yield FileDiff(name or part.name, part.lines)
        elif number - 1 not in named:
            yield part


def _file_name(
    before: str | FileDiff, after: str | FileDiff, diff: str | FileDiff
) -> str:
    """Returns the name in the two lines above a file's diff; empty for other parts."""
    if (
        isinstance(before, FileDiff)
        or isinstance(after, FileDiff)
        or not isinstance(diff, FileDiff)
        or not (before.startswith("--- ") and after.startswith("+++ "))
    ):
        return ""
    old, new = before[4:].removeprefix("a/"), after[4:].removeprefix("b/")
    if "/dev/null" in (old, new):
        return new if old == "/dev/null" else old
    return new if old == new else f"{old} -> {new}"


def _read_parts(diff: str) -> Iterator[str | FileDiff]:
    """Yields git's diff for a person: each file's name once, what else git says about it, and its changes."""
    name = ""
    for part in parts_of(diff, ""):
        if isinstance(part, FileDiff):
            yield FileDiff(name, part.lines)
        elif part.startswith("diff --git "):
            name = part.rpartition(" b/")[2]
            yield name
        elif not (name and part.startswith(("index ", "--- ", "+++ "))):
            yield part


def without_headers(diff: str) -> str:
    """Returns git's diff as text in which each file is named once."""
    lines: list[str] = []
    for part in _read_parts(diff):
        lines += part.lines if isinstance(part, FileDiff) else [part]
    return "\n".join(lines)


def read_rows(diff: str, columns: int, marks: Marks) -> Iterator[Row]:
    """Yields all rows of git's diff for a person who reads it in a chat."""
    for part in _read_parts(clean(diff).rstrip("\n")):
        if isinstance(part, FileDiff):
            yield from whole_diff_rows(part, columns, marks)
        else:
            yield from (((line, BOLD),) for line in wrap(part, columns))


def _file_rows(
    diff: FileDiff,
    columns: int,
    marks: Marks,
    *,
    known: str,
    several: bool,
    wraps: bool = False,
) -> Iterator[Row]:
    from hermes.surfaces.terminal.markdown.syntax import Highlighter

    bar = f"  {marks.bar} "
    if several and diff.name:
        yield ((bar, DIM), (cut(diff.name, columns - width(bar)), BOLD))
    language = PurePath(diff.name or known).suffix[1:].lower()
    highlighter = Highlighter(language)
    lines = list(_numbered(diff.lines))
    digits = len(str(max((line.number for line in lines), default=0)))
    room = max(columns - width(bar) - digits - 3, 8)
    is_first = True
    for line in lines:
        if line.sign == "@":
            if line.text or not is_first:
                header = f"{marks.runs}{line.text}"
                yield from _header_rows(header, bar, columns, wraps=wraps)
            is_first = False
            highlighter = Highlighter(language)
            continue
        text = line.text if wraps else cut(line.text, room)
        runs = tuple(highlighter.line(text)) if line.sign != "-" else ((text, ""),)
        yield from _line_rows(line, runs, bar, digits, room)


def _header_rows(text: str, bar: str, columns: int, *, wraps: bool) -> Iterator[Row]:
    """Yields what separates a hunk from the one before, with the words after its line numbers."""
    room = max(columns - width(bar), 8)
    shown = text if wraps else cut(text, room)
    for content in _folded([(shown, DIM)], room):
        yield ((bar, DIM), *content)


def _line_rows(
    line: _DiffLine, runs: Sequence[Run], bar: str, digits: int, room: int
) -> Iterator[Row]:
    look, word, sign = {
        "+": (ADDED, ADDED_WORD, GREEN),
        "-": (REMOVED, REMOVED_WORD, RED),
    }.get(line.sign, ("", "", DIM))
    number = f"{line.number or '':>{digits}} {line.sign} "
    for content in _folded(_backed(runs, line.changed, look, word), room):
        yield ((bar, DIM), (number, sign), *content)
        number = " " * len(number)


def _folded(runs: Iterable[Run], room: int) -> Iterator[Row]:
    """Splits runs into rows of at most `room` cells. No character is lost."""
    row: list[Run] = []
    used = 0
    for text, look in runs:
        start = 0
        for at, char in enumerate(text):
            cells = width(char)
            if used + cells > room:
                row.append((text[start:at], look))
                yield tuple(row)
                row, used, start = list[Run](), 0, at
            used += cells
        row.append((text[start:], look))
    yield tuple(row)


def _backed(
    runs: Sequence[Run], changed: Sequence[tuple[int, int]], look: str, word: str
) -> Iterator[Run]:
    """Yields runs on the background of their line, and changed words on a stronger one."""
    if not look:
        yield from runs
        return
    at = 0
    edges = sorted({edge for part in changed for edge in part})
    for text, colour in runs:
        end = at + len(text)
        cuts = [at, *(edge for edge in edges if at < edge < end), end]
        for start, stop in itertools.pairwise(cuts):
            is_changed = any(first <= start < last for first, last in changed)
            back = word if is_changed else look
            yield text[start - at : stop - at], f"{colour};{back}".strip(";")
        at = end


def _numbered(lines: Sequence[str]) -> Iterator[_DiffLine]:
    """Yields the lines with their numbers, and compares removed lines with the added ones after them."""
    old = new = 0
    removed: list[_DiffLine] = []
    added: list[_DiffLine] = []
    for line in lines:
        sign = line[:1] or " "
        if sign not in "+-" or (sign == "-" and added):
            yield from _compared(removed, added)
            removed, added = list[_DiffLine](), list[_DiffLine]()
        match sign:
            case "@" if found := _HUNK.match(line):
                old, new = int(found[1]), int(found[3])
                yield _DiffLine("@", found[5].rstrip(), 0)
            case "-":
                removed.append(_DiffLine("-", line[1:], old))
                old += 1
            case "+":
                added.append(_DiffLine("+", line[1:], new))
                new += 1
            case " ":
                yield _DiffLine(" ", line[1:], new)
                old, new = old + 1, new + 1
            case _:
                yield _DiffLine(" ", line, 0)
    yield from _compared(removed, added)


def _compared(
    removed: Sequence[_DiffLine], added: Sequence[_DiffLine]
) -> Iterator[_DiffLine]:
    """Yields removed lines and those that replace them, with the words that differ noted."""
    if len(removed) == len(added):
        _compare(removed, added)
    yield from removed
    yield from added


def _compare(removed: Sequence[_DiffLine], added: Sequence[_DiffLine]) -> None:
    """Notes which words differ between lines that replace each other."""
    for before, after in zip(removed, added, strict=True):
        if max(len(before.text), len(after.text)) > _MAX_COMPARED_CHARS:
            continue
        first, second = _WORD.findall(before.text), _WORD.findall(after.text)
        matcher = difflib.SequenceMatcher(None, first, second, autojunk=False)
        if matcher.ratio() < _MIN_SIMILARITY:
            continue
        changes = [code for code in matcher.get_opcodes() if code[0] != "equal"]
        before.changed = tuple(_span(first, code[1], code[2]) for code in changes)
        after.changed = tuple(_span(second, code[3], code[4]) for code in changes)


def _span(words: Sequence[str], first: int, last: int) -> tuple[int, int]:
    """Returns where these words begin and end in their line."""
    start = sum(map(len, words[:first]))
    return start, start + sum(map(len, words[first:last]))
