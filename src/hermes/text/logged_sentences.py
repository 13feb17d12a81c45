"""Finds sentences of the catalogue in the log again.

Why a turn ended, a card waits or a job paused is kept in English, with its values filled in: models and programs read
it too, and it outlives the language that somebody used that day. `LoggedSentences` recognises such a sentence and its
values, so that both can be translated for a reader. Other words, such as a model's or a person's own, stay as they are.
"""

import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from hermes.text.po_file import PoKey

_MAX_CHARACTERS = 2000
_MAX_SENTENCES = 8
_MAX_VALUE_SENTENCES = 2
_MAX_DEPTH = 2
_MIN_CHARACTERS = 8
_INDEXED_CHARACTERS = 3
_WORD = re.compile(r"[A-Za-z]{2,}")
_SENTENCE_END = re.compile(r"[.!?](?= )")
_LABEL = re.compile(r"[A-Za-z_]+: ")
"""What may stand before a reason: an outcome, or a kind."""
_NUMBER = re.compile(r"[0-9][0-9,]*")
_NEVER_LOGGED = ("page", "command", "surfaces.")
_SETTINGS = "settings"
"""The meaning of settings; the modules of that package have longer names."""
_LOGGED_SURFACE = "surfaces.gateway."

Fill = Callable[[PoKey, Mapping[str, str], int], str]
"""Returns a sentence in the reader's language with its values; the number chooses the form of a plural."""


class _Template(NamedTuple):
    """A sentence, cut at its values."""

    key: PoKey
    literals: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def characters(self) -> int:
        return sum(map(len, self.literals))

    @property
    def pattern(self) -> re.Pattern[str]:
        """The sentence with anything in its places: the first of them takes as much as it can."""
        return re.compile("(.+)".join(map(re.escape, self.literals)), re.DOTALL)

    def values(self, text: str) -> dict[str, str] | None:
        """What stands in the places of the sentence; None if `text` is another sentence."""
        first, last = self.literals[0], self.literals[-1]
        if not self.names:
            return {} if text == first else None
        end = len(text) - len(last)
        if not (text.startswith(first) and text.endswith(last)):
            return None
        bounds = [len(first)]
        for literal in self.literals[1:-1]:
            found = text.find(literal, bounds[-1] + 1, end)
            if found < 0:
                return None
            bounds += [found, found + len(literal)]
        places = list(pairwise([*bounds, end]))[::2]
        if any(start >= stop for start, stop in places):
            return None
        taken = (text[start:stop] for start, stop in places)
        return dict(zip(self.names, taken, strict=True))


class _Reading(NamedTuple):
    """A text for the reader, and how many of its characters are sentences of the catalogue."""

    characters: int
    text: str


