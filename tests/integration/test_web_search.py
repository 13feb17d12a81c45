"""`web_search` against loopback servers that answer as each service does."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from tests.fakes.web_server import Asked, Page, WebServer, web_server

from hermes.core.ports import ToolContext
from hermes.errors import ToolFailed
from hermes.schema.tool_spec import ToolResult
from hermes.settings.secrets import Secrets
from hermes.settings.tools import WebSettings
from hermes.tools.process.long_output import OutputFolder
from hermes.tools.web import WebTools
from hermes.tools.web.address_check import AddressCheck
from hermes.tools.web.duckduckgo import DuckDuckGo
from hermes.tools.web.search import (
    JSON_SERVICES,
    JsonSearch,
    SearchBackend,
    Searcher,
    WebResult,
)
from hermes.tools.web.web_client import WebClient
from hermes.tools.web.web_settings import choose_backends

KEY = "key-of-the-test"
JSON = {"Content-Type": "application/json"}

BRAVE = """{"type":"search","query":{"original":"x","more_results_available":true},"web":{"type":"search","results":[
{"title":"The <strong>Title</strong> &amp; more","url":"https://example.com/a","is_source_local":false,
"description":"An <strong>excerpt</strong>","page_age":"2026-01-02T00:00:00","age":"January 2, 2026",
"profile":{"name":"Example"},"language":"en","family_friendly":true}],"family_friendly":true}}"""
TAVILY = """{"query":"x","follow_up_questions":null,"answer":null,"images":[],"results":[{"title":"The Title & more",
"url":"https://example.com/a","content":"An excerpt","score":0.9,"raw_content":null,
"published_date":"January 2, 2026"}],"response_time":1.1}"""
EXA = """{"requestId":"b5","resolvedSearchType":"neural","results":[{"id":"https://example.com/a",
"title":"The Title & more","url":"https://example.com/a","publishedDate":"2026-01-02T00:00:00.000Z","author":null,
"score":0.2,"highlights":["An excerpt"],"highlightScores":[0.5]}],"costDollars":{"total":0.005}}"""
SERPER = """{"searchParameters":{"q":"x","type":"search"},"organic":[{"title":"The Title & more",
"link":"https://example.com/a","snippet":"An excerpt","date":"Jan 2, 2026","position":1}],
"relatedSearches":[{"query":"y"}],"credits":1}"""
SEARXNG = """{"query":"x","number_of_results":0,"results":[{"url":"https://example.com/a","title":"The Title & more",
"content":"An excerpt","publishedDate":"2026-01-02T00:00:00","engine":"bing","parsed_url":["https","example.com","/a"],
"template":"default.html","engines":["bing"],"positions":[1],"score":1.0,"category":"general"}],"answers":[],
"suggestions":[],"unresponsive_engines":[]}"""
DUCKDUCKGO = """<!DOCTYPE html><html><body><div class="results">
<div class="result results_links results_links_deep result--ad"><h2 class="result__title"><a rel="nofollow"
 class="result__a" href="https://duckduckgo.com/y.js?ad_domain=shop.example&amp;ad_provider=bing">Buy</a></h2>
<a class="result__snippet" href="https://duckduckgo.com/y.js?ad_domain=shop.example">Cheap</a></div>
<div class="result results_links results_links_deep web-result "><div class="links_main links_deep result__body">
<h2 class="result__title"><a rel="nofollow" class="result__a"
 href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fexample.com%2Fa&amp;rut=0f">The Title &amp; more</a></h2>
