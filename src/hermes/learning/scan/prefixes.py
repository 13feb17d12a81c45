"""Searches a text for many patterns at once. A pattern whose matches can only begin with certain strings is tried only
where one of these strings stands: finding a string is many times faster than trying a pattern at every character.
A pattern with a wide gap is tried only where what follows the gap is near.

A search finds exactly what `re` would find.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cache, cached_property, reduce
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple

from hermes.learning.scan.bounded import bounded
from hermes.learning.scan.gaps import Piece, alternatives, pieces

_MAX_PREFIX_CHARS = 5
_MAX_PREFIXES = 96  # that the combination of several with what follows them may make
_MAX_CLASS_CHARS = 6  # of a character class that is spelled out
_FEW_PLACES = 24
"""A pattern is tried at so few places without asking what follows its gaps."""


class _Part(NamedTuple):
    """A piece of a pattern, with the strings that it can begin with."""

    pattern: "re.Pattern[str]"
    prefixes: tuple[str, ...]
    longest: int
    piece: Piece


class PrefixedPattern(NamedTuple):
    """A pattern and the strings that its matches can begin with; None if they are not known."""

    pattern: "re.Pattern[str]"
    prefixes: tuple[str, ...] | None
    at_start: bool  # whether it can also match at the start of a text


def prefixed(source: str) -> PrefixedPattern:
    """Compiles a pattern, with a bound for each `*` and `+`."""
    pattern = bounded(source)
    starts = None if pattern.flags & re.IGNORECASE else _starts(pattern.pattern)
    if starts is None:
        return PrefixedPattern(pattern, None, at_start=False)
    return PrefixedPattern(pattern, _shortest(starts.all()), starts.at_start)


class GappedPattern(NamedTuple):
    """The alternatives of a pattern: what those without a wide gap can begin with, and the others in pieces."""

    prefixes: tuple[str, ...]
    gapped: tuple[tuple[_Part, ...], ...]


@cache
def in_pieces(source: str) -> GappedPattern | None:
    """Returns None for a pattern without wide gaps. Made when it is needed: compiling the pieces is slow."""
    every = alternatives(source)
    parts = [_parts(one) for one in every]
    gapped = tuple(some for some in parts if some)
    if not gapped:
        return None
    plain = [_starts(one) for one, some in zip(every, parts, strict=True) if not some]
    known = [one for one in plain if one is not None and not one.at_start]
    if len(known) < len(plain):
        return None
    strings = frozenset(string for one in known for string in one.all())
    return GappedPattern(_shortest(strings), gapped)


class SearchedText:
    """A text that is searched for many patterns. It remembers where each prefix and the end of each gap stands."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._positions: dict[str, list[int]] = {}
        self._matches: dict[str, list[int]] = {}

    def search(self, one: PrefixedPattern) -> "re.Match[str] | None":
        """Returns the first match, as `re.Pattern.search` does."""
        if one.prefixes is None:
            return one.pattern.search(self.text)
        return next(self.finditer(one), None)

    def finditer(self, one: PrefixedPattern) -> "Iterator[re.Match[str]]":
        """Yields all matches that do not overlap, as `re.Pattern.finditer` does."""
        if one.prefixes is None:
            yield from one.pattern.finditer(self.text)
            return
        end = 0
        for position in self._starts(one):
            if position >= end and (found := one.pattern.match(self.text, position)):
                yield found
                end = max(found.end(), position + 1)

    def _starts(self, one: PrefixedPattern) -> list[int]:
        places = self._candidates(one.prefixes or (), one.at_start)
        if len(places) <= _FEW_PLACES or one.at_start:
            return places
        pieces = in_pieces(one.pattern.pattern)
        if pieces is None:
            return places
        found = {*self._candidates(pieces.prefixes, at_start=False)}
        return sorted(found.union(*map(self._chained, pieces.gapped)))

    def _chained(self, parts: tuple[_Part, ...]) -> list[int]:
        """Returns where the first part stands with all others behind it."""
        if not all(map(self._matching, parts)):
            return []
        followed = self._matching(parts[-1])
        for one, after in pairwise(reversed(parts)):
            followed = self._near(after, followed, slack=one.piece.slack)
        return followed

    def _near(self, one: _Part, followed: list[int], slack: int) -> list[int]:
        """Returns where `one` stands with a place of `followed` behind it, and only the gap between them."""
        places = self._matching(one)
        reach = one.longest + one.piece.gap + slack
        near, done = list[int](), 0
        for end in followed:
            first = max(done, bisect_left(places, end - reach))
            done = bisect_left(places, end, first)
            near += [
                place
                for place in places[first:done]
                if not self._is_barred(one, place + one.longest, end - slack)
            ]
        return near

    def _is_barred(self, one: _Part, start: int, end: int) -> bool:
        if end <= start:  # `find` would count a negative end from the end of the text
            return False
        return any(
            self.text.find(sign, start, end) >= 0 for sign in one.piece.forbidden
        )

    def _matching(self, one: _Part) -> list[int]:
        """Returns every place where a part matches."""
        places = self._matches.get(one.piece.source)
        if places is None:
            match, text = one.pattern.match, self.text
            places = self._matches[one.piece.source] = [
                at
                for at in self._candidates(one.prefixes, at_start=False)
                if match(text, at)
            ]
        return places

    def _candidates(self, prefixes: Iterable[str], at_start: bool) -> list[int]:
        places = [places for one in prefixes if (places := self._places(one))]
        if at_start:
            places.append([0])
        if len(places) == 1:
            return places[0]
        return sorted(place for some in places for place in some)

    def _places(self, prefix: str) -> list[int]:
        places = self._positions.get(prefix)
        if places is None:
            is_absent = prefix.isalpha() and prefix not in self._words
            places = [] if is_absent else list(_occurrences(self.text, prefix))
            self._positions[prefix] = places
        return places

    @cached_property
    def _words(self) -> str:
        """Every word once: much shorter than most texts."""
        return " ".join({*re.findall(r"\w+", self.text)})


