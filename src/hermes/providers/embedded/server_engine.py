"""`ServerEngine`: uses a model server as the engine of the adapter for small models.

It speaks the chat completions format. Only llama.cpp's server accepts a grammar in a request.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

import msgspec

from hermes.providers.chat_completions import ChatCompletions
from hermes.providers.embedded.completion import (
    ChatTurn,
    Completion,
    CompletionEnded,
    CompletionText,
)
from hermes.providers.endpoint import ModelEndpoint
from hermes.schema.messages import AssistantMessage, Message, Usage, UserMessage
from hermes.schema.model import ModelEvent, ModelRequest, ReplyFinished, TextDelta


class PromptCodec(ChatCompletions):
    """The chat completions format with the extra fields of one prompt."""

    def __init__(self, prompt: Completion, *, with_grammar: bool) -> None:
        self._extra: dict[str, Any] = {}
        if prompt.stop:
            self._extra["stop"] = list(prompt.stop)
        if with_grammar:
            self._extra["cache_prompt"] = True
            if prompt.grammar:
                self._extra["grammar"] = prompt.grammar

    # pyrefly: ignore[missing-override-decorator]
    def body(
        self, endpoint: ModelEndpoint, request: ModelRequest, messages: bytes
    ) -> bytes:
        """Builds the request and adds the fields."""
        plain = super().body(endpoint, request, messages)
        if not self._extra:
            return plain
        return plain[:-1] + b"," + msgspec.json.encode(self._extra)[1:]


class ServerEngine:
    """Implements the `CompletionEngine` port. `send` makes one request with a codec."""

    def __init__(
        self,
        send: Callable[[ModelRequest, ChatCompletions], AsyncIterator[ModelEvent]],
        *,
        obeys_grammar: bool,
    ) -> None:
        self._send = send
        self._obeys_grammar = obeys_grammar

    @property
    def obeys_grammar(self) -> bool:
        """Whether the server enforces a grammar."""
        return self._obeys_grammar

    async def complete(
        self, prompt: Completion
    ) -> AsyncGenerator[CompletionText | CompletionEnded, None]:
        """Streams the reply. Closing the stream closes the connection, and the server stops generating."""
        codec = PromptCodec(prompt, with_grammar=self._obeys_grammar)
        async for event in self._send(_request(prompt), codec):
            if isinstance(event, TextDelta):
                yield CompletionText(event.text)
            elif isinstance(event, ReplyFinished):
                yield _ended(event.message)

    async def warm(self) -> None:
        """Does nothing: the server loads the model on the first request."""

    async def close(self) -> None:
        """Does nothing: the connections belong to the caller."""


def _request(prompt: Completion) -> ModelRequest:
    turns = list(prompt.turns)
    system: list[str] = []
    while turns and turns[0].role == "system":
        system.append(turns.pop(0).content)
    return ModelRequest(
        system=tuple(system),
        messages=tuple(map(_message, turns)),
        max_output_tokens=prompt.max_tokens,
        temperature=0.0,
    )


def _message(turn: ChatTurn) -> Message:
    if turn.role == "assistant":
        return AssistantMessage(text=turn.content)
    return UserMessage(text=turn.content)


def _ended(message: AssistantMessage) -> CompletionEnded:
    usage = message.usage or Usage()
    return CompletionEnded(
        finish="length" if message.finish == "length" else "stop",
        input_tokens=usage.input_tokens,
        cached_tokens=usage.cache_read_tokens,
        output_tokens=usage.output_tokens,
    )
