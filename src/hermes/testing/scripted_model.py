"""A model that returns scripted replies in order, and fails the test if it is called too often."""

import itertools
from collections.abc import AsyncIterator, Iterable

import msgspec

from hermes.errors import ModelError
from hermes.schema.messages import AssistantMessage, ToolCall, Usage
from hermes.schema.model import (
    ModelEvent,
    ModelRequest,
    ReasoningPiece,
    ReplyFinished,
    TextDelta,
)

_CHUNK = 8  # characters of a delta


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """One scripted answer: text, thinking, tool calls (name, JSON arguments), or an error instead."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    usage: Usage = Usage(input_tokens=10, output_tokens=5, cost_usd=0.0)
    error: ModelError | None = None


class ScriptedModel:
    """Implements the `Model` port. `requests` holds the requests it received."""

    def __init__(
        self,
        *replies: Reply | str,
        provider: str = "scripted",
        name: str = "scripted-1",
    ) -> None:
        self.provider = provider
        self.name = name
        self.requests: list[ModelRequest] = []
        self._replies = [
            Reply(text=reply) if isinstance(reply, str) else reply for reply in replies
        ]
        self._call_ids = (f"call-{n}" for n in itertools.count(1))

    @property
    def left(self) -> int:
        """The number of scripted replies that were not used."""
        return len(self._replies)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Streams the next reply in small pieces."""
        self.requests.append(request)
        if not self._replies:
            raise AssertionError(
                f"the scripted model was asked {len(self.requests)} times and has no reply left"
            )
        reply = self._replies.pop(0)
        for event in self._deltas(reply):
            yield event
        if reply.error is not None:
            raise reply.error
        yield ReplyFinished(self._message(reply))

    def _deltas(self, reply: Reply) -> Iterable[ModelEvent]:
        for start in range(0, len(reply.reasoning), _CHUNK):
            yield ReasoningPiece(reply.reasoning[start : start + _CHUNK])
        for start in range(0, len(reply.text), _CHUNK):
            yield TextDelta(reply.text[start : start + _CHUNK])

    def _message(self, reply: Reply) -> AssistantMessage:
        calls = tuple(
            ToolCall(id=next(self._call_ids), name=name, arguments=text)
            for name, text in reply.calls
        )
        return AssistantMessage(
            text=reply.text,
            reasoning=reply.reasoning,
            tool_calls=calls,
            finish="tool_calls" if calls else "stop",
            provider=self.provider,
            model=self.name,
            usage=reply.usage,
        )
