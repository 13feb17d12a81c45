"""`Trajectory`: a session as one complete conversation, in order, with how it ended and what it cost.

It includes messages that a compaction has summarized since, but not undone ones.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec

from hermes.core.budget import add, message_tokens, tool_tokens
from hermes.core.history import ConversationHistory
from hermes.schema.event_base import Event
from hermes.schema.events import (
    SessionCompacted,
    SessionCreated,
    SessionScored,
    SessionTrimmed,
    TurnEnded,
)
from hermes.schema.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolFinished,
    Usage,
)
from hermes.schema.tool_spec import ToolSpec

_SHORTENING = (SessionCompacted, SessionTrimmed)
"""Events that change only the model's view of a conversation."""


class LoggedEvent(Protocol):
    """A row of the session log."""

    @property
    def session(self) -> str: ...
    @property
    def seq(self) -> int: ...
    @property
    def ts(self) -> float: ...
    @property
    def turn(self) -> str: ...
    @property
    def event(self) -> Event | None: ...


class TimedMessage(msgspec.Struct, frozen=True):
    """A message, and when it was written; 0 if that is unknown."""

    message: Message
    ts: float = 0.0


class Trajectory(msgspec.Struct, frozen=True, kw_only=True):
    """A session from its first message to its last."""

    session: str
    surface: str = ""
    started: float = 0.0
    ended: float = 0.0
    system: tuple[str, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    messages: tuple[TimedMessage, ...] = ()
    ending: str = ""
    """How the last turn ended, such as `done`; empty if it has not ended."""
    score: float | None = None
    label: dict[str, str | int] = {}
    """What identifies this trajectory in an export: the batch and the row."""

    @property
    def is_finished(self) -> bool:
        """Whether the last turn ended with an answer."""
        return self.ending == "done"

    @property
    def replies(self) -> Iterator[AssistantMessage]:
        """The messages of the model."""
        for one in self.messages:
            if isinstance(one.message, AssistantMessage):
                yield one.message

    @property
    def results(self) -> Iterator[ToolFinished]:
        """The results of tools."""
        for one in self.messages:
            if isinstance(one.message, ToolFinished):
                yield one.message

    @property
    def model(self) -> str:
        """The model that answered last."""
        return next((one.model for one in reversed([*self.replies]) if one.model), "")

    @property
    def provider(self) -> str:
        """The provider that answered last."""
        return next((one.provider for one in reversed([*self.replies]) if one.provider), "")  # fmt: skip

    @property
    def has_reasoning(self) -> bool:
        """Whether the model showed its reasoning at least once."""
        return any(one.reasoning.strip() for one in self.replies)

    @property
    def usage(self) -> Usage:
        """The sum over all replies. The cost is None if the price of one of them is unknown."""
        total = Usage(cost_usd=0.0)
        for one in self.replies:
            if one.usage is not None:
                total = add(total, one.usage)
        return total

    @property
    def tokens(self) -> int:
        """The estimated length in tokens."""
        said = sum(message_tokens(one.message) for one in self.messages)
        return said + self.fixed_tokens

    @property
    def fixed_tokens(self) -> int:
        """The estimated length of the system prompt and the tool descriptions, in tokens."""
        from hermes.core.budget import estimate_tokens

        return sum(map(estimate_tokens, self.system)) + tool_tokens(self.tools)


def is_answer(message: Message) -> bool:
    """Returns whether a message ends a turn: a complete reply without calls."""
    if not isinstance(message, AssistantMessage) or message.tool_calls:
        return False
    return message.finish == "stop" and bool(message.text.strip())


def read_trajectory(rows: Iterable[LoggedEvent]) -> Trajectory:
    """Reads a session from all of its rows."""
    history, times = ConversationHistory(), dict[int, float]()
    kept: list[Event] = []  # so that no two of them ever have the same id()
    session, surface, ending = "", "", ""
    started = ended = 0.0
    score: float | None = None
    for row in rows:
        event = row.event
        session, started, ended = row.session, started or row.ts, row.ts
        if event is None or isinstance(event, _SHORTENING):
            continue
        kept.append(event)
        times[id(event)] = row.ts
        history.add(row.seq, event, row.turn)
        match event:
            case SessionCreated():
                surface = event.surface
            case TurnEnded():
                ending = event.reason
            case SessionScored():
                score = event.score
            case _:
                pass
    return Trajectory(
        session=session,
        surface=surface,
        started=started,
        ended=ended,
        system=history.system,
        tools=history.tools,
        messages=tuple(
            TimedMessage(one, times.get(id(one), 0.0)) for one in history.messages
        ),
        ending=_ending(history, ending),
        score=score,
    )


def _ending(history: ConversationHistory, last: str) -> str:
    """Returns how the session ended; `last` is how its last complete turn ended."""
    ending = "" if history.open_turn else last
    is_answered = bool(history.messages) and is_answer(history.messages[-1])
    if ending in ("", "crashed") and is_answered:
        return "done"  # Hermes was killed between the answer and the end of the turn
    return ending


def parsed_arguments(call: ToolCall) -> dict[str, Any]:
    """Returns the arguments of a call; `{"_raw": text}` if they are not a JSON object."""
    try:
        found = msgspec.json.decode(call.arguments or "{}")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"_raw": call.arguments}


def parsed_result(text: str) -> Any:
    """Returns the result of a call: a parsed JSON object or list, otherwise the text."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text


def iso_time(ts: float) -> str:
    """Formats a time in UTC as ISO 8601, such as `2026-11-17T07:00:00.250Z`."""
    moment = datetime.fromtimestamp(ts, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
