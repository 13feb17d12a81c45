"""Serper, which asks Google."""

from collections.abc import Sequence

import msgspec

from hermes.tools.web.backends.backend import Hit, ask, posted
from hermes.tools.web.client import WebClient

_ADDRESS = "https://google.serper.dev"


class _Result(msgspec.Struct):
    link: str
    title: str = ""
    snippet: str = ""
    date: str = ""


class _Answer(msgspec.Struct):
    organic: list[_Result] = []


class Serper:
    """Asks the search API with a key."""

    name = "Serper"

    def __init__(self, client: WebClient, key: str, address: str = _ADDRESS) -> None:
        self._client = client
        self._key = key
        self._address = address

    async def search(self, query: str, count: int) -> Sequence[Hit]:
        """The best results."""
        request = posted(f"{self._address}/search", {"X-API-KEY": self._key}, {"q": query, "num": count})
        answer = await ask(self._client, request, _Answer)
        return [Hit(hit.title, hit.link, hit.snippet, hit.date) for hit in answer.organic]
