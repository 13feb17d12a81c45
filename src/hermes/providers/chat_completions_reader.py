"""Reads a chat completions stream: chunks become model events, and at its end the whole message is there."""

from typing import Any

import msgspec
from msgspec import Struct

from hermes.core.think_tags import ReplyWords
from hermes.providers.adapter import ErrorFrame, StreamBroken, settled_finish
from hermes.providers.opaque_items import ABSENT, Opaque, is_present, pack
from hermes.providers.sse import ServerEvent
from hermes.providers.wire_json import WireJson
from hermes.schema.messages import AssistantMessage, FinishReason, ToolCall, Usage
from hermes.schema.model import ModelEvent, ToolCallStarted
from hermes.text.translation import translator

t = translator(__name__)


_FINISH: dict[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "refused",
    "refusal": "refused",
    "safety": "refused",
    "sensitive": "refused",
}
_MIN_WORDS = 8  # a shorter reply may well end without a full stop
_FAILED = {
    "error",
    "insufficient_system_resource",
    "network_error",
    "abort",
    "cancelled",
}


class _Thought(Struct):
    text: str = ""


class _Piece(Struct):
    type: str
    text: str = ""
    thinking: list[_Thought] = []


class _Function(Struct):
    name: str | None = None
    arguments: str | None = None


