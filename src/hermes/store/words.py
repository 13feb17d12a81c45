"""How text becomes words for search: the same way for what is stored and for what is asked.

Scripts written without spaces are cut into overlapping pairs of characters (`天气很好` gives 天气 气很 很好 好), so
that two characters are enough to find them. Identifiers are cut at case changes and punctuation (`getUserById` gives
get user by id) and, when they mix cases, kept whole as well, so that `getuserbyid` finds them too.
"""

import re
import unicodedata
from typing import NamedTuple

# Kana, Han, Hangul, Thai, Lao, Myanmar, Khmer
_SPACELESS = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\U00020000-\U0003ffff"
)
_TOKEN = re.compile(f"([{_SPACELESS}]+)|([^\\W_{_SPACELESS}]+)")
_CASE_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^A-Z]+")
_TERM = re.compile(r'(-?)"([^"]*)"?|(\S+)')

MAX_CHARACTERS = 64 * 1024
"""How much of one message is searchable."""


class Words(NamedTuple):
    """A text's words in order, and its mixed-case identifiers whole."""

    words: list[str]
    names: list[str]


def split(text: str, *, asked: bool = False) -> Words:
    """The words of a text. For what is asked, a run of spaceless script does not add its last character alone."""
    words: list[str] = []
    names: list[str] = []
    for run, word in _TOKEN.findall(unicodedata.normalize("NFKC", text[:MAX_CHARACTERS])):
        if run:
            words += _pairs(run, alone=not asked)
        elif word.islower() or word.isupper() or word.istitle():
            words.append(word.lower())
        else:
            words += [part.lower() for part in _CASE_PART.findall(word)]
            names.append(word.lower())
    return Words(words, names)


def match_expression(query: str, *, prefix: bool) -> str:
    """An FTS5 expression: all terms, quoted ones as phrases, `-term` excluded; with `prefix`, beginnings count too.

    Empty when the query holds nothing to look for.
    """
    wanted: list[str] = []
    unwanted: list[str] = []
    for minus, phrase, bare in _TERM.findall(query):
        term = phrase or bare
        excluded = bool(minus) or (bare.startswith("-") and len(bare) > 1)
        expression = _phrase(term, prefix=prefix and not excluded)
        if expression:
            (unwanted if excluded else wanted).append(expression)
    if not wanted:
        return ""
    return " NOT ".join([" AND ".join(wanted), *unwanted])


def _phrase(term: str, *, prefix: bool) -> str:
    words, names = split(term, asked=True)
    if not words:
        return ""
    lone = len(words) == 1 and len(words[0]) == 1 and not words[0].isascii()
    star = " *" if prefix or lone else ""
    inner = f'words : "{" ".join(words)}"{star}'
    whole = names[0] if names else words[0]
    return f'({inner} OR names : "{whole}"{star})' if len(words) == 1 or names else f"({inner})"


def _pairs(run: str, *, alone: bool) -> list[str]:
    pairs = [run[i : i + 2] for i in range(len(run) - 1)]
    return [*pairs, run[-1]] if alone or not pairs else pairs
