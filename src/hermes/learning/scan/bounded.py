"""Compiles patterns with bounded repetitions, so that searching takes time linear in the text."""

import re

_MAX_CHAR_REPEATS = 200
"""The bound of `*` and `+` on one character; longer runs of a character are shortened before."""
_MAX_GROUP_REPEATS = 12
"""The bound of `*` and `+` on a group."""


def bounded(source: str) -> "re.Pattern[str]":
    """Compiles a pattern, with a bound for each `*` and `+`."""
    made: list[str] = []
    at, in_class = 0, False
    while at < len(source):
        character = source[at]
        if character == "\\":
            made.append(source[at : at + 2])
            at += 2
            continue
        if in_class:
            in_class = character != "]" or made[-1] in ("[", "[^")
        elif character == "[":
            in_class = True
            character = "[^" if source.startswith("[^", at) else "["
        elif character in "*+" and not made[-1].endswith(
            "}"
        ):  # after a bound, `+` makes it possessive
            most = _MAX_GROUP_REPEATS if made[-1] == ")" else _MAX_CHAR_REPEATS
            made.append(f"{{{'0' if character == '*' else '1'},{most}}}")
            at += 1
            continue
        made.append(character)
        at += len(character)
    return re.compile("".join(made))
