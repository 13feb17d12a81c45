"""Searches a text for many patterns at once, with the same results as `re`.

If the matches of a pattern can only begin with certain strings, the pattern is tried only where one of these strings
occurs: finding a string is many times faster than trying a pattern at every character. A pattern with a wide gap is
tried only where the part after the gap is near, and any other only where its later parts are near.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache, cached_property, reduce
from importlib import import_module
from itertools import accumulate, chain, pairwise
from typing import Any, NamedTuple

from hermes.learning.scan.gaps import Piece, alternatives, pieces

_MAX_PREFIX_CHARS = 5
_MAX_PREFIXES = 96  # maximum number of combined prefixes
_MAX_CLASS_CHARS = 6  # of a character class that is expanded
_FEW_PLACES = 24
"""At this few places, a pattern is tried without checking what follows."""
_MIN_ANCHOR_CHARS = 3  # shorter strings occur everywhere
_HEAD_CHARS = (4, 5)
"""The lengths of indexed word beginnings: shorter ones rule out little."""
_MAX_CHAR_REPEATS = 200
"""The bound of `*` and `+` on one character; longer runs of a character are shortened before the search."""
_MAX_GROUP_REPEATS = 12
"""The bound of `*` and `+` on a group."""


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
    at_word: bool = False  # whether every match begins where a word does


def prefixed(source: str) -> PrefixedPattern:
    """Compiles a pattern with a bound for each `*` and `+`, so that a search takes time linear in the text."""
    pattern = bounded(source)
    starts = None if pattern.flags & re.IGNORECASE else _starts(pattern.pattern)
    if starts is None:
        return PrefixedPattern(pattern, None, at_start=False)
    return PrefixedPattern(
        pattern,
        _shortest(starts.all()),
        starts.at_start,
        at_word=all(one.startswith(r"\b") for one in alternatives(pattern.pattern)),
    )


class GappedPattern(NamedTuple):
    """The alternatives of a pattern: the prefixes of those without a wide gap, and the others in pieces."""

    prefixes: tuple[str, ...]
    gapped: tuple[tuple[_Part, ...], ...]


@cache
def in_pieces(source: str) -> GappedPattern | None:
    """Splits a pattern; None if it has no wide gap. Computed on demand, because compiling the pieces is slow."""
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


class _Anchor(NamedTuple):
    """Strings, one of which must occur within a certain distance from the start of a match."""

    prefixes: tuple[str, ...]
    nearest: int
    farthest: int
    at_word: bool


class _Anchored(NamedTuple):
    """The prefixes of one alternative of a pattern, and the strings that must follow."""

    prefixes: tuple[str, ...]
    at_start: bool
    anchors: tuple[_Anchor, ...]


@cache
def anchored(source: str) -> tuple[_Anchored, ...]:
    """Returns the alternatives of a pattern, on demand; empty if none needs a certain string after its start."""
    made: list[_Anchored] = []
    for one in alternatives(source):
        starts = _starts(one)
        if starts is None:
            return ()
        made.append(_Anchored(_shortest(starts.all()), starts.at_start, _anchors(one)))
    if any(one.anchors for one in made):
        return tuple(made)
    return ()


def _anchors(source: str) -> tuple[_Anchor, ...]:
    items = import_module("re._parser").parse(source)
    found: list[_Anchor] = []
    for at in range(1, len(items)):
        if _is_letter(items[at]) and _is_letter(items[at - 1]):
            continue  # the rest of a word that is an anchor, or the prefix itself
        starts = _sequence(items[at:])
        prefixes = _shortest(starts.all())
        if starts.at_start or min(map(len, prefixes)) < _MIN_ANCHOR_CHARS:
            continue
        nearest, farthest = items[:at].getwidth()
        is_boundary = str(items[at][1]) == "AT_BOUNDARY"
        if farthest and (not found or found[-1].prefixes != prefixes):
            found.append(_Anchor(prefixes, nearest, farthest, is_boundary))
    return tuple(found)


def _is_letter(item: tuple[Any, Any]) -> bool:
    return str(item[0]) == "LITERAL"


class SearchedText:
    """A text that is searched for many patterns. Caches where each prefix and each end of a gap occurs."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._positions: dict[str, list[int]] = {}
        self._merged: dict[tuple[tuple[str, ...], bool, bool], list[int]] = {}
        self._matches: dict[str, list[int]] = {}

    def search(self, one: PrefixedPattern) -> "re.Match[str] | None":
        """Returns the first match, as `re.Pattern.search` does."""
        if one.prefixes is None:
            return one.pattern.search(self.text)
        places = self._candidates(one.prefixes, one.at_start, one.at_word)
        for position in places[:_FEW_PLACES]:
            if found := one.pattern.match(self.text, position):
                return found
        if len(places) <= _FEW_PLACES:
            return None
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
        places = self._candidates(one.prefixes or (), one.at_start, one.at_word)
        if len(places) <= _FEW_PLACES:
            return places
        pieces = None if one.at_start else in_pieces(one.pattern.pattern)
        if pieces is None:
            return self._anchored(one, places)
        found = {*self._candidates(pieces.prefixes, at_start=False)}
        return sorted(found.union(*map(self._chained, pieces.gapped)))

    def _anchored(self, one: PrefixedPattern, places: list[int]) -> list[int]:
        """Drops the places that do not have the required strings near them."""
        some = anchored(one.pattern.pattern)
        if not some:
            return places
        return sorted(
            {place for alternative in some for place in self._held(alternative)}
        )

    def _held(self, one: _Anchored) -> list[int]:
        places = self._candidates(one.prefixes, one.at_start)
        if len(places) <= _FEW_PLACES:
            return places
        anchors = [(self._ends(anchor), anchor) for anchor in one.anchors]
        if not all(ends for ends, _ in anchors):
            return []
        for ends, anchor in anchors:
            if len(places) <= _FEW_PLACES:
                break
            places = _before(places, ends, anchor)
        return places

    def _ends(self, anchor: _Anchor) -> list[int]:
        return self._candidates(anchor.prefixes, at_start=False, at_word=anchor.at_word)

    def _chained(self, parts: tuple[_Part, ...]) -> list[int]:
        """Returns the places where the first part matches and all others follow."""
        if not all(self._candidates(one.prefixes, at_start=False) for one in parts):
            return []  # a missing string is found far sooner than a missing match
        if not all(map(self._matching, parts)):
            return []
        followed = self._matching(parts[-1])
        for one, after in pairwise(reversed(parts)):
            followed = self._near(after, followed, slack=one.piece.slack)
        return followed

    def _near(self, one: _Part, followed: list[int], slack: int) -> list[int]:
        """Returns where `one` matches and a place of `followed` comes after it, with only the gap between them."""
        forbidden = self._any_of(one.piece.forbidden)
        longest, text = one.longest, self.text
        reach = longest + one.piece.gap + slack
        near, at, last = list[int](), 0, len(followed)
        for place in self._matching(one):
            while at < last and followed[at] <= place:
                at += 1
            if at == last:
                break
            end = followed[at]
            if end - place > reach:
                continue
            start, stop = place + longest, end - slack
            if forbidden and start < stop and forbidden.search(text, start, stop):
                continue
            near.append(place)
        return near

    def _any_of(self, signs: str) -> "re.Pattern[str] | None":
        """Returns a pattern of those characters that the text has; None if it has none of them."""
        present = [re.escape(sign) for sign in signs if sign in self._characters]
        return re.compile(f"[{''.join(present)}]") if present else None

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

    def _candidates(
        self, prefixes: tuple[str, ...], at_start: bool, at_word: bool = False
    ) -> list[int]:
        places = self._merged.get((prefixes, at_start, at_word))
        if places is None:
            some = filter(self._may_begin_word, prefixes) if at_word else prefixes
            found = [*map(self._places, some), *([[0]] if at_start else [])]
            places = sorted(chain.from_iterable(found))
            self._merged[prefixes, at_start, at_word] = places
        return places

    def _places(self, prefix: str) -> list[int]:
        places = self._positions.get(prefix)
        if places is None:
            is_absent = (
                not self._characters.issuperset(prefix)
                or _letters(prefix) not in self._words
            )
            places = [] if is_absent else _occurrences(self.text, prefix)
            self._positions[prefix] = places
        return places

    @cached_property
    def _characters(self) -> set[str]:
        if self.text.isascii():  # looking for each is several times as fast
            return {char for char in map(chr, range(128)) if char in self.text}
        return {*self.text}

    @cached_property
    def _words(self) -> str:
        """Every word once, which is much shorter than most texts."""
        return " ".join(self._vocabulary)

    @cached_property
    def _vocabulary(self) -> set[str]:
        if self.text.isascii():  # several times as fast as a pattern
            return {*self.text.encode().translate(_WORD_BYTES).decode().split()}
        return {*re.findall(r"\w+", self.text)}

    @cached_property
    def _heads(self) -> set[str]:
        words = self._vocabulary
        return {word[:size] for size in _HEAD_CHARS for word in words}

    def _may_begin_word(self, prefix: str) -> bool:
        head = _head(prefix)
        return len(head) < min(_HEAD_CHARS) or head in self._heads


