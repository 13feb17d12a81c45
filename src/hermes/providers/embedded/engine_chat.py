"""Runs a request with tools in the engine's child: the library applies the model's template and parses its calls."""

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from hermes.primitives.untyped import object_of
from hermes.providers.embedded import engine_wire

_TOO_LONG = "exceed_context_size_error"


def run_chat(
    server: Any,
    job: engine_wire.ChatJob,
    slot: int,
    report: Callable[[engine_wire.Report], None],
    cancelled: Callable[[], bool],
) -> engine_wire.GenerationEnded | engine_wire.Failed:
    """Runs one request to its end and sends its chunks as they arrive."""
    reply = _ChatReply(job, report, cancelled)
    if not cancelled():
        server.handle_chat_completions(_request(job, slot), reply.take)
    return reply.outcome()


def _request(job: engine_wire.ChatJob, slot: int) -> dict[str, Any]:
    """Adds the options of this engine to the request."""
    body = msgspec.json.decode(job.body, type=dict[str, Any])
    return (
        body
        | {
            "stream": True,
            "max_tokens": min(job.max_tokens, body.get("max_tokens") or job.max_tokens),
            "temperature": body.get("temperature", 0.0),
            "return_progress": True,  # a chunk per batch, so that a prompt can be cancelled too
            "cache_prompt": True,
            "id_slot": slot,
            "chat_template_kwargs": {"enable_thinking": False},  # too slow here
        }
    )


class _ChatReply:
    """Passes on the chunks of one reply and records how it ended."""

    def __init__(
        self,
        job: engine_wire.ChatJob,
        report: Callable[[engine_wire.Report], None],
        cancelled: Callable[[], bool],
    ) -> None:
        self._id = job.id
        self._report = report
        self._cancelled = cancelled
        self._timings: dict[str, Any] = {}
        self._finish: Literal["stop", "length"] = "stop"
        self._failure: engine_wire.Failed | None = None

    def take(self, chunk: dict[str, Any]) -> bool:
        """Handles a chunk. True stops the generation."""
        if "error" in chunk:
            self._failure = self._failed(chunk["error"])
            return True
        self._timings = chunk.get("timings") or self._timings
        for choice in chunk.get("choices", ()):
            if choice.get("finish_reason") == "length":
                self._finish = "length"
        if not chunk.get("prompt_progress"):
            data = msgspec.Raw(msgspec.json.encode(chunk))
            self._report(engine_wire.ChatChunk(id=self._id, data=data))
        return self._cancelled()

    def outcome(self) -> engine_wire.GenerationEnded | engine_wire.Failed:
        """Returns how the reply ended."""
        if self._failure is not None:
            return self._failure
        cached = int(self._timings.get("cache_n", 0))
        return engine_wire.GenerationEnded(
            id=self._id,
            finish="cancelled" if self._cancelled() else self._finish,
            input_tokens=int(self._timings.get("prompt_n", 0)) + cached,
            cached_tokens=cached,
            output_tokens=int(self._timings.get("predicted_n", 0)),
        )

    def _failed(self, error: Any) -> engine_wire.Failed:
        details = object_of(error)
        message = str(details.get("message", error))
        reason: Literal["too_long", "engine"] = (
            "too_long" if details.get("type") == _TOO_LONG else "engine"
        )
        return engine_wire.Failed(id=self._id, reason=reason, message=message)
