"""Builds the web tools from the settings: what they may reach, through which proxy, and which services they query."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from hermes.errors import ToolFailed
from hermes.settings.secrets import Secrets
from hermes.settings.tools import WebSettings
from hermes.tools.process.long_output import OutputFolder
from hermes.tools.web.address_check import (
    AddressCheck,
    HostRule,
    Resolver,
    read_allowed,
    system_resolver,
)
from hermes.tools.web.duckduckgo import DuckDuckGo
from hermes.tools.web.fetch import Digest, PageReader
from hermes.tools.web.search import (
    JSON_SERVICES,
    JsonSearch,
    MissingBackend,
    SearchBackend,
    Searcher,
)
from hermes.tools.web.web_client import FetchLimits, WebClient

_PROXIES = (
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "HTTP_PROXY",
    "http_proxy",
)
_KEY_VARIABLES = {
    "brave": "BRAVE_API_KEY",
    "tavily": "TAVILY_API_KEY",
    "exa": "EXA_API_KEY",
    "serper": "SERPER_API_KEY",
}
_WEB_CONNECT_TIMEOUT_S = 10.0


def build_gate(
    settings: WebSettings,
    resolver: Resolver | None = None,
    rule: HostRule | None = None,
) -> AddressCheck:
    """Returns the address check. Raises ToolFailed if an entry of `allow_hosts` is not a host."""
    for entry in settings.allow_hosts:
        _require_host("web.allow_hosts", entry)
    return AddressCheck(
        settings.allow_hosts,
        resolver=resolver or system_resolver,
        rule=rule or (lambda _: ""),
    )


def build_client(
    settings: WebSettings,
    environment: Mapping[str, str],
    resolver: Resolver | None = None,
    rule: HostRule | None = None,
) -> WebClient:
    """Returns a client that reaches only what the settings and the user's rules allow."""
    return _client(settings, environment, build_gate(settings, resolver, rule))


def build_reader(
    settings: WebSettings,
    folder: OutputFolder,
    environment: Mapping[str, str],
    resolver: Resolver | None = None,
    digest: Digest | None = None,
    rule: HostRule | None = None,
) -> PageReader:
    """Returns the page reader."""
    client = build_client(settings, environment, resolver, rule)
    return PageReader(client, folder, digest)


def build_searcher(
    settings: WebSettings,
    secrets: Secrets,
    environment: Mapping[str, str],
    resolver: Resolver | None = None,
) -> Searcher:
    """Returns the searcher. The SearXNG of the settings may be private, so it has its own client."""
    client = trusted = _client(settings, environment, build_gate(settings, resolver))
    if settings.searxng_url:
        host = urlsplit(settings.searxng_url).netloc
        _require_host("web.searxng_url", host)
        trusted = WebClient(
            AddressCheck((host,), resolver=resolver or system_resolver),
            _limits(settings),
        )
    return Searcher(choose_backends(settings, secrets, client, trusted))


def choose_backends(
    settings: WebSettings, secrets: Secrets, client: WebClient, trusted: WebClient
) -> Sequence[SearchBackend]:
    """Returns the services to query, in order. `trusted` is the client that may reach the SearXNG of the settings."""
    available: dict[str, SearchBackend] = {}
    if settings.searxng_url:
        service = JSON_SERVICES["searxng"]
        available["searxng"] = JsonSearch(
            service, trusted, address=settings.searxng_url
        )
    for name, variable in _KEY_VARIABLES.items():
        if key := secrets.get(variable):
            available[name] = JsonSearch(JSON_SERVICES[name], client, key)
    available["duckduckgo"] = DuckDuckGo(client)
    wanted = settings.search_backend
    if wanted == "auto":
        return tuple(available.values())
    return (available.get(wanted) or _missing(wanted),)


def _missing(name: str) -> MissingBackend:
    if name == "searxng":
        hint = "The user can set it to their SearXNG's address."
        return MissingBackend(name, "web.searxng_url", hint)
    variable = _KEY_VARIABLES[name]
    hint = f"The user can set it with: hermes config set {variable}"
    return MissingBackend(name, variable, hint)


def _client(
    settings: WebSettings, environment: Mapping[str, str], gate: AddressCheck
) -> WebClient:
    proxy = settings.proxy
    if proxy == "environment":
        proxy = next(
            (environment[name] for name in _PROXIES if environment.get(name)), ""
        )
    return WebClient(gate, _limits(settings), proxy=proxy)


def _limits(settings: WebSettings) -> FetchLimits:
    return FetchLimits(
        size=settings.max_bytes,
        total=settings.timeout,
        connect=min(_WEB_CONNECT_TIMEOUT_S, settings.timeout),
    )


def _require_host(key: str, entry: str) -> None:
    try:
        read_allowed(entry)
    except ToolFailed as error:
        raise ToolFailed(
            f"The setting {key} holds {entry!r}, which is not a host."
        ) from error
