"""Translates indentation that a model wrote differently from the file, line by line. Pure."""

import itertools
from collections.abc import Sequence

import msgspec


class Indent(msgspec.Struct, frozen=True):
    """How the indentation of a written text translates into that of a file."""

    known: tuple[tuple[str, str], ...]
    """Pairs of the written and the file's indentation, longest first."""
    unit: tuple[str, str]
    """One step deeper: as written, and in the file."""

    def apply(self, line: str) -> str | None:
        """The line with the indentation that the file needs; None if that is unclear."""
        body = line.lstrip(" \t")
        if not body.strip():
            return line
        written = line[: len(line) - len(body)]
        for was, becomes in self.known:
            if written.startswith(was):
                deeper = self._steps(written[len(was) :])
                return None if deeper is None else becomes + deeper + body
        was, becomes = self.known[-1]  # less deep than any known indentation
        missing = self._steps(was[len(written) :]) if was.startswith(written) else None
        if missing is None or not becomes.endswith(missing):
            return None
        return becomes[: len(becomes) - len(missing)] + body

    def text(self, lines: Sequence[str]) -> list[str] | None:
        """All lines, indented as in the file; None if that is unclear for one of them."""
        moved = [self.apply(line) for line in lines]
        return (
            [line for line in moved if line is not None] if None not in moved else None
        )

    def _steps(self, rest: str) -> str | None:
        """The rest of an indentation in the file's own steps."""
        step, becomes = self.unit
        if step == becomes or not rest:
            return rest
        count, left = divmod(len(rest), len(step))
        return becomes * count if rest == step * count and not left else None


def reindent(written: Sequence[str], actual: Sequence[str]) -> Indent | None:
    """How `written` differs from `actual` in indentation; None if it differs in anything else, or not in one consistent
    way.
    """
    pairs: dict[str, str] = {}
    for want, have in zip(written, actual, strict=True):
        body = want.lstrip(" \t")
        if body != have.lstrip(" \t"):
            return None
        if not body:
            continue
        was, becomes = want[: len(want) - len(body)], have[: len(have) - len(body)]
        if pairs.setdefault(was, becomes) != becomes:
            return None
    known = sorted(pairs.items(), key=lambda pair: len(pair[0]), reverse=True)
    unit = _unit(known)
    if known and _is_consistent(known, unit):
        return Indent(tuple(known), unit)
    return None


def _unit(known: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """One step: from the smallest difference between two indentations, else from a change between tabs and spaces."""
    steps = [
        (deep[len(flat) :], becomes_deep[len(becomes_flat) :])
        for (deep, becomes_deep), (flat, becomes_flat) in itertools.pairwise(known)
        if deep.startswith(flat)
        and becomes_deep.startswith(becomes_flat)
        and deep != flat
    ]
    if steps:
        return _smallest(*min(steps, key=lambda step: len(step[0])))
    was, becomes = known[0] if known else ("", "")
    if was and becomes and set(was) != set(becomes):
        return _smallest(was, becomes)
    return ("", "")


def _smallest(was: str, becomes: str) -> tuple[str, str]:
    """Reduces a pair to its smallest form: eight spaces for two tabs are four for one."""
    if len(set(was)) == len(set(becomes)) == 1:
        count = min(len(was), len(becomes))
        if len(was) % count == 0 and len(becomes) % count == 0:
            return was[: len(was) // count], becomes[: len(becomes) // count]
    return was, becomes


def _is_consistent(known: Sequence[tuple[str, str]], unit: tuple[str, str]) -> bool:
    """Whether every pair follows from the least deep one and the unit: one shift, not several."""
    indent = Indent(tuple(known[-1:]), unit)
    return all(indent.apply(f"{was}x") == f"{becomes}x" for was, becomes in known)
