"""How text becomes words for search: the same way for what is stored and for what is asked.

Case and accents don't count. Scripts written without spaces are cut into overlapping pairs of characters (`天气很好`
gives 天气 气很 很好 好), so that two characters are enough to find them. Identifiers are cut at case changes and
punctuation (`getUserById` gives get user by id) and, when they mix cases, kept whole as well, so that `getuserbyid`
finds them too. SQLite only sees the words made here, so no script is unknown to it.
"""

import re
import unicodedata
from typing import NamedTuple

# Kana, Han, Hangul, Thai, Lao, Myanmar, Khmer
_SPACELESS = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\U00020000-\U0003ffff"
)
_TOKEN = f"([{_SPACELESS}]+)|([^\\W_{_SPACELESS}]+)"
_LONE = f"[{_SPACELESS}]"
_CASE_PART = r"[A-Z]+(?![a-z])|[A-Z]?[^A-Z]+"
# Accents; the vowel signs of Hebrew and Arabic, which most people leave out; the Arabic stretch
_ACCENT = "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1-\u05c7\u0640\u064b-\u065f\u0670\u06d6-\u06ed]"
_TERM = r'(-?)"([^"]*)"?|(\S+)'

MAX_CHARACTERS = 64 * 1024
"""How much of one message is searchable."""

_SHORTEST_BEGINNING = 2  # letters; the index is made for it


class Words(NamedTuple):
    """A text's words in order, and its mixed-case identifiers whole."""

    words: list[str]
    names: list[str]


def split(text: str, *, asked: bool = False) -> Words:
    """The words of a text. For what is asked, a run of spaceless script at the end may go on in what is stored."""
    words: list[str] = []
    names: list[str] = []
    tokens = re.findall(_TOKEN, _fold(text[:MAX_CHARACTERS]))
    for position, (run, word) in enumerate(tokens, 1):
        if run:
            words += _pairs(run, alone=not asked or position < len(tokens))
        elif word.islower() or word.isupper() or word.istitle():
            words.append(word.casefold())
        else:
            words += [part.casefold() for part in re.findall(_CASE_PART, word)]
            names.append(word.casefold())
    return Words(words, names)


def match_expression(query: str, *, prefix: bool) -> str:
    """An FTS5 expression: all terms, quoted ones as phrases, `-term` excluded; with `prefix`, beginnings of unquoted
    words count too.

    Empty when the query holds nothing to look for.
    """
    wanted: list[str] = []
    unwanted: list[str] = []
    for minus, phrase, bare in re.findall(_TERM, query):
        excluded = bool(minus) or (bare.startswith("-") and len(bare) > 1)
        expression = _phrase(phrase or bare, prefix=prefix and bool(bare) and not excluded)
        if expression:
            (unwanted if excluded else wanted).append(expression)
    if not wanted:
        return ""
    every = " AND ".join(wanted)
    return f"({every}) NOT ({' OR '.join(unwanted)})" if unwanted else every


def _phrase(term: str, *, prefix: bool) -> str:
    words, names = split(term, asked=True)
    if not words:
        return ""
    lone = len(words) == 1 and re.fullmatch(_LONE, words[0])
    star = " *" if lone or (prefix and len(words[-1]) >= _SHORTEST_BEGINNING) else ""
    inner = f'words : "{" ".join(words)}"{star}'
    if names and "".join(words) != names[0]:
        return f"({inner})"  # more than one identifier
    if not names and len(words) > 1:
        return f"({inner})"
    return f'({inner} OR names : "{"".join(words)}"{star})'


def _fold(text: str) -> str:
    """The text without accents and variants of form."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", re.sub(_ACCENT, "", unicodedata.normalize("NFKD", text)))


def _pairs(run: str, *, alone: bool) -> list[str]:
    pairs = [run[i : i + 2] for i in range(len(run) - 1)]
    return [*pairs, run[-1]] if alone or not pairs else pairs
