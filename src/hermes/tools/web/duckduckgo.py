"""Searches with DuckDuckGo's page for browsers without scripts. It needs no key, but may ask for proof of being human."""

from collections.abc import Iterator, Sequence
from itertools import islice
from urllib.parse import parse_qs, urlencode, urlsplit

from hermes.errors import ToolFailed
from hermes.tools.web.charset import decode
from hermes.tools.web.html import Tag, Token, tokens
from hermes.tools.web.search import WebResult, require_ok
from hermes.tools.web.web_client import WebClient, WebRequest

_ADDRESS = "https://html.duckduckgo.com"
_ROBOT = ("anomaly-modal", "anomaly.js", "challenge-form")
_NO_RESULTS = ("no-results", "result--no-result")


class DuckDuckGo:
    """Reads the page of results."""

    name = "DuckDuckGo"

    def __init__(self, client: WebClient, address: str = _ADDRESS) -> None:
        self._client = client
        self._address = address

    async def search(self, query: str, count: int) -> Sequence[WebResult]:
        """Returns the results of the first page."""
        request = WebRequest(
            url=f"{self._address}/html/",
            headers={
                "Content-Type": "application/x-www-form-urlencoded",
                "Accept": "text/html",
            },
            body=urlencode({"q": query}).encode(),
        )
        answer = await self._client.fetch(request)
        page = decode(answer.body, answer.headers.get("content-type", ""))
        is_challenge = any(mark in page for mark in _ROBOT)
        if answer.status in (202, 403, 418, 429) or is_challenge:
            raise ToolFailed(
                "It shows a CAPTCHA.",
                hint="The user can set a search service with a key: hermes config set BRAVE_API_KEY.",
            )
        require_ok(answer)
        hits = list(_hits(list(tokens(page))))
        if not hits and not any(mark in page for mark in _NO_RESULTS):
            raise ToolFailed("Hermes can no longer read its page of results.")
        return hits[:count]


def _hits(found: Sequence[Token]) -> Iterator[WebResult]:
    title, url = "", ""
    for index, token in enumerate(found):
        if not isinstance(token, Tag) or token.closing:
            continue
        classes = token.attributes.get("class", "").split()
        if "result__a" in classes:
            if url:
                yield WebResult(title, url)
            title, url = (
                _inside(found, index),
                _target(token.attributes.get("href", "")),
            )
        elif "result__snippet" in classes and url:
            yield WebResult(title, url, _inside(found, index))
            title, url = "", ""
    if url:
        yield WebResult(title, url)


def _inside(found: Sequence[Token], start: int) -> str:
    """Returns the text of the element that begins at `start`."""
    opening = found[start]
    words: list[str] = []
    for token in islice(found, start + 1, None):
        if isinstance(token, str):
            words.append(token)
        elif isinstance(opening, Tag) and token.closing and token.name == opening.name:
            break
    return "".join(words)


def _target(href: str) -> str:
    """Returns the address of a result, which its redirecting link contains; empty for an advertisement."""
    try:
        parts = urlsplit(f"https:{href}" if href.startswith("//") else href)
        target = (
            parse_qs(parts.query).get("uddg", [""])[0] if parts.path == "/l/" else href
        )
        leads = urlsplit(target)
    except ValueError:
        return ""
    is_advertisement = leads.path == "/y.js" or "ad_domain=" in leads.query
    return target if leads.scheme in ("http", "https") and not is_advertisement else ""
