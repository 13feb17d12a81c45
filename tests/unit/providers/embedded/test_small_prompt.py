"""The prompt: messages of any size fit the window, and the newest part is what stays."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.simple_tools import WORKSHOP_SPECS

from hermes.providers.embedded import small_prompt
from hermes.providers.embedded.conversation import read_messages
from hermes.providers.embedded.line_protocol import parse_line
from hermes.providers.embedded.tool_verbs import OfferedTools
from hermes.schema.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolFinished,
    UserMessage,
)

BOX = OfferedTools(WORKSHOP_SPECS)


def repeated(text: str, times: int) -> str:
    return text * times


def reading(path: str) -> tuple[ToolCall, ...]:
    return (ToolCall(id="c", name="read_file", arguments=f'{{"path": "{path}"}}'),)


TEXT = st.builds(repeated, st.text(min_size=1, max_size=8), st.integers(1, 4000))
MESSAGE: st.SearchStrategy[Message] = st.one_of(
    st.builds(UserMessage, text=TEXT),
    st.builds(AssistantMessage, text=TEXT),
    st.builds(AssistantMessage, tool_calls=st.builds(reading, st.sampled_from("abc"))),
    st.builds(
        ToolFinished,
        call_id=st.just("c"),
        name=st.just("read_file"),
        text=TEXT,
        ok=st.booleans(),
    ),
)


def size(turns: tuple[small_prompt.ChatTurn, ...]) -> int:
    return sum(len(turn.content) for turn in turns)


@settings(deadline=None)
@given(st.lists(MESSAGE, max_size=12), st.sampled_from([5000, 2500, 1200]))
def test_messages_of_any_size_fit_the_window(
    messages: list[Message], window: int
) -> None:
    exchanges = read_messages(messages, BOX)
    turns = small_prompt.conversation(exchanges, window=window, note="(answer)")
    assert size(turns) <= window + 200
    assert turns[0].role == "user"
    assert turns[-1].role == "user"
    assert all(one.role != other.role for one, other in pairwise(turns))
    assert (
        size(small_prompt.chat(("x" * 20_000,), exchanges, window=window))
        <= window * 4 // 3 + 200
    )


def test_the_newest_exchanges_stay() -> None:
    messages: list[Message] = []
    for n in range(40):
        messages += [
            UserMessage(text=f"question {n} " + "x" * 200),
            AssistantMessage(text=f"answer {n}"),
        ]
    messages.append(UserMessage(text="the last question"))
    turns = small_prompt.conversation(read_messages(messages, BOX))
    assert turns[-1].content == "the last question"
    assert turns[-2].content == "say answer 39"
    assert "question 0 " not in turns[0].content


def test_a_result_is_trimmed_and_says_so() -> None:
    call = ToolCall(id="c", name="read_file", arguments='{"path": "big.txt"}')
    text = "[big.txt: lines 1-9000 of 9000]\n" + "line\n" * 9000
    messages = (
        UserMessage(text="q"),
        AssistantMessage(tool_calls=(call,)),
        ToolFinished(call_id="c", name="r", text=text),
    )
    turns = small_prompt.conversation(read_messages(messages, BOX))
    assert turns[1].content == "read big.txt"
    assert turns[2].content.startswith("result:\nline\nline")
    assert "more characters" in turns[2].content
    assert len(turns[2].content) < 1600


def test_every_worked_example_is_in_the_protocol() -> None:
    turns = small_prompt.prefix()
    assert turns[0].role == "system"
    shown: dict[str, str] = {}
    for turn, after in zip(turns, (*turns[1:], None), strict=True):
        if turn.role == "assistant":
            action = parse_line(turn.content, shown)
            if action.verb == "read" and after is not None:
                shown[action.path] = after.content
    assert turns[-1].content.startswith("say ")


def test_the_prefix_never_changes_within_a_process() -> None:
    assert small_prompt.prefix() == small_prompt.prefix()
