"""Makes short unified diffs for people and models."""

from collections.abc import Iterator, Sequence

from hermes.text.formats import count
from hermes.tools.files.edit_match import Edit, Replacement, line_of

_CONTEXT_LINES = 3
_MAX_PLACES = 20
_MAX_SHOWN_DIFF_LINES = 80
_MAX_DIFF_LINE_CHARACTERS = 400
_MAX_DIFFED_LINES = 4000
"""Longer texts are not compared line by line."""


def edit_diff(edit: Edit, *, whole: bool = False) -> str:
    """Returns the hunks of an edit.

    Only the lines around each place are compared, however long the text is. With `whole`, nothing is left out, for a
    person who decides about it.
    """
    lines: list[str] = []
    drift = 0
    groups = list(_groups(edit))
    for group in groups if whole else groups[:_MAX_PLACES]:
        start, end = _around(edit.before, group[0].start, group[-1].end)
        old = _lines(edit.before[start:end])
        new = _lines(_applied(edit.before, group, start, end))
        first = line_of(edit.before, start)
        lines += _hunks(old, new, first, first + drift)
        drift += len(new) - len(old)
    if groups and not lines:
        return (
            "(nothing differs)"
            if edit.after == edit.before
            else "(only line ends differ)"
        )
    if whole:
        return "\n".join(lines)
    if groups[_MAX_PLACES:]:
        lines.append(f"... and {len(groups) - _MAX_PLACES} more places")
    return _capped(lines)


def text_diff(before: str, after: str) -> str:
    """Returns the whole difference of two texts; for long ones, the new text instead."""
    old, new = _lines(before), _lines(after)
    if len(old) + len(new) > _MAX_DIFFED_LINES:
        return (
            f"({count(len(old), 'line')} become {len(new):,})\n{new_file_diff(after)}"
        )
    return "\n".join(_hunks(old, new, 1, 1))


def new_file_diff(content: str) -> str:
    """Returns the diff of a new file."""
    lines = _lines(content)
    return (
        "\n".join([f"@@ -0,0 +1,{len(lines)} @@", *(f"+{line}" for line in lines)])
        if lines
        else ""
    )


def deleted_file_diff(data: bytes) -> str:
    """Returns the diff of a file that is deleted, or a note if it is not text."""
    try:
        lines = _lines(data.decode())
    except UnicodeDecodeError:
        return f"(binary, {len(data):,} bytes)"
    if not lines:
        return ""
    return "\n".join([f"@@ -1,{len(lines)} +0,0 @@", *(f"-{line}" for line in lines)])


def _groups(edit: Edit) -> Iterator[list[Replacement]]:
    """Groups replacements whose surrounding lines overlap."""
    group: list[Replacement] = []
    for replacement in edit.replacements:
        if group:
            between = edit.before.count("\n", group[-1].end, replacement.start)
            if between > 2 * _CONTEXT_LINES:
                yield group
                group = []
        group.append(replacement)
    if group:
        yield group


def _around(text: str, start: int, end: int) -> tuple[int, int]:
    """Returns the range of whole lines around a place."""
    for _ in range(_CONTEXT_LINES + 1):
        start = text.rfind("\n", 0, max(0, start - 1)) + 1 if start else 0
    for _ in range(_CONTEXT_LINES + 1):
        found = text.find("\n", end)
        end = len(text) if found < 0 else found + 1
    return start, end


def _applied(text: str, group: Sequence[Replacement], start: int, end: int) -> str:
    pieces: list[str] = []
    for replacement in group:
        pieces += text[start : replacement.start], replacement.new
        start = replacement.end
    return "".join([*pieces, text[start:end]])


def _lines(text: str) -> list[str]:
    """Returns the lines of a text."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _hunks(old: list[str], new: list[str], first: int, first_new: int) -> Iterator[str]:
    from difflib import SequenceMatcher

    if len(old) + len(new) > _MAX_DIFFED_LINES:
        yield f"@@ -{_range(first, 0, len(old))} +{_range(first_new, 0, len(new))} @@"
        yield from (f"-{line}" for line in old)
        yield from (f"+{line}" for line in new)
        return
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(
        _CONTEXT_LINES
    ):
        start, end = group[0], group[-1]
        yield f"@@ -{_range(first, start[1], end[2])} +{_range(first_new, start[3], end[4])} @@"
        for kind, one, two, three, four in group:
            if kind == "equal":
                yield from (f" {line}" for line in old[one:two])
            else:
                yield from (f"-{line}" for line in old[one:two])
                yield from (f"+{line}" for line in new[three:four])


def _range(first: int, start: int, end: int) -> str:
    count = end - start
    return f"{first + start - (count == 0)},{count}"


def _capped(lines: list[str]) -> str:
    shown = [
        line
        if len(line) <= _MAX_DIFF_LINE_CHARACTERS
        else f"{line[:_MAX_DIFF_LINE_CHARACTERS]}..."
        for line in lines[:_MAX_SHOWN_DIFF_LINES]
    ]
    return "\n".join(
        shown
        + (
            [f"... {len(lines) - _MAX_SHOWN_DIFF_LINES} more lines of diff"]
            if lines[_MAX_SHOWN_DIFF_LINES:]
            else []
        )
    )