class LoggedSentences:
    """The sentences that the log may have, in one language."""

    def __init__(self, keys: Iterable[PoKey], fill: Fill) -> None:
        self._fill = fill
        self._templates: dict[str, list[_Template]] = {}
        for key in keys:
            if not _may_be_logged(key.context):
                continue
            for form in filter(None, (key.text, key.plural)):
                if (template := _template(key, form)) is not None:
                    start = template.literals[0][:_INDEXED_CHARACTERS]
                    self._templates.setdefault(start, []).append(template)
        self._line = lru_cache(maxsize=2048)(self._shown_line)

    def shown(self, text: str) -> str:
        """Returns a reason for the reader; unchanged if it is none of Hermes' own sentences."""
        if len(text) > _MAX_CHARACTERS:
            return text
        return "\n".join(map(self._line, text.split("\n")))

    def whole(self, text: str) -> str | None:
        """Returns a text that is one sentence for the reader, its values as they are; None if it is none."""
        found = [
            one for one in self._templates_for(text) if one.pattern.fullmatch(text)
        ]
        if not found:
            return None
        best = max(found, key=lambda one: one.characters)
        values = best.pattern.fullmatch(text)
        assert values is not None  # noqa: S101 - it was found by this
        named = dict(zip(best.names, values.groups(), strict=True))
        return self._fill(best.key, named, _number(named.get("count", "")))

    def _shown_line(self, line: str) -> str:
        return self._read(line, 0).text

    def _read(self, text: str, depth: int) -> _Reading:
        """The way to read a text, as one sentence or as several, that finds the most of it in the catalogue."""
        if depth > _MAX_DEPTH:
            return _Reading(0, text)
        ends = [found.end() for found in _SENTENCE_END.finditer(text)]
        most = _MAX_VALUE_SENTENCES if depth else _MAX_SENTENCES
        starts = [0, *(end + 1 for end in ends[: most - 1])]
        bounds = [*starts, len(text) + 1]
        best = {len(text) + 1: _Reading(0, "")}
        for place in range(len(starts) - 1, -1, -1):
            start, following = bounds[place], bounds[place + 1]
            best[start] = _after(_Reading(0, text[start : following - 1]), best[following])  # fmt: skip
            for end in bounds[place + 1 :]:
                first = self._ended_sentence(text[start : end - 1], depth)
                read = _after(first, best[end])
                if first.characters and read.characters > best[start].characters:
                    best[start] = read
        return best[0]

    def _ended_sentence(self, text: str, depth: int) -> _Reading:
        """A sentence whose full stop may have been added when a hint was put behind it."""
        found = self._sentence(text, depth)
        if found.characters or not text.endswith("."):
            return found
        bare = self._sentence(text[:-1], depth)
        return bare._replace(text=f"{bare.text}.")

    def _templates_for(self, text: str) -> Iterator[_Template]:
        """The sentences that begin as the text does."""
        for start in {text[:size] for size in range(_INDEXED_CHARACTERS + 1)}:
            yield from self._templates.get(start, ())

    def _sentence(self, text: str, depth: int) -> _Reading:
        """The text as one sentence: the one that shares the most characters with it."""
        best = _Reading(0, text)
        for template in self._templates_for(text):
            values = template.values(text)
            if values is None or template.characters <= best.characters:
                continue
            read = {name: self._read(value, depth + 1) for name, value in values.items()}  # fmt: skip
            characters = template.characters + sum(one.characters for one in read.values())  # fmt: skip
            shown = {name: one.text for name, one in read.items()}
            count = _number(values.get("count", ""))
            best = _Reading(characters, self._fill(template.key, shown, count))
        if best.characters == 0 and (found := _LABEL.match(text)):
            rest = self._read(text[found.end() :], depth + 1)
            best = rest._replace(text=f"{found[0]}{rest.text}")
        return best


def _may_be_logged(context: str) -> bool:
    if context == _SETTINGS:
        return False
    return context.startswith(_LOGGED_SURFACE) or not context.startswith(_NEVER_LOGGED)


def _after(first: _Reading, rest: _Reading) -> _Reading:
    joined = f"{first.text} {rest.text}" if rest.text else first.text
    return _Reading(first.characters + rest.characters, joined)


def _template(key: PoKey, form: str) -> _Template | None:
    """A sentence cut at its values; None if it has too few words of its own to be recognised."""
    try:
        parts = list(string.Formatter().parse(form))
    except ValueError:
        return None
    literals = [""]
    names: list[str] = []
    for literal, name, _, _ in parts:
        literals[-1] += literal
        if name is not None:
            names.append(name)
            literals.append("")
    template = _Template(key, tuple(literals), tuple(names))
    is_clear = all(literals[1:-1]) and len(names) == len(set(names))
    return template if is_clear and _is_recognisable(template) else None


def _is_recognisable(template: _Template) -> bool:
    """Whether a sentence has enough words of its own to be recognised among other texts."""
    words = len(_WORD.findall(" ".join(template.literals)))
    if not template.names:
        return words > 0
    if not template.literals[0]:
        return words > 2
    return words > 1 or (words == 1 and template.characters > _MIN_CHARACTERS)


def _number(text: str) -> int:
    return int(text.replace(",", "")) if _NUMBER.fullmatch(text) else 1
