"""The local model that calls tools by itself, on a scripted engine."""

from collections.abc import AsyncGenerator
from typing import Any

import msgspec
import pytest

from hermes.errors import ModelError
from hermes.providers.embedded import engine_wire
from hermes.providers.embedded.adapter_choice import (
    AdapterMemory,
    AdapterRecord,
    choose_adapter,
    possible_adapters,
)
from hermes.providers.embedded.completion import CompletionEnded
from hermes.providers.embedded.gguf_header import GgufFacts
from hermes.providers.embedded.native_model import NativeToolModel
from hermes.providers.embedded.native_prompt import (
    SYSTEM,
    NativeWindow,
    fitting_tools,
    newest,
)
from hermes.schema.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolFinished,
    UserMessage,
)
from hermes.schema.model import (
    ModelEvent,
    ModelRequest,
    ReplyFinished,
    TextDelta,
    ToolCallStarted,
)
from hermes.schema.tool_spec import ToolSpec

READ = ToolSpec(
    name="read_file",
    description="Reads a file. Long files are read in parts.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}},
)
DOTTED = ToolSpec(name="mcp.a.b", description="Does it.", parameters={})


class ScriptedChat:
    """Answers each request with the next list of deltas; an error is raised instead."""

    def __init__(self, *replies: list[dict[str, Any]] | ModelError) -> None:
        self._replies = list(replies)
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str] = []

    async def chat(
        self, body: bytes, *, state_key: str = "", max_tokens: int
    ) -> AsyncGenerator[engine_wire.ChatChunk | CompletionEnded, None]:
        assert max_tokens > 0
        self.bodies.append(msgspec.json.decode(body))
        self.keys.append(state_key)
        reply = self._replies.pop(0)
        if isinstance(reply, ModelError):
            raise reply
        is_call = any("tool_calls" in delta for delta in reply)
        for delta in reply:
            yield _chunk({"index": 0, "delta": delta})
        finish = "tool_calls" if is_call else "stop"
        yield _chunk({"index": 0, "delta": {"content": None}, "finish_reason": finish})
        yield CompletionEnded(input_tokens=10, output_tokens=3)

    async def warm(self) -> None: ...

    async def close(self) -> None: ...


def _chunk(choice: dict[str, Any]) -> engine_wire.ChatChunk:
    data = msgspec.json.encode({"choices": [choice]})
    return engine_wire.ChatChunk(id=1, data=msgspec.Raw(data))


def call_delta(name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"tool_calls": [{"index": 0, "id": "c1", "function": function}]}


def model(engine: ScriptedChat, context_tokens: int = 8192) -> NativeToolModel:
    return NativeToolModel(
        engine, name="m", context_tokens=context_tokens, new_id=lambda: "1"
    )


async def ask(
    engine: ScriptedChat, *messages: Message, tools: tuple[ToolSpec, ...] = (READ,)
) -> list[ModelEvent]:
    request = ModelRequest(
        system=("Long rules for large models.", "Today is Monday. Folder: /w."),
        messages=messages,
        tools=tools,
    )
    return [event async for event in model(engine).stream(request)]


def finished(events: list[ModelEvent]) -> AssistantMessage:
    assert isinstance(events[-1], ReplyFinished)
    return events[-1].message


HELLO = UserMessage(text="hello")


async def test_text_is_streamed_and_costs_nothing() -> None:
    events = await ask(ScriptedChat([{"content": "Hi "}, {"content": "you"}]), HELLO)
    assert events[:2] == [TextDelta("Hi "), TextDelta("you")]
    message = finished(events)
    assert (message.text, message.finish) == ("Hi you", "stop")
    assert (message.provider, message.model) == ("embedded", "m")
    assert message.usage is not None
    assert (message.usage.input_tokens, message.usage.cost_usd) == (10, 0.0)


async def test_a_native_call_is_a_call_and_names_are_our_own() -> None:
    engine = ScriptedChat([call_delta("mcp__a__b", '{"x":1}')])
    events = await ask(engine, HELLO, tools=(READ, DOTTED))
    assert ToolCallStarted("c1", "mcp.a.b") in events
    assert finished(events).tool_calls[0].name == "mcp.a.b"
    names = [tool["function"]["name"] for tool in engine.bodies[0]["tools"]]
    assert names == ["read_file", "mcp__a__b"]


async def test_a_call_written_as_text_is_not_shown_but_made() -> None:
    pieces = ["```json\n", '{"name": "read_file",', ' "arguments": {"path": "a"}}', "\n```"]  # fmt: skip
    events = await ask(ScriptedChat([{"content": one} for one in pieces]), HELLO)
    assert events[0] == ToolCallStarted("local-1", "read_file")
    message = finished(events)
    assert (message.text, message.finish) == ("", "tool_calls")
    assert message.tool_calls[0].arguments == '{"path":"a"}'


