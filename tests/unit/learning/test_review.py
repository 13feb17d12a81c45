"""When a conversation is due for a review."""

from hermes.learning.review import ReviewCounter, ReviewOutcome
from hermes.schema.event_base import Event
from hermes.schema.events import ToolStarted, TurnEnd, TurnEnded
from hermes.schema.learning import LearningReviewed
from hermes.schema.messages import AssistantMessage, ToolCall

STEP = AssistantMessage(tool_calls=(ToolCall(id="c", name="terminal", arguments="{}"),))
VIEW = ToolStarted(call_id="c", name="skill_view", arguments="{}")


def ended(reason: TurnEnd = "done") -> TurnEnded:
    return TurnEnded(reason=reason)


def tally(*events: Event) -> ReviewCounter:
    counted = ReviewCounter()
    for seq, event in enumerate(events, 1):
        counted.add(seq, event)
    return counted


def test_enough_turns_are_due() -> None:
    assert not tally(ended()).due(2, 10)
    assert tally(ended(), ended()).due(2, 10)
    assert not tally(ended(), ended("interrupted"), ended("failed")).due(2, 10)


def test_enough_steps_without_a_skill_are_due_once_a_turn_is_done() -> None:
    assert not tally(STEP, STEP, STEP).due(10, 3)
    assert tally(STEP, STEP, STEP, ended()).due(10, 3)
    assert not tally(STEP, STEP, VIEW, STEP, ended()).due(10, 3)


def test_a_review_begins_the_count_anew() -> None:
    assert not tally(ended(), ended(), LearningReviewed()).due(2, 10)
    assert tally(ended(), ended(), LearningReviewed(), ended(), ended()).due(2, 10)


def test_the_summary_is_one_line_or_nothing() -> None:
    assert ReviewOutcome().summary == ""
    assert ReviewOutcome(
        ("p1",), ("abc",), ("memory: add user", "skill brew: new")
    ).summary == (
        "Learned: memory: add user; skill brew: new. 1 kept, 1 to approve (p1)."
    )
