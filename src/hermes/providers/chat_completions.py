"""Requests in the chat completions format, which OpenAI made and many servers speak. `quirks` holds the differences."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from hermes.providers.adapter import OpenAiCodec
from hermes.providers.chat_completions_reader import ChatReader
from hermes.providers.endpoint import ModelEndpoint
from hermes.providers.image_encoding import Pictures, RequestImage, split_pictures
from hermes.providers.opaque_items import Opaque, arguments_object, unpack
from hermes.providers.provider_table import echo_of
from hermes.providers.tool_names import wire_name
from hermes.schema.messages import AssistantMessage, Message, ToolFinished, UserMessage
from hermes.schema.model import ModelRequest, ToolSpec


class _CacheMarker(msgspec.Struct, frozen=True):
    type: Literal["ephemeral"] = "ephemeral"


class _TextPart(msgspec.Struct, tag_field="type", tag="text"):
    text: str
    cache_control: _CacheMarker | UnsetType = UNSET


class _Url(msgspec.Struct):
    url: str


class _ImagePart(msgspec.Struct, tag_field="type", tag="image_url"):
    image_url: _Url


class _Function(msgspec.Struct):
    name: str
    arguments: str


class _Call(msgspec.Struct, tag_field="type", tag="function"):
    id: str
    function: _Function
    extra_content: msgspec.Raw | UnsetType = UNSET


class _Wire(msgspec.Struct, kw_only=True):
    role: str
    content: str | list[_TextPart | _ImagePart] | None = None
    reasoning_content: str | UnsetType = UNSET
    reasoning: str | UnsetType = UNSET
    reasoning_details: list[msgspec.Raw] | UnsetType = UNSET
    tool_calls: list[_Call] | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET


class _ToolFunction(msgspec.Struct):
    name: str
    description: str
    parameters: dict[str, Any]


class _Tool(msgspec.Struct, tag_field="type", tag="function"):
    function: _ToolFunction


class _StreamOptions(msgspec.Struct):
    include_usage: bool = True


class _Reasoning(msgspec.Struct):
    effort: str


class _Body(msgspec.Struct, kw_only=True):
    """`messages` comes last, so that the next turn's body begins with the bytes of this one."""

    model: str
    stream: bool = True
    stream_options: _StreamOptions | UnsetType = UNSET
    max_tokens: int | UnsetType = UNSET
    max_completion_tokens: int | UnsetType = UNSET
    temperature: float | UnsetType = UNSET
    reasoning_effort: str | UnsetType = UNSET
    reasoning: _Reasoning | UnsetType = UNSET
    parallel_tool_calls: bool | UnsetType = UNSET
    prompt_cache_key: str | UnsetType = UNSET
    tools: list[_Tool] | UnsetType = UNSET
    messages: msgspec.Raw


_encoder = msgspec.json.Encoder()


class ChatCompletions(OpenAiCodec):
    """The codec of this format."""

    path = "/chat/completions"

    def wires(
        self,
        endpoint: ModelEndpoint,
        messages: Sequence[Message],
        pictures: Pictures,
        *,
        end: bool,
    ) -> list[Any]:
        wires = _messages(endpoint, messages, pictures)
        if end and wires and _is_marked(endpoint):
            _mark_last(wires[-1])
        return wires

    def body(
        self, endpoint: ModelEndpoint, request: ModelRequest, messages: bytes
    ) -> bytes:
        system = _encoder.encode(list(_system(endpoint, request.system)))[:-1]
        comma = b"," if len(system) > 1 and messages else b""
        return _encoder.encode(
            _body(endpoint, request, msgspec.Raw(system + comma + messages + b"]"))
        )

    def reader(self, endpoint: ModelEndpoint) -> ChatReader:
        quirks, model = endpoint.quirks, endpoint.model.lower()
        return ChatReader(
            reasoning_outside_output=quirks.reasoning_outside_output,
            stops_when_cut=any(name in model for name in quirks.stops_when_cut),
        )


def _body(
    endpoint: ModelEndpoint, request: ModelRequest, messages: msgspec.Raw
) -> _Body:
    quirks = endpoint.quirks
    body = _Body(model=endpoint.model, messages=messages)
    if quirks.include_usage:
        body.stream_options = _StreamOptions()
    limit = endpoint.output_limit(request)
    if limit and quirks.max_tokens_field == "max_tokens":
        body.max_tokens = limit
    elif limit:
        body.max_completion_tokens = limit
    temperature = endpoint.temperature(request)
    if temperature is not None:
        body.temperature = temperature
    _set_effort(body, endpoint)
    if quirks.cache_key and request.cache_key:
        body.prompt_cache_key = request.cache_key
    if request.tools:
        body.tools = [_tool(spec) for spec in request.tools]
        if quirks.parallel_tool_calls:
            body.parallel_tool_calls = True
    return body


