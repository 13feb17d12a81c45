"""Characters that make a person see another command than the shell does."""

import re
import unicodedata

_PADDING = r"\S[ \t]{24,}\S"


def spoof(text: str) -> str:
    """Why a text may look different from what it is; empty when it does not."""
    if text.isascii():
        hidden = (
            any(character < " " and character not in "\n\t" for character in text)
            or "\x7f" in text
        )
    else:
        hidden = any(_is_hidden(character) for character in text)
    if hidden:
        return "it holds characters that hide or reorder others"
    return (
        "it holds a gap so wide that the rest may not be seen"
        if re.search(_PADDING, text)
        else ""
    )


def _is_hidden(character: str) -> bool:
    if character in "\n\t" or " " <= character <= "~":
        return False
    return unicodedata.category(character) in (
        "Cc",
        "Cf",
        "Cs",
        "Co",
        "Cn",
        "Zs",
        "Zl",
        "Zp",
    )
