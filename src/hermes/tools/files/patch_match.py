"""Finds the place of every hunk in a file, and computes the new text. Does no I/O.

A hunk matches exactly, or except for trailing whitespace, or with another indentation, or with typographic characters
where the model wrote plain ones. Hunks are in order. If they fit in two ways, nothing is done.
"""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from hermes.errors import ToolFailed
from hermes.tools.files.edit_match import Edit, Replacement
from hermes.tools.files.indentation import Indent, reindent
from hermes.tools.files.nearest_text import nearest
from hermes.tools.files.patch_parse import Hunk

_NOTHING = "Nothing was changed."
_MAX_NAMED_LINES = 10
_PLAIN = str.maketrans("‘’‚“”„–—‐‑−\u00a0\u202f", "'''\"\"\"-----  ")


class _Fit(msgspec.Struct, frozen=True):
    """A place where a hunk's old lines are."""

    first: int
    count: int
    indent: Indent | None = None

    @property
    def end(self) -> int:
        return self.first + self.count


class _File:
    """The lines of a file without their ends, and where each begins."""

    def __init__(self, text: str) -> None:
        self.text = text
        pieces = text.split("\n")
        self.is_unended = bool(pieces[-1])
        if not pieces[-1]:
            pieces.pop()
        self.lines = [piece.removesuffix("\r") for piece in pieces]
        self.starts = [0]
        for piece in pieces:
            self.starts.append(min(self.starts[-1] + len(piece) + 1, len(text)))
        crlf = sum(piece.endswith("\r") for piece in pieces)
        self.end = "\r\n" if crlf * 2 > len(pieces) else "\n"


def apply_hunks(path: str, text: str, hunks: Sequence[Hunk]) -> Edit:
    """Applies the hunks to a text. Raises ToolFailed with the hunk that does not fit, or fits several places."""
    bom = "\ufeff" if text.startswith("\ufeff") else ""
    file = _File(text[len(bom) :])
    fits = _placed(path, file, hunks)
    replacements = [
        part
        for hunk, fit in zip(hunks, fits, strict=True)
        for part in _parts(file, hunk, fit)
    ]
    shifted = [
        Replacement(part.start + len(bom), part.end + len(bom), part.new)
        for part in replacements
    ]
    return Edit(text, tuple(sorted(shifted, key=lambda part: (part.start, part.end))))


def _placed(path: str, file: _File, hunks: Sequence[Hunk]) -> list[_Fit]:
    """Finds one place for each hunk, in order and without overlap. Raises ToolFailed if there is none, or several."""
    found = [_fits(file, hunk) for hunk in hunks]
    for number, fits in enumerate(found):
        if not fits:
            raise _missing(path, file, hunks, number)
    earliest = _in_order(found)
    if earliest is None:
        return _placed_out_of_order(path, found)
    mirrored = _in_order([[_mirrored(fit) for fit in fits] for fits in reversed(found)])
    latest = [_mirrored(fit) for fit in reversed(mirrored or [])]
    for number, (first, last) in enumerate(zip(earliest, latest, strict=True)):
        if first.first != last.first:
            raise _ambiguous(path, number, found[number])
    return earliest


def _placed_out_of_order(path: str, found: Sequence[Sequence[_Fit]]) -> list[_Fit]:
    """The places of hunks that the model wrote in a different order than the file's, if each has only one."""
    places = [fits[0] for fits in found]
    by_line = sorted(places, key=lambda fit: fit.first)
    has_one_place = all(len(fits) == 1 for fits in found)
    if has_one_place and _in_order([[fit] for fit in by_line]):
        return places
    raise ToolFailed(
        f"The hunks of {path} overlap, or are not in the order of the file.",
        hint=_NOTHING,
    )


def _ambiguous(path: str, number: int, fits: Sequence[_Fit]) -> ToolFailed:
    lines = ", ".join(str(fit.first + 1) for fit in fits[:_MAX_NAMED_LINES])
    return ToolFailed(
        f"Hunk {number + 1} of {path} matches several places (lines {lines}).",
        hint=f"{_NOTHING} Give it more lines around the change, or an `@@` line with what comes before.",
    )


def _in_order(found: Sequence[Sequence[_Fit]]) -> list[_Fit] | None:
    """Puts each hunk at the first matching place after the previous one; None if there is none."""
    chosen: list[_Fit] = []
    after = None
    for fits in found:
        fit = next(
            (
                fit
                for fit in sorted(fits, key=lambda fit: fit.end)
                if after is None or fit.first >= after
            ),
            None,
        )
        if fit is None:
            return None
        chosen.append(fit)
        after = fit.end
    return chosen


def _mirrored(fit: _Fit) -> _Fit:
    return _Fit(-fit.end, fit.count, fit.indent)


def _fits(file: _File, hunk: Hunk) -> list[_Fit]:
    """Returns the places of a hunk by the first comparison that finds any, narrowed down by the patch's own hints."""
    old = hunk.old
    if not old:
        return _insertion(file, hunk)
    for ways in (_exact, _without_trailing, _indented, _plain):
        fits = [
            fit
            for fit in ways(file.lines, old)
            if not hunk.at_end or fit.end == len(file.lines)
        ]
        if fits:
            return _narrowed(file, hunk, fits)
    return []