_WORD_BYTES = bytes(
    byte if chr(byte).isalnum() or chr(byte) == "_" else ord(" ") for byte in range(128)
) + bytes(range(128, 256))
"""Replaces ASCII characters that can't be part of a word with a space."""


@cache
def _letters(prefix: str) -> str:
    """Returns the longest part of a prefix that is within one word."""
    return max(re.findall(r"[^\W_]*", prefix), key=len)


@cache
def _head(prefix: str) -> str:
    """Returns the first word of a prefix, up to the indexed length."""
    found = re.match(r"\w*", prefix)
    return found[0][: max(_HEAD_CHARS)] if found else ""


def _parts(alternative: str) -> tuple[_Part, ...]:
    """Splits an alternative into pieces; empty if it has no wide gap, or if a piece can begin with anything."""
    made: list[_Part] = []
    for piece in pieces(alternative):
        starts = _starts(piece.source)
        if starts is None or starts.at_start:
            return ()
        longest = import_module("re._parser").parse(piece.source).getwidth()[1]
        prefixes = _shortest(starts.all())
        made.append(_Part(re.compile(piece.source), prefixes, longest, piece))
    return tuple(made) if len(made) > 1 else ()


def _before(places: list[int], ends: list[int], anchor: _Anchor) -> list[int]:
    """Returns the places that are followed by one of `ends` within the anchor's distance."""
    if not ends:
        return []
    near, at, last = list[int](), 0, len(ends)
    for place in places:
        nearest = place + anchor.nearest
        while at < last and ends[at] < nearest:
            at += 1
        if at == last:
            break
        if ends[at] <= place + anchor.farthest:
            near.append(place)
    return near


