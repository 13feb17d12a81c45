"""Brave Search."""

from collections.abc import Sequence
from urllib.parse import urlencode

import msgspec

from hermes.tools.web.backends.backend import WebResult, ask, plain
from hermes.tools.web.web_client import WebClient, WebRequest

_ADDRESS = "https://api.search.brave.com"


class _Result(msgspec.Struct):
    url: str
    title: str = ""
    description: str = ""
    age: str | None = None


class _Web(msgspec.Struct):
    results: list[_Result] = []


class _Answer(msgspec.Struct):
    web: _Web | None = None


class Brave:
    """Asks the web search API; the key is a subscription token."""

    name = "Brave"

    def __init__(self, client: WebClient, key: str, address: str = _ADDRESS) -> None:
        self._client = client
        self._key = key
        self._address = address

    async def search(self, query: str, count: int) -> Sequence[WebResult]:
        """The best results."""
        parameters = urlencode({"q": query, "count": min(count, 20)})
        request = WebRequest(
            url=f"{self._address}/res/v1/web/search?{parameters}",
            headers={"X-Subscription-Token": self._key, "Accept": "application/json"},
        )
        answer = await ask(self._client, request, _Answer)
        found = answer.web.results if answer.web else []
        return [
            WebResult(plain(hit.title), hit.url, plain(hit.description), hit.age or "")
            for hit in found
        ]
