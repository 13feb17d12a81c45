"""The prompt: messages of any size fit the window, and the newest part is what stays."""

import datetime as dt
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.simple_tools import WORKSHOP_SPECS

from hermes.providers.embedded import small_prompt
from hermes.providers.embedded.completion import ChatTurn
from hermes.providers.embedded.conversation import RequestExchange, read_messages
from hermes.providers.embedded.folder_view import NO_FOLDER, FolderView
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
NOW = dt.datetime(2026, 11, 16, 21, 40, tzinfo=dt.UTC)
DESK = FolderView(
    root="/desk", files=("a.txt", "team.csv", "lib/x.py"), folders=("lib",)
)


def conversation(
    exchanges: list[RequestExchange],
    *,
    view: FolderView = NO_FOLDER,
    window: int = small_prompt.WINDOW_CHARACTERS,
    note: str = "",
) -> tuple[ChatTurn, ...]:
    """The prompt for work without its fixed part."""
    turns = small_prompt.work(exchanges, view, NOW, window=window, note=note)
    return turns[len(small_prompt.work_prefix()) :]


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


def size(turns: tuple[ChatTurn, ...]) -> int:
    return sum(len(turn.content) for turn in turns)


@settings(deadline=None)
@given(st.lists(MESSAGE, max_size=12), st.sampled_from([5000, 2500, 1200]))
def test_messages_of_any_size_fit_the_window(
    messages: list[Message], window: int
) -> None:
    exchanges = read_messages(messages, BOX)
    turns = conversation(exchanges, window=window, note="(answer)")
    assert size(turns) <= window + 200
    assert turns[0].role == "user"
    assert turns[-1].role == "user"
    assert all(one.role != other.role for one, other in pairwise(turns))
    system = ("x" * 20_000,)
    instructed = small_prompt.instructed(system, exchanges, NOW, window=window)
    assert size(instructed) <= window * 4 // 3 + 400
    talk = small_prompt.talk(exchanges, NOW, window=window)
    assert size(talk) <= window + len(small_prompt.TALK_SYSTEM) + 400
    assert all(one.role != other.role for one, other in pairwise(talk[1:]))


def test_the_newest_exchanges_stay() -> None:
    messages: list[Message] = []
    for n in range(40):
        messages += [
            UserMessage(text=f"question {n} " + "x" * 200),
            AssistantMessage(text=f"answer {n}"),
        ]
    messages.append(UserMessage(text="the last question"))
    turns = conversation(read_messages(messages, BOX))
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
    turns = conversation(read_messages(messages, BOX))
    assert turns[1].content == "read big.txt"
    assert turns[2].content.startswith("result:\nline\nline")
    assert "more characters" in turns[2].content
    assert len(turns[2].content) < 1600


def test_every_worked_example_is_in_the_protocol() -> None:
    turns = small_prompt.work_prefix()
    assert turns[0].role == "system"
    shown: dict[str, str] = {}
    for turn, after in zip(turns, (*turns[1:], None), strict=True):
        if turn.role == "assistant":
            action = parse_line(turn.content, shown)
            if action.verb == "read" and after is not None:
                shown[action.path] = after.content
    assert turns[-1].content.startswith("say ")


def test_the_prefix_never_changes_within_a_process() -> None:
    assert small_prompt.work_prefix() == small_prompt.work_prefix()


def test_work_knows_the_day_the_folder_and_what_is_missing() -> None:
    exchange = RequestExchange(request="how many lines are in a.txt and b.txt?")
    (turn,) = conversation([exchange], view=DESK)
    head, _, request = turn.content.partition("\n")
    assert request == exchange.request
    assert "Monday, 16 November 2026" in head
    assert "a.txt, team.csv, lib/, lib/x.py" in head
    assert "2 files (1 .txt, 1 .csv) and 1 folders here" in head
    assert "there is no b.txt, but a.txt" in head


def test_rows_are_counted_by_code() -> None:
    call = ToolCall(id="c", name="read_file", arguments='{"path": "team.csv"}')
    messages = (
        UserMessage(text="how many people are in team.csv?"),
        AssistantMessage(tool_calls=(call,)),
        ToolFinished(call_id="c", name="r", text="name,age\nMira,31\nJon,45\n"),
    )
    turns = conversation(read_messages(messages, BOX), view=DESK)
    assert "team.csv has 2 entries" in turns[-1].content
    assert "largest 45 (Jon)" in turns[-1].content


def test_talk_knows_the_day_and_the_result_of_a_sum() -> None:
    turns = small_prompt.talk([RequestExchange(request="what is 46 times 58?")], NOW)
    assert turns[:1] == small_prompt.talk_prefix(NOW.date())
    assert turns[0].content.endswith("Today is Monday, 16 November 2026.")
    assert "46 * 58 = 2668" in turns[-1].content


def test_a_longer_chat_only_adds_to_its_prompt() -> None:
    """The engine reads again from the first difference on: while there is room, earlier turns stay as they were."""
    exchanges = [RequestExchange(request=f"q{n}", answer=f"a{n}") for n in range(6)]
    before = small_prompt.talk([*exchanges, RequestExchange(request="now")], NOW)
    done = RequestExchange(request="now", answer="done")
    after = small_prompt.talk([*exchanges, done, RequestExchange(request="next")], NOW)
    assert after[: len(before)] == before


def test_what_is_to_become_shorter_is_given_a_number_of_words() -> None:
    before = RequestExchange(request="write a wish", answer="happy " * 20)
    turns = small_prompt.talk([before, RequestExchange(request="make it shorter")], NOW)
    assert "write at most 10" in turns[-1].content
