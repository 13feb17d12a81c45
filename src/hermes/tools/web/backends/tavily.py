"""Tavily."""

from collections.abc import Sequence

import msgspec

from hermes.tools.web.backends.backend import Hit, ask, posted
from hermes.tools.web.client import WebClient

_ADDRESS = "https://api.tavily.com"


class _Result(msgspec.Struct):
    url: str
    title: str | None = None
    content: str | None = None
    published_date: str | None = None


class _Answer(msgspec.Struct):
    results: list[_Result]


class Tavily:
    """Asks the search API with a bearer key."""

    name = "Tavily"

    def __init__(self, client: WebClient, key: str, address: str = _ADDRESS) -> None:
        self._client = client
        self._key = key
        self._address = address

    async def search(self, query: str, count: int) -> Sequence[Hit]:
        """The best results."""
        request = posted(
            f"{self._address}/search",
            {"Authorization": f"Bearer {self._key}"},
            {"query": query, "max_results": count, "search_depth": "basic"},
        )
        answer = await ask(self._client, request, _Answer)
        return [Hit(hit.title or "", hit.url, hit.content or "", hit.published_date or "") for hit in answer.results]
