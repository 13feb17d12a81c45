"""What a model server on this machine or network says about a model: its kind, the context it gives the model, its size.

Ollama, LM Studio and llama.cpp each have requests of their own for that. An Ollama server gives a model a context of
4,096 tokens unless it is told otherwise, and cuts longer requests without a word; so the context is asked for.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from hermes.providers.embedded.adapter_choice import MIN_NATIVE_PARAMETERS
from hermes.providers.http_client import Http, HttpTimeouts, TransportFailure
from hermes.text.translation import translator

t = translator(__name__)

ServerKind: TypeAlias = Literal["ollama", "lmstudio", "llamacpp"]

LABELS: dict[ServerKind, str] = {
    "ollama": "Ollama",
    "lmstudio": "LM Studio",
    "llamacpp": "llama.cpp",
}
_TIMEOUTS = HttpTimeouts(connect=1.0, first_byte=2.0, idle=2.0, total=3.0)
_MAX_ANSWER_BYTES = 8_000_000  # Ollama sends a vocabulary along
_SUGGESTED_TOKENS = 32_768
MIN_CONTEXT_TOKENS = 8_192  # Hermes' own part takes about 3,000 of them
_T = TypeVar("_T")
_BILLIONS = re.compile(r"(?<!\d)(\d+(?:\.\d+)?)\s*([BM])\b", re.IGNORECASE)
_NUM_CTX = re.compile(r"^num_ctx\s+(\d+)\s*$", re.MULTILINE)


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a server says about one model. An unknown number is 0; `has_tools` is None where it does not say."""

    kind: ServerKind
    model: str
    context_tokens: int = 0
    parameters: int = 0
    has_tools: bool | None = None

    @property
    def label(self) -> str:
        """The server's name for a person."""
        return LABELS[self.kind]

    @property
    def has_small_context(self) -> bool:
        """Whether Hermes can hardly work in the context. Small models get short requests, so it suffices for them."""
        is_small_model = 0 < self.parameters < MIN_NATIVE_PARAMETERS
        if is_small_model or self.has_tools is False:
            return False
        return 0 < self.context_tokens < MIN_CONTEXT_TOKENS

    def warning(self) -> str:
        """Says that the context is too small."""
        return t.logged(
            "{server} gives {model} a context of {tokens} tokens; Hermes needs at least {needed}.",
            server=self.label,
            model=self.model,
            tokens=f"{self.context_tokens:,}",
            needed=f"{MIN_CONTEXT_TOKENS:,}",
        )

    def advice(self) -> str:
        """How to give the model a larger context."""
        if self.kind == "ollama":
            return t.logged(
                "Start Ollama with {variable}, or make a model with a larger context: {command}",
                variable=f"OLLAMA_CONTEXT_LENGTH={_SUGGESTED_TOKENS}",
                command=f"printf 'FROM {self.model}\\nPARAMETER num_ctx {_SUGGESTED_TOKENS}\\n' > Modelfile && "
                f"ollama create {self.model.partition(':')[0]}-large -f Modelfile",  # not translated
            )
        if self.kind == "lmstudio":
            return t.logged(
                "Load it with a larger context: {command}",
                command=f"lms load {self.model} --context-length {_SUGGESTED_TOKENS}",
            )
        return t.logged(
            "Start the server with a larger context: {command}",
            command=f"llama-server -c {_SUGGESTED_TOKENS}",
        )


async def read_server_facts(
    http: Http,
    base_url: str,
    model: str,
    *,
    kind: str = "",
    headers: Mapping[str, str] | None = None,
) -> ServerFacts | None:
    """Asks the server about a model. None if it is none of the known kinds, or does not answer in time."""
    server = _Server(http, base_url.rstrip("/").removesuffix("/v1"), headers or {})
    readers = {"llamacpp": _llamacpp, "ollama": _ollama, "lmstudio": _lmstudio}
    if kind in readers:
        return await readers[kind](server, model)
    for read in readers.values():
        if (facts := await read(server, model)) is not None:
            return facts
    return None


