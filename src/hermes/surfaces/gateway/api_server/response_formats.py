"""The two wire formats of OpenAI's answers, whole and as a stream of events."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from hermes.schema.messages import ToolCall, Usage
from hermes.surfaces.gateway.api_server.access_control import error_body
from hermes.surfaces.gateway.api_server.request_formats import ApiRequest
from hermes.surfaces.gateway.api_server.turn_stream import STOPPED, End
from hermes.surfaces.web.draining import RETRY_AFTER_S
from hermes.surfaces.web.errors import Refusal

DONE = b"data: [DONE]\n\n"
STILL_WORKING = b": still working\n\n"
_FINISH = {
    "done": "stop",
    "interrupted": "stop",
    "refused": "content_filter",
    "tool_calls": "tool_calls",
}


def failure(end: End) -> Refusal | None:
    """The error of a turn, as the client sees it; None for none."""
    if end.reason in _FINISH:
        return None
    if end.reason == "budget":
        return Refusal(
            429,
            end.detail or "A spending cap is reached.",
            code="insufficient_quota",
        )
    if end.reason == STOPPED:
        return Refusal(
            503,
            "Hermes stopped before the answer was complete.",
            "Try again in a few seconds.",
            code="server_stopping",
            wait=RETRY_AFTER_S,
        )
    return Refusal(
        502, end.detail or f"The turn ended: {end.reason}.", code=f"turn_{end.reason}"
    )


def _finish(end: End) -> str:
    if end.cut and end.reason == "done":
        return "length"
    return _FINISH[end.reason]


def event(data: Any, name: str = "") -> bytes:
    """One event of a stream."""
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + msgspec.json.encode(data) + b"\n\n"


class ChatAnswer:
    """`chat.completion` and its chunks."""

    def __init__(self, request: ApiRequest, name: str, created: float) -> None:
        self._request = request
        self._base = {
            "id": f"chatcmpl-{name}",
            "created": int(created),
            "model": request.model,
        }

    def whole(self, text: str, end: End) -> dict[str, Any]:
        """The whole answer."""
        message: dict[str, Any] = {
            "role": "assistant",
            "content": text if text or not end.calls else None,
            "refusal": None,
        }
        if end.calls:
            message["tool_calls"] = _chat_calls(end.calls)
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": _finish(end),
            "logprobs": None,
        }
        return self._base | {
            "object": "chat.completion",
            "choices": [choice],
            "usage": _chat_usage(end.usage),
        }

    def begin(self) -> Iterator[bytes]:
        yield self._chunk({"role": "assistant", "content": ""})

    def more(self, text: str) -> Iterator[bytes]:
        yield self._chunk({"content": text})

    def end(self, text: str, end: End) -> Iterator[bytes]:
        del text
        for index, call in enumerate(_chat_calls(end.calls)):
            yield self._chunk({"tool_calls": [{"index": index} | call]})
        yield self._chunk({}, _finish(end))
        if self._request.include_usage:
            yield event(
                self._base
                | {
                    "object": "chat.completion.chunk",
                    "choices": [],
                    "usage": _chat_usage(end.usage),
                }
            )
        yield DONE

    def failed(self, error: Refusal) -> Iterator[bytes]:
        yield event(error_body(error))
        yield DONE

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        data: dict[str, Any] = self._base | {
            "object": "chat.completion.chunk",
            "choices": [choice],
        }
        if self._request.include_usage:  # only the last chunk has it
            data["usage"] = None
        return event(data)


class ResponseAnswer:
    """`response` and its events."""

    def __init__(self, request: ApiRequest, name: str, created: float) -> None:
        self._request = request
        self._name = name
        self._created = created
        self._count = 0

    def whole(self, text: str, end: End) -> dict[str, Any]:
        """The whole answer."""
        status = "incomplete" if end.cut else "completed"
        details = (
            {"incomplete_details": {"reason": "max_output_tokens"}} if end.cut else {}
        )
        output = [self._item(text, status)] if text or not end.calls else []
        output += [_call_item(call) for call in end.calls]
        return self._response(status, output, end.usage) | details

    def begin(self) -> Iterator[bytes]:
        for kind in ("response.created", "response.in_progress"):
            yield self._event(kind, response=self._response("in_progress", [], None))
        yield self._event(
            "response.output_item.added",
            output_index=0,
            item=self._item("", "in_progress"),
        )
        yield self._event(
            "response.content_part.added", **self._place(), part=_part("")
        )

    def more(self, text: str) -> Iterator[bytes]:
        yield self._event(
            "response.output_text.delta", **self._place(), delta=text, logprobs=[]
        )

    def end(self, text: str, end: End) -> Iterator[bytes]:
        yield self._event(
            "response.output_text.done", **self._place(), text=text, logprobs=[]
        )
        yield self._event(
            "response.content_part.done", **self._place(), part=_part(text)
        )
        status = "incomplete" if end.cut else "completed"
        yield self._event(
            "response.output_item.done", output_index=0, item=self._item(text, status)
        )
        for index, call in enumerate(end.calls, 1):
            yield from self._call(index, call)
        yield self._event(f"response.{status}", response=self.whole(text, end))

    def _call(self, index: int, call: ToolCall) -> Iterator[bytes]:
        place: dict[str, Any] = {"output_index": index, "item_id": f"fc_{call.id}"}
        begun = _call_item(call) | {"arguments": "", "status": "in_progress"}
        yield self._event("response.output_item.added", output_index=index, item=begun)
        arguments = call.arguments
        yield self._event(
            "response.function_call_arguments.delta", **place, delta=arguments
        )
        yield self._event(
            "response.function_call_arguments.done",
            **place,
            arguments=arguments,
            name=call.name,
        )
        yield self._event(
            "response.output_item.done", output_index=index, item=_call_item(call)
        )

    def failed(self, error: Refusal) -> Iterator[bytes]:
        details = {"code": error.code or "server_error", "message": error.error}
        response = self._response("failed", [], None) | {"error": details}
        yield self._event("response.failed", response=response)

    def unfinished(self) -> dict[str, Any]:
        """A response whose turn is still running."""
        return self._response("in_progress", [], None)

    def broken(self, error: Refusal) -> dict[str, Any]:
        """A response whose turn failed."""
        details = {"code": error.code or "server_error", "message": error.error}
        return self._response("failed", [], None) | {"error": details}

    def _event(self, kind: str, **more: Any) -> bytes:
        data = {"type": kind, "sequence_number": self._count} | more
        self._count += 1
        return event(data, kind)

    def _place(self) -> dict[str, Any]:
        return {"item_id": self._item_id, "output_index": 0, "content_index": 0}

    @property
    def _item_id(self) -> str:
        return f"msg_{self._name.removeprefix('resp_')}"

    def _item(self, text: str, status: str) -> dict[str, Any]:
        content = [_part(text)] if status != "in_progress" else []
        return {
            "id": self._item_id,
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": content,
        }

    def _response(
        self, status: str, output: list[dict[str, Any]], usage: Usage | None
    ) -> dict[str, Any]:
        request = self._request
        return {
            "id": self._name,
            "object": "response",
            "created_at": int(self._created),
            "status": status,
            "error": None,
            "incomplete_details": None,
            "instructions": request.instructions or None,
            "metadata": request.metadata,
            "model": request.model,
            "output": output,
            "parallel_tool_calls": True,
            "previous_response_id": request.previous or None,
            "temperature": None,
            "tool_choice": "auto",
            "tools": [],
            "top_p": None,
            "usage": _response_usage(usage) if usage else None,
        }


def _chat_calls(calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
    return [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in calls
    ]


def _call_item(call: ToolCall) -> dict[str, Any]:
    return {
        "id": f"fc_{call.id}",
        "type": "function_call",
        "status": "completed",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
    }


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _chat_usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def _response_usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
