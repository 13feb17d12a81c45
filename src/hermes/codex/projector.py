"""Converts codex's notifications about one turn into Hermes' events. Pure: the same notifications give the same bytes.

Text becomes a message when codex has completed it; a call is announced when it begins and has exactly one result.
Parallel calls are announced one after another, each when the previous one has its result, so that roles always
alternate, as every model service requires. `close` closes what is still open at the end.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from hermes.codex.items import (
    AgentMessage,
    CommandItem,
    DynamicCall,
    Item,
    McpCall,
    Other,
    PatchItem,
    Reasoning,
    UserWords,
    Work,
    call_of,
    note_of,
    read_item,
    result_of,
)
from hermes.codex.wire import CodexNotification
from hermes.core.think_tags import ReplyWords
from hermes.schema.event_base import Event
from hermes.schema.events import (
    AuxiliaryCalled,
    MessageDelta,
    ModelRetried,
    ReasoningDelta,
    Steered,
    ToolProgress,
    ToolStarted,
)
from hermes.schema.messages import (
    AssistantMessage,
    FinishReason,
    ToolCall,
    ToolFinished,
    Usage,
    UserMessage,
)
from hermes.schema.model import ModelEvent, ReasoningPiece, TextDelta

PROVIDER = "codex"
_ABORTED = re.compile(r"<turn_aborted\s*/?>")
NO_OUTPUT = "(codex did not report its output)"
STOPPED = "Stopped while running; what it had done by then remains."


class CodexInput(msgspec.Struct, frozen=True):
    """A message sent to codex: its input items, and the id that codex returns with them."""

    items: tuple[Mapping[str, Any], ...]
    name: str
    seq: int | None = None
    """The message's row; None if it begins the turn."""

    @property
    def text(self) -> str:
        return "\n".join(item["text"] for item in self.items if "text" in item)


class Ending(msgspec.Struct, frozen=True):
    """How a turn ended, according to codex."""

    status: str
    message: str = ""
    info: Any = None
    is_marker: bool = False
    """Whether only a message says that the turn ended; the turn itself may still be running."""


class _About(msgspec.Struct, frozen=True, rename="camel"):
    """The part that all notifications about a turn share."""

    turn_id: str = ""
    item: msgspec.Raw = msgspec.Raw(b"")
    item_id: str = ""
    delta: str = ""


class _TurnError(msgspec.Struct, frozen=True, rename="camel"):
    message: str = ""
    codex_error_info: Any = None
    additional_details: str | None = None


class _Error(msgspec.Struct, frozen=True, rename="camel"):
    error: _TurnError = _TurnError()
    will_retry: bool = False
    turn_id: str = ""


class _Turn(msgspec.Struct, frozen=True):
    id: str = ""
    status: str = ""
    error: _TurnError | None = None
    items: tuple[msgspec.Raw, ...] = ()


class _Completed(msgspec.Struct, frozen=True):
    turn: _Turn = _Turn()


class _Tokens(msgspec.Struct, frozen=True, rename="camel"):
    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0


class _Usage(msgspec.Struct, frozen=True):
    last: _Tokens = _Tokens()
    total: _Tokens | None = None


class _UsageUpdated(msgspec.Struct, frozen=True, rename="camel"):
    turn_id: str = ""
    token_usage: _Usage = _Usage()


class UsageTracker:
    """Recognises model calls that codex reports twice, by the thread's total. Older codex versions report the last call
    again when a turn or a request begins."""

    def __init__(self) -> None:
        self._total: _Tokens | None = None

    def is_new(self, notice: CodexNotification) -> bool:
        """Returns whether this update is about a new call."""
        total = _USAGE.decode(notice.params).token_usage.total
        if total is None:
            return True
        before, self._total = self._total, total
        return before != total


class _Open(msgspec.Struct):
    """A call that has begun and has no result yet."""

    call: ToolCall
    announced: bool = False
    result: ToolFinished | None = None


_ABOUT = msgspec.json.Decoder(_About)
_ERROR = msgspec.json.Decoder(_Error)
_COMPLETED = msgspec.json.Decoder(_Completed)
_USAGE = msgspec.json.Decoder(_UsageUpdated)


