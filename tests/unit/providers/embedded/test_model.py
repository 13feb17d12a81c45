"""`EmbeddedModel` on a scripted engine: lines become calls, texts stream, guards hold, errors are clear."""

import datetime as dt
from collections.abc import AsyncGenerator
from typing import Literal

import msgspec
import pytest
from tests.fakes.simple_tools import WORKSHOP_SPECS
from typing_extensions import override

from hermes.errors import ModelError
from hermes.providers.embedded import EmbeddedModel, small_prompt
from hermes.providers.embedded.completion import (
    ChatTurn,
    Completion,
    CompletionEnded,
    CompletionText,
)
from hermes.providers.embedded.decision import chat_grammar
from hermes.providers.embedded.folder_view import NO_FOLDER, FolderView
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
    ReasoningPiece,
    ReplyFinished,
    TextDelta,
    ToolCallStarted,
)


class ScriptedEngine:
    """Continues prompts with what the test wrote down, a few characters at a time. A decision is `work` unless told."""

    def __init__(
        self,
        *texts: str,
        finish: Literal["stop", "length"] = "stop",
        too_long: int = 0,
        decision: str = "work",
        obeys_grammar: bool = True,
    ) -> None:
        self.texts = list(texts)
        self.finish: Literal["stop", "length"] = finish
        self.too_long = too_long
        self.decision = decision
        self.obeys_grammar = obeys_grammar
        self.prompts: list[Completion] = []
        self.decided: list[Completion] = []

    async def complete(
        self, prompt: Completion
    ) -> AsyncGenerator[CompletionText | CompletionEnded, None]:
        is_open = prompt.grammar == chat_grammar(None)
        if is_open or prompt.slot == "decide":
            self.decided.append(prompt)
        if prompt.slot == "decide" or (is_open and self.decision == "work"):
            yield CompletionText(self.decision[:2])
            yield CompletionText(self.decision[2:])
            yield CompletionEnded()
            return
        self.prompts.append(prompt)
        if self.too_long:
            self.too_long -= 1
            raise ModelError("too long", reason="too_long")
        text = self.texts.pop(0)
        if prompt.grammar in {chat_grammar("talk"), chat_grammar(None)}:
            text = f"talk: {text}"
        for start in range(0, len(text), 3):
            yield CompletionText(text[start : start + 3])
        yield CompletionEnded(
            finish=self.finish, input_tokens=20, cached_tokens=15, output_tokens=5
        )

    @property
    def turns(self) -> list[tuple[ChatTurn, ...]]:
        """The prompts without the part that never changes."""
        fixed = len(small_prompt.work_prefix())
        return [
            prompt.turns[fixed:] if prompt.slot == "work" else prompt.turns
            for prompt in self.prompts
        ]

    @property
    def grammars(self) -> list[str]:
        return [prompt.grammar for prompt in self.prompts]

    async def warm(self) -> None: ...

    async def close(self) -> None: ...


NOW = dt.datetime(2026, 11, 16, 21, 40, tzinfo=dt.UTC)
DESK = FolderView(
    root="/nowhere/desk", files=("a.txt", "calc.py", "test_calc.py"), folders=("lib",)
)


async def reply(
    engine: ScriptedEngine,
    *messages: Message,
    acts: bool = True,
    view: FolderView = NO_FOLDER,
) -> tuple[list[ModelEvent], AssistantMessage]:
    model = EmbeddedModel(
        engine,
        name="m",
        acts=acts,
        new_id=lambda: "1",
        look_at=lambda _: view,
        now=lambda: NOW,
    )
    request = ModelRequest(system=("be long",), messages=messages, tools=WORKSHOP_SPECS)
    events = [event async for event in model.stream(request)]
    last = events[-1]
    assert isinstance(last, ReplyFinished)
    assert last.message.text == "".join(
        event.text for event in events if isinstance(event, TextDelta)
    )
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


async def test_thinking_that_a_local_model_left_in_its_answer_is_no_text() -> None:
    engine = ScriptedEngine("<think>hm\n\nso</think>\n\nYes.")
    events, message = await reply(engine, UserMessage(text="hi"), acts=False)
    thought = [one.text for one in events if isinstance(one, ReasoningPiece)]
    assert (message.text, message.reasoning) == ("Yes.", "hm\n\nso")
    assert "".join(thought) == message.reasoning


