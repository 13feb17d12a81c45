"""Text of others without what a person would not see: terminal escapes, hidden and reordering characters."""

import re

from hermes.text.hidden_text import HIDDEN, without_hidden
from hermes.tools.escapes import clean

_BLANK_LINES = r"\n[ \t]*\n(?:[ \t]*\n)+"


def visible(text: str) -> str:
    """The text as a person would see it, with a note when characters were taken out."""
    text = clean(text.replace("\r\n", "\n").replace("\r", "\n"))
    text = text.replace("\u2028", "\n").replace("\u2029", "\n\n")
    return without_hidden(re.sub(_BLANK_LINES, "\n\n", text).strip("\n"))


def one_line(text: str, limit: int = 300) -> str:
    """The same on one line, shortened."""
    text = " ".join(clean(re.sub(HIDDEN, "", text)).split())
    return text if len(text) <= limit else text[: limit - 3].rstrip() + "..."
