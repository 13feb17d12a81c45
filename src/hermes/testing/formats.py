"""Renders a scripted reply as server-sent events in the three wire formats, as the real services send them."""

from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias

import msgspec

from hermes.testing.scripted_responses import ScriptedResponse, ServedCall, pieces

Format: TypeAlias = Literal["chat", "responses", "anthropic"]


def render(
    wire: Format, reply: ScriptedResponse, model: str, number: int
) -> list[bytes]:
    """Returns the events of one reply; together they are the response body."""
    return list(_RENDERERS[wire](reply, model, number))


def render_whole(
    wire: Format, reply: ScriptedResponse, model: str, number: int
) -> bytes:
    """Returns the reply as one JSON object, as a server without streaming sends it."""
    if wire == "anthropic":
        return _json(_anthropic_whole(reply, model, number))
    if wire == "responses":
        (*_, last) = _responses(reply, model, number)
        ended: dict[str, Any] = msgspec.json.decode(last.partition(b"data: ")[2])
        return _json(ended["response"])
    return _json(_chat_whole(reply, model, number))


def error_body(wire: Format, status: int, message: str, code: str) -> bytes:
    """Returns the body of an error status."""
    if wire == "anthropic":
        kinds = {
            400: "invalid_request_error",
            401: "authentication_error",
            402: "billing_error",
        }
        kinds |= {
            403: "permission_error",
            404: "not_found_error",
            429: "rate_limit_error",
            529: "overloaded_error",
        }
        kind = code or kinds.get(status, "api_error")
        return _json(
            {
                "type": "error",
                "error": {"type": kind, "message": message},
                "request_id": "req_1",
            }
        )
    kind = "invalid_request_error" if status < 500 else "server_error"
    return _json(
        {
            "error": {
                "message": message,
                "type": kind,
                "param": None,
                "code": code or None,
            }
        }
    )


def error_frame(wire: Format, message: str) -> bytes:
    """Returns an error event inside a stream."""
    if wire == "anthropic":
        return _named(
            {"type": "error", "error": {"type": "overloaded_error", "message": message}}
        )
    if wire == "responses":
        failed = {"code": "server_error", "message": message}
        return _named(
            {
                "type": "response.failed",
                "response": {"status": "failed", "error": failed},
            }
        )
    return _data({"error": {"message": message, "type": "server_error", "code": 502}})


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value)


def _data(value: dict[str, Any]) -> bytes:
    return b"data: " + _json(value) + b"\n\n"


def _named(value: dict[str, Any]) -> bytes:
    return f"event: {value['type']}\n".encode() + _data(value)


def _call_id(call: ServedCall, prefix: str, number: int, index: int) -> str:
    return call.id or f"{prefix}_{number}_{index}"


