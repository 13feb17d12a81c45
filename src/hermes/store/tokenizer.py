"""Splits text into words for search, in the same way for stored text and for queries.

Case and accents don't count. Scripts written without spaces are cut into overlapping pairs of characters (`天气很好` gives
天气 气很 很好 好), so that two characters are enough to find them. Identifiers are cut at case changes and punctuation
(`getUserById` gives get user by id) and, when they mix cases, kept whole as well, so that `getuserbyid` finds them too.
The database only sees the words made here, so no script is unknown to it.
"""

import re
import unicodedata
from typing import NamedTuple

from hermes.primitives.lazy_pattern import lazy_pattern

# Kana, Han, Hangul, Thai, Lao, Myanmar, Khmer
_SPACELESS = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\U00020000-\U0003ffff"
)
_TOKEN = f"([{_SPACELESS}]+)|([^\\W_{_SPACELESS}]+)"
_LONE = f"[{_SPACELESS}]"
_CASE_PART = r"[A-Z]+(?![a-z])|[A-Z]?[^A-Z]+"
# Accents; the vowel signs of Hebrew and Arabic, which most people leave out; the Arabic stretch
_SIGN = r"[^\w\s\x00-\x7f]"
ACCENT = "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1-\u05c7\u0640\u064b-\u065f\u0670\u06d6-\u06ed]"
# The same for ASCII text, which is the usual case: all words at once, except those that mix cases, or have a capital, a
# digit and a small letter in a row.
_ASCII_WORD = lazy_pattern("[a-z0-9]+")
_ASCII_MIXED = lazy_pattern(
    "((?<![A-Za-z0-9])(?:[A-Z]?+[a-z0-9]*+[A-Z][A-Za-z0-9]*+|[A-Z][a-z]*+[0-9]++[a-z][a-z0-9]*+))"
)
_TERM = r'(-?)"([^"]*)"?|(\S+)'

MAX_SEARCHABLE_CHARS = 64 * 1024
"""How much of one message is searchable."""

_MIN_PREFIX_CHARS = 2  # letters; the index is built for this length


class TokenizedText(NamedTuple):
    """A text's words in order, and its mixed-case identifiers as a whole."""

    words: list[str]
    names: list[str]


def split(text: str, *, asked: bool = False) -> TokenizedText:
    """Splits a text into words. In a query, spaceless script at the end may continue in the stored text."""
    text = text[:MAX_SEARCHABLE_CHARS]
    found = TokenizedText([], [])
    if text.isascii():
        for position, part in enumerate(_ASCII_MIXED.split(text)):
            if position % 2:
                _cut(part, found)
            else:
                found.words.extend(_ASCII_WORD.findall(part.lower()))
        return found
    tokens = re.findall(_TOKEN, _fold(text))
    for position, (run, word) in enumerate(tokens, 1):
        if run:
            found.words.extend(_pairs(run, alone=not asked or position < len(tokens)))
        else:
            _cut(word, found)
    return found


def _cut(word: str, found: TokenizedText) -> None:
    """Adds a word, or an identifier that mixes cases both as a whole and in parts."""
    folded = word.casefold()
    if folded == word or word.isupper() or word.istitle():
        found.words.append(folded)
    else:
        found.words.extend(part.casefold() for part in re.findall(_CASE_PART, word))
        found.names.append(folded)


class QueryTerm(NamedTuple):
    """One term of a query: adjacent words, the last of which may continue if `is_prefix`.

    A text also matches if it contains `name` as an identifier.
    """

    words: list[str]
    name: str
    is_prefix: bool
    is_excluded: bool


