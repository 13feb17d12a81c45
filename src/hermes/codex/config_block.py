"""One marked block in another program's TOML file. Every byte outside of it stays unchanged.

The block can be replaced or removed without a trace. It goes before the first table, because it has top-level keys, and
everything after the first table header belongs to a table. A TOML parser finds that position, because a bracket alone
is ambiguous.
"""

import re
import tomllib
from collections.abc import Iterable
from typing import Any

import msgspec

from hermes.errors import SettingsError
from hermes.text.translation import translator

t = translator(__name__)

BEGIN = "# >>> hermes: written by Hermes, changes in here are overwritten >>>"  # not translated
END = "# <<< hermes <<<"
_LINE = r"(?:^|(?<=\A\ufeff))"  # a line's start, even after a byte order mark
_PROBE = "hermes-asks-whether-this-is-free"
_UNCHANGED = t.later("Nothing was changed.")


class Parts(msgspec.Struct, frozen=True):
    """A file around its block. The two parts together are the file without the block."""

    above: str
    below: str
    block: str = ""


def split(text: str, name: str = "config.toml") -> Parts:
    """Splits a file at its block. Raises SettingsError for a file that is not TOML, or a block damaged by hand."""
    starts = [
        found.start()
        for found in re.finditer(rf"(?m){_LINE}{re.escape(BEGIN)}\r?$", text)
        if _complete(text, found.start())
    ]
    if not starts:
        _parsed(text, name)
        place = _first_table(text)
        return Parts(text[:place], text[place:])
    begin = starts[0]
    ending = re.compile(rf"(?m)^{re.escape(END)}(\r?\n|\Z)").search(text, begin)
    if len(starts) > 1 or ending is None:
        raise SettingsError(
            t.later(
                "{name} has a Hermes block that was changed by hand: its first or last line is missing or doubled.",
                name=name,
            ),
            hint=t.later(
                "{unchanged} Delete the lines between `# >>> hermes` and `# <<< hermes`, and try again.",
                unchanged=_UNCHANGED,
            ),
        )
    end = ending.end()
    if not ending[1] and text[:begin].endswith("\n"):
        begin -= (
            1  # no newline at the end of the file: the one before the block is ours
        )
    parts = Parts(text[:begin], text[end:], text[begin:end])
    _parsed(parts.above + parts.below, name)
    return parts


def join(parts: Parts, lines: list[str], name: str = "config.toml") -> str:
    """Returns the file with these lines as its block; without a block if there are none."""
    if not lines:
        return parts.above + parts.below
    newline = "\r\n" if "\r\n" in parts.above + parts.below else "\n"
    body = newline.join([BEGIN, *lines, END])
    if _readable(parts.above) and not parts.above.endswith("\n"):
        text = f"{parts.above}\n{body}{parts.below}"
    else:
        text = f"{parts.above}{body}{newline}{parts.below}"
    _parsed(text, name)
    return text


def data(parts: Parts) -> dict[str, Any]:
    """Returns the data of the file without the block."""
    return tomllib.loads(_readable(parts.above + parts.below))


def closed(parts: Parts, keys: Iterable[str]) -> frozenset[str]:
    """Returns the keys that can't be extended, because the user wrote the whole table in one line."""
    return frozenset(
        key for key in keys if not _complete(f"{parts.above}\n[{key}.{_PROBE}]\n")
    )


def _parsed(text: str, name: str) -> None:
    try:
        tomllib.loads(_readable(text))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(
            t.later("{name} is not valid TOML: {error}", name=name, error=error),
            hint=t.later("{unchanged} Correct the file first.", unchanged=_UNCHANGED),
        ) from error


def _readable(text: str) -> str:
    return text.removeprefix("\ufeff")


def _complete(text: str, place: int | None = None) -> bool:
    """Returns whether a statement begins here, so that everything above is a complete document."""
    try:
        tomllib.loads(_readable(text[:place]))
    except tomllib.TOMLDecodeError:
        return False
    return True


def _first_table(text: str) -> int:
    """Returns where the first table begins, including the comment right above it; the file's end if there is none."""
    for found in re.finditer(rf"(?m){_LINE}[ \t]*\[", text):
        if _complete(text, found.start()):
            return _above_comments(text, found.start())
    return len(text)


def _above_comments(text: str, place: int) -> int:
    lines = text[:place].splitlines(keepends=True)
    start = place
    while lines and lines[-1].lstrip().startswith("#"):
        start -= len(lines.pop())
    return start if _complete(text, start) else place
