"""SearXNG, on a server of one's own."""

from collections.abc import Sequence
from urllib.parse import urlencode

import msgspec

from hermes.errors import ToolFailed
from hermes.tools.web.backends.backend import WebResult, checked, plain
from hermes.tools.web.web_client import WebClient, WebRequest


class _Result(msgspec.Struct):
    url: str
    title: str | None = None
    content: str | None = None
    publishedDate: str | None = None  # noqa: N815 - the name on the wire


class _Answer(msgspec.Struct):
    results: list[_Result]


class Searxng:
    """Asks an instance, whose settings must allow the `json` format."""

    name = "SearXNG"

    def __init__(self, client: WebClient, address: str) -> None:
        self._client = client
        self._address = address.rstrip("/")

    async def search(self, query: str, count: int) -> Sequence[WebResult]:
        """The best results of all its engines."""
        parameters = urlencode({"q": query, "format": "json"})
        request = WebRequest(
            url=f"{self._address}/search?{parameters}",
            headers={"Accept": "application/json"},
            redirects=False,
        )
        answer = await self._client.fetch(request)
        if answer.status == 403:
            raise ToolFailed(
                "It refuses to answer in JSON.",
                hint="Its owner can add `json` to search.formats.",
            )
        try:
            found = msgspec.json.decode(checked(answer).body, type=_Answer).results
        except msgspec.DecodeError as error:
            raise ToolFailed("It answered something else than results.") from error
        return [
            WebResult(
                plain(hit.title or ""),
                hit.url,
                plain(hit.content or ""),
                (hit.publishedDate or "")[:10],
            )
            for hit in found[:count]
        ]