def _set_effort(body: _Body, endpoint: ModelEndpoint) -> None:
    effort, field = endpoint.options.reasoning_effort, endpoint.quirks.reasoning_effort
    if effort and field == "reasoning_effort":
        body.reasoning_effort = effort
    elif effort and field == "reasoning":
        body.reasoning = _Reasoning(effort)


def _tool(spec: ToolSpec) -> _Tool:
    return _Tool(_ToolFunction(wire_name(spec.name), spec.description, spec.parameters))


def _is_marked(endpoint: ModelEndpoint) -> bool:
    return endpoint.quirks.cache_markers and "claude" in endpoint.model


def _mark_last(wire: _Wire) -> None:
    if isinstance(wire.content, str) and wire.role != "assistant":
        wire.content = [_TextPart(wire.content, _CacheMarker())]


def _messages(
    endpoint: ModelEndpoint, messages: Sequence[Message], pictures: Pictures
) -> list[_Wire]:
    wires: list[_Wire] = []
    # The format allows pictures of tool results only in a user's message.
    waiting: list[RequestImage] = []
    for message in messages:
        if waiting and not isinstance(message, ToolFinished):
            wires.append(_shown(waiting))
            waiting = []
        wires += _message(endpoint, message, pictures, waiting)
    if waiting:
        wires.append(_shown(waiting))
    return wires


def _system(endpoint: ModelEndpoint, parts: tuple[str, ...]) -> Iterator[_Wire]:
    parts = tuple(part for part in parts if part)
    if not parts:
        return
    role = endpoint.quirks.system_role
    if not _is_marked(endpoint):
        yield _Wire(role=role, content="\n\n".join(parts))
        return
    stable = max(0, len(parts) - 2)  # only the last part may differ between sessions
    blocks = [
        _TextPart(part, _CacheMarker() if at == stable else UNSET)
        for at, part in enumerate(parts)
    ]
    yield _Wire(role=role, content=list(blocks))


def _message(
    endpoint: ModelEndpoint,
    message: Message,
    pictures: Pictures,
    waiting: list[RequestImage],
) -> Iterator[_Wire]:
    if isinstance(message, AssistantMessage):
        if message.text or message.tool_calls:
            yield _assistant(endpoint, message)
        return
    seen = endpoint.quirks.images and endpoint.facts.images
    shown, note = split_pictures(message.images, pictures, seen=seen)
    if isinstance(message, ToolFinished):
        waiting += shown
        yield _Wire(
            role="tool", content=message.text + note, tool_call_id=message.call_id
        )
    else:
        yield _user(message, shown, note)


def _user(message: UserMessage, shown: list[RequestImage], note: str) -> _Wire:
    if not shown:
        return _Wire(role="user", content=message.text + note)
    parts: list[_TextPart | _ImagePart] = [_TextPart(message.text + note)]
    return _Wire(
        role="user",
        content=[*parts, *(_ImagePart(_Url(picture.url)) for picture in shown)],
    )


def _shown(pictures: list[RequestImage]) -> _Wire:
    intro = _TextPart("The pictures of the tool results above:")  # not translated
    return _Wire(
        role="user",
        content=[intro, *(_ImagePart(_Url(picture.url)) for picture in pictures)],
    )


def _assistant(endpoint: ModelEndpoint, message: AssistantMessage) -> _Wire:
    opaque = unpack(message, "chat", endpoint.provider) or Opaque(api="chat")
    wire = _Wire(role="assistant", content=message.text or None)
    echo = echo_of(endpoint.quirks, endpoint.model)
    is_ours = message.provider == endpoint.provider
    own = endpoint.quirks.echo_reasoning == "own" and is_ours
    if own and opaque.items:
        wire.reasoning_details = opaque.items
    elif echo == "always" or (own and message.reasoning):
        # With thinking on, servers reject a reply that has none or an empty one.
        if endpoint.quirks.reasoning_field == "reasoning":
            wire.reasoning = message.reasoning or " "
        else:
            wire.reasoning_content = message.reasoning or " "
    if message.tool_calls:
        wire.tool_calls = [
            _Call(
                id=call.id,
                function=_Function(
                    wire_name(call.name), arguments_object(call.arguments)
                ),
                extra_content=opaque.extras.get(call.id, UNSET),
            )
            for call in message.tool_calls
        ]
    return wire
