"""The model's view: the same rows give the same messages, and a new row only adds at the end."""

from hypothesis import given
from hypothesis import strategies as st

from hermes.core.history import ConversationHistory
from hermes.schema.event_base import Event
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    PermissionsRevoked,
    SessionRedone,
    SessionUndone,
    Steered,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from hermes.schema.messages import AssistantMessage, ToolCall, ToolFinished, UserMessage


def _calls(*names: str) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(id=name, name="echo", arguments="{}") for name in names)


def _history(*events: Event) -> ConversationHistory:
    history = ConversationHistory()
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
    assert [message.text for message in history.messages] == [
        "one",
        "answer one",
        "two",
        "answer two",
    ]
    assert not history.waiting


def test_results_follow_their_call_in_the_order_of_the_calls() -> None:
    history = _history(
        AssistantMessage(tool_calls=_calls("a", "b")),
        ToolFinished(call_id="b", name="echo", text="second"),
        UserMessage(text="meanwhile", delivery="steer"),
        ToolFinished(call_id="a", name="echo", text="first"),
        Steered(inputs=(3,)),
    )
    assert [message.text for message in history.messages] == [
        "",
        "first",
        "second",
        "meanwhile",
    ]


def test_an_open_turn_and_its_started_calls_are_known_after_a_crash() -> None:
    history = _history(
        UserMessage(text="go"),
        TurnStarted(inputs=(1,)),
        AssistantMessage(tool_calls=_calls("a", "b")),
        ToolStarted(call_id="a", name="echo", arguments="{}"),
    )
    assert history.open_turn == "turn"
    texts = [
        (result.call_id, result.text) for result in history.unfinished("Who knows.")
    ]
    assert texts == [
        ("a", "Who knows."),
        ("b", "Not run: the turn ended before this call began."),
    ]


def test_a_call_that_another_call_made_gets_a_result_after_a_crash_too() -> None:
    history = _history(
        AssistantMessage(tool_calls=_calls("a")),
        *(
            ToolStarted(call_id=name, name="echo", arguments="{}")
            for name in ("a", "a/1", "a/2", "a/3")
        ),
        ToolFinished(call_id="a/1", name="echo", text="done"),
        ApprovalRequested(call_id="a/3", name="echo", arguments="{}", summary="echo"),
    )
    results = history.unfinished("Who knows.")
    assert [(result.call_id, result.name, result.text) for result in results] == [
        ("a/2", "echo", "Who knows."),
        ("a/3", "echo", "Not run: it was not approved."),
        ("a", "echo", "Who knows."),
    ]
    for seq, result in enumerate(results, 20):
        history.add(seq, result)
    assert history.unfinished("Who knows.") == []
    assert [message.text for message in history.messages] == ["", "Who knows."]


def test_a_call_that_still_waited_for_approval_did_not_run() -> None:
    history = _history(
        AssistantMessage(tool_calls=_calls("a")),
        ToolStarted(call_id="a", name="echo", arguments="{}"),
        ApprovalRequested(call_id="a", name="echo", arguments="{}", summary="echo"),
    )
    assert [result.text for result in history.unfinished("It ran.")] == [
        "Not run: it was not approved."
    ]


def test_an_empty_reply_is_not_shown_to_the_model_again() -> None:
    assert _history(AssistantMessage(reasoning="hm")).messages == []


_EVENTS = st.lists(
    st.one_of(
        st.builds(
            UserMessage,
            text=st.text(max_size=3),
            delivery=st.sampled_from(["queue", "steer"]),
        ),
        st.builds(
            TurnStarted, inputs=st.lists(st.integers(1, 12), max_size=3).map(tuple)
        ),
        st.builds(Steered, inputs=st.lists(st.integers(1, 12), max_size=2).map(tuple)),
        st.builds(
            AssistantMessage,
            text=st.text(max_size=3),
            tool_calls=st.sampled_from([(), _calls("a"), _calls("b")]),
        ),
        st.builds(
            ToolFinished,
            call_id=st.sampled_from("ab"),
            name=st.just("echo"),
            text=st.text(max_size=3),
        ),
    ),
    max_size=12,
)


