"""Reads a Responses stream: its events become model events, and at `response.completed` the whole message is there."""

from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from hermes.core.think_tags import ReplyWords, without_thinking
from hermes.providers.adapter import (
    ErrorFrame,
    StreamBroken,
    checked_calls,
    settled_finish,
)
from hermes.providers.opaque_items import (
    ABSENT,
    Opaque,
    arguments_object,
    is_present,
    pack,
)
from hermes.providers.sse import ServerEvent
from hermes.providers.wire_json import WireJson
from hermes.schema.messages import AssistantMessage, FinishReason, ToolCall, Usage
from hermes.schema.model import ModelEvent, ToolCallStarted
from hermes.text.translation import translator

t = translator(__name__)


class CallItem(Struct, tag_field="type", tag="function_call"):
    """A tool call, as it is sent back."""

    call_id: str
    name: str
    arguments: str


class _Content(Struct):
    type: str
    text: str = ""
    refusal: str = ""


class _Item(Struct):
    """An item of the reply, of any type."""

    type: str
    id: str | None = None
    call_id: str = ""
    name: str = ""
    arguments: str | None = None
    content: list[_Content] | None = None
    phase: str | None = None
    summary: msgspec.Raw = msgspec.Raw(b"[]")
    encrypted_content: str | None = None


class _SentText(Struct, tag_field="type", tag="output_text"):
    text: str


class _SentMessage(Struct, tag_field="type", tag="message"):
    content: list[_SentText]
    role: str = "assistant"
    phase: str | UnsetType = UNSET


class _SentReasoning(Struct, tag_field="type", tag="reasoning"):
    """It has no id, because the server stores nothing that an id could name."""

    summary: msgspec.Raw
    encrypted_content: str


