"""Model servers that run on this machine: Ollama, LM Studio, llama.cpp and vLLM at their usual ports.

Only loopback is asked, without a key, all ports at once and for a second at most. What answers but does not list models
as these servers do is no model server.
"""

import asyncio
from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

from hermes.providers.http_client import Http, HttpTimeouts, TransportFailure
from hermes.providers.provider_table import FAMILIES, Quirks, family

_TIMEOUTS = HttpTimeouts(connect=0.5, first_byte=1.0, idle=1.0, total=1.5)
_MAX_LIST_BYTES = 2_000_000
_LOCAL = ("ollama", "lmstudio", "vllm", "llamacpp")
_BY_OWNER = {"llamacpp": "llamacpp", "vllm": "vllm"}
_EVERY_ADDRESS = {"0.0.0.0", "::", ""}  # noqa: S104 - what a server listens on, not what we do
_Document = TypeVar("_Document")
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


class ServedModel(msgspec.Struct, frozen=True):
    """A model that a server has. `size` is 0 where the server does not say."""

    name: str
    size: int = 0


class LocalServer(msgspec.Struct, frozen=True, kw_only=True):
    """A running server. `provider` is its kind."""

    provider: str
    label: str
    base_url: str
    models: tuple[ServedModel, ...]


class _ListedModel(msgspec.Struct):
    id: str
    owned_by: str | None = None


class _ModelList(msgspec.Struct):
    data: list[_ListedModel]


class _OllamaModel(msgspec.Struct):
    name: str
    size: int = 0


class _OllamaTags(msgspec.Struct):
    models: list[_OllamaModel]


async def find_local_servers(environ: Mapping[str, str]) -> tuple[LocalServer, ...]:
    """Returns the servers that answer, in the order in which they should be offered."""
    http = Http()
    try:
        found = await asyncio.gather(
            *(_ask(http, kind, url) for url, kind in _candidates(environ).items())
        )
    finally:
        await http.aclose()
    return tuple(server for server in found if server is not None)


def _candidates(environ: Mapping[str, str]) -> dict[str, Quirks]:
    """The addresses to ask, each with the kind of server that usually has it."""
    known = [one for one in FAMILIES if one.family in _LOCAL]
    usual = {one.base_url: one for one in known}
    own = _ollama_address(environ.get("OLLAMA_HOST", ""))
    ollama = next(one for one in known if one.family == "ollama")
    return ({own: ollama} if own else {}) | usual


def _ollama_address(host: str) -> str:
    """The address in Ollama's own variable; empty if it is not this machine."""
    if not host.strip():
        return ""
    parts = urlsplit(host if "://" in host else f"http://{host.strip()}")
    try:
        name, port = parts.hostname or "", parts.port or 11434
    except ValueError:
        return ""
    if name in _EVERY_ADDRESS:
        name = "127.0.0.1"
    if name not in _LOOPBACK or parts.scheme != "http":
        return ""
    return f"http://{f'[{name}]' if ':' in name else name}:{port}/v1"


async def _ask(http: Http, kind: Quirks, base_url: str) -> LocalServer | None:
    if kind.family == "ollama":
        tags = await _get(http, base_url.removesuffix("/v1") + "/api/tags", _OllamaTags)
        if tags is not None:
            models = [ServedModel(one.name, one.size) for one in tags.models]
            return _server(kind, base_url, models)
    listed = await _get(http, f"{base_url}/models", _ModelList)
    if listed is None:
        return None
    owners = {one.owned_by for one in listed.data}
    named = next((_BY_OWNER[one] for one in owners if one in _BY_OWNER), "")
    return _server(
        family(named) or kind, base_url, [ServedModel(one.id) for one in listed.data]
    )


def _server(kind: Quirks, base_url: str, models: list[ServedModel]) -> LocalServer:
    return LocalServer(
        provider=kind.family,
        label=kind.label,
        base_url=base_url,
        models=tuple(one for one in models if may_chat(one.name)),
    )


async def _get(http: Http, url: str, kind: type[_Document]) -> _Document | None:
    """Reads what a server lists; None if none answers in time, or not like a model server."""
    headers = {"accept": "application/json", "accept-encoding": "identity"}
    try:
        reply = await http.send("GET", url, headers, b"", _TIMEOUTS)
        async with reply:
            if reply.status != 200:
                return None
            return msgspec.json.decode(await reply.read_all(_MAX_LIST_BYTES), type=kind)
    except (TransportFailure, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


_NOT_CHAT = (
    "embed", "whisper", "tts", "dall-e", "moderation", "transcribe", "realtime", "rerank", "sora", "imagen", "veo-",
    "gpt-image", "speech", "bge-", "davinci", "babbage", "stable-diffusion", "flux",
)  # fmt: skip


def may_chat(name: str) -> bool:
    """Whether a model, by its name, may be one that answers questions."""
    return not any(word in name.lower() for word in _NOT_CHAT)
