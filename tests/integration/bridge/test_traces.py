"""Traces at a loopback OTLP receiver: one per turn, with spans for model calls, tools and children."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from tests.integration.bridge.receiver import Receiver, receiving

from hermes.app import build
from hermes.events import Bus
from hermes.schema.events import SessionCreated, ToolStarted, TurnEnded, TurnStarted
from hermes.schema.messages import (
    AssistantMessage,
    ToolCall,
    ToolFinished,
    Usage,
    UserMessage,
)
from hermes.settings import Home, Secrets, Settings
from hermes.settings.sections import TraceSettings


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as one:
        yield one


class Span:
    """A span as it arrived."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw
        self.name: str = raw.name
        self.attributes = {one.key: _value(one.value) for one in raw.attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return (
        [_value(one) for one in value.array_value.values]
        if kind == "array_value"
        else getattr(value, kind)
    )


def _spans(receiver: Receiver) -> list[Span]:
    found: list[Span] = []
    for request in receiver.requests:
        body = (
            gzip.decompress(request.body)
            if request.body[:2] == b"\x1f\x8b"
            else request.body
        )
        message = ExportTraceServiceRequest.FromString(body)
        found += [
            Span(one)
            for part in message.resource_spans
            for scope in part.scope_spans
            for one in scope.spans
        ]
    return found


def _work(receiver: Receiver, tmp_path: Path, *, contents: bool) -> list[Span]:
    traces = TraceSettings(
        endpoint=receiver.url, headers={"x-key": "is ${OTEL_KEY}"}, contents=contents
    )
    call = ToolCall(id="c1", name="delegate", arguments='{"task": "private task"}')
    usage = Usage(input_tokens=20, output_tokens=8, cost_usd=0.5)
    reply = AssistantMessage(
        text="private words",
        tool_calls=(call,),
        provider="openai",
        model="m-1",
        usage=usage,
    )
    with build(Settings(traces=traces), Home(tmp_path / "home"), bus=Bus()) as app:
        app.go_live(Secrets({"OTEL_KEY": "open"}, {}))
        one = app.begin(SessionCreated(surface="cli", cwd="/")).session
        app.record(one, UserMessage(text="private question"))
        app.record(one, TurnStarted(inputs=(2,)), turn="t1")
        app.record(
            one,
            reply,
            ToolStarted(call_id="c1", name="delegate", arguments=call.arguments),
            turn="t1",
        )
        child = app.begin(
            SessionCreated(
                kind="child", parent=one, root=one, surface="delegate", cwd="/"
            )
        ).session
        app.record(child, TurnStarted(), turn="t2")
        app.record(
            child, AssistantMessage(text="x", provider="openai", model="m-2"), turn="t2"
        )
        app.record(child, TurnEnded(reason="failed", detail="no"), turn="t2")
        app.record(
            one,
            ToolFinished(
                call_id="c1", name="delegate", text="private result", ok=False
            ),
            turn="t1",
        )
        app.record(
            one,
            AssistantMessage(text="done", provider="openai", model="m-1"),
            turn="t1",
        )
        app.record(one, TurnEnded(reason="done", usage=usage), turn="t1")
    return _spans(receiver)


def test_a_turn_is_a_trace_with_model_calls_tools_and_children(
    receiver: Receiver, tmp_path: Path
) -> None:
    spans = _work(receiver, tmp_path, contents=False)
    assert sorted(span.name for span in spans) == [
        "chat m-1", "chat m-1", "chat m-2", "execute_tool delegate", "invoke_agent hermes", "invoke_agent hermes",
    ]  # fmt: skip
    assert len({span.raw.trace_id for span in spans}) == 1
    tool = next(span for span in spans if span.name.startswith("execute_tool"))
    turns = [span for span in spans if span.name.startswith("invoke_agent")]
    root = next(span for span in turns if not span.raw.parent_span_id)
    child = next(span for span in turns if span is not root)
    assert tool.raw.parent_span_id == root.raw.span_id
    assert child.raw.parent_span_id == tool.raw.span_id
    chat = next(
        span
        for span in spans
        if span.name == "chat m-1" and "gen_ai.usage.input_tokens" in span.attributes
    )
    assert chat.raw.parent_span_id == root.raw.span_id
    assert chat.attributes["gen_ai.operation.name"] == "chat"
    assert chat.attributes["gen_ai.provider.name"] == "openai"
    assert (
        chat.attributes["gen_ai.usage.input_tokens"],
        chat.attributes["gen_ai.usage.output_tokens"],
    ) == (20, 8)
    assert tool.attributes["gen_ai.tool.call.id"] == "c1"
    assert (tool.raw.status.code, child.raw.status.code, root.raw.status.code) == (
        2,
        2,
        0,
    )
    assert child.attributes["error.type"] == "failed"
    for span in spans:
        assert (
            root.raw.start_time_unix_nano
            <= span.raw.start_time_unix_nano
            <= span.raw.end_time_unix_nano
        )
    assert receiver.requests[0].headers["x-key"] == "is open"


@pytest.mark.parametrize("contents", [True, False])
def test_what_was_said_is_only_in_there_when_it_is_wanted(
    receiver: Receiver, tmp_path: Path, contents: bool
) -> None:
    spans = _work(receiver, tmp_path, contents=contents)
    everything = " ".join(
        str(value) for span in spans for value in span.attributes.values()
    )
    for words in (
        "private question",
        "private words",
        "private task",
        "private result",
    ):
        assert (words in everything) is contents, words


def test_a_receiver_that_is_not_there_costs_nothing(tmp_path: Path) -> None:
    with receiving() as gone:
        pass
    assert _work(gone, tmp_path, contents=False) == []