def _chat(reply: ScriptedResponse, model: str, number: int) -> Iterator[bytes]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        return _data(
            {
                **head,
                "choices": [
                    {
                        "index": 0,
                        "delta": delta,
                        "logprobs": None,
                        "finish_reason": finish,
                    }
                ],
            }
        )

    head = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion.chunk",
        "created": 1_800_000_000,
        "model": model,
    }
    yield b": keep-alive\n\n"
    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(reply.reasoning, reply.chunk):
        yield chunk({"reasoning_content": piece})
    for piece in pieces(reply.text, reply.chunk):
        yield chunk({"content": piece})
    for index, call in enumerate(reply.calls):
        start: dict[str, Any] = {"name": call.name, "arguments": ""}
        name = _call_id(call, "call", number, index)
        yield chunk(
            {
                "tool_calls": [
                    {"index": index, "id": name, "type": "function", "function": start}
                ]
            }
        )
        for piece in pieces(call.arguments, reply.chunk):
            yield chunk(
                {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            )
    usual = "tool_calls" if reply.calls else "stop"
    yield chunk(
        {},
        {"stop": usual, "length": "length", "refused": "content_filter"}[reply.finish],
    )
    yield _data({**head, "choices": [], "usage": _chat_usage(reply)})
    yield b"data: [DONE]\n\n"


def _chat_usage(reply: ScriptedResponse) -> dict[str, Any]:
    return {
        "prompt_tokens": reply.input_tokens,
        "completion_tokens": reply.output_tokens,
        "total_tokens": reply.input_tokens + reply.output_tokens,
        "prompt_tokens_details": {"cached_tokens": reply.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": reply.reasoning_tokens},
    }


def _chat_whole(reply: ScriptedResponse, model: str, number: int) -> dict[str, Any]:
    head = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1_800_000_000,
        "model": model,
    }
    message: dict[str, Any] = {
        "role": "assistant",
        "content": reply.text,
        "reasoning_content": reply.reasoning,
    }
    calls = [
        {
            "id": _call_id(call, "call", number, index),
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for index, call in enumerate(reply.calls)
    ]
    finish = {
        "stop": "tool_calls" if calls else "stop",
        "length": "length",
        "refused": "content_filter",
    }[reply.finish]
    choice = {
        "index": 0,
        "message": {**message, "tool_calls": calls or None},
        "finish_reason": finish,
    }
    return {**head, "choices": [choice], "usage": _chat_usage(reply)}


def _responses(reply: ScriptedResponse, model: str, number: int) -> Iterator[bytes]:
    return _ResponsesWriter(reply, model, number).events()


class _ResponsesWriter:
    """Writes one Responses stream; tracks the sequence number and the items."""

    def __init__(self, reply: ScriptedResponse, model: str, number: int) -> None:
        self._reply = reply
        self._number = number
        self._sequence = -1
        self._items: list[dict[str, Any]] = []
        self._head: dict[str, Any] = {
            "id": f"resp_{number}",
            "object": "response",
            "model": model,
            "tools": [],
        }
        self._head.update(
            created_at=1_800_000_000,
            parallel_tool_calls=True,
            tool_choice="auto",
            metadata={},
        )

    def _event(self, kind: str, **fields: Any) -> bytes:
        self._sequence += 1
        return _named({"type": kind, "sequence_number": self._sequence, **fields})

    def events(self) -> Iterator[bytes]:
        reply = self._reply
        begun: dict[str, Any] = {**self._head, "status": "in_progress", "output": []}
        yield self._event("response.created", response=begun)
        yield self._event("response.in_progress", response=begun)
        if reply.reasoning:
            yield from self._thinking()
        if reply.text or not reply.calls:
            yield from self._words()
        for index, call in enumerate(reply.calls):
            yield from self._call(call, index)
        details = {
            "length": {"reason": "max_output_tokens"},
            "refused": {"reason": "content_filter"},
        }.get(reply.finish)
        usage = {
            "input_tokens": reply.input_tokens,
            "input_tokens_details": {
                "cached_tokens": reply.cached_tokens,
                "cache_write_tokens": 0,
            },
            "output_tokens": reply.output_tokens,
            "output_tokens_details": {"reasoning_tokens": reply.reasoning_tokens},
            "total_tokens": reply.input_tokens + reply.output_tokens,
        }
        status = "incomplete" if details else "completed"
        ended = {
            **self._head,
            "status": status,
            "incomplete_details": details,
            "output": self._items,
            "usage": usage,
        }
        yield self._event(f"response.{status}", response=ended)

    def _item(
        self, begun: dict[str, Any], ended: dict[str, Any], inside: Iterator[bytes]
    ) -> Iterator[bytes]:
        index = len(self._items)
        yield self._event("response.output_item.added", output_index=index, item=begun)
        yield from inside
        self._items.append(ended)
        yield self._event("response.output_item.done", output_index=index, item=ended)

    def _thinking(self) -> Iterator[bytes]:
        name = f"rs_{self._number}"
        begun: dict[str, Any] = {"id": name, "type": "reasoning", "summary": []}
        summary = [{"type": "summary_text", "text": self._reply.reasoning}]
        ended = {
            **begun,
            "summary": summary,
            "encrypted_content": self._reply.signature,
        }
        place = {"item_id": name, "output_index": 0, "summary_index": 0}

        def inside() -> Iterator[bytes]:
            empty = {"type": "summary_text", "text": ""}
            yield self._event(
                "response.reasoning_summary_part.added", **place, part=empty
            )
            for piece in pieces(self._reply.reasoning, self._reply.chunk):
                yield self._event(
                    "response.reasoning_summary_text.delta", **place, delta=piece
                )
            yield self._event(
                "response.reasoning_summary_text.done",
                **place,
                text=self._reply.reasoning,
            )
            yield self._event(
                "response.reasoning_summary_part.done", **place, part=summary[0]
            )

        return self._item(begun, ended, inside())

    def _words(self) -> Iterator[bytes]:
        name, text = f"msg_{self._number}", self._reply.text
        begun: dict[str, Any] = {
            "id": name,
            "type": "message",
            "status": "in_progress",
            "role": "assistant",
            "content": [],
        }
        part = {"type": "output_text", "text": text, "annotations": []}
        ended = {**begun, "status": "completed", "content": [part]}
        place = {"item_id": name, "output_index": len(self._items), "content_index": 0}

        def inside() -> Iterator[bytes]:
            yield self._event(
                "response.content_part.added", **place, part={**part, "text": ""}
            )
            for piece in pieces(text, self._reply.chunk):
                yield self._event(
                    "response.output_text.delta", **place, delta=piece, logprobs=[]
                )
            yield self._event(
                "response.output_text.done", **place, text=text, logprobs=[]
            )
            yield self._event("response.content_part.done", **place, part=part)

        return self._item(begun, ended, inside())

    def _call(self, call: ServedCall, index: int) -> Iterator[bytes]:
        name = f"fc_{self._number}_{index}"
        named = {
            "call_id": _call_id(call, "call", self._number, index),
            "name": call.name,
        }
        named |= {"namespace": call.namespace} if call.namespace else {}
        begun: dict[str, Any] = {
            "id": name,
            "type": "function_call",
            "status": "in_progress",
            **named,
            "arguments": "",
        }
        ended = {**begun, "status": "completed", "arguments": call.arguments}
        place = {"item_id": name, "output_index": len(self._items)}

        def inside() -> Iterator[bytes]:
            for piece in pieces(call.arguments, self._reply.chunk):
                yield self._event(
                    "response.function_call_arguments.delta", **place, delta=piece
                )
            done = {**place, "arguments": call.arguments, "name": call.name}
            yield self._event("response.function_call_arguments.done", **done)

        return self._item(begun, ended, inside())


def _anthropic(reply: ScriptedResponse, model: str, number: int) -> Iterator[bytes]:
    fresh = reply.input_tokens - reply.cached_tokens - reply.cache_write_tokens
    usage = {
        "input_tokens": fresh,
        "cache_creation_input_tokens": reply.cache_write_tokens,
        "cache_read_input_tokens": reply.cached_tokens,
    }
    message: dict[str, Any] = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
    }
    message |= {
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": 1},
    }
    yield _named({"type": "message_start", "message": message})
    yield _named({"type": "ping"})
    for index, (start, deltas) in enumerate(_anthropic_blocks(reply, number)):
        yield _named(
            {"type": "content_block_start", "index": index, "content_block": start}
        )
        for delta in deltas:
            yield _named(
                {"type": "content_block_delta", "index": index, "delta": delta}
            )
        yield _named({"type": "content_block_stop", "index": index})
    usual = "tool_use" if reply.calls else "end_turn"
    reason = {"stop": usual, "length": "max_tokens", "refused": "refusal"}[reply.finish]
    final: dict[str, Any] = {"output_tokens": reply.output_tokens}
    if reply.reasoning_tokens:
        final["output_tokens_details"] = {"thinking_tokens": reply.reasoning_tokens}
    yield _named(
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": final,
        }
    )
    yield _named({"type": "message_stop"})