@given(_EVENTS)
def test_a_new_row_only_adds_at_the_end(events: list[Event]) -> None:
    history = ConversationHistory()
    before: list[object] = []
    for seq, event in enumerate(events, 1):
        history.add(seq, event)
        assert history.messages[: len(before)] == before
        before = list(history.messages)


@given(_EVENTS)
def test_no_message_is_given_to_the_model_twice(events: list[Event]) -> None:
    history = _history(*events)
    users = [
        message for message in history.messages if isinstance(message, UserMessage)
    ]
    assert len(users) + len(history.waiting) == sum(
        isinstance(event, UserMessage) for event in events
    )


def test_no_undo_brings_back_what_was_revoked() -> None:
    history = ConversationHistory()
    rows: list[tuple[Event, str]] = [
        (UserMessage(text="one"), ""),
        (TurnStarted(inputs=(1,)), "t1"),
        (AssistantMessage(tool_calls=_calls("a")), "t1"),
        (
            ApprovalRequested(
                call_id="a", name="echo", arguments="{}", summary="", shape="s"
            ),
            "t1",
        ),
        (ApprovalAnswered(call_id="a", answer="session"), "t1"),
        (ToolFinished(call_id="a", name="echo", text=""), "t1"),
        (TurnEnded(reason="done"), "t1"),
        (UserMessage(text="two"), ""),
        (TurnStarted(inputs=(8,)), "t2"),
        (TurnEnded(reason="done"), "t2"),
    ]
    for seq, (event, turn) in enumerate(rows, 1):
        history.add(seq, event, turn)
    assert history.allowed == {"s"}
    history.add(11, PermissionsRevoked(permissions=("s",)), "")
    history.add(12, SessionUndone(since=9, turns=("t2",)), "")
    assert not history.allowed
    history.add(13, SessionRedone(undone=12), "")
    assert not history.allowed


