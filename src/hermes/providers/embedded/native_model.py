"""`NativeToolModel`: a local model with native tool calls, through its engine's template and parser."""

import hashlib
import re
import secrets
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import aclosing
from typing import Any, Protocol

import msgspec

from hermes.errors import ModelError
from hermes.providers import provider_table
from hermes.providers.adapter import ErrorFrame, StreamBroken
from hermes.providers.catalogue import ModelFacts, Prices
from hermes.providers.chat_completions import ChatCompletions
from hermes.providers.chat_completions_reader import ChatReader
from hermes.providers.embedded import engine_wire
from hermes.providers.embedded.completion import CompletionEnded
from hermes.providers.embedded.native_prompt import NativeWindow, native_request
from hermes.providers.endpoint import ModelEndpoint
from hermes.providers.request_prefix import build_body
from hermes.providers.sse import ServerEvent
from hermes.providers.tool_names import own_names, wire_name, with_own_names
from hermes.schema.messages import AssistantMessage, ToolCall, Usage
from hermes.schema.model import (
    ModelEvent,
    ModelRequest,
    ReplyFinished,
    TextDelta,
    ToolCallStarted,
)
from hermes.text.translation import translator

t = translator(__name__)

PROVIDER = "embedded"
_MAX_TOKENS = 1_200
_MAX_TRIES = 3
_BEGINNINGS = ("```json", "```tool", "<tool_call>", "{")
_WRAPPING = re.compile(
    r"\A\s*+(?:```(?:json|tool_call|tool)?|<tool_call>)?\s*+(\{.*\})\s*+(?:```|</tool_call>)?\s*+\Z",
    re.DOTALL,
)


class ChatEngine(Protocol):
    """An engine for requests of the chat completions format: `LocalEngine`, or a script in tests."""

    def chat(
        self, body: bytes, *, state_key: str = "", max_tokens: int
    ) -> AsyncGenerator[engine_wire.ChatChunk | CompletionEnded, None]: ...

    async def warm(self) -> None: ...

    async def close(self) -> None: ...


def _random_id() -> str:
    return secrets.token_hex(4)


