"""Implements `web_search`: asks search services in turn until one answers.

The services that answer in JSON differ only in their requests; `JSON_SERVICES` describes each of them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import urlencode

import msgspec

from hermes.core.ports import ToolContext
from hermes.errors import ToolFailed
from hermes.schema.tool_spec import ToolResult
from hermes.tools.escapes import one_line
from hermes.tools.web.markdown import render
from hermes.tools.web.readable_page import read_page
from hermes.tools.web.web_client import WebClient, WebRequest, WebResponse

_MAX_BRAVE_RESULTS = 20
_ISO_DATE_CHARACTERS = 10
_REASONS = {
    401: "It rejected the API key.",
    402: "The account has no credit left.",
    403: "It refuses this request.",
    429: "It got too many requests.",
}


class WebResult(msgspec.Struct, frozen=True):
    """One search result."""

    title: str
    url: str
    excerpt: str = ""
    date: str = ""


class SearchBackend(Protocol):
    """A search service. Raises ToolFailed with the reason if it does not answer."""

    @property
    def name(self) -> str: ...

    async def search(self, query: str, count: int) -> Sequence[WebResult]: ...


class Searcher:
    """Asks the services in turn until one answers."""

    def __init__(self, backends: Sequence[SearchBackend]) -> None:
        self._backends = tuple(backends)

    async def search(self, context: ToolContext, query: str, count: int) -> ToolResult:
        """Returns the results of the first service that answers."""
        problems: list[str] = []
        for backend in self._backends:
            context.show(f"Asking {backend.name}\n")
            try:
                results = await backend.search(query, count)
            except ToolFailed as error:
                problems.append(f"{backend.name}: {error.message} {error.hint}".strip())
                continue
            return ToolResult(
                text=_listed(results[:count], problems), source=f"{backend.name} search"
            )
        raise ToolFailed("No search service answered. " + " ".join(problems))


def _listed(results: Sequence[WebResult], problems: Sequence[str]) -> str:
    lines = [f"({problem} Asked the next one.)" for problem in problems]
    for number, result in enumerate(results, 1):
        date = f" ({one_line(result.date, 40)})" if result.date else ""
        title = one_line(result.title, 200) or "(no title)"
        lines.append(f"{number}. {title}{date}\n   {one_line(result.url, 1000)}")
        if result.excerpt.strip():
            lines.append(f"   {one_line(result.excerpt, 500)}")
    if not results:
        lines.append("Nothing was found.")
    return "\n".join(lines)


class _Hit(msgspec.Struct):
    """A result of any service; each uses some of these fields."""

    url: str = ""
    link: str = ""
    title: str | None = None
    description: str | None = None
    content: str | None = None
    snippet: str | None = None
    highlights: list[str] | None = None
    text: str | None = None
    age: str | None = None
    date: str | None = None
    published_date: str | None = None
    publishedDate: str | None = None  # noqa: N815 - the name on the wire


class _Web(msgspec.Struct):
    results: list[_Hit] = []


class _Answer(msgspec.Struct):
    results: list[_Hit] | None = None
    web: _Web | None = None
    organic: list[_Hit] = []


class JsonService(msgspec.Struct, frozen=True, kw_only=True):
    """The request and the reply of one service that answers in JSON."""

    name: str
    home: str = ""
    path: str = "/search"
    posts: bool = True
    """Whether the query goes into a JSON body instead of the address."""
    headers: Callable[[str], Mapping[str, str]] = lambda _: {}
    """The headers that carry the key."""
    question: Callable[[str, int], Mapping[str, Any]]
    hits: Callable[[_Answer], list[_Hit] | None] = lambda answer: answer.results
    has_markup: bool = False
    """Whether texts have tags around the matching words."""
    refusal: tuple[str, str] = (_REASONS[403], "")
    """What its status 403 means, and what to do about it."""


JSON_SERVICES: Mapping[str, JsonService] = {
    "searxng": JsonService(
        name="SearXNG",
        posts=False,
        question=lambda query, _: {"q": query, "format": "json"},
        has_markup=True,
        refusal=(
            "It refuses to answer in JSON.",
            "Its owner can add `json` to search.formats.",
        ),
    ),
    "brave": JsonService(
        name="Brave",
        home="https://api.search.brave.com",
        path="/res/v1/web/search",
        posts=False,
        headers=lambda key: {"X-Subscription-Token": key},
        question=lambda query, count: {
            "q": query,
            "count": min(count, _MAX_BRAVE_RESULTS),
        },
        hits=lambda answer: answer.web.results if answer.web else [],
        has_markup=True,
    ),
    "tavily": JsonService(
        name="Tavily",
        home="https://api.tavily.com",
        headers=lambda key: {"Authorization": f"Bearer {key}"},
        question=lambda query, count: {
            "query": query,
            "max_results": count,
            "search_depth": "basic",
        },
    ),
    "exa": JsonService(
        name="Exa",
        home="https://api.exa.ai",
        headers=lambda key: {"x-api-key": key},
        question=lambda query, count: {
            "query": query,
            "numResults": count,
            "type": "auto",
            "contents": {"highlights": True},
        },
    ),
    "serper": JsonService(
        name="Serper",
        home="https://google.serper.dev",
        headers=lambda key: {"X-API-KEY": key},
        question=lambda query, count: {"q": query, "num": count},
        hits=lambda answer: answer.organic,
    ),
}


class JsonSearch:
    """Queries one of the services that answer in JSON."""

    def __init__(
        self, service: JsonService, client: WebClient, key: str = "", address: str = ""
    ) -> None:
        self.name = service.name
        self._service = service
        self._client = client
        self._key = key
        self._address = (address or service.home).rstrip("/")

    async def search(self, query: str, count: int) -> Sequence[WebResult]:
        """Returns the best results."""
        response = await self._client.fetch(self._request(query, count))
        if response.status == 403:
            message, hint = self._service.refusal
            raise ToolFailed(message, hint=hint)
        try:
            answer = msgspec.json.decode(require_ok(response).body, type=_Answer)
        except msgspec.DecodeError as error:
            raise _not_results() from error
        hits = self._service.hits(answer)
        if hits is None:
            raise _not_results()
        return [self._result(hit) for hit in hits[:count]]

    def _request(self, query: str, count: int) -> WebRequest:
        """Sends a request. Redirects are not followed, because they would send the key elsewhere."""
        service, url = self._service, f"{self._address}{self._service.path}"
        question = service.question(query, count)
        headers = {"Accept": "application/json", **service.headers(self._key)}
        if not service.posts:
            url = f"{url}?{urlencode(question)}"
            return WebRequest(url=url, headers=headers, redirects=False)
        headers["Content-Type"] = "application/json"
        body = msgspec.json.encode(question)
        return WebRequest(url=url, headers=headers, body=body, redirects=False)

    def _result(self, hit: _Hit) -> WebResult:
        url = hit.url or hit.link
        if not url:
            raise _not_results()
        title, excerpt = hit.title or "", _excerpt(hit)
        if self._service.has_markup:
            title, excerpt = _without_markup(title), _without_markup(excerpt)
        return WebResult(title, url, excerpt, _date(hit))


def _excerpt(hit: _Hit) -> str:
    passages = " ... ".join(hit.highlights or ())
    text = hit.description or hit.content or hit.snippet or passages or hit.text
    return text or ""


def _date(hit: _Hit) -> str:
    day = (hit.publishedDate or "")[:_ISO_DATE_CHARACTERS]
    return day or hit.age or hit.date or hit.published_date or ""


def require_ok(response: WebResponse) -> WebResponse:
    """Returns the response. Raises ToolFailed with the reason if its status is an error."""
    if response.status != 200:
        reason = _REASONS.get(response.status, f"It answered {response.phrase}.")
        raise ToolFailed(reason)
    return response


def _not_results() -> ToolFailed:
    return ToolFailed("Its answer holds no results.")


def _without_markup(markup: str) -> str:
    return render(read_page(markup, "")).replace("**", "")


class MissingBackend:
    """A service that the settings name but that is not configured. It says so when it is queried."""

    def __init__(self, name: str, what: str, hint: str) -> None:
        self.name = name
        self._what = what
        self._hint = hint

    async def search(self, query: str, count: int) -> Sequence[WebResult]:  # noqa: ARG002 - the port's shape
        """Never answers."""
        raise ToolFailed(f"{self._what} is not set.", hint=self._hint)
