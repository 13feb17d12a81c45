"""Highlights code line by line while it streams in. Pygments is loaded with the first block in a
known language.
"""

from typing import TYPE_CHECKING, Any

from hermes.surfaces.tui.styled_text import (
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
    from pygments.lexer import Lexer

_RESTART_UNINDENTED_LINES = (
    20  # after these, the lexer may restart behind an unindented line
)
_RESTART_PLAIN_LINES = (
    40  # ... behind any line that does not end inside a string or comment
)
_RESTART_ALWAYS_LINES = 200  # ... always
_MAX_COLOURED_CHARS = 2_000  # longer lines stay plain

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
        self._lexer = _find(language)
        self._before: list[str] = []

    def line(self, text: str) -> Row:
        """Highlights the next line, with the lines before it as context."""
        if self._lexer is None or len(text) > _MAX_COLOURED_CHARS:
            return ((text, ""),) if text else ()
        code = "\n".join([*self._before, text]) + "\n"
        start = len(code) - len(text) - 1
        runs: list[Run] = []
        last: Any = None
        for at, token, value in self._lexer.get_tokens_unprocessed(code):
            last = token
            if at + len(value) > start:
                runs += [
                    (part, _look(token))
                    for part in [value[max(0, start - at) :].replace("\n", "")]
                    if part
                ]
        self._before.append(text)
        closed = "String" not in str(last) and "Comment" not in str(last)
        least = (
            _RESTART_PLAIN_LINES
            if text.startswith((" ", "\t"))
            else _RESTART_UNINDENTED_LINES
        )
        if len(self._before) >= _RESTART_ALWAYS_LINES or (
            len(self._before) >= least and closed
        ):
            self._before.clear()
        return tuple(runs)


def warm() -> None:
    """Loads what most code blocks will need."""
    Highlighter("python").line("pass")


def _find(language: str) -> "Lexer | None":
    if not language:
        return None
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(
            language, **({"startinline": True} if language == "php" else {})
        )
    except ClassNotFound:
        return None


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
