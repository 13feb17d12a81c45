"""Non-ASCII characters: passes them safely to the bash parser, and finds those that disguise a command.

The parser's scanner looks characters up in tables of 256 entries, and reads out of bounds for any others: at best the
result is wrong, at worst it crashes. So each such character becomes four letters that are in the table and, like the
character itself in bash, are neither blank nor special.
"""

import re
import unicodedata

from hermes.text.translation import translator

t = translator(__name__)

_FIRST_LETTER = 0xC0
_BASE = 64
_LETTERS = 4
_ESCAPED = rf"[\u00c0-\u00ff]{{{_LETTERS}}}"
_WIDE_GAP = r"\S[ \t]{24,}\S"
_HIDDEN_CATEGORIES = ("Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp")


def escape(text: str) -> bytes:
    """The text for the parser, with every non-ASCII character as four letters below U+0100."""
    if text.isascii():
        return text.encode()
    return re.sub(r"[^\x00-\x7f]", _escape_one, text).encode()


def unescape(source: bytes) -> str:
    """Reverses `escape`, for the whole text or a part of it."""
    text = source.decode()
    if text.isascii():
        return text
    return re.sub(_ESCAPED, _unescape_one, text)


def _escape_one(match: re.Match[str]) -> str:
    code = ord(match[0])
    digits = [code // _BASE**place % _BASE for place in range(_LETTERS)]
    return "".join(chr(_FIRST_LETTER + digit) for digit in digits)


def _unescape_one(match: re.Match[str]) -> str:
    digits = [ord(letter) - _FIRST_LETTER for letter in match[0]]
    return chr(sum(digit * _BASE**place for place, digit in enumerate(digits)))


def spoof_reason(text: str) -> str:
    """Why a text may look different from what it is; empty if it does not."""
    unusual = re.findall(r"[^ -~\n\t]", text)
    if any(unicodedata.category(one) in _HIDDEN_CATEGORIES for one in unusual):
        return t.logged("it contains characters that hide or reorder others")
    if re.search(_WIDE_GAP, text):
        return t.logged("it contains a gap so wide that you may not see the rest")
    return ""
