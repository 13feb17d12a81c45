"""Anthropic's Messages API: its requests read into ours, its answers whole and as a stream of events."""

from collections.abc import Iterator
from typing import Any

import msgspec

from hermes.schema.messages import ToolCall, Usage
from hermes.schema.tool_spec import ToolSpec
from hermes.surfaces.gateway.api_server.access_control import anthropic_error
from hermes.surfaces.gateway.api_server.request_formats import (
    DEFAULT_MODEL,
    ApiRequest,
    ClientMessage,
    Role,
    checked,
    tool_spec,
)
from hermes.surfaces.gateway.api_server.response_formats import event
from hermes.surfaces.gateway.api_server.turn_stream import End
from hermes.surfaces.web.errors import Refusal

_STOP_REASONS = {
    "done": "end_turn",
    "interrupted": "end_turn",
    "refused": "refusal",
    "tool_calls": "tool_use",
}
_CHARACTERS_PER_TOKEN = 4


class _Tool(msgspec.Struct):
    name: str
    description: str | None = ""
    input_schema: dict[str, Any] | None = None
    type: str | None = "custom"


class _Message(msgspec.Struct):
    role: str
    content: str | list[dict[str, Any]]


class _Metadata(msgspec.Struct):
    user_id: str | None = ""


class MessagesBody(msgspec.Struct):
    """The body of `POST /v1/messages`, as far as Hermes uses it."""

    messages: list[_Message]
    model: str = DEFAULT_MODEL
    system: str | list[dict[str, Any]] | None = ""
    stream: bool | None = False
    tools: list[_Tool] | None = None
    tool_choice: dict[str, Any] | None = None
    metadata: _Metadata | None = None

    def request(self, header: str) -> ApiRequest:
        """The request. `header` names the conversation, if the client names it."""
        found: list[ClientMessage] = []
        for number, one in enumerate(self.messages):
            found += _client_messages(one, number)
        system, _ = _text_of(self.system or "", "system")
        return ApiRequest(
            model=self.model,
            messages=checked(tuple(found)),
            stream=bool(self.stream),
            include_usage=True,
            conversation=header,
            instructions=system,
            tools=self._tools(),
        )

    def tokens(self) -> int:
        """About how many tokens the request has."""
        text = msgspec.json.encode((self.system, self.messages, self.tools))
        return max(1, len(text) // _CHARACTERS_PER_TOKEN)

    def _tools(self) -> tuple[ToolSpec, ...]:
        """The caller's tools. Tools that Anthropic would run have a type of their own; Hermes has such tools itself."""
        if self.tool_choice and self.tool_choice.get("type") == "none":
            return ()
        return tuple(
            tool_spec(one.name, one.description, one.input_schema)
            for one in self.tools or ()
            if one.type in (None, "custom")
        )


def _client_messages(message: _Message, number: int) -> list[ClientMessage]:
    """A message of the client: the results of tools first, then the rest."""
    param = f"messages[{number}]"
    if message.role not in ("user", "assistant"):
        raise Refusal(400, f"There is no role {message.role!r}.", param=param)
    if isinstance(message.content, str):
        return [ClientMessage(msgspec.convert(message.role, Role), message.content)]
    results: list[ClientMessage] = []
    calls: list[ToolCall] = []
    rest: list[dict[str, Any]] = []
    for part in message.content:
        match part:
            case {"type": "tool_result", "tool_use_id": str(name), **more}:
                text, _ = _text_of(more.get("content") or "", param)
                results.append(ClientMessage("tool", text, call_id=name))
            case {"type": "tool_use", "id": str(name), "name": str(tool), **more}:
                arguments = msgspec.json.encode(more.get("input") or {}).decode()
                calls.append(ToolCall(id=name, name=tool, arguments=arguments))
            case _:
                rest.append(part)
    text, pictures = _text_of(rest, param)
    if not (text or pictures or calls):
        return results
    role = msgspec.convert(message.role, Role)
    return [*results, ClientMessage(role, text, pictures, tuple(calls))]


def _text_of(
    content: str | list[dict[str, Any]], param: str
) -> tuple[str, tuple[str, ...]]:
    """The text and the pictures of blocks. Thinking is left out: it is of another model."""
    if isinstance(content, str):
        return content, ()
    texts: list[str] = []
    pictures: list[str] = []
    for part in content:
        match part:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case {"type": "image", "source": {"type": "url", "url": str(url)}}:
                pictures.append(url)
            case {
                "type": "image",
                "source": {"type": "base64", "media_type": kind, "data": data},
            }:
                pictures.append(f"data:{kind};base64,{data}")
            case {"type": "thinking" | "redacted_thinking"}:
                pass
            case _:
                what = part.get("type")
                raise Refusal(
                    400, f"Content of type {what!r} is not supported.", param=param
                )
    return "\n".join(texts), tuple(pictures)


class MessagesAnswer:
    """`message` and its events."""

    def __init__(self, request: ApiRequest, name: str, created: float) -> None:
        del created
        self._request = request
        self._id = f"msg_{name.removeprefix('resp_')}"

    def whole(self, text: str, end: End) -> dict[str, Any]:
        """The whole answer."""
        content: list[dict[str, Any]] = []
        if text or not end.calls:
            content.append({"type": "text", "text": text, "citations": None})
        content += [_tool_use(call) for call in end.calls]
        return self._message(content, _stop_reason(end), end.usage)

    def begin(self) -> Iterator[bytes]:
        yield self._event("message_start", message=self._message([], None, Usage()))
        yield self._event(
            "content_block_start", index=0, content_block={"type": "text", "text": ""}
        )

    def more(self, text: str) -> Iterator[bytes]:
        delta = {"type": "text_delta", "text": text}
        yield self._event("content_block_delta", index=0, delta=delta)

    def end(self, text: str, end: End) -> Iterator[bytes]:
        del text
        yield self._event("content_block_stop", index=0)
        for index, call in enumerate(end.calls, 1):
            yield self._event(
                "content_block_start",
                index=index,
                content_block=_tool_use(call) | {"input": {}},
            )
            delta = {"type": "input_json_delta", "partial_json": call.arguments}
            yield self._event("content_block_delta", index=index, delta=delta)
            yield self._event("content_block_stop", index=index)
        yield self._event(
            "message_delta",
            delta={"stop_reason": _stop_reason(end), "stop_sequence": None},
            usage=_usage(end.usage),
        )
        yield self._event("message_stop")

    def failed(self, error: Refusal) -> Iterator[bytes]:
        yield event(anthropic_error(error), "error")

    def _event(self, kind: str, **more: Any) -> bytes:
        return event({"type": kind} | more, kind)

    def _message(
        self, content: list[dict[str, Any]], stop: str | None, usage: Usage
    ) -> dict[str, Any]:
        return {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._request.model,
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": _usage(usage),
        }


def _stop_reason(end: End) -> str:
    if end.cut and end.reason == "done":
        return "max_tokens"
    return _STOP_REASONS[end.reason]


def _tool_use(call: ToolCall) -> dict[str, Any]:
    values = msgspec.json.decode(call.arguments)
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": values}


def _usage(usage: Usage) -> dict[str, Any]:
    cached = usage.cache_read_tokens
    return {
        "input_tokens": max(0, usage.input_tokens - cached),
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": cached,
        "output_tokens": usage.output_tokens,
    }