def _narrowed(file: _File, hunk: Hunk, fits: list[_Fit]) -> list[_Fit]:
    if len(fits) > 1 and hunk.line:
        fits = [fit for fit in fits if fit.first + 1 == hunk.line] or fits
    if hunk.headings:
        after = _after_headings(file.lines, hunk.headings)
        # The text below a heading begins there, or includes the heading itself.
        nearest_below = {
            min(
                (fit for fit in fits if fit.end > line),
                key=lambda fit: fit.first,
                default=None,
            )
            for line in after
        }
        below = [fit for fit in fits if fit in nearest_below]
        return below or (fits if len(fits) == 1 else [])
    return fits


def _after_headings(lines: Sequence[str], headings: Sequence[str]) -> list[int]:
    """The lines of the innermost heading, below all the others."""
    first = 0
    for heading in headings[:-1]:
        found = _headed(lines, heading, first)
        if not found:
            return []
        first = found[0] + 1
    return _headed(lines, headings[-1], first)


def _headed(lines: Sequence[str], heading: str, first: int) -> list[int]:
    wanted = heading.strip()
    same = [
        number for number in range(first, len(lines)) if lines[number].strip() == wanted
    ]
    return same or [
        number
        for number in range(first, len(lines))
        if lines[number].strip().startswith(wanted)
    ]


def _insertion(file: _File, hunk: Hunk) -> list[_Fit]:
    """Where to insert lines without context: after a heading, at a line, or at the end if the patch says so."""
    if hunk.headings:
        return [
            _Fit(line + 1, 0) for line in _after_headings(file.lines, hunk.headings)
        ]
    if hunk.line is not None:
        if hunk.line <= len(file.lines):
            return [_Fit(hunk.line, 0)]
        return []
    if hunk.at_end or not file.lines:
        return [_Fit(len(file.lines), 0)]
    return []


def _windows(
    lines: Sequence[str], old: Sequence[str], same: Callable[[str, str], bool]
) -> Iterator[int]:
    """The places of the most distinctive line of `old`, which rules out most other places at once."""
    key = max(range(len(old)), key=lambda number: len(old[number].strip()))
    for first in range(len(lines) - len(old) + 1):
        if same(lines[first + key], old[key]):
            yield first


def _exact(lines: Sequence[str], old: list[str]) -> list[_Fit]:
    places = _windows(lines, old, str.__eq__)
    return [
        _Fit(first, len(old))
        for first in places
        if list(lines[first : first + len(old)]) == old
    ]


def _without_trailing(lines: Sequence[str], old: list[str]) -> list[_Fit]:
    return _exact([line.rstrip() for line in lines], [line.rstrip() for line in old])


def _indented(lines: Sequence[str], old: list[str]) -> list[_Fit]:
    if not any(line.strip() for line in old):
        return []
    bare = [line.rstrip() for line in old]
    found: list[_Fit] = []
    for first in _windows(lines, bare, lambda have, want: have.strip() == want.strip()):
        indent = reindent(
            bare, [line.rstrip() for line in lines[first : first + len(old)]]
        )
        if indent is not None:
            found.append(_Fit(first, len(old), indent))
    return found


def _plain(lines: Sequence[str], old: list[str]) -> list[_Fit]:
    return _without_trailing(
        [line.translate(_PLAIN) for line in lines],
        [line.translate(_PLAIN) for line in old],
    )


def _missing(path: str, file: _File, hunks: Sequence[Hunk], number: int) -> ToolFailed:
    hunk = hunks[number]
    which = f"Hunk {number + 1} of {len(hunks)}" if len(hunks) > 1 else "The hunk"
    if not hunk.old:
        return ToolFailed(
            f"{which} of {path} only adds lines, and does not say where.",
            hint=f"{_NOTHING} Give it unchanged lines around the new ones.",
        )
    where = " at the end of the file" if hunk.at_end else ""
    heading = f" below {hunk.headings[-1]!r}" if hunk.headings else ""
    return ToolFailed(
        f"{which} of {path} does not apply: its text was not found{heading}{where}.{nearest(file.lines, hunk.old)}",
        hint=f"{_NOTHING} Its unchanged and removed lines must be in the file as they are; read it again.",
    )


def _parts(file: _File, hunk: Hunk, fit: _Fit) -> Iterator[Replacement]:
    """The runs of removed and added lines; unchanged lines stay as the file has them."""
    place = start = fit.first
    added: list[str] | None = None
    for mark, text in [*hunk.lines, (" ", "")]:
        if mark in ("+", "-"):
            if added is None:
                start, added = place, list[str]()
            if mark == "-":
                place += 1
            else:
                added.append(_moved(text, fit))
            continue
        if added is not None:
            yield _run(file, (start, place), added, hunk.is_unended)
            added = None
        place += 1


def _moved(text: str, fit: _Fit) -> str:
    moved = text if fit.indent is None else fit.indent.apply(text)
    if moved is None:
        raise ToolFailed(
            f"The indentation of {text.strip()[:60]!r} can't be told from the lines around it.",
            hint=f"{_NOTHING} Indent the hunk as the file is indented.",
        )
    return moved


def _run(
    file: _File, span: tuple[int, int], added: list[str], is_unended: bool | None
) -> Replacement:
    """New text for lines `span`, with the file's line ends; the end of the file stays as it was unless the patch
    changes it."""
    first, last = span
    new = "".join(f"{line}{file.end}" for line in added)
    if last == len(file.lines) and added:
        if file.is_unended and first == last and file.lines:
            new = file.end + new
        if file.is_unended if is_unended is None else is_unended:
            new = new.removesuffix(file.end)
    return Replacement(file.starts[first], file.starts[last], new)