def _anthropic_whole(
    reply: ScriptedResponse, model: str, number: int
) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if reply.reasoning:
        content.append(
            {
                "type": "thinking",
                "thinking": reply.reasoning,
                "signature": reply.signature,
            }
        )
    if reply.text:
        content.append({"type": "text", "text": reply.text})
    for index, call in enumerate(reply.calls):
        named = {
            "type": "tool_use",
            "id": _call_id(call, "toolu", number, index),
            "name": call.name,
        }
        content.append({**named, "input": msgspec.Raw(call.arguments.encode())})
    reason = {
        "stop": "tool_use" if reply.calls else "end_turn",
        "length": "max_tokens",
        "refused": "refusal",
    }
    usage: dict[str, Any] = {
        "input_tokens": reply.input_tokens
        - reply.cached_tokens
        - reply.cache_write_tokens,
        "cache_creation_input_tokens": reply.cache_write_tokens,
        "cache_read_input_tokens": reply.cached_tokens,
        "output_tokens": reply.output_tokens,
        "output_tokens_details": {"thinking_tokens": reply.reasoning_tokens},
    }
    head = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
    }
    return {
        **head,
        "content": content,
        "stop_reason": reason[reply.finish],
        "stop_sequence": None,
        "usage": usage,
    }


def _anthropic_blocks(
    reply: ScriptedResponse, number: int
) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    if reply.reasoning:
        deltas = [
            {"type": "thinking_delta", "thinking": piece}
            for piece in pieces(reply.reasoning, reply.chunk)
        ]
        deltas.append({"type": "signature_delta", "signature": reply.signature})
        yield {"type": "thinking", "thinking": "", "signature": ""}, deltas
    if reply.text:
        yield (
            {"type": "text", "text": ""},
            [
                {"type": "text_delta", "text": piece}
                for piece in pieces(reply.text, reply.chunk)
            ],
        )
    for index, call in enumerate(reply.calls):
        parts = (
            ["", *pieces(call.arguments, reply.chunk)] if call.arguments != "{}" else []
        )
        start: dict[str, Any] = {
            "type": "tool_use",
            "id": _call_id(call, "toolu", number, index),
            "name": call.name,
            "input": {},
        }
        yield (
            start,
            [{"type": "input_json_delta", "partial_json": part} for part in parts],
        )


_RENDERERS: dict[Format, Callable[[ScriptedResponse, str, int], Iterator[bytes]]] = {
    "chat": _chat,
    "responses": _responses,
    "anthropic": _anthropic,
}
