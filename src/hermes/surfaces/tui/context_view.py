"""The context window as a bar chart: what fills it, how much is free, and when it is compressed."""

from collections.abc import Iterator, Sequence

from hermes.commands.slash_commands import ContextUse
from hermes.core.context_usage import Context, ContextPart
from hermes.surfaces.terminal.styled_text import (
    BOLD,
    CYAN,
    DIM,
    GREEN,
    MAGENTA,
    RED,
    YELLOW,
    Row,
    Run,
)
from hermes.surfaces.terminal.text import wrap

_LOOKS = {
    "instructions": CYAN,
    "project notes": CYAN,
    "tools": MAGENTA,
    "memory": YELLOW,
    "skills index": YELLOW,
    "your words": GREEN,
    "replies": "34",
    "tool results": RED,
    "pictures": RED,
    "summary": GREEN,
}
_MAX_BAR_CELLS = 60


def window_rows(use: ContextUse, columns: int, *, ascii_only: bool) -> Iterator[Row]:
    """Yields a heading, the bar, a row for each part and for the free space, and what happens next."""
    context = use.usage
    parts = context.scaled()
    free = max(0, context.window - context.used)
    about = "" if context.counted else ", estimated"
    yield (
        (f"{context.used:,} of {context.window:,} tokens", BOLD),
        (f"  {_share(context.share)}{about}", DIM),
    )
    yield tuple(
        _bar(parts, context, min(columns - 2, _MAX_BAR_CELLS), ascii_only=ascii_only)
    )
    mark, hole = ("#", ".") if ascii_only else ("■", "·")
    rows = [
        (mark, _LOOKS.get(part.name, ""), part.name, part.tokens, part.count)
        for part in parts
    ]
    width = max([len(name) for _, _, name, _, _ in rows] + [4])
    for sign, look, name, tokens, number in [*rows, (hole, DIM, "free", free, 0)]:
        of = tokens / context.window if context.window else 0.0
        times = f"  {number:,}" if number else ""
        yield (
            (f"  {sign} ", look),
            (f"{name:<{width}}  {tokens:>9,}  {_share(of):>6}", ""),
            (times, DIM),
        )
    for line in wrap(" ".join(use.what_next()), columns):
        yield ((line, DIM),)


def _bar(
    parts: Sequence[ContextPart], context: Context, size: int, *, ascii_only: bool
) -> Iterator[Run]:
    """Yields the bar: each part's share of the window, at least one cell each."""
    full, hole, edge = ("#", ".", "|") if ascii_only else ("█", "·", "╎")
    room = context.window or 1
    used = 0
    for part in parts:
        cells = min(max(1, round(part.tokens / room * size)), max(0, size - used))
        if cells:
            yield (full * cells, _LOOKS.get(part.name, ""))
        used += cells
    limit = min(round(context.full / room * size), size - 1) if context.full else -1
    rest = [hole] * (size - used)
    if limit >= used:
        rest[limit - used] = edge
    yield ("".join(rest), DIM)


def _share(part: float) -> str:
    return f"{part:.1%}" if part < 0.1 else f"{part:.0%}"
