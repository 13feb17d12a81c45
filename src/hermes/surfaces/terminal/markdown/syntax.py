"""Highlights code line by line while it streams in. Pygments and a lexer are loaded when a block needs them, which takes
a moment: a chat calls `load` in a thread first.

Most of its lexers are tables of states: the stack of states at the end of a line is kept, and the next line starts
from it. Other lexers read a few lines again for each new one.
"""

import threading
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

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

if TYPE_CHECKING:
    import re

    from pygments.lexer import Lexer

    _Token: TypeAlias = tuple[int, object, str]
    _Change: TypeAlias = int | str | tuple[str, ...] | None
    _Rule: TypeAlias = tuple[Callable[[str, int], re.Match[str] | None], Any, _Change]

_MAX_UNINDENTED_LINES = 4  # read again, up to a line that is not indented
_MAX_LINES = 12  # ... up to any line that does not end inside a string or comment
_MAX_OPEN_LINES = 60  # ... in any case
_MAX_COLOURED_CHARS = 2_000  # longer lines stay plain
_LOADING = (
    threading.Lock()
)  # Pygments builds a lexer's table on first use, and not for two threads at once

# The terminal's own 16 colours are readable on light and dark. The first match counts.
_LOOKS = (
    ("Comment", DIM),
    ("Keyword.Constant", YELLOW),
    ("Keyword", MAGENTA),
    ("Operator.Word", MAGENTA),
    ("Literal.String.Doc", DIM),
    ("Literal.String", GREEN),
    ("Literal.Number", YELLOW),
    ("Name.Function", CYAN),
    ("Name.Class", CYAN),
    ("Name.Decorator", CYAN),
    ("Name.Tag", MAGENTA),
    ("Name.Attribute", CYAN),
    ("Name.Builtin", CYAN),
    ("Generic.Inserted", GREEN),
    ("Generic.Deleted", RED),
    ("Generic.Heading", BOLD),
    ("Generic.Subheading", CYAN),
)


class Highlighter:
    """Highlights one block of code. An unknown language stays plain."""

    def __init__(self, language: str) -> None:
        self._language = language  # until its lexer is found, with the first line
        self._lexer: Lexer | None = None
        self._table: dict[str, list[_Rule]] | None = None
        self._stack = ["root"]
        self._before: list[str] = []  # lines that are read again, as context

    def line(self, text: str) -> Row:
        """Highlights the next line, with the lines before it as context."""
        if self._language:
            self._lexer, self._language = _find(self._language), ""
            self._table = _state_table(self._lexer)
        if self._lexer is None or len(text) > _MAX_COLOURED_CHARS:
            return ((text, ""),) if text else ()
        code = "\n".join([*self._before, text]) + "\n"
        start = len(code) - len(text) - 1
        stack = list(self._stack)
        runs: list[Run] = []
        last: object = ""
        for at, token, value in self._tokens(code, stack):
            end = at + len(value)
            if end > start:
                part = value[max(0, start - at) :].replace("\n", "")
                runs += [(part, _look(token))] if part else []
            last = token if value.endswith("\n") else ""
        self._before.append(text)
        if not self._is_needed_later(text, stack, is_open=_is_text(last)):
            self._before.clear()
            self._stack = stack
        is_whole = "".join(part for part, _ in runs) == text
        return tuple(runs) if is_whole else ((text, ""),)  # some lexers lose text

    def _tokens(self, code: str, stack: list[str]) -> "Iterator[_Token]":
        """Returns the tokens of `code`. With a table of states, `stack` is changed to that at its end."""
        if self._table is not None:
            return _read(self._lexer, self._table, code, stack)
        return iter(self._lexer.get_tokens_unprocessed(code) if self._lexer else ())

    def _is_needed_later(self, line: str, stack: list[str], *, is_open: bool) -> bool:
        """Returns whether the next line can only be read together with the lines before it."""
        lines = len(self._before)
        if lines >= _MAX_OPEN_LINES:
            return False
        if is_open:
            return not any(
                _is_text(token) for _, token, _ in self._next_tokens(stack)
            )  # the stack knows it too
        if self._table is not None:
            return False
        is_indented = line.startswith((" ", "\t"))
        return lines < (_MAX_LINES if is_indented else _MAX_UNINDENTED_LINES)

    def _next_tokens(self, stack: list[str]) -> "Iterator[_Token]":
        """Returns the tokens of a plain word on the next line."""
        if self._table is None:
            return iter(())
        return _read(self._lexer, self._table, "x", list(stack))


def _state_table(lexer: "Lexer | None") -> "dict[str, list[_Rule]] | None":
    """Returns the states of a lexer that is no more than their table."""
    from_table = getattr(lexer, "_tokens", None)
    if lexer is None or from_table is None:
        return None
    from pygments.lexer import RegexLexer

    is_plain = type(lexer).get_tokens_unprocessed is RegexLexer.get_tokens_unprocessed
    return from_table if is_plain else None


def _read(
    lexer: "Lexer | None", table: "dict[str, list[_Rule]]", code: str, stack: list[str]
) -> "Iterator[_Token]":
    """Reads code as Pygments does, starting with these states. Changes `stack` to the states at its end."""
    at = 0
    while at < len(code):
        for match, action, change in table[stack[-1]]:
            found = match(code, at)
            if found is None:
                continue
            if callable(action):
                yield from action(lexer, found)
            elif action is not None:
                yield at, action, found.group()
            at = found.end()
            _change(stack, change)
            break
        else:  # no rule knows this character; the end of a line ends all states
            if code[at] == "\n":
                stack[:] = ["root"]
            yield at, "", code[at]
            at += 1


def _change(stack: list[str], change: "_Change") -> None:
    """Applies what a rule does to the states."""
    if change is None:
        return
    if isinstance(change, int):
        del stack[max(1, len(stack) + change) :]
        return
    for state in (change,) if isinstance(change, str) else change:
        if state == "#push":
            stack.append(stack[-1])
        elif state != "#pop":
            stack.append(state)
        elif len(stack) > 1:
            stack.pop()


def _is_text(token: object) -> bool:
    """Returns whether a token belongs to a string or a comment. If it contains the end of a line, it may continue on
    the next one.
    """
    return str(token).startswith(
        ("Token.Literal.String", "Token.Comment.Multiline")
    ) or (str(token) == "Token.Comment")


def load(language: str) -> None:
    """Loads what blocks in this language need."""
    Highlighter(language).line("pass")


def _find(language: str) -> "Lexer | None":
    with _LOADING:
        from pygments.lexers import get_lexer_by_name
        from pygments.util import ClassNotFound

        try:
            return get_lexer_by_name(
                language, **({"startinline": True} if language == "php" else {})
            )
        except ClassNotFound:
            return None


@cache
def _look(token: object) -> str:
    name = str(token).removeprefix("Token.")
    return next(
        (
            look
            for known, look in _LOOKS
            if name == known or name.startswith(known + ".")
        ),
        "",
    )