class _CallDelta(Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None
    extra_content: msgspec.Raw = ABSENT


class _Detail(Struct, omit_defaults=True):
    """Thinking as OpenRouter sends it: in pieces that belong together by `index` and are sent back whole."""

    type: str
    index: int | None = None
    id: str | None = None
    format: str | None = None
    text: str = ""
    summary: str = ""
    data: str = ""
    signature: str = ""

    def add(self, more: "_Detail") -> None:
        self.text += more.text
        self.summary += more.summary
        self.data += more.data
        self.signature = more.signature or self.signature
        self.id = more.id or self.id
        self.format = more.format or self.format


class _Delta(Struct):
    content: str | list[_Piece] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[_Detail] | None = None
    refusal: str | None = None
    tool_calls: list[_CallDelta] | None = None


class _Choice(Struct):
    index: int = 0
    delta: _Delta | None = None
    message: _Delta | None = None  # a whole reply, from a server that does not stream
    finish_reason: str | None = None


class _InputDetails(Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _OutputDetails(Struct):
    reasoning_tokens: int | None = None


class _Usage(Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _InputDetails | None = None
    completion_tokens_details: _OutputDetails | None = None
    prompt_cache_hit_tokens: int | None = None  # DeepSeek
    cached_tokens: int | None = None  # Moonshot
    cost: float | None = None  # OpenRouter, in dollars


class _Chunk(Struct):
    id: str | None = None
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: msgspec.Raw = ABSENT
    object: Any = None


class _Call:
    """A tool call that is still being written."""

    __slots__ = ("arguments", "extra", "id", "name", "started")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.extra: msgspec.Raw | None = None
        self.started = False


_decoder = msgspec.json.Decoder(_Chunk)


class ChatReader:
    """Implements `Reader`. The end is a finish reason, and `[DONE]` where the server sends it."""

    def __init__(
        self, *, reasoning_outside_output: bool = False, stops_when_cut: bool = False
    ) -> None:
        self.done = False
        self._stops_when_cut = stops_when_cut
        self._json = WireJson()
        self._reasoning_outside_output = reasoning_outside_output
        self._words = ReplyWords()
        self._details: list[_Detail] = []
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._finish = ""
        self._refused = False
        self._usage: Usage | None = None
        self._id = ""

    def feed(self, event: ServerEvent) -> list[ModelEvent]:
        data = event.data
        if data == b"[DONE]":
            self.done = True
            if not self._finish:
                raise StreamBroken(t.logged("the stream ended without saying why"))
            return []
        try:
            chunk = self._json.decode(_decoder, data)
        except msgspec.DecodeError as error:
            if event.name == "error":
                raise ErrorFrame(data) from error
            raise StreamBroken(
                t.logged("an event can't be read: {error}", error=error)
            ) from error
        if is_present(chunk.error) or event.name == "error" or chunk.object == "error":
            raise ErrorFrame(data)
        if chunk.usage is not None:
            self._usage = _usage(chunk.usage, outside=self._reasoning_outside_output)
        if chunk.id and not self._id:
            self._id = chunk.id
        events: list[ModelEvent] = []
        for choice in chunk.choices or ():
            if choice.index == 0:
                self._choice(choice, events, data)
        return events

    def whole(self, body: bytes) -> list[ModelEvent]:
        return self.feed(ServerEvent("", body))

    def _choice(self, choice: _Choice, events: list[ModelEvent], data: bytes) -> None:
        delta = choice.delta or choice.message
        if delta is not None:
            self._read_words(delta, events)
            for position, call in enumerate(delta.tool_calls or ()):
                if choice.delta is None:
                    call.index = position  # each is a call of its own
                self._call(call, events)
        if choice.finish_reason:
            events += self._words.end_part()
            if choice.finish_reason in _FAILED:
                said = {
                    "message": data.decode("utf-8", "replace"),
                    "code": choice.finish_reason,
                }
                raise ErrorFrame(msgspec.json.encode({"error": said}))
            self._finish = choice.finish_reason

    def _read_words(self, delta: _Delta, events: list[ModelEvent]) -> None:
        words = self._words
        events += words.add(delta.reasoning_content or delta.reasoning or "", "")
        for detail in delta.reasoning_details or ():
            self._add_detail(detail)
        content = delta.content
        if isinstance(content, str):
            events += words.add_text(content)
        else:  # in parts, as Mistral's thinking models send it
            for piece in content or ():
                thought = "".join(part.text for part in piece.thinking)
                events += words.add(thought, "")
                events += words.add_text(piece.text)
        if delta.refusal:
            self._refused = True
            events += words.add("", delta.refusal)

    def _add_detail(self, detail: _Detail) -> None:
        last = self._details[-1] if self._details else None
        if last and (last.type, last.index) == (detail.type, detail.index):
            last.add(detail)
        else:
            self._details.append(detail)

    def _call(self, delta: _CallDelta, events: list[ModelEvent]) -> None:
        call = self._find(delta)
        if delta.id and not call.id:
            call.id = delta.id
        if is_present(delta.extra_content):
            call.extra = delta.extra_content.copy()
        if delta.function is not None:
            if delta.function.name and not call.started:
                call.name += delta.function.name
            if delta.function.arguments:
                call.arguments.append(delta.function.arguments)
        if call.name and not call.started:
            call.started = True
            call.id = call.id or f"{self._id or 'call'}-{len(self._calls)}"
            events.append(ToolCallStarted(call.id, call.name))

    def _find(self, delta: _CallDelta) -> _Call:
        """Finds the call that `delta` continues, by index. If a server counts wrongly, a new id starts a new call."""
        if delta.index is None:
            call = None if delta.id or not self._calls else self._calls[-1]
        else:
            call = self._by_index.get(delta.index)
        named = delta.function is not None and bool(delta.function.name)
        if call is not None and named and delta.id and call.id and delta.id != call.id:
            call = None
        if call is None:
            call = _Call()
            self._calls.append(call)
        if delta.index is not None:
            self._by_index[delta.index] = call
        return call

    def message(self) -> AssistantMessage:
        if not self._finish:
            raise StreamBroken(t.logged("the stream was cut before its end"))
        finish = _FINISH.get(self._finish.lower())
        if finish is None:
            raise StreamBroken(
                t.logged(
                    "the stream ended for an unknown reason: {finish}",
                    finish=self._finish,
                )
            )
        if not all(call.started for call in self._calls):
            raise StreamBroken(t.logged("a tool call has no name"))
        self._json.complete(
            self._words.text, self._calls[-1].arguments if self._calls else None
        )
        if finish == "stop" and self._is_cut():
            finish = "length"
        extras = {call.id: call.extra for call in self._calls if call.extra is not None}
        details = [msgspec.Raw(msgspec.json.encode(detail)) for detail in self._details]
        thought, text = self._words.both()
        return AssistantMessage(
            text=text,
            reasoning=thought,
            tool_calls=tuple(
                ToolCall(id=call.id, name=call.name, arguments="".join(call.arguments))
                for call in self._calls
            ),
            finish="refused" if self._refused else settled_finish(finish, self._calls),
            usage=self._usage,
            opaque=pack(Opaque(api="chat", items=details, extras=extras)),
        )

    def _is_cut(self) -> bool:
        """Whether a reply that says it is complete ends in the middle of a sentence, from a server known for that."""
        text = "".join(self._words.text).strip()
        if not self._stops_when_cut or self._calls or len(text.split()) < _MIN_WORDS:
            return False
        from hermes.core.reply_check import ends_naturally

        return not ends_naturally(text)


def _usage(usage: _Usage, *, outside: bool) -> Usage:
    details = usage.prompt_tokens_details or _InputDetails()
    reasoning = (
        usage.completion_tokens_details or _OutputDetails()
    ).reasoning_tokens or 0
    return Usage(
        input_tokens=usage.prompt_tokens or 0,
        output_tokens=(usage.completion_tokens or 0) + (reasoning if outside else 0),
        cache_read_tokens=details.cached_tokens
        or usage.prompt_cache_hit_tokens
        or usage.cached_tokens
        or 0,
        cache_write_tokens=details.cache_write_tokens or 0,
        reasoning_tokens=reasoning,
        cost_usd=usage.cost,
    )
