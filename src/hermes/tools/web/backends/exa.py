"""Exa."""

from collections.abc import Sequence

import msgspec

from hermes.tools.web.backends.backend import Hit, ask, posted
from hermes.tools.web.client import WebClient

_ADDRESS = "https://api.exa.ai"


class _Result(msgspec.Struct, rename="camel"):
    url: str
    title: str | None = None
    published_date: str | None = None
    text: str | None = None
    highlights: list[str] | None = None


class _Answer(msgspec.Struct):
    results: list[_Result]


class Exa:
    """Asks the search API, with the passages of each page that fit the question."""

    name = "Exa"

    def __init__(self, client: WebClient, key: str, address: str = _ADDRESS) -> None:
        self._client = client
        self._key = key
        self._address = address

    async def search(self, query: str, count: int) -> Sequence[Hit]:
        """The best results."""
        request = posted(
            f"{self._address}/search",
            {"x-api-key": self._key},
            {"query": query, "numResults": count, "type": "auto", "contents": {"highlights": True}},
        )
        answer = await ask(self._client, request, _Answer)
        return [
            Hit(
                hit.title or "",
                hit.url,
                " ... ".join(hit.highlights or []) or hit.text or "",
                (hit.published_date or "")[:10],
            )
            for hit in answer.results
        ]
