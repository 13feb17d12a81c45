"""Makes text of programs, files and pages safe: `clean` and `visible` for a model to read, `spelled_out` where nothing
may be lost, `shown` for a person who has to judge it."""

import re
import unicodedata

from hermes.primitives.lazy_pattern import lazy_pattern
from hermes.text.hidden_text import HIDDEN, spell_hidden, without_hidden

_SEQUENCES = (
    r"\x1b\[[0-?]{0,100}[ -/]{0,10}[@-~]"  # colours, cursor
    r"|\x1b\][^\x07\x1b]{0,4000}(?:\x07|\x1b\\)"  # title, links, clipboard
    r"|\x1b[PX^_][^\x1b]{0,4000}\x1b\\"
    r"|\x1b[ -/]{0,10}[0-~]"
    r"|\x9b[0-?]{0,100}[ -/]{0,10}[@-~]"
)
_OVERSTRUCK = lazy_pattern(r"[^\n]\x08")
_CONTROLS = lazy_pattern(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_REDRAWN = lazy_pattern(r"^[^\n]*\r(?=[^\r\n])", re.MULTILINE)
_EMPTY_LINES = lazy_pattern(r"\n{5,}")
# Letters and marks that are invisible.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_PADDING = lazy_pattern(r" {24,}")
_BLANK_LINES = r"\n[ \t]*\n(?:[ \t]*\n)+"


def clean(text: str) -> str:
    """Removes terminal escapes and control characters. Of a line that was redrawn, only the last state remains."""
    if "\x1b" in text or "\x9b" in text:
        text = re.sub(_SEQUENCES, "", text)
    if "\x08" in text:
        text = _OVERSTRUCK.sub("", text)
    if "\r" in text:
        text = _REDRAWN.sub("", text.replace("\r\n", "\n"))
    return _CONTROLS.sub("", text)


def visible(text: str) -> str:
    """Returns the text as a person would see it, with a note if hidden characters were removed."""
    text = clean(text.replace("\r\n", "\n").replace("\r", "\n"))
    text = text.replace("\u2028", "\n").replace("\u2029", "\n\n")
    return without_hidden(re.sub(_BLANK_LINES, "\n\n", text).strip("\n"))


def one_line(text: str, limit: int = 300) -> str:
    """Returns the visible text on one line, shortened."""
    text = " ".join(clean(re.sub(HIDDEN, "", text)).split())
    if len(text) <= limit:
        return text
    return text[: limit - 3].rstrip() + "..."


def spelled_out(text: str) -> str:
    """Spells out control and hidden characters: nothing is lost, and neither a terminal nor a model is misled. Line ends
    become plain."""
    plain = spell_hidden(text.replace("\r\n", "\n"))
    return _CONTROLS.sub(lambda found: _spelled(found[0]), plain)


def shown(text: str) -> str:
    """Spells out every character that could hide, reorder or overwrite others, and counts padding."""
    spelled = "".join(
        character if _is_plain(character) else _spelled(character) for character in text
    )
    padded = _PADDING.sub(lambda run: f"[{len(run[0])} spaces]", spelled)
    return _EMPTY_LINES.sub(lambda run: f"\n[{len(run[0]) - 1} empty lines]\n", padded)


def _is_plain(character: str) -> bool:
    if " " <= character <= "~" or character in "\n\t":
        return True
    return (
        unicodedata.category(character)[0] not in "CZ" and character not in _INVISIBLE
    )


def _spelled(character: str) -> str:
    return (
        character.encode("unicode_escape").decode("ascii")
        if ord(character) > 127
        else f"\\x{ord(character):02x}"
    )
