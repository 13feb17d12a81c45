"""`EmbeddedModel` on a scripted engine: lines become calls, texts stream, guards hold, errors are clear."""

from collections.abc import AsyncGenerator

import msgspec
import pytest
from tests.fakes.simple_tools import WORKSHOP_SPECS

from hermes.errors import ModelError
from hermes.providers.embedded import EmbeddedModel, engine_wire
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


class ScriptedEngine:
    """Continues prompts with what the test wrote down, a few characters at a time."""

    def __init__(self, *texts: str, finish: str = "stop", too_long: int = 0) -> None:
        self.texts = list(texts)
        self.finish = finish
        self.too_long = too_long
        self.turns: list[tuple[engine_wire.ChatTurn, ...]] = []
        self.grammars: list[str] = []

    async def generate(
        self,
        turns: tuple[engine_wire.ChatTurn, ...],
        *,
        prefixed: bool,
        grammar: str,
        max_tokens: int,
    ) -> AsyncGenerator[engine_wire.Delta | engine_wire.GenerationEnded, None]:
        self.turns.append(turns)
        self.grammars.append(grammar)
        if self.too_long:
            self.too_long -= 1
            raise ModelError("too long", reason="too_long")
        text = self.texts.pop(0)
        for start in range(0, len(text), 3):
            yield engine_wire.Delta(id=1, text=text[start : start + 3])
        finish = msgspec.convert(
            self.finish, type=engine_wire.GenerationEnded.__annotations__["finish"]
        )
        yield engine_wire.GenerationEnded(
            id=1, finish=finish, input_tokens=20, cached_tokens=15, output_tokens=5
        )

    async def warm(self) -> None: ...

    async def close(self) -> None: ...


async def reply(
    engine: ScriptedEngine, *messages: Message, acts: bool = True
) -> tuple[list[ModelEvent], AssistantMessage]:
    model = EmbeddedModel(engine, name="m", acts=acts, new_id=lambda: "1")
    request = ModelRequest(system=("be long",), messages=messages, tools=WORKSHOP_SPECS)
    events = [event async for event in model.stream(request)]
    last = events[-1]
    assert isinstance(last, ReplyFinished)
    return events, last.message


def looked(
    path: str, text: str, *, ok: bool, call_id: str = "look-1"
) -> tuple[Message, Message]:
    call = ToolCall(
        id=call_id,
        name="read_file",
        arguments=msgspec.json.encode({"path": path}).decode(),
    )
    return AssistantMessage(tool_calls=(call,)), ToolFinished(
        call_id=call_id, name="read_file", text=text, ok=ok
    )


async def test_say_streams_its_text() -> None:
    events, message = await reply(
        ScriptedEngine("say Hello there"), UserMessage(text="hi")
    )
    assert (
        "".join(event.text for event in events if isinstance(event, TextDelta))
        == "Hello there"
    )
    assert (message.text, message.finish, message.provider) == (
        "Hello there",
        "stop",
        "embedded",
    )
    assert message.usage is not None
    assert (
        message.usage.cost_usd,
        message.usage.input_tokens,
        message.usage.output_tokens,
    ) == (0.0, 20, 5)


async def test_a_line_is_an_ordinary_tool_call() -> None:
    events, message = await reply(
        ScriptedEngine("read a.txt"), UserMessage(text="show a.txt")
    )
    (call,) = message.tool_calls
    assert (call.name, call.arguments, message.finish) == (
        "read_file",
        '{"path":"a.txt"}',
        "tool_calls",
    )
    assert events[0] == ToolCallStarted(call.id, "read_file")


async def test_a_write_first_looks_whether_the_file_exists() -> None:
    engine = ScriptedEngine("write n.txt:")
    _, message = await reply(engine, UserMessage(text="make n.txt"))
    (look,) = message.tool_calls
    assert (look.name, look.id) == ("read_file", "look-1")
    engine = ScriptedEngine("write n.txt:\nhello")
    _, message = await reply(
        engine,
        UserMessage(text="make n.txt"),
        *looked("n.txt", "n.txt does not exist.", ok=False),
    )
    assert message.tool_calls[0].arguments == '{"path":"n.txt","content":"hello\\n"}'
    assert len(engine.turns[0]) == 1, "the look is not shown to the model"
    assert engine.grammars[0].startswith("root ::= write\n")