class _Server:
    """Requests to one server. An answer that is not as expected counts as none."""

    def __init__(self, http: Http, root: str, headers: Mapping[str, str]) -> None:
        self._http = http
        self._root = root
        self._headers = {
            "accept": "application/json",
            "accept-encoding": "identity",
            **headers,
        }

    async def get(self, path: str, kind: type[_T]) -> _T | None:
        return await self._ask("GET", path, b"", kind)

    async def post(self, path: str, body: object, kind: type[_T]) -> _T | None:
        return await self._ask("POST", path, msgspec.json.encode(body), kind)

    async def _ask(
        self, method: str, path: str, body: bytes, kind: type[_T]
    ) -> _T | None:
        headers = self._headers | ({"content-type": "application/json"} if body else {})
        try:
            reply = await self._http.send(
                method, self._root + path, headers, body, _TIMEOUTS
            )
            async with reply:
                if reply.status != 200:
                    return None
                data = await reply.read_all(_MAX_ANSWER_BYTES)
            return msgspec.json.decode(data, type=kind)
        except (
            TransportFailure,
            msgspec.DecodeError,
            UnicodeDecodeError,
            RecursionError,
        ):
            return None


class _OllamaDetails(msgspec.Struct):
    parameter_size: str = ""


class _OllamaShown(msgspec.Struct):
    details: _OllamaDetails = msgspec.field(default_factory=_OllamaDetails)
    model_info: dict[str, Any] = {}
    capabilities: list[str] | None = None
    parameters: str = ""


class _OllamaRunning(msgspec.Struct):
    name: str = ""
    model: str = ""
    context_length: int = 0


class _OllamaProcesses(msgspec.Struct):
    models: list[_OllamaRunning]


async def _ollama(server: _Server, model: str) -> ServerFacts | None:
    shown = await server.post("/api/show", {"model": model}, _OllamaShown)
    if shown is None:
        return None
    running = await server.get("/api/ps", _OllamaProcesses)
    wanted = {model, f"{model}:latest"}
    contexts = [
        one.context_length
        for one in (running.models if running else ())
        if wanted & {one.name, one.model}
    ]
    chosen = _NUM_CTX.search(shown.parameters)
    context = next(filter(None, contexts), int(chosen[1]) if chosen else 0)
    count = shown.model_info.get("general.parameter_count")
    capabilities = shown.capabilities
    return ServerFacts(
        kind="ollama",
        model=model,
        context_tokens=context,
        parameters=count
        if isinstance(count, int)
        else _parameters(shown.details.parameter_size),
        has_tools=None if capabilities is None else "tools" in capabilities,
    )


class _LmStudioModel(msgspec.Struct):
    id: str
    loaded_context_length: int = 0
    capabilities: list[str] | None = None


class _LmStudioModels(msgspec.Struct):
    data: list[_LmStudioModel]


async def _lmstudio(server: _Server, model: str) -> ServerFacts | None:
    listed = await server.get("/api/v0/models", _LmStudioModels)
    one = next((one for one in listed.data if one.id == model), None) if listed else None  # fmt: skip
    if one is None:
        return None
    return ServerFacts(
        kind="lmstudio",
        model=model,
        context_tokens=one.loaded_context_length,
        parameters=_parameters(model),
        has_tools=None if one.capabilities is None else "tool_use" in one.capabilities,
    )


class _GenerationSettings(msgspec.Struct):
    n_ctx: int = 0


class _LlamaCppProps(msgspec.Struct):
    default_generation_settings: _GenerationSettings
    chat_template: str = ""


class _LlamaCppMeta(msgspec.Struct):
    n_params: int = 0


class _LlamaCppModel(msgspec.Struct):
    id: str = ""
    meta: _LlamaCppMeta | None = None


class _LlamaCppModels(msgspec.Struct):
    data: list[_LlamaCppModel] = []


async def _llamacpp(server: _Server, model: str) -> ServerFacts | None:
    props = await server.get("/props", _LlamaCppProps)
    if props is None:
        return None
    listed = await server.get("/v1/models", _LlamaCppModels)
    metas = [one.meta for one in listed.data if one.meta] if listed else []
    return ServerFacts(
        kind="llamacpp",
        model=model,
        context_tokens=props.default_generation_settings.n_ctx,
        parameters=metas[0].n_params if metas else 0,
        has_tools="tools" in props.chat_template if props.chat_template else None,
    )


def _parameters(text: str) -> int:
    """Reads a size such as 1.5B or 135M; 0 if there is none."""
    found = _BILLIONS.search(text)
    if found is None:
        return 0
    return int(float(found[1]) * (1e9 if found[2].upper() == "B" else 1e6))
