"""What a search service is to us, and how its answers are read."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, Protocol, TypeVar

import msgspec

from hermes.errors import ToolFailed
from hermes.tools.web.markdown import render
from hermes.tools.web.readable_page import read_page
from hermes.tools.web.web_client import WebClient, WebRequest, WebResponse

T = TypeVar("T")

_REASONS = {
    401: "The key is not accepted.",
    402: "The account has no credit left.",
    403: "It refuses this request.",
    429: "It has been asked too often.",
}


class WebResult(msgspec.Struct, frozen=True):
    """One result."""

    title: str
    url: str
    excerpt: str = ""
    date: str = ""


class Backend(Protocol):
    """A search service. Raises ToolFailed with why it did not answer."""

    @property
    def name(self) -> str: ...

    async def search(self, query: str, count: int) -> Sequence[WebResult]: ...


class KeyedSearch(ABC, Generic[T]):
    """A service that is asked with a key: one request with a JSON body to its `/search`."""

    name: str
    home: str
    """Where the service is, unless said otherwise."""
    answer: type[T]
    """What it answers."""

    def __init__(self, client: WebClient, key: str, address: str = "") -> None:
        self._client = client
        self._key = key
        self._address = address or self.home

    async def search(self, query: str, count: int) -> Sequence[WebResult]:
        """The best results."""
        request = posted(
            f"{self._address}/search", self.headers(self._key), self.body(query, count)
        )
        return self.hits(await ask(self._client, request, self.answer))

    @abstractmethod
    def headers(self, key: str) -> Mapping[str, str]:
        """How the key is shown."""

    @abstractmethod
    def body(self, query: str, count: int) -> Mapping[str, object]:
        """The question in the service's words."""

    @abstractmethod
    def hits(self, answer: T) -> Sequence[WebResult]:
        """The answer in ours."""


async def ask(client: WebClient, request: WebRequest, kind: type[T]) -> T:
    """The JSON answer to a request, as `kind`. A redirect is not followed: it would carry the key elsewhere."""
    answer = checked(
        await client.fetch(msgspec.structs.replace(request, redirects=False))
    )
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except msgspec.DecodeError as error:
        raise ToolFailed("It answered something else than results.") from error


def posted(
    url: str, headers: Mapping[str, str], body: Mapping[str, object]
) -> WebRequest:
    """A request with a JSON body."""
    return WebRequest(
        url=url,
        headers={
            "Content-Type": "application/json",
            "Accept": "application/json",
            **headers,
        },
        body=msgspec.json.encode(body),
    )


def checked(answer: WebResponse) -> WebResponse:
    """The answer, if it is one."""
    if answer.status != 200:
        raise ToolFailed(_REASONS.get(answer.status, f"It answered {answer.phrase}."))
    return answer


def plain(markup: str) -> str:
    """Text without the tags that services put around the words that matched."""
    return render(read_page(markup, "")).replace("**", "")