def query_terms(query: str, *, prefix: bool) -> list[QueryTerm]:
    """Returns the terms of a query: quoted ones are phrases, `-term` excludes.

    With `prefix`, unquoted words match as prefixes too. Empty if the query has no term that a text must contain.
    """
    found: list[QueryTerm] = []
    for minus, phrase, bare in re.findall(_TERM, query):
        is_excluded = bool(minus) or (bare.startswith("-") and len(bare) > 1)
        may_continue = prefix and bool(bare) and not is_excluded
        words, names = split(phrase or bare, asked=True)
        if not words:
            continue
        is_lone = re.fullmatch(_LONE, words[-1]) is not None
        is_prefix = is_lone or (may_continue and len(words[-1]) >= _MIN_PREFIX_CHARS)
        joined = "".join(words)
        is_one_name = names[0] == joined if names else len(words) == 1
        name = joined if is_one_name else ""
        found.append(QueryTerm(words, name, is_prefix, is_excluded))
    return found if any(not term.is_excluded for term in found) else []


def match_expression(query: str, *, prefix: bool) -> str:
    """Returns the terms of a query as an FTS5 expression."""
    wanted: list[str] = []
    unwanted: list[str] = []
    for term in query_terms(query, prefix=prefix):
        (unwanted if term.is_excluded else wanted).append(_expression(term))
    every = " AND ".join(wanted)
    return f"({every}) NOT ({' OR '.join(unwanted)})" if unwanted else every


def matches(terms: list[QueryTerm], text: TokenizedText) -> bool:
    """Returns whether a text has all terms and none of the excluded ones, as FTS5 would find it."""
    return all(_has(term, text) != term.is_excluded for term in terms)


def _has(term: QueryTerm, text: TokenizedText) -> bool:
    *before, last = term.words
    count = len(before)
    for start in range(len(text.words) - count):
        end = text.words[start + count]
        fits = end.startswith(last) if term.is_prefix else end == last
        if fits and text.words[start : start + count] == before:
            return True
    if not term.name:
        return False
    return any(
        name.startswith(term.name) if term.is_prefix else name == term.name
        for name in text.names
    )


FOLDED = (
    "\u00a0-\u036f\u0e33\u0eb3\u0edc\u0edd\u1d00-\u1eff\u2070-\u209f\u20a0-\u20bf\u2100-\u218f\u2460-\u24ff\u2c60-\u2c7f"
    "\u2e80-\u2fdf\u3038-\u303a\u309b-\u309f\u30ff\u3130-\u33ff\ua000-\uabff\uf900-\ufb4f\ufe30-\uffef\U00010780-\U000107bf"
    "\U0001d400-\U0001d7ff\U0001f100-\U0001f2ff\U0001fbf0-\U0001fbf9\U0002f800-\U0002fa1f"
)
"""Ranges of characters that `split` may turn into ASCII letters or into letters of a spaceless script."""


def required_part(query: str) -> str:
    """Returns the longest word that every match must contain, ignoring ASCII case.

    Holds for texts without `FOLDED` characters. Empty if there is no such word.
    """
    parts = [
        word
        for minus, phrase, bare in re.findall(_TERM, query)
        if not minus and not (bare.startswith("-") and len(bare) > 1)
        for word in split(phrase or bare, asked=True).words
        if word.isascii() or re.match(_LONE, word)
    ]
    return max(parts, key=len, default="")


def _expression(term: QueryTerm) -> str:
    star = " *" if term.is_prefix else ""
    inner = f'words : "{" ".join(term.words)}"{star}'
    return f'({inner} OR names : "{term.name}"{star})' if term.name else f"({inner})"


def _fold(text: str) -> str:
    """Returns the text without accents and variants of form. The meaning of a symbol becomes a separate word."""
    apart = re.sub(_SIGN, lambda found: _apart(found[0]), text)
    return unicodedata.normalize(
        "NFC", re.sub(ACCENT, "", unicodedata.normalize("NFKD", apart))
    )


def _apart(sign: str) -> str:
    return f" {sign} " if unicodedata.category(sign).startswith("S") else sign


def _pairs(run: str, *, alone: bool) -> list[str]:
    pairs = [run[i : i + 2] for i in range(len(run) - 1)]
    if alone or not pairs:
        return [*pairs, run[-1]]
    return pairs