def _occurrences(text: str, part: str) -> list[int]:
    first = text.find(part)
    if first < 0:
        return []
    if any(overlap in text for overlap in _overlaps(part)):
        return [*_overlapping(text, part, first)]
    before = map(len, text.split(part)[1:-1])
    return [*accumulate(map(len(part).__add__, before), initial=first)]


@cache
def _overlaps(part: str) -> tuple[str, ...]:
    """Returns how the string can overlap itself: `ana` as `anana`."""
    common = (at for at in range(1, len(part)) if part.startswith(part[at:]))
    return tuple(part[:at] + part for at in common)


def _overlapping(text: str, part: str, at: int) -> Iterator[int]:
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


class _Starts(NamedTuple):
    """The possible beginnings of a match: strings that can still be extended, and final ones."""

    growing: frozenset[str]
    final: frozenset[str] = frozenset()
    at_start: bool = False

    def all(self) -> frozenset[str]:
        return self.growing | self.final

    def ended(self) -> "_Starts":
        return _Starts(frozenset(), self.all(), self.at_start)

    def then(self, after: "_Starts") -> "_Starts":
        """Appends what follows. Strings that would become too many or too long stay as they are and become final."""
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
    """Returns None if a match can begin with anything, or if this Python version parses patterns differently."""
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
        case "SUBPATTERN" if not value[1]:  # without its own flags
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
    """Drops prefixes that begin with another prefix."""
    kept: list[str] = []
    for one in sorted(prefixes):
        if not kept or not one.startswith(kept[-1]):
            kept.append(one)
    return tuple(kept)


def bounded(source: str) -> "re.Pattern[str]":
    """Compiles a pattern, with a bound for each `*` and `+`."""
    made: list[str] = []
    at, in_class = 0, False
    while at < len(source):
        character = source[at]
        if character == "\\":
            made.append(source[at : at + 2])
            at += 2
            continue
        if in_class:
            in_class = character != "]" or made[-1] in ("[", "[^")
        elif character == "[":
            in_class = True
            character = "[^" if source.startswith("[^", at) else "["
        elif character in "*+" and not made[-1].endswith(
            "}"
        ):  # after a bound, `+` makes it possessive
            most = _MAX_GROUP_REPEATS if made[-1] == ")" else _MAX_CHAR_REPEATS
            made.append(f"{{{'0' if character == '*' else '1'},{most}}}")
            at += 1
            continue
        made.append(character)
        at += len(character)
    return re.compile("".join(made))
