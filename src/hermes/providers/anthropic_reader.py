"""Reads a Messages stream: its events become model events, and at `message_stop` the whole message is there."""

import msgspec
from msgspec import Raw, Struct

from hermes.core.arguments import DAMAGED
from hermes.core.think_tags import ReplyWords
from hermes.providers.adapter import (
    ErrorFrame,
    StreamBroken,
    checked_calls,
    settled_finish,
)
from hermes.providers.opaque_items import Opaque, arguments_object, pack
from hermes.providers.sse import ServerEvent
from hermes.providers.wire_json import WireJson
from hermes.schema.messages import AssistantMessage, FinishReason, ToolCall, Usage
from hermes.schema.model import ModelEvent, ReasoningPiece, ToolCallStarted
from hermes.text.translation import translator

t = translator(__name__)


_FINISH: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}


class _Start(Struct):
    """How a block begins."""

    type: str
    id: str = ""
    name: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: str = ""
    input: Raw = Raw(b"{}")


class _Delta(Struct):
    """More of a block, or of the message."""

    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: str = ""
    stop_reason: str | None = None


class _OutputDetails(Struct):
    thinking_tokens: int | None = None


class _Usage(Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens_details: _OutputDetails | None = None


class _Message(Struct):
    usage: _Usage | None = None


class _Event(Struct):
    """Any event of the stream; which fields there are depends on `type`."""

    type: str
    index: int = 0
    delta: _Delta | None = None
    content_block: _Start | None = None
    message: _Message | None = None
    usage: _Usage | None = None


class _Whole(Struct):
    """A whole reply, from a server that does not stream."""

    type: str
    content: list[_Start] = []
    stop_reason: str | None = None
    usage: _Usage | None = None


class _ThinkingBlock(Struct, tag_field="type", tag="thinking"):
    thinking: str
    signature: str


class _RedactedBlock(Struct, tag_field="type", tag="redacted_thinking"):
    data: str


class _TextBlock(Struct, tag_field="type", tag="text"):
    text: str


class _CallBlock(Struct, tag_field="type", tag="tool_use"):
    id: str
    name: str
    input: Raw


class _Block:
    """A block of the reply, as far as it has come."""

    __slots__ = ("open", "pieces", "signature", "start", "words")

    def __init__(self, start: _Start, *, begins: bool, has_tags: bool) -> None:
        self.start = start
        self.words = ReplyWords(begins=begins, has_tags=has_tags)
        """What a block of text says, with the thinking that a server left in it."""
        self.pieces = self.words.text
        self.signature = start.signature
        self.open = True

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def arguments(self) -> str:
        """What was streamed. A call without parameters streams nothing and has its input in the start."""
        return self.text or bytes(self.start.input).decode()


_decoder = msgspec.json.Decoder(_Event)
_whole = msgspec.json.Decoder(_Whole)


class AnthropicReader:
    """Implements `Reader`."""

    def __init__(self, *, has_tags: bool = True) -> None:
        self.done = False
        self._json = WireJson()
        self._has_tags = has_tags
        self._blocks: dict[int, _Block] = {}
        self._finish = ""
        self._usage = _Usage()

    def feed(self, event: ServerEvent) -> list[ModelEvent]:
        try:
            parsed = self._json.decode(_decoder, event.data)
        except msgspec.DecodeError as error:
            raise StreamBroken(
                t.logged("an event can't be read: {error}", error=error)
            ) from error
        kind = parsed.type
        if kind == "content_block_delta" and parsed.delta is not None:
            return self._more(parsed.index, parsed.delta)
        if kind == "content_block_start" and parsed.content_block is not None:
            return self._start(parsed.index, parsed.content_block)
        if kind == "content_block_stop":
            return self._end_block(self._block(parsed.index))
        if kind == "message_start" and parsed.message is not None:
            self._count(parsed.message.usage)
        elif kind == "message_delta":
            self._count(parsed.usage)
            if parsed.delta is not None and parsed.delta.stop_reason:
                self._finish = parsed.delta.stop_reason
        elif kind == "message_stop":
            self._stop()
        elif kind == "error":
            raise ErrorFrame(event.data)
        return []

    def whole(self, body: bytes) -> list[ModelEvent]:
        try:
            message = self._json.decode(_whole, body)
        except msgspec.DecodeError as error:
            raise StreamBroken(
                t.logged("the reply can't be read: {error}", error=error)
            ) from error
        if message.type == "error":
            raise ErrorFrame(body)
        events: list[ModelEvent] = []
        for index, start in enumerate(message.content):
            events += self._start(index, start)
            events += self._end_block(self._block(index))
        self._count(message.usage)
        self._finish = message.stop_reason or ""
        self._stop()
        return events

    def _block(self, index: int) -> _Block:
        block = self._blocks.get(index)
        if block is None or not block.open:
            raise StreamBroken(
                t.logged("a part of the reply continues that never began")
            )
        return block

    def _start(self, index: int, start: _Start) -> list[ModelEvent]:
        if index in self._blocks:
            raise StreamBroken(t.logged("a part of the reply begins twice"))
        begins = not any(one.start.type == "text" for one in self._blocks.values())
        block = self._blocks[index] = _Block(
            start, begins=begins, has_tags=self._has_tags
        )
        if self._json.lossy:
            block.start.input = Raw(DAMAGED.encode())
        if start.type == "tool_use":
            return [ToolCallStarted(start.id, start.name)]
        return block.words.add_text(start.text) or _thought(block, start.thinking)

    def _end_block(self, block: _Block) -> list[ModelEvent]:
        block.open = False
        return block.words.end_part()

    def _more(self, index: int, delta: _Delta) -> list[ModelEvent]:
        block = self._block(index)
        if delta.type == "text_delta":
            return block.words.add_text(delta.text)
        if delta.type == "thinking_delta":
            return _thought(block, delta.thinking)
        if delta.type == "input_json_delta":
            block.pieces.append(delta.partial_json)
        elif delta.type == "signature_delta":
            block.signature += delta.signature
        return []

    def _count(self, usage: _Usage | None) -> None:
        """Counts are cumulative: each later field replaces the earlier one."""
        if usage is None:
            return
        given = {
            name: value
            for name in usage.__struct_fields__
            if (value := getattr(usage, name)) is not None
        }
        self._usage = msgspec.structs.replace(self._usage, **given)

    def _stop(self) -> None:
        if any(block.open for block in self._blocks.values()):
            raise StreamBroken(
                t.logged("the reply ended while a part of it was still open")
            )
        if not self._finish:
            raise StreamBroken(t.logged("the reply ended without saying why"))
        self.done = True

    def message(self) -> AssistantMessage:
        if not self.done:
            raise StreamBroken(t.logged("the stream was cut before its end"))
        finish = _FINISH.get(self._finish)
        if finish is None:
            raise StreamBroken(
                t.logged(
                    "the reply ended for an unknown reason: {finish}",
                    finish=self._finish,
                )
            )
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        pieces = {block.start.type: block.pieces for block in blocks}
        self._json.complete(pieces.get("text", []), pieces.get("tool_use"))
        calls = checked_calls(
            ToolCall(
                id=block.start.id, name=block.start.name, arguments=block.arguments
            )
            for block in blocks
            if block.start.type == "tool_use"
        )
        thought, text = _both(blocks, has_tags=self._has_tags)
        return AssistantMessage(
            text=text,
            reasoning=thought,
            tool_calls=calls,
            finish=settled_finish(finish, calls),
            usage=_counted(self._usage),
            opaque=_opaque(blocks),
        )


def _thought(block: _Block, thought: str) -> list[ModelEvent]:
    """More of a block of thinking."""
    block.pieces.append(thought)
    return [ReasoningPiece(thought)] if thought else []


def _both(blocks: list[_Block], *, has_tags: bool) -> tuple[str, str]:
    """The thinking and the text of a reply, from its blocks."""
    words = ReplyWords(has_tags=has_tags)
    thoughts = [
        block.text if block.start.type == "thinking" else "".join(block.words.reasoning)
        for block in blocks
    ]
    words.add("\n\n".join(filter(None, thoughts)), "")
    for block in blocks:
        words.add("", block.text if block.start.type == "text" else "")
    return words.both()


def _opaque(blocks: list[_Block]) -> str:
    """The blocks to replay, if there is thinking among them: it is signed, and its order counts."""
    if not {block.start.type for block in blocks} & {"thinking", "redacted_thinking"}:
        return ""
    sent = (_sent(block) for block in blocks)
    calls = [block.start.id for block in blocks if block.start.type == "tool_use"]
    items = [Raw(msgspec.json.encode(block)) for block in sent if block]
    return pack(Opaque(api="anthropic", calls=calls, items=items))


def _sent(
    block: _Block,
) -> _ThinkingBlock | _RedactedBlock | _TextBlock | _CallBlock | None:
    kind = block.start.type
    if kind == "thinking":
        return _ThinkingBlock(block.text, block.signature)
    if kind == "redacted_thinking":
        return _RedactedBlock(block.start.data)
    if kind == "tool_use":
        return _CallBlock(
            block.start.id, block.start.name, Raw(arguments_object(block.arguments))
        )
    if kind == "text" and block.text.strip():
        return _TextBlock(block.text)
    return None


def _counted(usage: _Usage) -> Usage:
    read, written = (
        usage.cache_read_input_tokens or 0,
        usage.cache_creation_input_tokens or 0,
    )
    return Usage(
        input_tokens=(usage.input_tokens or 0) + read + written,
        output_tokens=usage.output_tokens or 0,
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=(
            usage.output_tokens_details or _OutputDetails()
        ).thinking_tokens
        or 0,
    )