async def test_say_streams_its_text() -> None:
    events, message = await reply(
        ScriptedEngine("say Hello there"), UserMessage(text="look here")
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
    assert engine.grammars[0].startswith("root ::= write | say\n")


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
    _, message = await reply(engine, UserMessage(text="hello world"), acts=False)
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
    assert engine.turns[0][0] == ChatTurn("system", "Write a title.")
    assert engine.prompts[0].slot == "other"


async def test_the_last_answer_after_six_calls_is_told_so() -> None:
    messages: list[Message] = [UserMessage(text="look around")]
    for n in range(6):
        messages += looked(f"{n}.txt", "x", ok=True, call_id=f"c{n}")
    engine = ScriptedEngine("say done")
    await reply(engine, *messages)
    assert engine.grammars[0].startswith("root ::= say\n")
    assert "no more actions" in engine.turns[0][-1].content


async def test_talk_is_a_plain_chat_and_streams() -> None:
    engine = ScriptedEngine("Node.js runs JavaScript.", decision="talk")
    events, message = await reply(engine, UserMessage(text="what is node.js?"))
    assert message.text == "Node.js runs JavaScript."
    assert len([event for event in events if isinstance(event, TextDelta)]) > 3
    (prompt,) = engine.prompts
    assert prompt.slot == "talk"
    assert any("Monday, 16 November 2026" in turn.content for turn in prompt.prefix)
    assert engine.decided == [prompt]
    assert prompt.turns[-1].content == "what is node.js?"


async def test_a_chat_is_asked_once_and_its_first_word_decides() -> None:
    """So that the engine reads nothing twice."""
    engine = ScriptedEngine("Santiago.", decision="talk")
    before = (
        UserMessage(text="what is the capital of Peru?"),
        AssistantMessage(text="Lima."),
    )
    _, message = await reply(engine, *before, UserMessage(text="and of Chile?"))
    assert message.text == "Santiago."
    (prompt,) = engine.prompts
    assert engine.decided == [prompt]
    assert prompt.turns[-2:] == (
        ChatTurn("assistant", "talk: Lima."),
        ChatTurn("user", "and of Chile?"),
    )


class _WithoutGrammars(ScriptedEngine):
    """A server that was taken for one that obeys grammars."""

    @override
    async def complete(
        self, prompt: Completion
    ) -> AsyncGenerator[CompletionText | CompletionEnded, None]:
        self.prompts.append(prompt)
        yield CompletionText(self.texts.pop(0))
        yield CompletionEnded()


async def test_what_is_talk_for_certain_does_not_become_work() -> None:
    engine = _WithoutGrammars("work: hello!")
    _, message = await reply(engine, UserMessage(text="hello"))
    assert message.text == "work: hello!"
    assert len(engine.prompts) == 1


async def test_an_engine_without_grammars_is_asked_apart_from_the_chat() -> None:
    engine = ScriptedEngine("Lima.", decision="talk", obeys_grammar=False)
    await reply(engine, UserMessage(text="what is the capital of Peru?"))
    (decided,), (prompt,) = engine.decided, engine.prompts
    assert decided.slot == "decide"
    assert prompt.turns[-1] == ChatTurn("user", "what is the capital of Peru?")


async def test_piped_text_is_talk_without_asking() -> None:
    engine = ScriptedEngine("The key is missing.")
    text = "what is wrong?\n\nKeyError: 'price' in app.py, see a.txt"
    _, message = await reply(engine, UserMessage(text=text), view=DESK)
    assert message.text == "The key is missing."
    assert engine.decided == []
    assert engine.prompts[0].slot == "talk"


async def test_a_review_begins_with_what_code_found_and_says_so_once() -> None:
    engine = ScriptedEngine("It changes the average.", too_long=1)
    diff = "--- a/pay.py\n+++ b/pay.py\n@@ -3 +3 @@\n-x = t / max(n, 1)\n+x = t / n\n"
    events, message = await reply(engine, UserMessage(text=f"review this\n\n{diff}"))
    assert message.text.startswith("Look at this first:\n- pay.py, line 3: a guard")
    assert "It changes the average." in message.text
    assert message.text.endswith("read the diff, run the tests.")
    said = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert said == message.text
    assert "could go wrong" in engine.prompts[-1].turns[-1].content


async def test_a_named_file_that_exists_is_read_before_the_model_chooses() -> None:
    engine = ScriptedEngine()
    _, message = await reply(engine, UserMessage(text="what is in A.txt?"), view=DESK)
    (call,) = message.tool_calls
    assert (call.name, call.arguments) == ("read_file", '{"path":"a.txt"}')
    assert engine.prompts == []
    assert engine.decided == []


async def test_a_file_that_is_missing_is_reported_in_one_sentence() -> None:
    _, message = await reply(
        ScriptedEngine(), UserMessage(text="what is in budget.xlsx?"), view=DESK
    )
    assert message.text.startswith("There is no budget.xlsx in this folder")
    assert message.tool_calls == ()


async def test_a_new_file_is_written_without_a_look_that_fails() -> None:
    engine = ScriptedEngine("write n.txt:", "write n.txt:\nhello")
    _, message = await reply(engine, UserMessage(text="make n.txt"), view=DESK)
    assert message.tool_calls[0].arguments == '{"path":"n.txt","content":"hello\\n"}'
    assert engine.grammars[1].startswith("root ::= write\n")


async def test_a_follow_up_reads_the_file_of_the_request_before_it() -> None:
    messages = (
        UserMessage(text="show me a.txt"),
        *looked("a.txt", "milk\n", ok=True, call_id="c"),
        AssistantMessage(text="It says milk."),
        UserMessage(text="add honey to it"),
    )
    engine = ScriptedEngine()
    _, message = await reply(engine, *messages, view=DESK)
    assert message.tool_calls[0].arguments == '{"path":"a.txt"}'
    assert engine.decided[0].turns[-1].content == (
        "before: show me a.txt (work)\nadd honey to it"
    )


async def test_a_claim_that_the_log_denies_is_replaced_by_the_truth() -> None:
    messages = (
        UserMessage(text="add x to a.txt"),
        *looked("a.txt", "old\n", ok=True, call_id="named-1"),
    )
    engine = ScriptedEngine("say The list was short. I added x to a.txt. Bye.")
    _, message = await reply(engine, *messages, view=DESK)
    assert "I added" not in message.text
    assert message.text.startswith("The list was short. Bye.")
    assert "I have not changed anything." in message.text


async def test_talk_that_claims_a_change_is_corrected() -> None:
    engine = ScriptedEngine("I have deleted the file a.txt.", decision="talk")
    _, message = await reply(engine, UserMessage(text="away with that"))
    assert message.text.endswith("(Correction: no file was changed.)")


FIXED = "def add(a, b):\n    return a + b\n"


async def test_a_short_code_file_is_repaired_whole() -> None:
    messages = (
        UserMessage(text="fix calc.py"),
        *looked(
            "calc.py", "def add(a, b):\n    return a - b\n", ok=True, call_id="named-1"
        ),
    )
    engine = ScriptedEngine(f"Here it is:\n\n```python\n{FIXED}```\n")
    _, message = await reply(engine, *messages, view=DESK)
    (call,) = message.tool_calls
    assert msgspec.json.decode(call.arguments) == {"path": "calc.py", "content": FIXED}
    broken = ScriptedEngine("```python\ndef add(a, b:\n```", "say I can't repair it.")
    _, message = await reply(broken, *messages, view=DESK)
    assert (message.text, message.tool_calls) == ("I can't repair it.", ())


async def test_without_a_grammar_a_reply_is_read_leniently_and_checked() -> None:
    engine = ScriptedEngine("list lib\nThen I will say more.", obeys_grammar=False)
    _, message = await reply(engine, UserMessage(text="look there"), view=DESK)
    assert message.tool_calls[0].arguments == '{"path":"lib"}'
    engine = ScriptedEngine("read nowhere.txt", obeys_grammar=False)
    _, message = await reply(engine, UserMessage(text="look there"), view=DESK)
    assert message.text == "There is no nowhere.txt here."
    engine = ScriptedEngine("It is a desk.", obeys_grammar=False)
    _, message = await reply(engine, UserMessage(text="look there"), view=DESK)
    assert message.text == "It is a desk."


async def test_a_reply_that_does_not_end_is_ended() -> None:
    events, message = await reply(
        ScriptedEngine("say " + "tick tock " * 300), UserMessage(text="look here")
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


@pytest.mark.parametrize("obeys_grammar", [True, False])
async def test_a_missing_file_that_nobody_named_is_answered_as_talk(
    *, obeys_grammar: bool
) -> None:
    engine = ScriptedEngine(
        "say There is no file called package here.",
        "I can't track parcels.",
        obeys_grammar=obeys_grammar,
    )
    asked = UserMessage(text="Did my parcel arrive?")
    _, message = await reply(engine, asked, view=DESK)
    assert message.text == "I can't track parcels."
    assert [prompt.slot for prompt in engine.prompts] == ["work", "talk"]


async def test_a_missing_file_that_was_asked_for_is_said() -> None:
    engine = ScriptedEngine("say There is no file with invoices here.")
    asked = UserMessage(text="is there a file with invoices?")
    _, message = await reply(engine, asked, view=DESK)
    assert message.text == "There is no file with invoices here."
