"""Colour themes: what the colours of a look are on a dark or a light terminal, with high contrast, or without red and
green side by side.

A look is a list of codes: SGR parameters, or a name of this module for the background of a changed line.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

ThemeName: TypeAlias = Literal["auto", "dark", "light", "contrast", "colorblind"]

ADDED, ADDED_WORD, REMOVED, REMOVED_WORD = "added", "added-word", "removed", "removed-word"  # fmt: skip


class Theme(msgspec.Struct, frozen=True):
    """The SGR parameters of codes. A code that is not listed is one itself."""

    codes: Mapping[str, str]

    def sgr(self, look: str) -> str:
        """Returns the SGR parameters of a look."""
        codes = self.codes
        if look in codes:
            return codes[look]
        if ";" not in look:
            return look
        return ";".join(
            filter(None, (codes.get(code, code) for code in look.split(";")))
        )


NEUTRAL = Theme({ADDED: "32", ADDED_WORD: "32;7", REMOVED: "31", REMOVED_WORD: "31;7"})
"""For a background that is not known: the terminal's own colours, which suit it."""
DARK = Theme(
    {
        "32": "38;5;114",  # these three can also be read on the background of a changed line
        "35": "38;5;183",
        "36": "38;5;80",
        ADDED: "48;5;22",
        ADDED_WORD: "48;5;28",
        REMOVED: "48;5;52",
        REMOVED_WORD: "48;5;88",
    }
)
LIGHT = Theme(
    {
        "31": "38;5;124",
        "32": "38;5;22",
        "33": "38;5;130",
        "35": "38;5;90",
        "36": "38;5;25",
        ADDED: "48;5;194",
        ADDED_WORD: "48;5;157",
        REMOVED: "48;5;224",
        REMOVED_WORD: "48;5;217",
    }
)
CONTRAST = Theme(
    {
        "2": "",  # dimmed text is hard to read
        "31": "1;91",
        "32": "1;92",
        "33": "1;93",
        "35": "1;95",
        "36": "1;96",
        ADDED: "1;92",
        ADDED_WORD: "1;92;7",
        REMOVED: "1;91",
        REMOVED_WORD: "1;91;7",
    }
)
COLORBLIND = Theme(
    {
        "31": "38;5;208",  # orange
        "32": "38;5;33",  # blue
        "33": "38;5;220",
        ADDED: "38;5;33",
        ADDED_WORD: "38;5;33;7",
        REMOVED: "38;5;208",
        REMOVED_WORD: "38;5;208;7",
    }
)
_THEMES = {
    "dark": DARK,
    "light": LIGHT,
    "contrast": CONTRAST,
    "colorblind": COLORBLIND,
}
_LIGHT_BACKGROUNDS = {"7", "15"}


def theme_for(name: str, environ: Mapping[str, str]) -> Theme:
    """Returns a theme by its name. `auto` follows COLORFGBG, which many terminals set.

    The terminal is not asked for its background, because a late answer would be read as input.
    """
    if name != "auto":
        return _THEMES[name]
    if "256color" not in environ.get("TERM", "") and not environ.get("COLORTERM"):
        return NEUTRAL
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    if not background.isdecimal():
        return NEUTRAL
    return LIGHT if background in _LIGHT_BACKGROUNDS else DARK
