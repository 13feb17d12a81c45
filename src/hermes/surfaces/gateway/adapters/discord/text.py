"""Markdown as Discord shows it. It knows most of it; a table becomes a code block, where columns stay in line."""

import re

from hermes.surfaces.gateway.message_split import open_fence

_ROW = re.compile(r"^\s*\|.*\|\s*$")


def discord_text(markdown: str) -> str:
    """The whole text."""
    out: list[str] = []
    inside = False
    for line in markdown.split("\n"):
        row = bool(_ROW.match(line)) and (inside or not open_fence("\n".join(out)))
        if row != inside:
            out.append("```")
            inside = row
        out.append(line)
    return "\n".join([*out, "```"] if inside else out)
