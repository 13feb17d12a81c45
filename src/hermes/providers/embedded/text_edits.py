"""Converts `append` and `replace` to edits of a text that occurs once, and back."""

from collections.abc import Mapping
from typing import Any

from hermes.providers.embedded.line_protocol import Action


def edit_action(text: Mapping[str, str]) -> Action:
    """Converts an edit to an action: `append` if it only adds below the text it found, otherwise `replace`."""
    old, new = text["old"], text["new"]
    if old and new.startswith(old) and new[len(old) :].startswith("\n"):
        return Action(verb="append", path=text["path"], text=new[len(old) + 1 :])
    return Action(verb="replace", path=text["path"], old=old, text=new)


def occurrences(text: str, part: str) -> int:
    """Returns how often a text contains another, counting overlaps."""
    count, place = 0, text.find(part)
    while place >= 0:
        count, place = count + 1, text.find(part, place + 1)
    return count


def whole_lines(text: str) -> str:
    """Returns the text with exactly one newline at its end."""
    return text.rstrip("\n") + "\n"


def appended(action: Action, held: str) -> dict[str, Any]:
    """Returns an edit that appends below the shortest unique end of the file. An empty file is written instead."""
    body = held.rstrip("\n")
    if not body.strip():
        return {"path": action.path, "content": whole_lines(action.text)}
    lines = body.split("\n")
    size = 1
    while size < len(lines) and (
        occurrences(body, "\n".join(lines[-size:])) > 1 or not lines[-size].strip()
    ):
        size += 1
    tail = "\n".join(lines[-size:])
    return {"path": action.path, "old": tail, "new": f"{tail}\n{action.text.rstrip()}"}


def unique_change(action: Action, held: str) -> dict[str, str]:
    """Returns OLD and NEW, extended to the first line with OLD and then to its neighbours until the text is unique."""
    old, new = action.old, action.text.rstrip("\n")
    after = held[held.find(old) + len(old) :][:1]
    if after in {",", ";"} and new.endswith(after):
        new = new[:-1]  # the sign stays in place
    if not new and f"\n{old}\n" in f"\n{held}" and occurrences(held, f"{old}\n") == 1:
        return {
            "old": f"{old}\n",
            "new": "",
        }  # a removed line leaves no empty line behind
    if occurrences(held, old) <= 1:
        return {"old": old, "new": new}
    lines = held.split("\n")
    at = next((index for index, line in enumerate(lines) if old in line), 0)
    start, end = at, at + 1
    while occurrences(held, "\n".join(lines[start:end])) > 1 and (
        start > 0 or end < len(lines)
    ):
        start, end = max(0, start - 1), min(len(lines), end + 1)
    block = "\n".join(lines[start:end])
    changed = lines[at].replace(old, new, 1)
    return {
        "old": block,
        "new": "\n".join([*lines[start:at], changed, *lines[at + 1 : end]]),
    }
