"""Requests in Anthropic's Messages format, with cache markers and with thinking replayed as it was signed."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from hermes.providers.anthropic_reader import AnthropicReader
from hermes.providers.endpoint import ModelEndpoint
from hermes.providers.image_encoding import Pictures, RequestImage, split_pictures
from hermes.providers.opaque_items import arguments_object, unpack
from hermes.providers.tool_names import wire_name
from hermes.schema.messages import AssistantMessage, Message, ToolFinished, UserMessage
from hermes.schema.model import ModelRequest

_DEFAULT_OUTPUT_TOKENS = (
    32_000  # the format needs a number, which counts against the window
)
_MIN_THINKING_TOKENS = 1024
_THINKING_TOKENS = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 16384,
    "xhigh": 24576,
    "max": 31999,
}


class _Marker(msgspec.Struct, frozen=True):
    type: Literal["ephemeral"] = "ephemeral"


class _Text(msgspec.Struct, tag_field="type", tag="text"):
    text: str
    cache_control: _Marker | UnsetType = UNSET


class _Source(msgspec.Struct):
    type: Literal["base64", "url"]
    media_type: str | UnsetType = UNSET
    data: str | UnsetType = UNSET
    url: str | UnsetType = UNSET


class _Image(msgspec.Struct, tag_field="type", tag="image"):
    source: _Source
    cache_control: _Marker | UnsetType = UNSET


class _ToolUse(msgspec.Struct, tag_field="type", tag="tool_use"):
    id: str
    name: str
    input: Raw


class _ToolResult(msgspec.Struct, tag_field="type", tag="tool_result"):
    tool_use_id: str
    content: str | list[_Text | _Image]
    is_error: bool | UnsetType = UNSET
    cache_control: _Marker | UnsetType = UNSET


class _Tool(msgspec.Struct):
    name: str
    description: str
    input_schema: dict[str, Any]


class _Thinking(msgspec.Struct):
    type: Literal["enabled", "adaptive", "disabled"]
    budget_tokens: int | UnsetType = UNSET
    display: str | UnsetType = UNSET


class _Effort(msgspec.Struct):
    effort: str


class _Wire(msgspec.Struct):
    role: Literal["user", "assistant"]
    content: list[Any]


class _Body(msgspec.Struct, kw_only=True):
    """`messages` comes last: except for the moving marker, the next turn's body begins with the bytes of this one."""

    model: str
    max_tokens: int
    stream: bool = True
    temperature: float | UnsetType = UNSET
    thinking: _Thinking | UnsetType = UNSET
    output_config: _Effort | UnsetType = UNSET
    tools: list[_Tool] | UnsetType = UNSET
    system: list[_Text] | UnsetType = UNSET
    messages: Raw


_encoder = msgspec.json.Encoder()


class AnthropicMessages:
    """The codec of this format."""

    def url(self, endpoint: ModelEndpoint) -> str:
        return _root(endpoint) + "/messages"

    def models_url(self, endpoint: ModelEndpoint) -> str:
        return _root(endpoint) + "/models"

    def headers(self) -> Mapping[str, str]:
        return {"anthropic-version": "2023-06-01"}

    unsettled = 3  # the markers move: they are on the last two messages of the user

    def wires(
        self,
        endpoint: ModelEndpoint,
        messages: Sequence[Message],
        pictures: Pictures,
        *,
        end: bool,
    ) -> list[Any]:
        wires = _messages(endpoint, messages, pictures)
        if end:
            _mark(wires)
        return wires

    def body(
        self, endpoint: ModelEndpoint, request: ModelRequest, messages: bytes
    ) -> bytes:
        return _encoder.encode(_body(endpoint, request, Raw(b"[" + messages + b"]")))

    def reader(self, endpoint: ModelEndpoint) -> AnthropicReader:
        return AnthropicReader(has_tags=not endpoint.tells_thinking_apart)


def _root(endpoint: ModelEndpoint) -> str:
    base = endpoint.base_url.rstrip("/")
    return base if base.endswith("/v1") else base + "/v1"


