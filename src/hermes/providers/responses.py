"""Requests in OpenAI's Responses format. The server stores nothing: thinking comes encrypted and is sent back."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from hermes.providers.adapter import OpenAiCodec
from hermes.providers.endpoint import ModelEndpoint
from hermes.providers.image_encoding import Pictures, RequestImage, split_pictures
from hermes.providers.opaque_items import arguments_object, unpack
from hermes.providers.responses_reader import CallItem, ResponsesReader
from hermes.providers.tool_names import wire_name
from hermes.schema.messages import AssistantMessage, Message, ToolFinished, UserMessage
from hermes.schema.model import ModelRequest


class _InputText(msgspec.Struct, tag_field="type", tag="input_text"):
    text: str


class _InputImage(msgspec.Struct, tag_field="type", tag="input_image"):
    image_url: str


class _OutputText(msgspec.Struct, tag_field="type", tag="output_text"):
    text: str


class _MessageItem(msgspec.Struct, tag_field="type", tag="message"):
    role: Literal["user", "assistant"]
    content: list[_InputText | _InputImage] | list[_OutputText]


class _ResultItem(msgspec.Struct, tag_field="type", tag="function_call_output"):
    call_id: str
    output: str | list[_InputText | _InputImage]


class _Tool(msgspec.Struct, tag_field="type", tag="function"):
    name: str
    description: str
    parameters: dict[str, Any]
    strict: bool = False


class _Reasoning(msgspec.Struct):
    effort: str | UnsetType = UNSET
    summary: str | UnsetType = UNSET


_Item = _MessageItem | _ResultItem | CallItem | msgspec.Raw


class _Body(msgspec.Struct, kw_only=True):
    """`input` comes last, so that the next turn's body begins with the bytes of this one."""

    model: str
    stream: bool = True
    store: bool = False
    include: list[str] | UnsetType = UNSET
    instructions: str | UnsetType = UNSET
    max_output_tokens: int | UnsetType = UNSET
    temperature: float | UnsetType = UNSET
    reasoning: _Reasoning | UnsetType = UNSET
    prompt_cache_key: str | UnsetType = UNSET
    tools: list[_Tool] | UnsetType = UNSET
    input: msgspec.Raw


_encoder = msgspec.json.Encoder()


class Responses(OpenAiCodec):
    """The codec of this format."""

    path = "/responses"

    def wires(
        self,
        endpoint: ModelEndpoint,
        messages: Sequence[Message],
        pictures: Pictures,
        *,
        end: bool,  # noqa: ARG002 - nothing depends on it here
    ) -> list[Any]:
        return [
            item for message in messages for item in _items(endpoint, message, pictures)
        ]

    def body(
        self, endpoint: ModelEndpoint, request: ModelRequest, messages: bytes
    ) -> bytes:
        return _encoder.encode(
            _body(endpoint, request, msgspec.Raw(b"[" + messages + b"]"))
        )

    def reader(self, endpoint: ModelEndpoint) -> ResponsesReader:
        return ResponsesReader(has_tags=not endpoint.tells_thinking_apart)


def _body(endpoint: ModelEndpoint, request: ModelRequest, items: msgspec.Raw) -> _Body:
    options = endpoint.options
    body = _Body(model=endpoint.model, input=items)
    if system := "\n\n".join(part for part in request.system if part):
        body.instructions = system
    if endpoint.facts.reasoning:  # models that don't think reject it
        body.include = ["reasoning.encrypted_content"]
        if options.reasoning_effort or options.reasoning_summary:
            body.reasoning = _Reasoning(
                options.reasoning_effort or UNSET, options.reasoning_summary or UNSET
            )
    limit = endpoint.output_limit(request)
    if limit and endpoint.quirks.max_tokens:
        body.max_output_tokens = limit
    temperature = endpoint.temperature(request)
    if temperature is not None:
        body.temperature = temperature
    if request.cache_key:
        body.prompt_cache_key = request.cache_key
    if request.tools:
        body.tools = [
            _Tool(wire_name(spec.name), spec.description, spec.parameters)
            for spec in request.tools
        ]
    return body


def _items(
    endpoint: ModelEndpoint, message: Message, pictures: Pictures
) -> Iterator[_Item]:
    if isinstance(message, AssistantMessage):
        yield from _assistant(endpoint, message)
        return
    shown, note = split_pictures(message.images, pictures, seen=endpoint.facts.images)
    if isinstance(message, UserMessage):
        yield _MessageItem("user", _parts(message.text + note, shown))
    else:
        yield _result(message, message.text + note, shown)


def _parts(text: str, shown: list[RequestImage]) -> list[_InputText | _InputImage]:
    return [_InputText(text), *(_InputImage(picture.url) for picture in shown)]


def _result(message: ToolFinished, text: str, shown: list[RequestImage]) -> _ResultItem:
    return _ResultItem(message.call_id, _parts(text, shown) if shown else text)


def _assistant(endpoint: ModelEndpoint, message: AssistantMessage) -> Iterator[_Item]:
    if not message.text and not message.tool_calls:
        return  # the server rejects thinking without what it led to
    opaque = unpack(message, "responses", endpoint.provider, endpoint.model)
    if opaque is not None and opaque.items:
        yield from opaque.items
        return
    if message.text:
        yield _MessageItem("assistant", [_OutputText(message.text)])
    for call in message.tool_calls:
        yield CallItem(call.id, wire_name(call.name), arguments_object(call.arguments))
