"""The words of a shell command with their quotes removed, and the commands they form."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Literal, TypeAlias

import msgspec

_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "v": "\v",
}
_MAX_BRACES = 40

WordSet: TypeAlias = frozenset[str]
Operator: TypeAlias = Literal["<", ">", ">>"]


@cache
def word_set(words: str) -> WordSet:
    """The words of a field or constant as a set. Only for text in the source code, because the results are cached."""
    return frozenset(words.split())


class Word(msgspec.Struct, frozen=True):
    """One word. `known`: the shell inserts nothing more. `pattern`: it may stand for several file names."""

    text: str
    known: bool = True
    pattern: bool = False
    tilde: bool = True
    """Whether a leading `~` means a home folder."""
    braces: bool = False
    """Whether unquoted braces may expand it to several words."""

    @property
    def plain(self) -> bool:
        """Whether it is exactly its text."""
        return self.known and not self.pattern


class Redirect(msgspec.Struct, frozen=True):
    """A file that is read, written or appended to."""

    operator: Operator
    target: Word


class ShellCommand(msgspec.Struct, frozen=True):
    """One simple command: its words, what is assigned before it, its files, and its input."""

    words: tuple[Word, ...]
    assignments: tuple[tuple[str, Word], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    given: Word | None = None
    """The text of a here-document or here-string."""
    upstream: tuple["ShellCommand", ...] = ()
    """The commands before it in a pipeline, nearest last."""


class ShellScript(msgspec.Struct, frozen=True):
    """Everything a text would run, at any depth."""

    commands: tuple[ShellCommand, ...]
    functions: frozenset[str] = frozenset()
    bomb: bool = False
    """A function calls itself more than once, or in the background."""
    flood: bool = False
    """It starts programs in the background without end."""
    evaluates: bool = False
    """Bash may run a quoted command, such as one in a subscript."""
    temporary: frozenset[str] = frozenset()
    """Variables that only ever hold a new temporary file or folder."""
    kinds: frozenset[str] = frozenset()
    """The kinds of syntax nodes in it."""


def backslashed(text: str) -> Word:
    """A word without quotes. A backslash makes the next character literal."""
    bare = re.sub(r"\\.", "", text, flags=re.DOTALL)
    plain = re.sub(
        r"\\(.)", lambda sign: "" if sign[1] == "\n" else sign[1], text, flags=re.DOTALL
    )
    return Word(
        plain,
        pattern=bool(re.search(r"[*?\[]", bare)) and bare not in ("[", "[["),
        tilde=not text.startswith("\\"),
        braces=bool(re.search(r"[{},]|\.\.", bare)),
    )


def escaped(text: str) -> Word:
    r"""The inside of `$'...'`, with `\n`, `\x41`, `\101` and `\u0041` replaced."""

    def one(sign: re.Match[str]) -> str:
        code = sign[1]
        if code[0] in "xuU":
            return chr(min(int(code[1:], 16), 0x10FFFF))
        if code[0] in "01234567":
            return chr(int(code, 8) & 0xFF)
        if code[0] == "c":
            return chr(ord(code[1]) & 0x1F)
        return _ESCAPES.get(code, code)

    pattern = (
        r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|c.|.)"
    )
    return Word(re.sub(pattern, one, text, flags=re.DOTALL), tilde=False)


def joined(parts: Sequence[Word]) -> Word:
    """Adjacent parts as one word."""
    if len(parts) == 1:
        return parts[0]
    return Word(
        "".join(part.text for part in parts),
        known=all(part.known for part in parts),
        pattern=any(part.pattern for part in parts),
        tilde=bool(parts) and parts[0].tilde,
        braces=any(part.braces for part in parts),
    )


def braced(word: Word) -> list[Word]:
    """Expands the braces in a word. Anything but a plain list gives an unknown word."""
    if not word.braces or not re.search(r"\{.*(,|\.\.).*\}", word.text, re.DOTALL):
        return [word]
    found = re.fullmatch(r"([^{}]*)\{([^{}]*,[^{}]*)\}([^{}]*)", word.text, re.DOTALL)
    if found is None or found[2].count(",") >= _MAX_BRACES:
        return [Word(word.text, known=False, pattern=True)]
    return [
        Word(
            f"{found[1]}{part}{found[3]}",
            word.known,
            word.pattern or "*" in part,
            word.tilde,
        )
        for part in found[2].split(",")
    ]
