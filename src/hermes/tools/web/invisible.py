"""Text of others without what a person would not see: terminal escapes, hidden and reordering characters."""

import re

from hermes.tools.escapes import clean

# Reordering marks, zero-width characters, tags, fillers: they hide words from people and show them to models.
_HIDDEN = (
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# Joiners and the emoji selector mean something after a letter or sign that is not ASCII, once.
_STRAY_JOINER = "(?:(?<=[\x00-\x7f])|(?<=[\u200c\u200d\ufe0f])|^)[\u200c\u200d\ufe0f]+"
_DOUBLE_JOINER = "([\u200c\u200d\ufe0f])[\u200c\ufe0f]+"
_BLANK_LINES = r"\n[ \t]*\n(?:[ \t]*\n)+"


def visible(text: str) -> str:
    """The text as a person would see it, with a note when characters were taken out."""
    text = clean(text.replace("\r\n", "\n").replace("\r", "\n"))
    shown, hidden = re.subn(_HIDDEN, "", text)
    shown, stray = re.subn(_STRAY_JOINER, "", shown)
    shown = re.sub(_DOUBLE_JOINER, r"\1", shown)
    shown = re.sub(_BLANK_LINES, "\n\n", shown.replace("\u2028", "\n").replace("\u2029", "\n\n")).strip("\n")
    removed = hidden + stray
    soft = text.count("\u00ad") + text.count("\ufeff")
    return f"{shown}\n[{removed:,} invisible characters were removed]" if removed - soft > 3 else shown


def one_line(text: str, limit: int = 300) -> str:
    """The same on one line, shortened."""
    text = " ".join(clean(re.sub(_HIDDEN, "", text)).split())
    return text if len(text) <= limit else text[: limit - 3].rstrip() + "..."
