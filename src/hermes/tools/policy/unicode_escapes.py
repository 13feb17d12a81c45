"""Signs beyond ASCII, as the bash grammar can safely read them, and back.

The grammar's scanner looks signs up in tables of 256 places and reads far outside of them for any other: that is a
wrong answer at best, and the end of the process at worst. So each sign becomes four letters that are in the table and,
like the sign itself for bash, neither blanks nor of any meaning.
"""

import re

_FIRST = 0xC0
_BASE = 64
_PLACES = 4
_PACKED = rf"[\u00c0-\u00ff]{{{_PLACES}}}"


def packed(text: str) -> bytes:
    """The text for the grammar: every sign beyond ASCII as four letters below U+0100."""
    return (
        re.sub(r"[^\x00-\x7f]", _pack, text).encode()
        if not text.isascii()
        else text.encode()
    )


def unpacked(source: bytes) -> str:
    """What a part of such a text said."""
    text = source.decode()
    return re.sub(_PACKED, _unpack, text) if not text.isascii() else text


def _pack(sign: re.Match[str]) -> str:
    number = ord(sign[0])
    return "".join(
        chr(_FIRST + number // _BASE**place % _BASE) for place in range(_PLACES)
    )


def _unpack(letters: re.Match[str]) -> str:
    return chr(
        sum(
            (ord(letter) - _FIRST) * _BASE**place
            for place, letter in enumerate(letters[0])
        )
    )