async def test_a_write_onto_an_existing_file_comes_back() -> None:
    engine = ScriptedEngine("append n.txt:\nhello")
    _, message = await reply(
        engine, UserMessage(text="make n.txt"), *looked("n.txt", "old\n", ok=True)
    )
    assert engine.turns[0][-1].content.startswith(
        "n.txt already exists: use append or replace."
    )
    assert message.tool_calls[0].name == "edit_file"
    assert (
        message.tool_calls[0].arguments
        == '{"path":"n.txt","old_text":"old","new_text":"old\\nhello"}'
    )


async def test_a_write_onto_a_file_that_was_read_is_generated_again() -> None:
    engine = ScriptedEngine("write n.txt:", "replace n.txt: old => new")
    messages = (
        UserMessage(text="change n.txt"),
        *looked("n.txt", "old\n", ok=True, call_id="c"),
    )
    _, message = await reply(engine, *messages)
    assert (
        message.tool_calls[0].arguments
        == '{"path":"n.txt","old_text":"old","new_text":"new"}'
    )
    assert engine.grammars[1].startswith("root ::= append | replace | say\n")


async def test_a_write_that_was_cut_short_is_not_a_call() -> None:
    engine = ScriptedEngine("write n.txt:\nhalf of", finish="length")
    _, message = await reply(
        engine,
        UserMessage(text="make n.txt"),
        *looked("n.txt", "n.txt does not exist.", ok=False),
    )
    assert (message.tool_calls, message.finish) == ((), "length")
    assert "nothing of it was done" in message.text


async def test_what_does_not_fit_is_tried_with_less() -> None:
    engine = ScriptedEngine("say ok", too_long=2)
    _, message = await reply(engine, UserMessage(text="9" * 9000))
    assert message.text == "ok"
    assert [sum(len(turn.content) for turn in turns) for turns in engine.turns] == [
        2500,
        1250,
        600,
    ]
    with pytest.raises(ModelError):
        await reply(ScriptedEngine("say ok", too_long=3), UserMessage(text="9" * 9000))


async def test_a_model_that_can_only_talk_gets_no_actions() -> None:
    engine = ScriptedEngine("Hello")
    _, message = await reply(engine, UserMessage(text="hi"), acts=False)
    assert (message.text, message.tool_calls, engine.grammars) == ("Hello", (), [""])
    assert "be long" not in engine.turns[0][0].content


async def test_without_tools_the_system_text_counts() -> None:
    engine = ScriptedEngine("A title")
    model = EmbeddedModel(engine, name="m")
    request = ModelRequest(
        system=("Write a title.",), messages=(UserMessage(text="hi"),)
    )
    events = [event async for event in model.stream(request)]
    assert events[0] == TextDelta("A t")
    assert engine.turns[0][0] == engine_wire.ChatTurn("system", "Write a title.")


async def test_the_last_answer_after_six_calls_is_told_so() -> None:
    messages: list[Message] = [UserMessage(text="look around")]
    for n in range(6):
        messages += looked(f"{n}.txt", "x", ok=True, call_id=f"c{n}")
    engine = ScriptedEngine("say done")
    await reply(engine, *messages)
    assert engine.grammars[0].startswith("root ::= say\n")
    assert "no more actions" in engine.turns[0][-1].content


async def test_a_reply_that_does_not_end_is_ended() -> None:
    events, message = await reply(
        ScriptedEngine("say " + "tick tock " * 300), UserMessage(text="hi")
    )
    assert (
        "".join(event.text for event in events if isinstance(event, TextDelta))
        == message.text
    )
    assert message.text.endswith("[stopped here: the reply did not end by itself]")
    assert len(message.text) < 400
    messages = (
        UserMessage(text="grow n.txt"),
        *looked("n.txt", "1\n", ok=True, call_id="c"),
    )
    _, message = await reply(
        ScriptedEngine("append n.txt:\n" + "1\n2\n" * 300), *messages
    )
    assert message.tool_calls == ()
    assert "nothing of it was done" in message.text