async def test_text_that_only_looked_like_a_call_is_shown_at_the_end() -> None:
    events = await ask(ScriptedChat([{"content": '{"a": '}, {"content": "1}"}]), HELLO)
    assert events[0] == TextDelta('{"a": 1}')
    assert finished(events).text == '{"a": 1}'


async def test_the_prompt_is_short_and_begins_the_same_every_day() -> None:
    engine = ScriptedChat([{"content": "a"}], [{"content": "b"}])
    await ask(engine, HELLO)
    await ask(engine, UserMessage(text="another day"))
    first, second = (body["messages"] for body in engine.bodies)
    assert first[0] == second[0] == {"role": "system", "content": SYSTEM}
    assert first[1]["content"] == "[Today is Monday. Folder: /w.]\n\nhello"
    assert engine.keys[0] == engine.keys[1] != ""
    description = engine.bodies[0]["tools"][0]["function"]["description"]
    assert description == "Reads a file."


async def test_a_request_that_is_too_long_is_tried_with_fewer_messages() -> None:
    too_long = ModelError("too long", reason="too_long")
    engine = ScriptedChat(too_long, [{"content": "ok"}])
    older = [UserMessage(text="x" * 3_000), AssistantMessage(text="y" * 3_000)] * 3
    events = await ask(engine, *older, HELLO)
    assert finished(events).text == "ok"
    sizes = [len(msgspec.json.encode(body)) for body in engine.bodies]
    assert sizes[1] < sizes[0]
    with pytest.raises(ModelError, match="too long"):
        await ask(ScriptedChat(too_long, too_long, too_long), HELLO)


def test_the_newest_messages_stay_and_a_result_keeps_its_call() -> None:
    call = AssistantMessage(
        text="", tool_calls=(ToolCall(id="c", name="read_file", arguments="{}"),)
    )
    result = ToolFinished(call_id="c", name="read_file", text="z" * 90_000)
    old = UserMessage(text="old " * 500)
    kept = newest((old, HELLO, call, result), 1_000)
    assert [type(one) for one in kept] == [UserMessage, AssistantMessage, ToolFinished]
    assert kept[0] == HELLO
    assert len(kept[2].text) < 800
    assert "characters left out" in kept[2].text
    assert newest((old,), 10)[0].text.startswith("old")


def test_usual_tools_come_first_and_only_what_fits_is_offered() -> None:
    many = [ToolSpec(name=f"t{n}", description="x" * 200, parameters={}) for n in range(50)]  # fmt: skip
    chosen = fitting_tools([*many, READ], 2_000)
    assert chosen[0].name == "read_file"
    assert 5 < len(chosen) < 10
    window = NativeWindow.of(8192)
    assert window.smaller().messages < window.messages
    assert window.smaller().tools == window.tools


def facts(parameters: int, *, has_tools: bool) -> GgufFacts:
    return GgufFacts(
        name="", architecture="qwen3", parameters=parameters, context_tokens=0,
        has_template=True, has_tools=has_tools,
    )  # fmt: skip


def test_only_a_large_file_with_a_tool_template_may_be_native() -> None:
    assert possible_adapters(facts(3_090_000_000, has_tools=True))[0] == "native"
    assert possible_adapters(facts(3_090_000_000, has_tools=False))[0] == "lines"
    assert possible_adapters(facts(1_780_000_000, has_tools=True))[0] == "lines"


READS = [call_delta("read_file", '{"path": "notes.md"}')]
TELLS = [{"content": "It says to call Ana about the bicycle."}]
FOUR = [{"content": "4"}]


@pytest.mark.parametrize(
    ("replies", "reason"),
    [
        ([READS, TELLS, FOUR], ""),
        ([TELLS], "native: it did not call the tool that reads a file"),
        ([[call_delta("read_file", "{}")]], "native: it called the tool with wrong arguments"),
        ([READS, READS], "native: it did not use what the tool returned"),
        ([READS, TELLS, READS], "native: it called a tool where none was needed"),
    ],
)  # fmt: skip
async def test_the_self_test_finds_who_can_use_tools(
    replies: list[Any], reason: str
) -> None:
    engine = ScriptedChat(*replies)
    record = await choose_adapter(("native", "chat"), lambda _: model(engine))
    assert record == AdapterRecord(adapter="chat" if reason else "native", reason=reason)  # fmt: skip


def test_a_record_survives_and_a_damaged_memory_is_an_empty_one(tmp_path: Any) -> None:
    memory = AdapterMemory(tmp_path / "models")
    assert memory.get("a") is None
    memory.put("a", AdapterRecord(adapter="native"))
    memory.put("b", AdapterRecord(adapter="chat", reason="x"))
    assert AdapterMemory(tmp_path / "models").get("a") == AdapterRecord(adapter="native")  # fmt: skip
    (tmp_path / "models/adapters.json").write_text("[]")
    assert memory.get("a") is None
    memory.put("c", AdapterRecord(adapter="lines"))
    assert memory.get("c") == AdapterRecord(adapter="lines")
