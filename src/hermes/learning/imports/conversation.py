"""An imported conversation, and its conversion to the lines of an exported session."""

import hashlib
import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from hermes.schema.event_base import Event
from hermes.schema.events import (
    SessionCreated,
    SessionTitled,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from hermes.schema.messages import (
    AssistantMessage,
    ToolCall,
    ToolFinished,
    Usage,
    UserMessage,
)
from hermes.text.translation import translator

t = translator(__name__)

_FIT = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_MAX_IMPORTED_MESSAGE_CHARS = 4_000_000  # characters of one message


class ImportedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message: by a person, by the model with its calls, or a tool's result."""

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    when: float = 0.0
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    name: str = ""
    ok: bool = True
    model: str = ""
    usage: Usage | None = None


class ImportedConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation of another agent."""

    id: str
    agent: str
    messages: tuple[ImportedMessage, ...]
    title: str = ""
    cwd: str = ""
    unread: int = 0
    """The number of lines of its file that could not be read."""

    @property
    def name(self) -> str:
        """Its id in Hermes. The same on each import, so that nothing is imported twice."""
        if re.fullmatch(_FIT, self.id) and self.id != "last":
            return self.id
        return f"{self.agent}-{hashlib.sha256(self.id.encode(errors='replace')).hexdigest()[:16]}"

    @property
    def started(self) -> float:
        """When its first message was written."""
        return next(
            (message.when for message in self.messages if message.when > 0), 0.0
        )


def session_lines(conversation: ImportedConversation) -> Iterator[str]:
    """Yields the conversation as lines of an exported session."""
    header = {"format": "hermes-session", "version": 1, "session_id": conversation.name}
    yield msgspec.json.encode(header).decode()
    writer = _Writer(conversation.started)
    yield writer.row(
        SessionCreated(surface=f"import:{conversation.agent}", cwd=conversation.cwd)
    )
    if conversation.title:
        yield writer.row(SessionTitled(title=conversation.title[:200], by="hermes"))
    for message in conversation.messages:
        yield from writer.add(message)
    yield from writer.end()


class _Writer:
    """Numbers the rows and groups them into turns."""

    def __init__(self, started: float) -> None:
        self._seq = 0
        self._when = max(0.0, started)
        self._turn = 0
        self._open = False
        self._calls: dict[str, ToolCall] = {}

    def row(self, event: Event) -> str:
        self._seq += 1
        place = {
            "type": event.topic,
            "ts": self._when,
            "seq": self._seq,
            "epoch": 1,
            "session_id": "",
        }
        turn = {"turn_id": f"turn-{self._turn}"} if self._open else {}
        return msgspec.json.encode(place | turn | msgspec.to_builtins(event)).decode()

    def add(self, message: ImportedMessage) -> Iterator[str]:
        self._when = max(self._when, message.when)
        text = message.text[:_MAX_IMPORTED_MESSAGE_CHARS]
        if message.role == "user":
            yield from self.end()
            yield self.row(UserMessage(text=text))
            self._turn, self._open = self._turn + 1, True
            yield self.row(TurnStarted(inputs=(self._seq,), runtime="import"))
        elif message.role == "assistant":
            yield from self._begin_turn()
            yield from self._unanswered()
            yield self.row(_reply(message, text))
            self._calls = {call.id: call for call in message.calls}
            for call in message.calls:
                yield self.row(
                    ToolStarted(
                        call_id=call.id, name=call.name, arguments=call.arguments
                    )
                )
        elif (call := self._calls.pop(message.call_id, None)) is not None:
            yield self.row(
                ToolFinished(call_id=call.id, name=call.name, text=text, ok=message.ok)
            )

    def end(self) -> Iterator[str]:
        yield from self._unanswered()
        if self._open:
            yield self.row(TurnEnded(reason="done", detail=t.logged("imported")))
            self._open = False

    def _begin_turn(self) -> Iterator[str]:
        """Starts a turn for a reply without a question."""
        if not self._open:
            self._turn, self._open = self._turn + 1, True
            yield self.row(TurnStarted(runtime="import"))

    def _unanswered(self) -> Iterator[str]:
        """Adds results for calls that have none in the source: every call needs exactly one."""
        for call in self._calls.values():
            text = "The program this was imported from did not save the result."  # not translated
            yield self.row(
                ToolFinished(call_id=call.id, name=call.name, text=text, ok=False)
            )
        self._calls = {}


def _reply(message: ImportedMessage, text: str) -> AssistantMessage:
    return AssistantMessage(
        text=text,
        reasoning=message.reasoning[:_MAX_IMPORTED_MESSAGE_CHARS],
        tool_calls=message.calls,
        finish="tool_calls" if message.calls else "stop",
        model=message.model,
        usage=message.usage,
    )
