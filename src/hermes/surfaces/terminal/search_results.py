"""Formats the messages that a search found."""

import re
from collections.abc import Iterator

from hermes.store.search import MessageHit
from hermes.surfaces.terminal.text import TextScreen, ago, cut, one_line, wrap


def hit_lines(
    hits: list[MessageHit], query: str, screen: TextScreen, now: float
) -> Iterator[str]:
    """Yields the hits, grouped by session."""
    previous = ""
    for hit in hits:
        if hit.session != previous:
            head = f"{one_line(hit.session)}  {one_line(hit.title)}".rstrip()
            yield from ([""] if previous else [])
            yield screen.style.bold(cut(head, screen.columns))
            previous = hit.session
        who = {"user": "you", "assistant": "hermes"}.get(hit.role, hit.role)
        yield screen.style.dim(f"  {ago(hit.ts, now)} · {who} · row {hit.seq:,}")
        for line in wrap(one_line(hit.snippet), screen.columns - 4):
            yield f"    {highlight(line, query, screen)}"


def highlight(line: str, query: str, screen: TextScreen) -> str:
    """Returns `line` with the query's words highlighted."""
    wanted = re.sub(r'(?<!\S)-("[^"]*"?|\S+)', " ", query)
    words: list[str] = re.findall(r"\w+", wanted)
    longest_first = "|".join(
        re.escape(word) for word in sorted(words, key=len, reverse=True)
    )
    mark = screen.style.yellow
    return (
        re.sub(longest_first, lambda found: mark(found[0]), line, flags=re.IGNORECASE)
        if words
        else line
    )
