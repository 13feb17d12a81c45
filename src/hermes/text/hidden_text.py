"""Hidden text: characters that a model reads but a person does not see, or that display a line in another order."""

import re

# Reordering marks, zero-width characters, tags, fillers: they hide words from people and show them to models.
HIDDEN = (
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# Joiners and the emoji selector mean something after a letter or sign that is not ASCII, once.
_STRAY_JOINER = "(?:(?<=[\x00-\x7f])|(?<=[\u200c\u200d\ufe0f])|^)[\u200c\u200d\ufe0f]+"
_DOUBLE_JOINER = "([\u200c\u200d\ufe0f])[\u200c\ufe0f]+"
_MAX_UNNOTED = 3
"""Up to this many may be an accident; more are mentioned in a note."""


def without_hidden(text: str) -> str:
    """The text without hidden characters, with a note at its end when several were taken out."""
    if text.isascii():
        return text
    shown, hidden = re.subn(HIDDEN, "", text)
    shown, stray = re.subn(_STRAY_JOINER, "", shown)
    shown = re.sub(_DOUBLE_JOINER, r"\1", shown)
    removed = hidden + stray
    soft = text.count("\u00ad") + text.count("\ufeff")
    return (
        f"{shown}\n[{removed:,} invisible characters were removed]"  # not translated
        if removed - soft > _MAX_UNNOTED
        else shown
    )


def spell_hidden(text: str) -> str:
    """The text with hidden characters replaced by their codes, so that nothing is lost and everything is visible."""
    return (
        text
        if text.isascii()
        else re.sub(
            HIDDEN, lambda found: found[0].encode("unicode_escape").decode(), text
        )
    )
