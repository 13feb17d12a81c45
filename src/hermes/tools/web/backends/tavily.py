"""Tavily."""

from collections.abc import Mapping, Sequence

import msgspec

from hermes.tools.web.backends.backend import KeyedSearch, WebResult


class _Result(msgspec.Struct):
    url: str
    title: str | None = None
    content: str | None = None
    published_date: str | None = None


class _Answer(msgspec.Struct):
    results: list[_Result]


class Tavily(KeyedSearch[_Answer]):
    """Asks the search API with a bearer key."""

    name = "Tavily"
    home = "https://api.tavily.com"
    answer = _Answer

    def headers(self, key: str) -> Mapping[str, str]:
        """As a bearer."""
        return {"Authorization": f"Bearer {key}"}

    def body(self, query: str, count: int) -> Mapping[str, object]:
        """The cheap kind of search."""
        return {"query": query, "max_results": count, "search_depth": "basic"}

    def hits(self, answer: _Answer) -> Sequence[WebResult]:
        """In its order."""
        return [
            WebResult(
                hit.title or "", hit.url, hit.content or "", hit.published_date or ""
            )
            for hit in answer.results
        ]
