"""The context window as a bar chart: what fills it, how much is free, and when it is compacted."""

from collections.abc import Iterator, Sequence

from hermes.core.context_usage import CompactionPreview, Context, ContextPart
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
from hermes.text.translation import translator

t = translator(__name__)


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


def window_rows(
    context: Context, ahead: CompactionPreview, columns: int, *, ascii_only: bool
) -> Iterator[Row]:
    """Yields a heading, the bar, a row for each part and for the free space, and what happens next."""
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
    for line in wrap(_next(context, ahead), columns):
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


def _next(context: Context, ahead: CompactionPreview) -> str:
    """Returns a sentence that says when compaction starts and what it does."""
    left = context.full - context.used
    when = (
        t("Compaction starts at {full:,} tokens", full=context.full)
        if context.full
        else t("Compaction starts when the window is full")
    )
    when += (
        t(", after {left:,} more", left=left)
        if left > 0
        else t(", before the next reply")
    )
    steps: list[str] = []
    if ahead.pointers:
        steps.append(
            t(
                "{count:,} old result (about {freed:,} tokens) would be replaced by references",
                "{count:,} old results (about {freed:,} tokens) would be replaced by references",
                count=ahead.pointers,
                freed=ahead.freed,
            )
        )
    if ahead.summarised:
        steps.append(
            t(
                "a summary would replace {count:,} message ({replaced:,} tokens)",
                "a summary would replace {count:,} messages ({replaced:,} tokens)",
                count=ahead.summarised,
                replaced=ahead.replaced,
            )
        )
    then = ", then ".join(steps) if steps else t("there is nothing to remove yet")
    return t(
        "{when}: {then}. The log keeps everything. To compact now: /compress",
        when=when,
        then=then,
    )
