"""Shortens a trajectory to a number of tokens. Uses no model, so it costs nothing and is deterministic.

The beginning (the task, the first reply and its results) and the last messages stay. Long results in between are cut
first; if that is not enough, whole replies with their results become one note that says what was left out.
"""

from collections import Counter

import msgspec

from hermes.core.budget import message_tokens
from hermes.schema.messages import AssistantMessage, ToolFinished, UserMessage
from hermes.text.formats import count
from hermes.trajectories.trajectory import TimedMessage, Trajectory

LAST_MESSAGES = 4  # messages that stay unchanged
_SHORT_RESULT_CHARS = 400  # of a truncated result
_NOTE_TOKENS = 120  # reserved for the note


def compressed(trajectory: Trajectory, max_tokens: int) -> Trajectory | None:
    """Returns the trajectory in at most this many estimated tokens; None if the fixed part alone is longer."""
    if trajectory.tokens <= max_tokens:
        return trajectory
    messages = trajectory.messages
    first, last = _head(messages), _tail(messages)
    if first >= last:
        return None
    shorter = (*messages[:first], *map(_cut, messages[first:last]), *messages[last:])
    made = msgspec.structs.replace(trajectory, messages=shorter)
    if made.tokens <= max_tokens:
        return made
    return _without_middle(made, first, last, max_tokens)


def _head(messages: tuple[TimedMessage, ...]) -> int:
    """Returns where the middle begins: after the first reply and its results."""
    for place, one in enumerate(messages):
        if isinstance(one.message, AssistantMessage):
            place += 1  # noqa: PLW2901 - goes on from here
            while place < len(messages) and _is_result(messages[place]):
                place += 1  # noqa: PLW2901
            return place
    return len(messages)


def _tail(messages: tuple[TimedMessage, ...]) -> int:
    """Returns where the middle ends: before the last messages. A result stays with its call."""
    place = max(0, len(messages) - LAST_MESSAGES)
    while place > 0 and _is_result(messages[place]):
        place -= 1
    return place


def _is_result(one: TimedMessage) -> bool:
    return isinstance(one.message, ToolFinished)


def _cut(one: TimedMessage) -> TimedMessage:
    message = one.message
    if not isinstance(message, ToolFinished) or len(message.text) <= _SHORT_RESULT_CHARS:  # fmt: skip
        return one
    left_out = len(message.text) - _SHORT_RESULT_CHARS
    text = f"{message.text[:_SHORT_RESULT_CHARS]}\n[{count(left_out, 'character')} left out]"
    return TimedMessage(msgspec.structs.replace(message, text=text), one.ts)


def _without_middle(
    trajectory: Trajectory, first: int, last: int, max_tokens: int
) -> Trajectory | None:
    """Drops as few messages of the middle as needed, from its beginning."""
    messages = trajectory.messages
    excess, place = trajectory.tokens + _NOTE_TOKENS - max_tokens, first
    while place < last and (excess > 0 or _is_result(messages[place])):
        excess -= message_tokens(messages[place].message)
        place += 1
    left_out = messages[first:place]
    note = TimedMessage(
        UserMessage(text=_note(left_out), origin="hermes"), left_out[0].ts
    )
    made = msgspec.structs.replace(
        trajectory, messages=(*messages[:first], note, *messages[place:])
    )
    return made if made.tokens <= max_tokens else None


def _note(left_out: tuple[TimedMessage, ...]) -> str:
    """Describes the dropped messages for a reader who doesn't see them."""
    names = Counter(
        call.name
        for one in left_out
        if isinstance(one.message, AssistantMessage)
        for call in one.message.tool_calls
    )
    calls = ", ".join(f"{name} ({number})" for name, number in names.most_common(8))
    did = f" In them you called: {calls}." if calls else ""
    return f"[{count(len(left_out), 'message')} left out here to shorten this conversation.{did}]"
