"""Notices about compaction and checks, in the same words on every surface."""

from collections.abc import Iterator, Mapping
from typing import Any

from hermes.surfaces.terminal.text import count, money, one_line

COMPACTION = frozenset(
    ("session.compacted", "session.trimmed", "session.compaction_failed")
)
"""Events about a compaction, successful or not."""


def compaction_notice(event: Mapping[str, Any]) -> str:
    """Returns the notice for a compaction event."""
    match event["type"]:
        case "session.compacted":
            sizes = f"about {event.get('before', 0):,} tokens became {event.get('after', 0):,}"
            return f"The conversation got too long for the model, so its middle was summarized: {sizes}."
        case "session.trimmed":
            number = len(event.get("call_ids") or ())
            what = f"{count(number, 'old result')}" if number else "old pictures"
            return f"The conversation got too long for the model, so it no longer sees {what}."
        case _:
            why = one_line(str(event.get("detail", ""))).rstrip(".")
            return f"The conversation could not be shortened: {why}. Nothing was removed; Hermes will try again later."


def reviewed_notice(event: Mapping[str, Any], cost: float) -> str:
    """Returns what a review in the background found, and what it cost."""
    if event.get("failure"):
        found = f"The background review failed: {one_line(event['failure'])}"
    elif event.get("summary"):
        found = one_line(event["summary"])
    else:
        found = "Reviewed the conversation in the background: nothing to remember."
    how = " Review: /learn or Alt-L" if event.get("proposals") else ""
    spent = f" ({money(cost)})" if cost else ""
    return f"{found}{spent}{how}"


_MAX_EVIDENCE_LINES = 12  # of the output of one check


def evidence_lines(event: Mapping[str, Any]) -> Iterator[str]:
    """The lines that show what the project's rules found: each check, and the end of what a failed one printed."""
    checks = event.get("checks") or ()
    for number, line in enumerate(str(event.get("detail", "")).splitlines()):
        yield line
        output = str(checks[number].get("output") or "") if number < len(checks) else ""
        yield from (f"  {one}" for one in output.splitlines()[-_MAX_EVIDENCE_LINES:])
