"""Keeps a conversation inside the model's context window.

First comes what costs nothing: old results that are long or were repeated later become pointers to the log. Then comes
a summary. If that fails, nothing is removed, an event says so, and it is not tried again for a while.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias, TypeVar

import msgspec

from hermes.core.accepted_plan import is_accepted_plan
from hermes.core.budget import IMAGE_TOKENS, request_tokens
from hermes.core.compaction import CompactionCut, NotCompacted, choose_cut, uncounted
from hermes.core.ports import Clock
from hermes.schema.event_base import Event
from hermes.schema.events import CompactionFailed, SessionCompacted, SessionTrimmed
from hermes.schema.messages import Message, ToolFinished, UserMessage
from hermes.schema.model import ModelRequest

Summarise: TypeAlias = Callable[
    [str, Sequence[Message], CompactionCut], Awaitable[SessionCompacted]
]
"""Summarises the messages of a session between the ends of a cut. Raises NotCompacted."""

_RETRY_AFTER_S = 45.0
_LONG_RESULT_CHARS = 2_000  # of a result that is worth removing
_MIN_FREED_SHARE = 0.1  # of the window; less needs a summary too


class ContextLimits(msgspec.Struct, frozen=True):
    """When a conversation is compacted, and what stays word for word."""

    window: int
    threshold: float
    first: int
    last: int


class ContextWindow:
    """The built-in context engine. It serves all sessions of a process and remembers in which of them it failed."""

    def __init__(
        self, summarise: Summarise, limits: ContextLimits, clock: Clock
    ) -> None:
        self._summarise = summarise
        self._limits = limits
        self._clock = clock
        self._cooling: dict[str, float] = {}

    def is_full(self, session: str, request: ModelRequest) -> bool:
        """Whether to compact before this request. After a failure, returns False for a while."""
        fits = request_tokens(request) <= self._limits.window * self._limits.threshold
        return not fits and self._clock.now() >= self._cooling.get(session, 0.0)

    async def make(
        self, session: str, request: ModelRequest, *, forced: bool = False
    ) -> list[Event]:
        """The rows that make the request fit. `forced` means that the provider rejected it as too long."""
        messages = list(request.messages)
        trimmed = choose_trim(messages, self._limits.last)
        rows: list[Event] = [trimmed] if trimmed.call_ids or trimmed.pictures else []
        if trimmed.freed // 3 >= self._limits.window * _MIN_FREED_SHARE and not forced:
            return rows
        try:
            cut = choose_cut(messages, first=self._limits.first, last=self._limits.last)
            rows.append(await self._summarise(session, trim(messages, trimmed), cut))
        except NotCompacted as error:
            self._cooling[session] = self._clock.now() + _RETRY_AFTER_S
            return [*rows, CompactionFailed(detail=error.message)]
        self._cooling.pop(session, None)
        return rows


def choose_trim(messages: Sequence[Message], last: int) -> SessionTrimmed:
    """Chooses what becomes a pointer: long results and images before the protected end, and results repeated later."""
    chosen = _trimmable_results(messages, last)
    early = enumerate(messages[: max(0, len(messages) - last)], 1)
    shown = {
        place: one
        for place, one in early
        if isinstance(one, UserMessage) and one.images
    }
    pictures = sum(len(message.images) for message in (*chosen, *shown.values()))
    freed = sum(len(message.text) for message in chosen) + pictures * IMAGE_TOKENS * 3
    names = tuple(message.call_id for message in reversed(chosen))
    return SessionTrimmed(call_ids=names, freed=freed, pictures=max(shown, default=0))


def _trimmable_results(messages: Sequence[Message], last: int) -> list[ToolFinished]:
    """Returns the results that may become pointers, the newest first."""
    seen: set[tuple[str, str]] = set()
    chosen: list[ToolFinished] = []
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if not isinstance(message, ToolFinished) or _is_pointer(message):
            continue
        if is_accepted_plan(message):
            continue
        key = (message.name, message.text)
        is_long = len(message.text) > _LONG_RESULT_CHARS
        is_old = place < len(messages) - last
        if (is_old and (is_long or message.images)) or (is_long and key in seen):
            chosen.append(message)
        seen.add(key)
    return chosen


def trim(messages: Sequence[Message], row: SessionTrimmed) -> list[Message]:
    """The messages with pointers instead of the results that the row names. Older token counts are dropped."""
    gone = frozenset(row.call_ids)
    trimmed: list[Message] = []
    shorter = False
    for place, message in enumerate(messages):
        if isinstance(message, ToolFinished) and message.call_id in gone:
            shorter = True
            trimmed.append(_pointer(message))
        elif (
            isinstance(message, UserMessage) and message.images and place < row.pictures
        ):
            shorter = True
            trimmed.append(_without_pictures(message))
        else:
            trimmed.append(uncounted(message) if shorter else message)
    return trimmed


_POINTER = "[removed to make room: "


def _pointer(message: ToolFinished) -> ToolFinished:
    if len(message.text) <= _LONG_RESULT_CHARS:
        return _without_pictures(message)
    text = f"{_POINTER}{len(message.text):,} characters; the log has them: session_search finds them]"
    return msgspec.structs.replace(message, text=text, images=())


_Shown = TypeVar("_Shown", UserMessage, ToolFinished)


def _without_pictures(message: _Shown) -> _Shown:
    names = ", ".join(image.source for image in message.images)
    text = f"{message.text}\n\n[pictures removed to make room: {names}]"
    return msgspec.structs.replace(message, text=text, images=())


def _is_pointer(message: ToolFinished) -> bool:
    return message.text.startswith(_POINTER)