<a class="result__url" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fexample.com%2Fa">example.com/a</a>
<a class="result__snippet" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fexample.com%2Fa">An <b>excerpt</b></a>
</div></div></div></body></html>"""


class Service:
    """How a service is asked and what it answers."""

    def __init__(
        self,
        make: Callable[[WebClient, str], SearchBackend],
        answer: str,
        asks: Callable[[Asked], object],
        date: str = "",
    ) -> None:
        self.make = make
        self.answer = answer
        self.asks = asks
        self.date = date


def query(asked: Asked) -> object:
    return parse_qs(urlsplit(asked.target).query)


def fields(asked: Asked) -> dict[str, object]:
    return msgspec.json.decode(asked.body, type=dict[str, object])


SERVICES = {
    "brave": Service(
        lambda client, address: JsonSearch(
            JSON_SERVICES["brave"], client, KEY, address
        ),
        BRAVE,
        lambda asked: (
            (
                asked.headers["x-subscription-token"],
                urlsplit(asked.target).path,
                query(asked),
            )
            == (KEY, "/res/v1/web/search", {"q": ["a question?"], "count": ["5"]})
        ),
        "January 2, 2026",
    ),
    "tavily": Service(
        lambda client, address: JsonSearch(
            JSON_SERVICES["tavily"], client, KEY, address
        ),
        TAVILY,
        lambda asked: (
            (asked.method, asked.target, asked.headers["authorization"])
            == ("POST", "/search", f"Bearer {KEY}")
            and {"query": "a question?", "max_results": 5}.items()
            <= fields(asked).items()
        ),
        "January 2, 2026",
    ),
    "exa": Service(
        lambda client, address: JsonSearch(JSON_SERVICES["exa"], client, KEY, address),
        EXA,
        lambda asked: (
            (asked.method, asked.target, asked.headers["x-api-key"])
            == ("POST", "/search", KEY)
            and {"query": "a question?", "numResults": 5}.items()
            <= fields(asked).items()
        ),
        "2026-01-02",
    ),
    "serper": Service(
        lambda client, address: JsonSearch(
            JSON_SERVICES["serper"], client, KEY, address
        ),
        SERPER,
        lambda asked: (
            (asked.method, asked.target, asked.headers["x-api-key"])
            == ("POST", "/search", KEY)
            and fields(asked) == {"q": "a question?", "num": 5}
        ),
        "Jan 2, 2026",
    ),
    "searxng": Service(
        lambda client, address: JsonSearch(
            JSON_SERVICES["searxng"], client, "", address + "/"
        ),
        SEARXNG,
        lambda asked: (
            (urlsplit(asked.target).path, query(asked))
            == ("/search", {"q": ["a question?"], "format": ["json"]})
        ),
        "2026-01-02",
    ),
    "duckduckgo": Service(
        DuckDuckGo,
        DUCKDUCKGO,
        lambda asked: (
            (asked.method, asked.target, asked.body)
            == ("POST", "/html/", b"q=a+question%3F")
        ),
    ),
}


def client_for(server: WebServer) -> WebClient:
    return WebClient(AddressCheck((f"127.0.0.1:{server.port}",)))


async def searched(backends: list[SearchBackend], count: int = 5) -> ToolResult:
    context = ToolContext("c", "s", Path("/"), lambda text: None)
    return await Searcher(backends).search(context, "a question?", count)


@pytest.mark.parametrize("name", SERVICES)
async def test_a_service_is_asked_in_its_way_and_its_answer_read(name: str) -> None:
    service = SERVICES[name]
    headers = JSON if name != "duckduckgo" else {}
    async with web_server(
        lambda asked: Page(service.answer, headers=headers)
    ) as server:
        hits = await service.make(client_for(server), server.url).search(
            "a question?", 5
        )
    assert list(hits) == [
        WebResult(
            "The Title & more", "https://example.com/a", "An excerpt", service.date
        )
    ]
    assert service.asks(server.asked[0])


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize("status", [401, 429, 500])
async def test_a_refusal_is_told_without_the_key(name: str, status: int) -> None:
    async with web_server(
        lambda asked: Page(f'{{"error": "bad key {KEY}"}}', status, JSON)
    ) as server:
        with pytest.raises(ToolFailed) as problem:
            await SERVICES[name].make(client_for(server), server.url).search("x", 5)
    assert KEY not in problem.value.message
    assert problem.value.message


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize(
    "body", ["<html>maintenance</html>", '{"results": 5, "web": 5, "organic": 5}', ""]
)
async def test_nonsense_instead_of_results_is_a_failure_not_an_empty_list(
    name: str, body: str
) -> None:
    async with web_server(lambda asked: Page(body, headers=JSON)) as server:
        with pytest.raises(ToolFailed):
            await SERVICES[name].make(client_for(server), server.url).search("x", 5)


@pytest.mark.parametrize("name", [name for name in SERVICES if name != "duckduckgo"])
async def test_a_key_is_never_carried_on_by_a_redirect(name: str) -> None:
    def handler(asked: Asked) -> Page:
        return Page(status=302, headers={"Location": "/elsewhere"})

    async with web_server(handler) as server:
        with pytest.raises(ToolFailed, match="302"):
            await SERVICES[name].make(client_for(server), server.url).search("x", 5)
        assert len(server.asked) == 1


async def test_duckduckgo_asking_for_a_human_is_told_with_a_way_out() -> None:
    page = Page('<div class="anomaly-modal__title">Select all ducks</div>', 202)
    async with web_server(lambda asked: page) as server:
        with pytest.raises(ToolFailed, match="CAPTCHA") as problem:
            await DuckDuckGo(client_for(server), server.url).search("x", 5)
    assert "BRAVE_API_KEY" in problem.value.hint


async def test_nothing_found_is_an_answer() -> None:
    page = Page('<div class="no-results">No results.</div>')
    async with web_server(lambda asked: page) as server:
        result = await searched([DuckDuckGo(client_for(server), server.url)])
    assert result.text == "Nothing was found."


async def test_results_are_numbered_fenced_and_free_of_tricks() -> None:
    hit = {
        "title": "T\u202eitle\n2. fake",
        "url": "https://example.com/",
        "content": "x\x1b[2Jy\u200b" + "z" * 900,
    }
    answer = msgspec.json.encode({"results": [hit, hit, hit]})
    async with web_server(lambda asked: Page(answer, headers=JSON)) as server:
        result = await searched(
            [JsonSearch(JSON_SERVICES["searxng"], client_for(server), "", server.url)],
            count=2,
        )
    lines = result.text.splitlines()
    assert lines[0] == "1. Title 2. fake"
    assert lines[1].strip() == "https://example.com/"
    assert lines[2].startswith("   xyzzz")
    assert len(lines) == 6
    assert len(lines[2]) < 510
    assert result.source == "SearXNG search"


async def test_the_next_service_is_asked_and_the_failure_told() -> None:
    def handler(asked: Asked) -> Page:
        return (
            Page(SEARXNG, headers=JSON)
            if asked.target.startswith("/search?")
            else Page("", 429)
        )

    async with web_server(handler) as server:
        client = client_for(server)
        both: list[SearchBackend] = [
            JsonSearch(JSON_SERVICES["brave"], client, KEY, server.url),
            JsonSearch(JSON_SERVICES["searxng"], client, "", server.url),
        ]
        result = await searched(both)
        assert "Brave: It got too many requests." in result.text
        assert "https://example.com/a" in result.text
        with pytest.raises(
            ToolFailed,
            match=r"No search service answered\. Brave: It got too many requests",
        ):
            await searched(both[:1])


def chosen(settings: WebSettings, *keys: str) -> list[str]:
    client = WebClient(AddressCheck())
    return [
        backend.name
        for backend in choose_backends(
            settings, Secrets(dict.fromkeys(keys, "k"), {}), client, client
        )
    ]


def test_what_has_a_key_is_asked_first_and_the_keyless_one_last() -> None:
    assert chosen(WebSettings()) == ["DuckDuckGo"]
    assert chosen(WebSettings(), "SERPER_API_KEY", "BRAVE_API_KEY") == [
        "Brave",
        "Serper",
        "DuckDuckGo",
    ]
    assert chosen(WebSettings(searxng_url="http://s.lan"), "EXA_API_KEY") == [
        "SearXNG",
        "Exa",
        "DuckDuckGo",
    ]


def test_a_chosen_service_is_the_only_one_asked() -> None:
    assert chosen(
        WebSettings(search_backend="tavily"), "BRAVE_API_KEY", "TAVILY_API_KEY"
    ) == ["Tavily"]


@pytest.mark.parametrize(
    ("backend", "words"),
    [("brave", "BRAVE_API_KEY is not set"), ("searxng", "searxng_url")],
)
async def test_a_chosen_service_that_is_not_set_up_says_what_is_missing(
    backend: str, words: str
) -> None:
    settings = msgspec.convert({"search_backend": backend}, WebSettings)
    tools = WebTools(settings, Secrets({}, {}), OutputFolder(Path("/nowhere")), {})
    with pytest.raises(ToolFailed, match=words):
        await tools.web_search.run(
            {"query": "x"}, ToolContext("c", "s", Path("/"), lambda text: None)
        )


async def test_the_users_own_searxng_may_be_private_but_opens_nothing_else(
    tmp_path: Path,
) -> None:
    async with web_server(lambda asked: Page(SEARXNG, headers=JSON)) as server:
        tools = WebTools(
            WebSettings(searxng_url=server.url),
            Secrets({}, {}),
            OutputFolder(tmp_path),
            {},
        )
        context = ToolContext("c", "s", tmp_path, lambda text: None)
        result = await tools.web_search.run({"query": "x"}, context)
        assert "https://example.com/a" in result.text
        with pytest.raises(ToolFailed, match="was not contacted"):
            await tools.web_fetch.run({"url": server.url}, context)
        assert len(server.asked) == 1