def _parts(alternative: str) -> tuple[_Part, ...]:
    """Returns an alternative in pieces; empty if it has no wide gap, or a piece can begin with anything."""
    made: list[_Part] = []
    for piece in pieces(alternative):
        starts = _starts(piece.source)
        if starts is None or starts.at_start:
            return ()
        longest = import_module("re._parser").parse(piece.source).getwidth()[1]
        prefixes = _shortest(starts.all())
        made.append(_Part(re.compile(piece.source), prefixes, longest, piece))
    return tuple(made) if len(made) > 1 else ()


def _occurrences(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


class _Starts(NamedTuple):
    """What a match can begin with: strings that more can be added to, and strings that are final."""

    growing: frozenset[str]
    final: frozenset[str] = frozenset()
    at_start: bool = False

    def all(self) -> frozenset[str]:
        return self.growing | self.final

    def ended(self) -> "_Starts":
        return _Starts(frozenset(), self.all(), self.at_start)

    def then(self, after: "_Starts") -> "_Starts":
        """Adds what follows. What would be too many or too long stays as it is, and is final."""
        long = frozenset(one for one in self.growing if len(one) >= _MAX_PREFIX_CHARS)
        short = self.growing - long
        if len(short) > 1 and len(short) * len(after.all()) > _MAX_PREFIXES:
            return self.ended()
        return _Starts(
            frozenset(one + two for one in short for two in after.growing),
            self.final | long | {one + two for one in short for two in after.final},
            self.at_start or (after.at_start and "" in short),
        )

    def either(self, other: "_Starts") -> "_Starts":
        return _Starts(
            self.growing | other.growing,
            self.final | other.final,
            self.at_start or other.at_start,
        )


_NOTHING = _Starts(frozenset(("",)))
_ANYTHING = _NOTHING.ended()


def _starts(source: str) -> _Starts | None:
    """Returns None if a match can begin with anything, or if this Python parses patterns in another way."""
    try:
        parsed = import_module("re._parser").parse(source)
        starts = _sequence(parsed)
    except (ImportError, AttributeError, TypeError, ValueError):
        return None
    return None if "" in starts.all() else starts


def _sequence(items: Iterable[tuple[Any, Any]]) -> _Starts:
    starts = _NOTHING
    for kind, value in items:
        starts = starts.then(_item(str(kind), value))
        if not starts.growing:
            break
    return starts


def _item(kind: str, value: Any) -> _Starts:
    starts = _ANYTHING
    match kind:
        case "LITERAL":
            starts = _Starts(frozenset((chr(value),)))
        case "IN":
            starts = _class(value)
        case "AT" if str(value) == "AT_BEGINNING":
            starts = _Starts(frozenset(), at_start=True)
        case "AT" | "ASSERT" | "ASSERT_NOT":
            starts = _NOTHING
        case "SUBPATTERN" if not value[1]:  # without flags of its own
            starts = _sequence(value[3])
        case "ATOMIC_GROUP":
            starts = _sequence(value)
        case "BRANCH":
            starts = reduce(_Starts.either, map(_sequence, value[1]))
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, most, repeated = value
            once = _sequence(repeated)
            once = once if most == 1 else once.ended()
            starts = once if least else _NOTHING.either(once)
    return starts


def _class(items: list[tuple[Any, Any]]) -> _Starts:
    chars: set[str] = set()
    for kind, value in items:
        if str(kind) == "LITERAL":
            chars.add(chr(value))
        elif str(kind) == "RANGE" and value[1] - value[0] < _MAX_CLASS_CHARS:
            chars.update(map(chr, range(value[0], value[1] + 1)))
        else:
            return _ANYTHING
    return _Starts(frozenset(chars)) if len(chars) <= _MAX_CLASS_CHARS else _ANYTHING


def _shortest(prefixes: frozenset[str]) -> tuple[str, ...]:
    """Leaves out prefixes that begin with another one."""
    kept: list[str] = []
    for one in sorted(prefixes):
        if not kept or not one.startswith(kept[-1]):
            kept.append(one)
    return tuple(kept)
