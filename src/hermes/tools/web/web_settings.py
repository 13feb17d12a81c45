"""Puts the web tools together from the settings: what they may reach, through which proxy, and whom they ask."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from hermes.errors import ToolFailed
from hermes.settings.secrets import Secrets
from hermes.settings.sections import WebSettings
from hermes.tools.process.long_output import OutputFolder
from hermes.tools.web.address_check import (
    AddressCheck,
    Resolver,
    read_allowed,
    system_resolver,
)
from hermes.tools.web.backends import choose
from hermes.tools.web.fetch import Digest, PageReader
from hermes.tools.web.search import Searcher
from hermes.tools.web.web_client import FetchLimits, WebClient

_PROXIES = (
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "HTTP_PROXY",
    "http_proxy",
)


def build_gate(settings: WebSettings, resolver: Resolver | None = None) -> AddressCheck:
    """What may be reached. An entry of `allow_hosts` that is no host stops everything: it was meant to allow one."""
    for entry in settings.allow_hosts:
        _require_host("web.allow_hosts", entry)
    return AddressCheck(settings.allow_hosts, resolver=resolver or system_resolver)


def build_reader(
    settings: WebSettings,
    folder: OutputFolder,
    environment: Mapping[str, str],
    resolver: Resolver | None = None,
    digest: Digest | None = None,
) -> PageReader:
    """What reads pages."""
    return PageReader(
        _client(settings, environment, build_gate(settings, resolver)), folder, digest
    )


def build_searcher(
    settings: WebSettings,
    secrets: Secrets,
    environment: Mapping[str, str],
    resolver: Resolver | None = None,
) -> Searcher:
    """What searches. The SearXNG of the settings may be private; only its own client reaches it."""
    client = trusted = _client(settings, environment, build_gate(settings, resolver))
    if settings.searxng_url:
        host = urlsplit(settings.searxng_url).netloc
        _require_host("web.searxng_url", host)
        trusted = WebClient(
            AddressCheck((host,), resolver=resolver or system_resolver),
            _limits(settings),
        )
    return Searcher(choose(settings, secrets, client, trusted))


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
        connect=min(10.0, settings.timeout),
    )


def _require_host(key: str, entry: str) -> None:
    try:
        read_allowed(entry)
    except ToolFailed as error:
        raise ToolFailed(
            f"The setting {key} holds {entry!r}, which is not a host."
        ) from error