def _body(endpoint: ModelEndpoint, request: ModelRequest, messages: Raw) -> _Body:
    default = min(endpoint.facts.max_output, _DEFAULT_OUTPUT_TOKENS)
    limit = endpoint.output_limit(request) or default
    body = _Body(model=endpoint.model, max_tokens=limit, messages=messages)
    _set_thinking(body, endpoint)
    temperature = endpoint.temperature(request)
    if temperature is not None and body.thinking is UNSET:
        body.temperature = temperature
    if request.tools:
        body.tools = [
            _Tool(wire_name(spec.name), spec.description, spec.parameters)
            for spec in request.tools
        ]
    parts = [part for part in request.system if part]
    if parts:
        # Only the last part may differ between sessions.
        stable = max(0, len(parts) - 2)
        body.system = [
            _Text(part, _Marker() if at == stable else UNSET)
            for at, part in enumerate(parts)
        ]
    return body


def _set_thinking(body: _Body, endpoint: ModelEndpoint) -> None:
    effort, kind = endpoint.options.reasoning_effort, endpoint.facts.thinking
    if not effort or not kind:
        return
    if effort == "none":
        body.thinking = _Thinking("disabled")
    elif kind == "adaptive":
        summary = "summarized" if endpoint.options.reasoning_summary else UNSET
        body.thinking = _Thinking("adaptive", display=summary)
        body.output_config = _Effort("low" if effort == "minimal" else effort)
    else:
        budget = _THINKING_TOKENS.get(effort, _THINKING_TOKENS["medium"])
        # The answer needs tokens of its own.
        budget = min(budget, body.max_tokens - 1024)
        if budget >= _MIN_THINKING_TOKENS:
            body.thinking = _Thinking("enabled", budget_tokens=budget)


def _messages(
    endpoint: ModelEndpoint, messages: Sequence[Message], pictures: Pictures
) -> list[_Wire]:
    """Joins neighbours of one role, because all results of one reply must be in one message."""
    wires: list[_Wire] = []
    for message in messages:
        role: Literal["user", "assistant"] = (
            "assistant" if isinstance(message, AssistantMessage) else "user"
        )
        blocks = _blocks(endpoint, message, pictures)
        if not blocks:
            continue
        if wires and wires[-1].role == role:
            wires[-1].content += blocks
        else:
            wires.append(_Wire(role, blocks))
    return wires


def _mark(wires: list[_Wire]) -> None:
    """Marks the end, and where the end was one request ago.

    The provider looks back only twenty blocks from a marker, so without the second one it may miss its cache entry.
    """
    turns = [wire for wire in wires if wire.role == "user"]
    for wire in turns[-2:]:
        wire.content[-1].cache_control = _Marker()


def _blocks(endpoint: ModelEndpoint, message: Message, pictures: Pictures) -> list[Any]:
    if isinstance(message, AssistantMessage):
        return _assistant(endpoint, message)
    shown, note = split_pictures(message.images, pictures, seen=endpoint.facts.images)
    if isinstance(message, UserMessage):
        text = message.text + note
        images: list[Any] = [_image(picture) for picture in shown]
        if text.strip() or not images:
            return [*images, _Text(text)]
        return images
    return [_result(message, message.text + note, shown)]


def _result(message: ToolFinished, text: str, shown: list[RequestImage]) -> _ToolResult:
    content: str | list[_Text | _Image] = text
    if shown:
        content = [
            *([_Text(text)] if text.strip() else []),
            *(_image(picture) for picture in shown),
        ]
    return _ToolResult(message.call_id, content, UNSET if message.ok else True)


def _image(picture: RequestImage) -> _Image:
    if picture.address:
        return _Image(_Source("url", url=picture.address))
    return _Image(_Source("base64", media_type=picture.media_type, data=picture.data))


def _assistant(endpoint: ModelEndpoint, message: AssistantMessage) -> list[Any]:
    if not message.text.strip() and not message.tool_calls:
        return []  # the server rejects thinking alone
    opaque = unpack(message, "anthropic", endpoint.provider)
    if opaque is not None and opaque.items:
        return list(opaque.items)
    blocks: list[Any] = []
    if message.text.strip():  # the server rejects an empty block
        blocks.append(_Text(message.text))
    for call in message.tool_calls:
        arguments = Raw(arguments_object(call.arguments))
        blocks.append(_ToolUse(call.id, wire_name(call.name), arguments))
    return blocks