class NativeToolModel:
    """Implements the `Model` port on a local engine. Drops the oldest messages if they do not fit the context."""

    def __init__(
        self,
        engine: ChatEngine,
        *,
        name: str,
        context_tokens: int,
        new_id: Callable[[], str] = _random_id,
    ) -> None:
        self.provider = PROVIDER
        self.name = name
        self._engine = engine
        self._window = NativeWindow.of(context_tokens)
        self._new_id = new_id
        self._endpoint = ModelEndpoint(
            provider=PROVIDER,
            base_url="",
            model=name,
            quirks=provider_table.GENERIC,
            facts=ModelFacts(prices=Prices(0.0, 0.0)),
        )

    async def warm(self) -> None:
        """Starts the engine before the first request."""
        await self._engine.warm()

    async def close(self) -> None:
        """Ends the engine."""
        await self._engine.close()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Streams one reply. If the request does not fit, retries with fewer messages."""
        window = self._window
        for attempt in range(1, _MAX_TRIES + 1):
            try:
                async with aclosing(self._reply(request, window)) as events:
                    async for event in events:
                        yield event
            except ModelError as error:
                if error.reason != "too_long" or attempt == _MAX_TRIES:
                    raise
                window = window.smaller()
            else:
                return

    async def _reply(
        self, request: ModelRequest, window: NativeWindow
    ) -> AsyncGenerator[ModelEvent, None]:
        small = native_request(request, window)
        body, _ = build_body(ChatCompletions(), self._endpoint, small, {})
        limit = min(_MAX_TOKENS, request.max_output_tokens or _MAX_TOKENS)
        names = own_names(small.tools)
        reader = _NativeReader({wire_name(spec.name) for spec in small.tools})
        usage = Usage(cost_usd=0.0)
        stream = self._engine.chat(body, state_key=_key(small), max_tokens=limit)
        async with aclosing(stream) as reports:
            async for report in reports:
                if isinstance(report, CompletionEnded):
                    usage = _usage(report)
                    continue
                for event in reader.feed(bytes(report.data)):
                    yield with_own_names(event, names)
        message, events = reader.end(self._new_id)
        for event in events:
            yield with_own_names(event, names)
        finished = msgspec.structs.replace(
            message, provider=self.provider, model=self.name, usage=usage
        )
        yield with_own_names(ReplyFinished(finished), names)


class _NativeReader:
    """Reads the chunks of a reply. Holds back text that may be a call until that is certain."""

    def __init__(self, tools: Collection[str]) -> None:
        self._chat = ChatReader()
        self._tools = tools
        self._held = ""
        self._holds = bool(tools)

    def feed(self, data: bytes) -> list[ModelEvent]:
        """Returns the events of a chunk."""
        try:
            events = self._chat.feed(ServerEvent("", data))
        except (StreamBroken, ErrorFrame) as error:
            raise _broken(error) from error
        return [kept for event in events for kept in self._release(event)]

    def _release(self, event: ModelEvent) -> list[ModelEvent]:
        if not self._holds or not isinstance(event, TextDelta):
            return [event]
        self._held += event.text
        if may_be_call(self._held):
            return []
        self._holds = False
        return [TextDelta(self._held)]

    def end(
        self, new_id: Callable[[], str]
    ) -> tuple[AssistantMessage, list[ModelEvent]]:
        """Returns the whole reply, and the events that were held back."""
        try:
            message = self._chat.message()
        except StreamBroken as error:
            raise _broken(error) from error
        if not self._holds or not self._held:
            return message, []
        call = None if message.tool_calls else written_call(self._held, self._tools)
        if call is None:
            return message, [TextDelta(self._held)]
        name, arguments = call
        made = ToolCall(id=f"local-{new_id()}", name=name, arguments=arguments)
        changed = msgspec.structs.replace(
            message, text="", tool_calls=(made,), finish="tool_calls"
        )
        return changed, [ToolCallStarted(made.id, made.name)]


def _key(request: ModelRequest) -> str:
    """Returns a hash of the prefix that requests with these tools share; empty without tools (no state is saved)."""
    if not request.tools:
        return ""
    beginning = msgspec.json.encode((request.system, request.tools))
    return hashlib.sha256(beginning).hexdigest()[:16]


def _broken(error: Exception) -> ModelError:
    return ModelError(
        t.later("the local model's reply can't be read: {error}", error=error),
        hint=t.later("Try again, or use another model: hermes model list"),
        reason="malformed",
        retryable=True,
    )


def _usage(done: CompletionEnded) -> Usage:
    return Usage(
        input_tokens=done.input_tokens,
        output_tokens=done.output_tokens,
        cache_read_tokens=done.cached_tokens,
        cost_usd=0.0,
    )


class _WrittenCall(msgspec.Struct):
    name: str
    arguments: dict[str, Any] = {}


def may_be_call(text: str) -> bool:
    """Returns whether incomplete text may become a call."""
    begun = text.lstrip()
    return any(begun.startswith(one) or one.startswith(begun) for one in _BEGINNINGS)


def written_call(text: str, names: Collection[str]) -> tuple[str, str] | None:
    """Returns the name and arguments of a call that a model wrote as plain text instead of in its template's format.

    Smaller models often do that. The text counts as a call only if it contains nothing else and names an offered tool;
    otherwise the result is None.
    """
    found = _WRAPPING.match(text)
    if found is None:
        return None
    try:
        call = msgspec.json.decode(found[1], type=_WrittenCall)
    except (msgspec.DecodeError, RecursionError):
        return None
    if call.name not in names:
        return None
    return call.name, msgspec.json.encode(call.arguments).decode()
