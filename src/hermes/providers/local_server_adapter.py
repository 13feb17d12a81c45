"""`LocalServerAdapter`: a model behind a server of the user's own (Ollama, LM Studio, llama.cpp).

Two things can go wrong there without a word. The server may give the model a context that is too small, and cut the
request: that is asked about and said. And a small model can't use tools the way large ones do: a short test decides
once how this one uses them, and small models get the adapter of the embedded model.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing

import msgspec

from hermes.errors import ModelError
from hermes.providers.adapter import Codec, ModelAdapter
from hermes.providers.chat_completions import ChatCompletions
from hermes.providers.credentials import NO_KEY, Credential
from hermes.providers.embedded.adapter_choice import (
    MIN_NATIVE_PARAMETERS,
    AdapterMemory,
    AdapterRecord,
    choose_adapter,
)
from hermes.providers.embedded.catalogue import AdapterKind
from hermes.providers.endpoint import ModelEndpoint
from hermes.providers.http_client import Http, HttpTimeouts, TransportFailure
from hermes.providers.server_facts import ServerFacts, read_server_facts
from hermes.schema.model import ModelEvent, ModelRequest
from hermes.text.translation import translator

t = translator(__name__)

_CHARACTERS_PER_TOKEN = 4
_MIN_FREE_TOKENS = 1_500  # for a conversation and a reply, beside the fixed part
_MIN_REPLY_TOKENS = 300
_ALL_KINDS: tuple[AdapterKind, ...] = ("native", "lines", "chat")


class LocalServerAdapter(ModelAdapter):
    """A `ModelAdapter` that knows what kind of server it talks to."""

    def __init__(
        self,
        http: Http,
        endpoint: ModelEndpoint,
        codec: Codec,
        deadlines: HttpTimeouts,
        memory: AdapterMemory,
    ) -> None:
        super().__init__(http, endpoint, codec, deadlines)
        self._memory = memory
        self._facts: dict[str, ServerFacts | None] = {}

    # pyrefly: ignore[missing-override-decorator]
    async def stream(
        self,
        request: ModelRequest,
        *,
        credential: Credential = NO_KEY,
        deadlines: HttpTimeouts | None = None,
    ) -> AsyncGenerator[ModelEvent]:
        """Streams a reply in the way that fits the model. Raises ModelError where the server would cut the request."""
        if not self.endpoint.model and not request.model:
            await self._choose(credential)
        model = request.model or self.endpoint.model
        facts = await self._known_facts(model, credential)
        call = _ServerCall(self, model, credential, deadlines or self.deadlines, facts)
        kind: AdapterKind = "native"
        if facts is not None and request.tools:
            kind = await self._adapter_kind(call, facts)
        if facts is not None and kind == "native":
            self._check_context(facts, request)
        async with aclosing(call.stream(request, kind)) as events:
            async for event in events:
                yield event

    def _check_context(self, facts: ServerFacts, request: ModelRequest) -> None:
        """Raises ModelError as `check_context` does; the server is asked again next time, as it may be changed until then."""
        try:
            check_context(facts, request)
        except ModelError:
            self._facts.pop(facts.model, None)
            raise

    async def plain_stream(
        self, request: ModelRequest, credential: Credential, deadlines: HttpTimeouts
    ) -> AsyncGenerator[ModelEvent]:
        """Streams a reply as any other service would."""
        async with aclosing(
            super().stream(request, credential=credential, deadlines=deadlines)
        ) as events:
            async for event in events:
                yield event

    async def prompt_stream(
        self,
        request: ModelRequest,
        codec: ChatCompletions,
        credential: Credential,
        deadlines: HttpTimeouts,
    ) -> AsyncGenerator[ModelEvent]:
        """Streams the reply to a prompt of the adapter for small models."""
        adapter = ModelAdapter(self._http, self.endpoint, codec, deadlines)
        async with aclosing(
            adapter.stream(request, credential=credential, deadlines=deadlines)
        ) as events:
            async for event in events:
                yield event

    async def _known_facts(
        self, model: str, credential: Credential
    ) -> ServerFacts | None:
        """Asks the server once; again while it could not say how large the context is."""
        known = self._facts.get(model)
        if known is not None and known.context_tokens:
            return known
        kind, url = self.endpoint.quirks.family, self.endpoint.base_url
        headers = (await credential.acquire()).headers
        facts = await read_server_facts(
            self._http, url, model, kind=kind, headers=headers
        )
        if facts is not None and facts.kind == "ollama" and not facts.context_tokens:
            await self._load_in_ollama(model)
            facts = await read_server_facts(
                self._http, url, model, kind=kind, headers=headers
            )
        self._facts[model] = facts
        return facts

    async def _load_in_ollama(self, model: str) -> None:
        """Loads the model, which the first request would do anyway: only then the context is known."""
        url = self.endpoint.base_url.removesuffix("/v1") + "/api/generate"
        body = msgspec.json.encode({"model": model})
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        try:
            reply = await self._http.send("POST", url, headers, body, self.deadlines)
            async with reply:
                await reply.read_all(1_000_000)
        except TransportFailure:
            return  # the request itself will say what is wrong

    async def _adapter_kind(
        self, call: "_ServerCall", facts: ServerFacts
    ) -> AdapterKind:
        """Returns how the model uses tools: as remembered, or as a test shows."""
        name = f"{self.endpoint.base_url}|{facts.model}"
        record = self._memory.get(name)
        if record is None:
            record = await _tested(call, facts)
            self._memory.put(name, record)
        return record.adapter


async def _tested(call: "_ServerCall", facts: ServerFacts) -> AdapterRecord:
    is_small = 0 < facts.parameters < MIN_NATIVE_PARAMETERS
    kinds = _ALL_KINDS[1:] if is_small or facts.has_tools is False else _ALL_KINDS
    return await choose_adapter(kinds, lambda kind: _Way(call, kind))


class _ServerCall:
    """One way to reach a model of the server, with its key and deadlines."""

    def __init__(
        self,
        adapter: LocalServerAdapter,
        model: str,
        credential: Credential,
        deadlines: HttpTimeouts,
        facts: ServerFacts | None,
    ) -> None:
        self.adapter = adapter
        self.model = model
        self._credential = credential
        self._deadlines = deadlines
        self._facts = facts

    def stream(
        self, request: ModelRequest, kind: AdapterKind
    ) -> AsyncGenerator[ModelEvent]:
        if kind == "native":
            return self.adapter.plain_stream(request, self._credential, self._deadlines)
        return self._as_small(request, kind)

    async def _as_small(
        self, request: ModelRequest, kind: AdapterKind
    ) -> AsyncGenerator[ModelEvent]:
        """Streams a reply of the adapter for small models, under the names of this server."""
        from hermes.providers.embedded.model import EmbeddedModel
        from hermes.providers.embedded.server_engine import ServerEngine

        obeys_grammar = self._facts is not None and self._facts.kind == "llamacpp"
        engine = ServerEngine(self._send, obeys_grammar=obeys_grammar)
        model = EmbeddedModel(
            engine,
            name=self.model,
            provider=self.adapter.provider,
            acts=kind == "lines",
        )
        async with aclosing(model.stream(request)) as events:
            async for event in events:
                yield event

    def _send(
        self, request: ModelRequest, codec: ChatCompletions
    ) -> AsyncIterator[ModelEvent]:
        named = msgspec.structs.replace(request, model=self.model)
        return self.adapter.prompt_stream(
            named, codec, self._credential, self._deadlines
        )


class _Way:
    """A call in one way, as a `Model` for the test."""

    def __init__(self, call: _ServerCall, kind: AdapterKind) -> None:
        self.provider = call.adapter.provider
        self.name = call.model
        self._call = call
        self._kind: AdapterKind = kind

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        named = msgspec.structs.replace(request, model=self.name)
        return self._call.stream(named, self._kind)


def check_context(facts: ServerFacts, request: ModelRequest) -> None:
    """Raises ModelError if the request can't fit the context that the server gives the model."""
    context = facts.context_tokens
    if not context:
        return
    fixed = _tokens(request.system) + len(msgspec.json.encode(request.tools)) // _CHARACTERS_PER_TOKEN  # fmt: skip
    said = _tokens(message.text for message in request.messages)
    whose = t.logged(
        "{label} gives {model} a context of {context:,} tokens",
        label=facts.label,
        model=facts.model,
        context=context,
    )
    if fixed + _MIN_FREE_TOKENS > context:
        raise ModelError(
            t.later(
                "{whose}, and Hermes needs about {needed:,}",
                whose=whose,
                needed=fixed + _MIN_FREE_TOKENS,
            ),
            hint=t.later("Nothing was sent. {advice}", advice=facts.advice()),
            reason="bad_request",
        )
    if fixed + said + _MIN_REPLY_TOKENS > context:
        raise ModelError(
            t.later(
                "{whose}, and this conversation has about {needed:,}",
                whose=whose,
                needed=fixed + said,
            ),
            hint=t.later("Nothing was sent. {advice}", advice=facts.advice()),
            reason="too_long",
            compress=True,
        )


def _tokens(texts: Iterable[str]) -> int:
    return sum(map(len, texts)) // _CHARACTERS_PER_TOKEN
