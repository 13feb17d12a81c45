"""The model's view: the same rows give the same messages, and a new row only adds at the end."""

from hypothesis import given
from hypothesis import strategies as st

from hermes.core.history import History
from hermes.schema.event import Event
from hermes.schema.events import ApprovalRequested, Steered, ToolStarted, TurnEnded, TurnStarted
from hermes.schema.messages import AssistantMessage, ToolCall, ToolFinished, UserMessage


def _calls(*names: str) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(id=name, name="echo", arguments="{}") for name in names)


def _history(*events: Event) -> History:
    history = History()
    for seq, event in enumerate(events, 1):
        history.add(seq, event, "turn")
    return history


def test_words_enter_where_a_turn_took_them_in_not_where_they_were_typed() -> None:
    history = _history(
        UserMessage(text="one"),
        TurnStarted(inputs=(1,)),
        UserMessage(text="two"),
        AssistantMessage(text="answer one"),
        TurnEnded(reason="done"),
        TurnStarted(inputs=(3,)),
        AssistantMessage(text="answer two"),
    )
    assert [message.text for message in history.messages] == ["one", "answer one", "two", "answer two"]
    assert not history.waiting


def test_results_follow_their_call_in_the_order_of_the_calls() -> None:
    history = _history(
        AssistantMessage(tool_calls=_calls("a", "b")),
        ToolFinished(call_id="b", name="echo", text="second"),
        UserMessage(text="meanwhile", delivery="steer"),
        ToolFinished(call_id="a", name="echo", text="first"),
        Steered(inputs=(3,)),
    )
    assert [message.text for message in history.messages] == ["", "first", "second", "meanwhile"]


def test_an_open_turn_and_its_started_calls_are_known_after_a_crash() -> None:
    history = _history(
        UserMessage(text="go"),
        TurnStarted(inputs=(1,)),
        AssistantMessage(tool_calls=_calls("a", "b")),
        ToolStarted(call_id="a", name="echo", arguments="{}"),
    )
    assert history.open_turn == "turn"
    texts = [(result.call_id, result.text) for result in history.unfinished("Who knows.")]
    assert texts == [("a", "Who knows."), ("b", "Not run: the turn ended before it began.")]


def test_a_call_that_still_waited_for_approval_did_not_run() -> None:
    history = _history(
        AssistantMessage(tool_calls=_calls("a")),
        ToolStarted(call_id="a", name="echo", arguments="{}"),
        ApprovalRequested(call_id="a", name="echo", arguments="{}", summary="echo"),
    )
    assert [result.text for result in history.unfinished("It ran.")] == ["Not run: it was not approved."]


def test_an_empty_reply_is_not_shown_to_the_model_again() -> None:
    assert _history(AssistantMessage(reasoning="hm")).messages == []


_EVENTS = st.lists(
    st.one_of(
        st.builds(UserMessage, text=st.text(max_size=3), delivery=st.sampled_from(["queue", "steer"])),
        st.builds(TurnStarted, inputs=st.lists(st.integers(1, 12), max_size=3).map(tuple)),
        st.builds(Steered, inputs=st.lists(st.integers(1, 12), max_size=2).map(tuple)),
        st.builds(
            AssistantMessage, text=st.text(max_size=3), tool_calls=st.sampled_from([(), _calls("a"), _calls("b")])
        ),
        st.builds(ToolFinished, call_id=st.sampled_from("ab"), name=st.just("echo"), text=st.text(max_size=3)),
    ),
    max_size=12,
)


@given(_EVENTS)
def test_a_new_row_only_adds_at_the_end(events: list[Event]) -> None:
    history = History()
    before: list[object] = []
    for seq, event in enumerate(events, 1):
        history.add(seq, event)
        assert history.messages[: len(before)] == before
        before = list(history.messages)


@given(_EVENTS)
def test_no_message_is_given_to_the_model_twice(events: list[Event]) -> None:
    history = _history(*events)
    users = [message for message in history.messages if isinstance(message, UserMessage)]
    assert len(users) + len(history.waiting) == sum(isinstance(event, UserMessage) for event in events)