class _InputDetails(Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _OutputDetails(Struct):
    reasoning_tokens: int | None = None


class _Usage(Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: _OutputDetails | None = None


class _Incomplete(Struct):
    reason: str | None = None


class _Response(Struct):
    output: list[msgspec.Raw] = []
    status: str | None = None
    usage: _Usage | None = None
    incomplete_details: _Incomplete | None = None
    error: msgspec.Raw = ABSENT


class _Event(Struct):
    """Any event of the stream; which fields there are depends on `type`."""

    type: str
    delta: Any = None
    arguments: str | None = None
    output_index: int | None = None
    item: msgspec.Raw = ABSENT
    response: msgspec.Raw = ABSENT


_event = msgspec.json.Decoder(_Event)
_item = msgspec.json.Decoder(_Item)
_response = msgspec.json.Decoder(_Response)
_summary = msgspec.json.Decoder(list[_Content])

_TEXT = {"response.output_text.delta", "response.refusal.delta"}
_THOUGHT = {"response.reasoning_summary_text.delta", "response.reasoning_text.delta"}
_ENDS = {
    "response.completed",
    "response.incomplete",
    "response.failed",
    "response.cancelled",
}
_INCOMPLETE: dict[str, FinishReason] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "content_filter": "refused",
}


class ResponsesReader:
    """Implements `Reader`."""

    def __init__(self, *, has_tags: bool = True) -> None:
        self.done = False
        self._json = WireJson()
        self._has_tags = has_tags
        self._words = ReplyWords(has_tags=has_tags)
        self._items: list[_Item] = []  # in the order in which they were completed
        self._open: set[int] = set()
        self._refused = False
        self._finish: FinishReason = "stop"
        self._usage: Usage | None = None

    def feed(self, event: ServerEvent) -> list[ModelEvent]:
        data = event.data
        if data == b"[DONE]":  # some compatible servers add it
            return []
        try:
            return self._handle(self._json.decode(_event, data), data)
        except msgspec.DecodeError as error:
            raise StreamBroken(
                t.logged("an event can't be read: {error}", error=error)
            ) from error

    def whole(self, body: bytes) -> list[ModelEvent]:
        try:
            response = self._json.decode(_response, body)
            if f"response.{response.status}" not in _ENDS:
                raise StreamBroken(
                    t.logged(
                        "the reply is not a finished response: {status}",
                        status=response.status,
                    )
                )
            items = [self._json.decode(_item, bytes(item)) for item in response.output]
        except msgspec.DecodeError as error:
            raise StreamBroken(
                t.logged("the reply can't be read: {error}", error=error)
            ) from error
        events = [event for item in items for event in self._whole_item(item)]
        self._ended(f"response.{response.status}", response, body)
        return events

    def _whole_item(self, item: _Item) -> list[ModelEvent]:
        self._items.append(item)
        if item.type == "function_call":
            return [ToolCallStarted(item.call_id, item.name)]
        events: list[ModelEvent] = []
        for part in item.content or ():
            if item.type == "message" and (text := part.text or part.refusal):
                self._refused = self._refused or bool(part.refusal)
                events += self._said(text, is_refusal=bool(part.refusal))
                events += self._words.end_part()
        if item.type == "reasoning":
            thought = "\n\n".join(
                part.text for part in self._json.decode(_summary, bytes(item.summary))
            )
            events += self._words.add(thought, "")
        return events

    def _said(self, text: str, *, is_refusal: bool) -> list[ModelEvent]:
        """More of the reply's text. A refusal is the server's own words."""
        if is_refusal:
            return self._words.add("", text)
        return self._words.add_text(text)

    def _handle(self, event: _Event, data: bytes) -> list[ModelEvent]:
        kind = event.type
        if kind in _TEXT and isinstance(event.delta, str):
            self._refused = self._refused or kind == "response.refusal.delta"
            return self._said(event.delta, is_refusal=kind == "response.refusal.delta")
        if kind in _THOUGHT and isinstance(event.delta, str):
            return self._words.add(event.delta, "")
        if kind == "response.reasoning_summary_part.added" and self._words.reasoning:
            return self._words.add("\n\n", "")
        if kind == "response.output_item.added":
            return self._added(
                self._json.decode(_item, bytes(event.item)), event.output_index
            )
        if kind == "response.output_item.done":
            self._items.append(self._json.decode(_item, bytes(event.item)))
            self._open.discard(event.output_index or 0)
        elif kind in _ENDS:
            self._ended(kind, self._json.decode(_response, bytes(event.response)), data)
        elif kind == "error":
            raise ErrorFrame(data)
        else:
            return []
        return self._words.end_part()

    def _added(self, item: _Item, index: int | None) -> list[ModelEvent]:
        self._open.add(index or 0)
        return (
            [ToolCallStarted(item.call_id, item.name)]
            if item.type == "function_call"
            else []
        )

    def _ended(self, kind: str, response: _Response, data: bytes) -> None:
        if kind in {"response.failed", "response.cancelled"}:
            raise ErrorFrame(
                b'{"error":' + bytes(response.error) + b"}"
                if is_present(response.error)
                else data
            )
        if kind == "response.incomplete":
            reason = (response.incomplete_details or _Incomplete()).reason or ""
            finish = _INCOMPLETE.get(reason)
            if finish is None:
                raise StreamBroken(
                    t.logged(
                        "the reply is incomplete for an unknown reason: {value}",
                        value=reason or "none given",
                    )
                )
            self._finish = finish
        elif self._open:
            raise StreamBroken(
                t.logged("the reply ended while a part of it was still open")
            )
        if response.usage is not None:
            self._usage = _usage(response.usage)
        self.done = True

    def message(self) -> AssistantMessage:
        if not self.done:
            raise StreamBroken(t.logged("the stream was cut before its end"))
        calls = [item for item in self._items if item.type == "function_call"]
        arguments = [calls[-1].arguments or ""] if calls else None
        self._json.complete(self._words.text, arguments)
        if arguments:
            calls[-1].arguments = "".join(arguments)
        tool_calls = checked_calls(
            ToolCall(id=item.call_id, name=item.name, arguments=item.arguments or "")
            for item in calls
        )
        finish = settled_finish(self._finish, tool_calls)
        thought, text = self._words.both()
        return AssistantMessage(
            text=text,
            reasoning=thought,
            tool_calls=tool_calls,
            finish="refused" if self._refused else finish,
            usage=self._usage,
            opaque=self._opaque(),
        )

    def _opaque(self) -> str:
        """The items to replay, if they hold something that the plain message can't."""
        if not any(item.encrypted_content or item.phase for item in self._items):
            return ""
        sent = (_sent(item, has_tags=self._has_tags) for item in self._items)
        calls = [item.call_id for item in self._items if item.type == "function_call"]
        items = [msgspec.Raw(msgspec.json.encode(item)) for item in sent if item]
        return pack(Opaque(api="responses", calls=calls, items=items))


def _sent(
    item: _Item, *, has_tags: bool
) -> _SentMessage | _SentReasoning | CallItem | None:
    if item.type == "reasoning" and item.encrypted_content:
        return _SentReasoning(item.summary, item.encrypted_content)
    if item.type == "function_call":
        return CallItem(item.call_id, item.name, arguments_object(item.arguments or ""))
    if item.type == "message":
        texts = [
            (without_thinking(part.text) if has_tags else part.text) or part.refusal
            for part in item.content or ()
        ]
        parts = [_SentText(text) for text in texts if text]
        return _SentMessage(parts, phase=item.phase or UNSET) if parts else None
    return None


def _usage(usage: _Usage) -> Usage:
    details = usage.input_tokens_details or _InputDetails()
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=details.cached_tokens or 0,
        cache_write_tokens=details.cache_write_tokens or 0,
        reasoning_tokens=(
            usage.output_tokens_details or _OutputDetails()
        ).reasoning_tokens
        or 0,
    )
