"""Serper, which asks Google."""

from collections.abc import Mapping, Sequence

import msgspec

from hermes.tools.web.backends.backend import KeyedSearch, WebResult


class _Result(msgspec.Struct):
    link: str
    title: str = ""
    snippet: str = ""
    date: str = ""


class _Answer(msgspec.Struct):
    organic: list[_Result] = []


class Serper(KeyedSearch[_Answer]):
    """Asks the search API with a key."""

    name = "Serper"
    home = "https://google.serper.dev"
    answer = _Answer

    def headers(self, key: str) -> Mapping[str, str]:
        """A header of its own."""
        return {"X-API-KEY": key}

    def body(self, query: str, count: int) -> Mapping[str, object]:
        """In Google's words."""
        return {"q": query, "num": count}

    def hits(self, answer: _Answer) -> Sequence[WebResult]:
        """What Google found, without advertisements."""
        return [
            WebResult(hit.title, hit.link, hit.snippet, hit.date)
            for hit in answer.organic
        ]