class Projector:
    """Converts one turn. With `whole_output` false, a command without output may have had some (`without_output`).

    With `has_tags`, the model's text may contain thinking, as it does for models that are not OpenAI's.
    """

    def __init__(
        self,
        turn: str,
        *,
        cwd: str = "",
        model: str = "",
        has_tags: bool = True,
        whole_output: bool = True,
        meter: UsageTracker | None = None,
    ) -> None:
        self.turn = turn
        self.delivered: dict[str, CodexInput] = {}
        """Messages sent to codex that it has not returned yet, by id."""
        self.without_output: list[CommandItem] = []
        """Commands that ended without output; `finish` adds it if it was found elsewhere."""
        self.items: dict[str, Item] = {}
        """Every item as last announced: a question about a patch only names its item."""
        self.refusals: dict[str, str] = {}
        """Why requests about items were declined, by item id."""
        self.ending: Ending | None = None
        self.usages: list[Usage] = []
        self.final_text = ""
        self.calls = 0
        self.after_tool = False
        """Whether the last thing that happened was the end of a call."""
        self.odd = 0
        """Notifications that could not be read."""
        self._cwd = cwd
        self._model = model
        self._has_tags = has_tags
        self._whole_output = whole_output
        self._meter = meter or UsageTracker()
        self._open: dict[str, _Open] = {}
        self._over: set[str] = set()
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._words_usage: Usage | None = (
            None  # usage of text that is not a message yet
        )
        self._streams: dict[str, ReplyWords] = {}
        self._retries = 0
        self._handlers: Mapping[str, Callable[[CodexNotification], list[Event]]] = {
            "item/started": self._started,
            "item/completed": self._completed,
            "item/agentMessage/delta": self._text_delta,
            "item/reasoning/summaryTextDelta": self._thought,
            "item/reasoning/textDelta": self._thought,
            "item/commandExecution/outputDelta": self._output,
            "thread/tokenUsage/updated": self._used,
            "error": self._failed,
            "turn/completed": self._ended,
        }

    @property
    def working(self) -> bool:
        """Whether a call is running; then silence does not mean that codex hangs."""
        return any(place.result is None for place in self._open.values())

    @property
    def commands(self) -> list[str]:
        """Commands that have begun but not ended."""
        return [
            key
            for key, place in self._open.items()
            if place.result is None and place.call.name == "exec_command"
        ]

    def feed(self, notice: CodexNotification) -> list[Event]:
        """Returns the events for a notification: durable ones to record, transient ones to show, in this order."""
        handler = self._handlers.get(notice.method)
        if handler is None:
            return []
        try:
            return handler(notice)
        except msgspec.DecodeError:
            self.odd += 1
            return []

    def finish(self, call_id: str, output: str, exit_code: int) -> list[Event]:
        """Ends a command with an output that was found elsewhere."""
        item = self.items.get(call_id)
        if not isinstance(item, CommandItem) or call_id not in self._open:
            return []
        status = (
            item.status
            if item.status in ("completed", "failed", "declined")
            else "completed"
        )
        return self._finish(
            msgspec.structs.replace(
                item, aggregated_output=output, exit_code=exit_code, status=status
            )
        )

    def close(self, fate: str = STOPPED, finish: FinishReason = "stop") -> list[Event]:
        """Closes what is open at the end of the turn. `fate` is the result text of calls that have none."""
        events: list[Event] = []
        for command in self.without_output:
            events += self.finish(command.id, NO_OUTPUT, command.exit_code or 0)
        for place in self._open.values():
            if place.result is None:
                place.result = ToolFinished(
                    call_id=place.call.id, name=place.call.name, text=fate, ok=False
                )
        events += self._write_results()
        if finish == "interrupted":
            for words in self._streams.values():
                words.end_part()
                self._add_words(words)
        self._streams = {}
        if self._texts or self._thoughts:
            events.append(self._message(finish=finish))
        return events

    def _mine(self, notice: CodexNotification) -> _About | None:
        about = _ABOUT.decode(notice.params)
        return about if about.turn_id == self.turn else None

    def _started(self, notice: CodexNotification) -> list[Event]:
        about = self._mine(notice)
        if about is None:
            return []
        item = read_item(about.item)
        self.items[item.id] = item
        self.after_tool = False
        if isinstance(item, AgentMessage):
            self._streams[item.id] = self._new_words()
            return [MessageDelta(text="\n\n")] if self._texts else []
        return (
            self._begin(item)
            if isinstance(item, CommandItem | PatchItem | McpCall | DynamicCall)
            else []
        )

    def _completed(self, notice: CodexNotification) -> list[Event]:
        about = self._mine(notice)
        if about is None:
            return []
        item = read_item(about.item)
        self.items[item.id] = item
        return self._add_item(item)

    def _add_item(self, item: Item) -> list[Event]:
        match item:
            case AgentMessage(text=text):
                words = self._streams.pop(item.id, None)
                rest = _shown(words.end_part()) if words else []
                return [*rest, *self._add_text(text)]
            case Reasoning():
                self._thoughts += [item.text] if item.text else []
                return []
            case UserWords():
                return self._add_user_message(item)
            case Other():
                if _ABORTED.search(item.text):
                    return self._aborted(item.text)
                note = note_of(item)
                self._texts += [note] if note else []
                return []
            case _:
                return self._finish(item)

    def _add_text(self, text: str) -> list[Event]:
        if _ABORTED.search(text):
            return self._aborted(text)
        words = self._new_words()
        words.add_text(text)
        words.end_part()
        self.final_text = self._add_words(words) or self.final_text
        return []

    def _new_words(self) -> ReplyWords:
        return ReplyWords(has_tags=self._has_tags)

    def _add_words(self, words: ReplyWords) -> str:
        """Keeps the thinking and the text of one message for the next row, and returns the text."""
        thought, text = words.both()
        self._thoughts += [thought] if thought else []
        self._texts += [text] if text else []
        return text

    def _aborted(self, text: str) -> list[Event]:
        """Handles a message in which codex says that the turn is over. Keeps the text before it."""
        self.ending = Ending("interrupted", is_marker=True)
        if before := _ABORTED.split(text)[0].strip():
            self._texts.append(before)
            self.final_text = before
        return []

    def _add_user_message(self, item: UserWords) -> list[Event]:
        words = self._matching_message(item)
        if words is None and _ABORTED.search(item.text):
            self.ending = Ending("interrupted", is_marker=True)
            return []
        if words is not None and words.seq is None:
            return []
        before: list[Event] = [self._message()] if self._texts else []
        if words is None or words.seq is None:
            return [*before, UserMessage(text=item.text, origin="hermes")]
        return [*before, Steered(inputs=(words.seq,))]

    def _matching_message(self, item: UserWords) -> CodexInput | None:
        """Returns our message that codex echoes here, found by its id, or by its text if codex returns no ids."""
        if item.client_id is not None:
            return self.delivered.pop(item.client_id, None)
        text = item.text.split()
        name = next(
            (
                name
                for name, words in self.delivered.items()
                if words.text.split() == text
            ),
            "",
        )
        return self.delivered.pop(name, None)

    def _begin(self, item: Work) -> list[Event]:
        if item.id in self._open or item.id in self._over:  # announced twice
            return []
        call = call_of(item, self._cwd)
        self._open[item.id] = _Open(call)
        self.calls += 1
        started = ToolStarted(call_id=call.id, name=call.name, arguments=call.arguments)
        return [*self._announce(), started]

    def _finish(self, item: Work) -> list[Event]:
        if item.id in self._over:
            return []
        begun = self._begin(item)
        if isinstance(item, CommandItem) and self._lacks_output(item):
            self.without_output.append(item)
            return begun
        self._open[item.id].result = result_of(
            item, self._cwd, self.refusals.get(item.id, "")
        )
        self.after_tool = True
        return [*begun, *self._write_results()]

    def _lacks_output(self, item: CommandItem) -> bool:
        """Returns whether a command's output is missing."""
        if self._whole_output or item.exit_code is None:
            return False
        return item.aggregated_output is None and item.status != "declined"

    def _announce(self) -> list[Event]:
        """Writes the message of the oldest open call, if it has none yet."""
        oldest = next(iter(self._open.values()), None)
        if oldest is None or oldest.announced:
            return []
        oldest.announced = True
        return [self._message(calls=(oldest.call,), finish="tool_calls")]

    def _write_results(self) -> list[Event]:
        """Returns the available results in the order of the calls, each after its message."""
        events: list[Event] = []
        while self._open:
            events += self._announce()
            key, place = next(iter(self._open.items()))
            if place.result is None:
                break
            events.append(place.result)
            del self._open[key]
            self._over.add(key)
        return events

    def _message(
        self,
        *,
        calls: tuple[ToolCall, ...] = (),
        finish: FinishReason = "stop",
        usage: Usage | None = None,
    ) -> AssistantMessage:
        """Returns the text and reasoning since the last message."""
        text, reasoning = "\n\n".join(self._texts), "\n\n".join(self._thoughts)
        usage, self._words_usage = usage or self._words_usage, None
        self._texts.clear()
        self._thoughts.clear()
        return AssistantMessage(
            text=text,
            reasoning=reasoning,
            tool_calls=calls,
            finish=finish,
            provider=PROVIDER,
            model=self._model,
            usage=usage,
        )

    def _text_delta(self, notice: CodexNotification) -> list[Event]:
        about = self._mine(notice)
        if about is None or not about.delta:
            return []
        self.after_tool = False
        words = self._streams.setdefault(about.item_id, self._new_words())
        return _shown(words.add_text(about.delta))

    def _thought(self, notice: CodexNotification) -> list[Event]:
        about = self._mine(notice)
        if about and about.delta:
            return [ReasoningDelta(text=about.delta)]
        return []

    def _output(self, notice: CodexNotification) -> list[Event]:
        about = self._mine(notice)
        return (
            [ToolProgress(call_id=about.item_id, text=about.delta)]
            if about and about.delta
            else []
        )

    def _used(self, notice: CodexNotification) -> list[Event]:
        """Counts the usage of one model call. It belongs to the text before it; without text it counts separately."""
        update = _USAGE.decode(notice.params)
        last = update.token_usage.last
        is_new = self._meter.is_new(notice)
        if (
            not is_new
            or update.turn_id != self.turn
            or not (last.input_tokens or last.output_tokens)
        ):
            return []
        counted = Usage(
            input_tokens=last.input_tokens,
            output_tokens=last.output_tokens,
            cache_read_tokens=last.cached_input_tokens,
            cache_write_tokens=last.cache_write_input_tokens,
            reasoning_tokens=last.reasoning_output_tokens,
        )
        self.usages.append(counted)
        if self._texts and not self._open:
            return [self._message(usage=counted)]
        usage: Usage | None = counted
        if self._texts:  # they become a message only after a running command ends
            usage, self._words_usage = self._words_usage, counted
        return (
            [
                AuxiliaryCalled(
                    task="codex", provider=PROVIDER, model=self._model, usage=usage
                )
            ]
            if usage
            else []
        )

    def _failed(self, notice: CodexNotification) -> list[Event]:
        failure = _ERROR.decode(notice.params)
        if not failure.will_retry or failure.turn_id not in ("", self.turn):
            return []
        self._retries += 1
        self._streams = {}
        detail = " ".join(
            part
            for part in (failure.error.message, failure.error.additional_details)
            if part
        )
        return [
            ModelRetried(
                reason="connection",
                detail=detail,
                attempt=self._retries,
                provider=PROVIDER,
            )
        ]

    def _ended(self, notice: CodexNotification) -> list[Event]:
        turn = _COMPLETED.decode(notice.params).turn
        if turn.id != self.turn:
            return []
        error = turn.error or _TurnError()
        detail = " ".join(
            part for part in (error.message, error.additional_details) if part
        )
        self.ending = Ending(turn.status, detail, error.codex_error_info)
        unseen = [
            item
            for item in map(read_item, turn.items)
            if isinstance(item, AgentMessage)
        ]
        return [
            event
            for item in unseen
            if item.id not in self.items
            for event in self._add_item(item)
        ]


def _shown(events: list[ModelEvent]) -> list[Event]:
    """Text and thinking as surfaces show them while they are written."""
    shown: list[Event] = []
    for event in events:
        if isinstance(event, TextDelta):
            shown.append(MessageDelta(text=event.text))
        elif isinstance(event, ReasoningPiece):
            shown.append(ReasoningDelta(text=event.text))
    return shown
