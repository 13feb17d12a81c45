"""Exa."""

from collections.abc import Mapping, Sequence

import msgspec

from hermes.tools.web.backends.backend import KeyedSearch, WebResult


class _Result(msgspec.Struct, rename="camel"):
    url: str
    title: str | None = None
    published_date: str | None = None
    text: str | None = None
    highlights: list[str] | None = None


class _Answer(msgspec.Struct):
    results: list[_Result]


class Exa(KeyedSearch[_Answer]):
    """Asks the search API, with the passages of each page that fit the question."""

    name = "Exa"
    home = "https://api.exa.ai"
    answer = _Answer

    def headers(self, key: str) -> Mapping[str, str]:
        """A header of its own."""
        return {"x-api-key": key}

    def body(self, query: str, count: int) -> Mapping[str, object]:
        """With passages."""
        return {
            "query": query,
            "numResults": count,
            "type": "auto",
            "contents": {"highlights": True},
        }

    def hits(self, answer: _Answer) -> Sequence[WebResult]:
        """Passages, or else the text."""
        return [
            WebResult(
                hit.title or "",
                hit.url,
                " ... ".join(hit.highlights or []) or hit.text or "",
                (hit.published_date or "")[:10],
            )
            for hit in answer.results
        ]
