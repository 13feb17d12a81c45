"""Ranks tools by how well they fit a request: BM25 over stems of their names, descriptions and arguments.

Identifiers are split by the tokenizer of the session search. Related words count a little, and so does the kind of a
value in the request, such as a date. The weights were chosen on one part of a public set of requests and measured on
another: `make bench BENCH=tool_search`.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import msgspec

from hermes.app.deferred_tools.related_words import (
    STOP_WORDS,
    cue_stems,
    related_stems,
    stem,
)
from hermes.primitives.untyped import object_in
from hermes.schema.tool_spec import ToolSpec
from hermes.store.tokenizer import split

_NAME_WEIGHT = 2.0
_DESCRIPTION_WEIGHT = 1.0
_ARGUMENT_WEIGHT = 1.0
_ARGUMENT_DESCRIPTION_WEIGHT = 0.5
_RELATED_WEIGHT = 0.15
_CUE_WEIGHT = 0.8
_SATURATION = 1.2
"""BM25's k1: how soon a repeated word stops counting."""
_LENGTH_WEIGHT = 0.75
"""BM25's b: how much a long description counts against a tool."""
_MAX_SCHEMA_DEPTH = 3
_MAX_CHOICES = 50


class FoundTool(msgspec.Struct, frozen=True):
    """A tool that fits, and how well."""

    name: str
    score: float


class ToolIndex:
    """The tools that can be searched. Built once, and only read afterwards."""

    def __init__(self, specs: Iterable[ToolSpec]) -> None:
        self._lengths: dict[str, float] = {}
        self._postings: defaultdict[str, list[tuple[str, float]]] = defaultdict(list)
        for spec in specs:
            words = _weights(spec)
            self._lengths[spec.name] = sum(words.values())
            for word, weight in words.items():
                self._postings[word].append((spec.name, weight))
        total = sum(self._lengths.values())
        self._average = total / len(self._lengths) if self._lengths else 1.0

    def search(self, query: str, limit: int) -> list[FoundTool]:
        """Returns the tools that fit best, the best first. Those that share no word with the query are left out."""
        scores: defaultdict[str, float] = defaultdict(float)
        for word, weight in _query_weights(query).items():
            postings = self._postings.get(word, ())
            rarity = self._rarity(len(postings))
            for name, frequency in postings:
                scores[name] += weight * rarity * self._share(name, frequency)
        best = sorted(scores.items(), key=lambda found: (-found[1], found[0]))
        return [FoundTool(name, score) for name, score in best[:limit]]

    def _rarity(self, count: int) -> float:
        return math.log(1 + (len(self._lengths) - count + 0.5) / (count + 0.5))

    def _share(self, name: str, frequency: float) -> float:
        relative = self._lengths[name] / self._average
        norm = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * relative)
        return frequency * (_SATURATION + 1) / (frequency + norm)


def stems(text: str) -> list[str]:
    """Returns the stems of the words of a text that say something about a tool."""
    return [stem(word) for word in split(text).words if word not in STOP_WORDS]


def _query_weights(query: str) -> dict[str, float]:
    """Returns the words to look for: those of the query, and with less weight those related to them. Numbers don't count."""
    asked = [word for word in dict.fromkeys(stems(query)) if not word.isdigit()]
    weights = dict.fromkeys(asked, 1.0)
    for word in asked:
        for other in related_stems().get(word, ()):
            weights.setdefault(other, _RELATED_WEIGHT)
    for word in cue_stems(query):
        weights[word] = max(weights.get(word, 0.0), _CUE_WEIGHT)
    return weights


def _weights(spec: ToolSpec) -> Counter[str]:
    """Returns the words of a tool by weight. What it is called counts most."""
    found: Counter[str] = Counter()
    names, about = _arguments(spec.parameters, 0)
    for text, weight in (
        (spec.name.removeprefix("mcp."), _NAME_WEIGHT),
        (spec.description, _DESCRIPTION_WEIGHT),
        (" ".join(names), _ARGUMENT_WEIGHT),
        (" ".join(about), _ARGUMENT_DESCRIPTION_WEIGHT),
    ):
        for word in stems(text):
            found[word] += weight  # pyrefly: ignore[unsupported-operation]
    return found


def _choices(schema: dict[str, Any]) -> list[str]:
    """Returns the words that an argument can be."""
    choices = schema.get("enum")
    if not isinstance(choices, list):
        return []
    return [one for one in choices[:_MAX_CHOICES] if isinstance(one, str)]


def _arguments(schema: Any, depth: int) -> tuple[list[str], list[str]]:
    """Returns the names and the descriptions of arguments, also of those inside others."""
    names: list[str] = []
    about: list[str] = []
    if depth >= _MAX_SCHEMA_DEPTH:
        return names, about
    for name, one in object_in(schema, "properties").items():
        names.append(str(name))
        if isinstance(one, dict):
            about.append(str(one.get("description") or ""))
            about += _choices(one)
            inner_names, inner_about = _arguments(one, depth + 1)
            names += inner_names
            about += inner_about
    return names, about
