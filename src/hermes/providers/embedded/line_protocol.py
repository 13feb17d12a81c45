"""The line protocol: one action per reply, as the small model writes it. Parsing and writing are inverse operations.

`read FILE`, `list DIR`, `find TEXT`, `run COMMAND`, `todo ITEM` are one line. The text of `write FILE:` and `append
FILE:` starts on the next line, that of `say` on the same line; it extends to the end of the reply, so nothing in it
needs escaping. `replace FILE: OLD => NEW` names text within one line of a file that was read.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

Verb: TypeAlias = Literal[
    "read", "list", "find", "write", "append", "replace", "run", "todo", "say"
]
VERBS: tuple[Verb, ...] = (
    "read",
    "list",
    "find",
    "write",
    "append",
    "replace",
    "run",
    "todo",
    "say",
)
ARROW = " => "
_MAX_TOKENS: dict[str, int] = {"say": 600, "replace": 200, "append": 300}
_REPEATED_CHARACTERS = 240  # length at which it counts as repetition
_MAX_PERIOD_CHARACTERS = 60


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """The action that one reply asks for. `text` is a command, a search, an item, a file's content or an answer."""

    verb: Verb
    path: str = ""
    text: str = ""
    old: str = ""


class NotALine(Exception):
    """The reply does not follow the protocol: no grammar was enforced, or the reply was cut short."""


def write_line(action: Action) -> str:
    """Returns the reply for an action."""
    match action.verb:
        case "read" | "list":
            return f"{action.verb} {action.path}"
        case "write" | "append":
            return f"{action.verb} {action.path}:\n{action.text}"
        case "replace":
            return f"replace {action.path}: {action.old}{ARROW}{action.text}"
        case _:
            return f"{action.verb} {action.text}"


def parse_line(line: str, seen: Mapping[str, str]) -> Action:
    """Parses a reply into an action. `seen` holds the files whose text `replace` may name."""
    word, _, rest = line.partition(" ")
    verb = next((verb for verb in VERBS if verb == word), None)
    if verb is None or not rest.strip():
        raise NotALine(line)
    match verb:
        case "read" | "list":
            return Action(verb=verb, path=rest.strip())
        case "write" | "append":
            path, colon, text = rest.partition(":\n")
            if verb == "write" and rest.endswith(":") and not colon:
                return Action(verb="write", path=rest[:-1].strip())
            if not colon:
                raise NotALine(line)
            return Action(verb=verb, path=path.strip(), text=_unfenced(path, text))
        case "replace":
            return _parse_replace(rest, seen)
        case "say":
            return Action(verb="say", text=rest)
        case _:
            return Action(verb=verb, text=rest.strip())


def parse_loosely(reply: str, seen: Mapping[str, str]) -> Action:
    """Parses a reply that no grammar restricted. Anything that is not an action is an answer."""
    text = reply.strip().removeprefix("```").removesuffix("```").strip()
    first = text.partition("\n")[0]
    is_long = first.partition(" ")[0] in {"write", "append", "say"}
    try:
        return parse_line(text if is_long else first, seen)
    except NotALine:
        return Action(verb="say", text=text or "(no answer)")


def _parse_replace(rest: str, seen: Mapping[str, str]) -> Action:
    """Finds the shortest OLD that occurs in the file: an arrow inside it is text, not the separator."""
    path, colon, change = rest.partition(": ")
    known = seen.get(path, "")
    at = change.find(ARROW)
    while colon and at >= 0:
        old = change[:at]
        if old and old in known:
            return Action(
                verb="replace", path=path, old=old, text=change[at + len(ARROW) :]
            )
        at = change.find(ARROW, at + 1)
    raise NotALine(rest)


def _unfenced(path: str, text: str) -> str:
    """Removes the code fences that small models put around a file, except in Markdown files."""
    stripped = text.strip()
    first, _, body = stripped.partition("\n")
    if (
        path.strip().endswith(".md")
        or not first.startswith("```")
        or not body.endswith("```")
    ):
        return text
    return body.removesuffix("```")


def runs_away(line: str, tokens: int) -> bool:
    """Returns whether a reply repeats itself or is too long for its verb: small models do not always stop."""
    if tokens > _MAX_TOKENS.get(line.partition(" ")[0], tokens):
        return True
    tail = line[-_REPEATED_CHARACTERS:]
    if len(tail) < _REPEATED_CHARACTERS or not tail.strip():
        return False
    period = (tail + tail).find(tail[:_MAX_PERIOD_CHARACTERS], 1)
    return period <= _MAX_PERIOD_CHARACTERS and all(
        tail[at] == tail[at - period] for at in range(period, _REPEATED_CHARACTERS)
    )
