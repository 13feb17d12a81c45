"""Text from programs and files, made safe: `clean` for a model to read, `spelled_out` where nothing may be lost,
`shown` for a person to judge."""

import re
import unicodedata

from hermes.text.hidden_text import spell_hidden

_SEQUENCES = (
    r"\x1b\[[0-?]{0,100}[ -/]{0,10}[@-~]"  # colours, cursor
    r"|\x1b\][^\x07\x1b]{0,4000}(?:\x07|\x1b\\)"  # title, links, clipboard
    r"|\x1b[PX^_][^\x1b]{0,4000}\x1b\\"
    r"|\x1b[ -/]{0,10}[0-~]"
    r"|\x9b[0-?]{0,100}[ -/]{0,10}[@-~]"
)
_OVERSTRUCK = re.compile(r"[^\n]\x08")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_REDRAWN = re.compile(r"[^\n]*\r(?=[^\r\n])")
_EMPTY_LINES = re.compile(r"\n{5,}")
_INVISIBLE = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
)  # letters and marks that look like nothing
_PADDING = re.compile(r" {24,}")


def clean(text: str) -> str:
    """Without terminal escapes and control characters; of a line that was redrawn, what it showed last."""
    if "\x1b" in text or "\x9b" in text:
        text = re.sub(_SEQUENCES, "", text)
    if "\x08" in text:
        text = _OVERSTRUCK.sub("", text)
    if "\r" in text:
        text = _REDRAWN.sub("", text.replace("\r\n", "\n"))
    return _CONTROLS.sub("", text)


def spelled_out(text: str) -> str:
    """With control and hidden characters spelled out, so that nothing is lost, no terminal obeys them and none is read
    unseen; line ends are plain."""
    plain = spell_hidden(text.replace("\r\n", "\n"))
    return _CONTROLS.sub(lambda found: _spelled(found[0]), plain)


def shown(text: str) -> str:
    """With every character that could hide, reorder or overwrite others spelled out; padding is counted."""
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