class _Log:
    """Rows as a session writes them, turn by turn."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, Event, str]] = []
        self._turns = 0

    def add(self, event: Event, turn: str = "") -> int:
        seq = self.rows[-1][0] + 1 if self.rows else 1
        self.rows.append((seq, event, turn))
        return seq

    def turn(self, steps: list[str], *, ended: bool = True) -> int:
        """A turn that answers what waits: `say`, `call`, `steer`, `queue` (for later), `allow`."""
        self._turns += 1
        name = f"turn{self._turns}"
        waiting = tuple(_replayed(self.rows).waiting) or (
            self.add(UserMessage(text=name)),
        )
        began = self.add(TurnStarted(inputs=waiting), name)
        for number, step in enumerate(steps):
            self._step(step, f"{name}.{number}", name)
        if ended:
            for result in _replayed(self.rows).unfinished("Stopped."):
                self.add(result, name)
            self.add(TurnEnded(reason="done"), name)
        return began

    def _step(self, step: str, text: str, turn: str) -> None:
        if step == "say":
            self.add(AssistantMessage(text=text), turn)
        elif step == "steer":
            self.add(
                Steered(inputs=(self.add(UserMessage(text=text, delivery="steer")),)),
                turn,
            )
        elif step == "queue":
            self.add(UserMessage(text=text))
        else:
            self.add(AssistantMessage(tool_calls=_calls(text)), turn)
            request = ApprovalRequested(
                call_id=text, name="echo", arguments="{}", summary="echo", shape=text
            )
            self.add(request, turn)
            if step == "allow":
                self.add(ApprovalAnswered(call_id=text, answer="session"), turn)
                self.add(ToolFinished(call_id=text, name="echo", text="done"), turn)


def _replayed(rows: list[tuple[int, Event, str]]) -> ConversationHistory:
    history = ConversationHistory()
    for seq, event, turn in rows:
        history.add(seq, event, turn)
    return history


def _view(history: ConversationHistory) -> tuple[object, ...]:
    waiting = list(history.waiting.values())
    return (
        history.messages,
        waiting,
        history.allowed,
        history.turns,
        history.open_calls,
        history.open_turn,
    )


_STEPS = st.lists(
    st.sampled_from(["say", "call", "steer", "queue", "allow"]), max_size=5
)


@given(st.lists(_STEPS, min_size=1, max_size=4), st.integers(1, 4), st.booleans())
def test_after_an_undo_it_is_as_if_the_turns_had_never_been(
    turns: list[list[str]], back: int, crashed: bool
) -> None:
    log = _Log()
    began = [
        log.turn(steps, ended=not (crashed and place == len(turns) - 1))
        for place, steps in enumerate(turns)
    ]
    since = began[-min(back, len(began))]
    before = [row for row in log.rows if row[0] < since]
    inputs = next(
        event.inputs
        for seq, event, _ in log.rows
        if seq == since and isinstance(event, TurnStarted)
    )
    never = [row for row in before if row[0] not in inputs]
    taken = {
        seq
        for _, event, _ in log.rows
        if isinstance(event, (TurnStarted, Steered))
        for seq in event.inputs
    }
    waits_on = [
        row
        for row in log.rows
        if row[0] > since and isinstance(row[1], UserMessage) and row[0] not in taken
    ]
    log.add(SessionUndone(since=since))
    assert _view(_replayed(log.rows)) == _view(_replayed(never + waits_on))


@given(st.lists(_STEPS, min_size=1, max_size=4), st.integers(1, 4))
def test_a_redo_gives_back_what_the_undo_took(
    turns: list[list[str]], back: int
) -> None:
    log = _Log()
    began = [log.turn(steps) for steps in turns]
    before = _view(_replayed(log.rows))
    undone = log.add(SessionUndone(since=began[-min(back, len(began))]))
    assert _replayed(log.rows).redoable == undone
    log.add(SessionRedone(undone=undone))
    assert _view(_replayed(log.rows)) == before
    assert _replayed(log.rows).redoable == 0


def test_what_is_said_after_an_undo_can_not_be_mixed_with_what_was_taken_back() -> None:
    log = _Log()
    log.turn(["say"])
    undone = log.add(SessionUndone(since=log.turn(["say"])))
    log.turn(["say"])
    messages = _replayed(log.rows).messages
    log.add(SessionRedone(undone=undone))
    assert _replayed(log.rows).messages == messages
    assert [message.text for message in messages] == [
        "turn1",
        "turn1.0",
        "turn3",
        "turn3.0",
    ]


def test_an_undo_of_a_turn_that_is_not_there_changes_nothing() -> None:
    log = _Log()
    log.turn(["say"])
    before = _view(_replayed(log.rows))
    log.add(SessionUndone(since=77))
    assert _view(_replayed(log.rows)) == before


def test_nothing_of_a_turn_that_was_taken_back_waits_for_a_person() -> None:
    log = _Log()
    log.add(SessionUndone(since=log.turn(["call"], ended=False)))
    history = _replayed(log.rows)
    assert not history.asked_calls
    assert not history.unfinished("It ran.")


def test_a_turn_that_goes_on_with_what_a_crash_left_open_is_taken_back_with_it() -> (
    None
):
    log = _Log()
    log.turn(["say"])
    crashed = log.turn(["call"], ended=False)
    log.add(TurnEnded(reason="crashed"), "turn2")
    log.add(TurnStarted(), "turn3")
    log.add(ToolFinished(call_id="turn2.0", name="echo", text="done"), "turn3")
    log.add(TurnEnded(reason="done"), "turn3")
    last = _replayed(log.rows).turns[-1]
    assert (last.seq, last.turn, last.then) == (crashed, "turn2", ("turn3",))
    log.add(SessionUndone(since=last.seq))
    assert [message.text for message in _replayed(log.rows).messages] == [
        "turn1",
        "turn1.0",
    ]
