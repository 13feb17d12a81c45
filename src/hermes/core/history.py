"""The conversation as a model sees it, made from the log row by row.

The same rows always give the same messages, and a new row only adds at the end, so each request begins with the bytes
of the one before. A person's message enters where a turn took it in, not where it was typed. Results follow their call,
in the order of the calls. Only an undo removes messages, and leaves what was there before the undone turns.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from hermes.core.answers import Answer, Request, is_same_kind
from hermes.core.compaction import compacted
from hermes.core.context_window import trim
from hermes.core.goal_progress import GoalProgress
from hermes.schema.event_base import Event
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    CodexThread,
    MessagePinned,
    MessageUnpinned,
    MessageWithdrawn,
    Mode,
    ModeChanged,
    PermissionsRevoked,
    PictureDescribed,
    PictureReduced,
    PictureWithheld,
    QuestionAnswered,
    QuestionAsked,
    SessionAgentChosen,
    SessionCompacted,
    SessionModelChosen,
    SessionPrompted,
    SessionRedone,
    SessionTitled,
    SessionTrimmed,
    SessionUndone,
    Steered,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from hermes.schema.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolFinished,
    UserMessage,
)
from hermes.schema.tool_spec import ToolSpec


class Beginning(msgspec.Struct, frozen=True):
    """The state before a turn: what had been said and which permissions had been granted."""

    seq: int
    turn: str
    messages: int
    allowed: frozenset[str]
    then: tuple[str, ...] = ()
    """Turns that continued calls which this one left open after a crash. They have no state of their own."""


class _TakenBack(msgspec.Struct, frozen=True):
    """What an undo removed, as long as it can be redone."""

    seq: int
    messages: list[Message]
    turns: list[Beginning]
    allowed: frozenset[str]


class UndoneRows:
    """Finds the undone rows of a log, for readers that show it. Rows must come newest first, because an undo comes after
    the rows that it removes."""

    def __init__(self) -> None:
        self._turns: set[str] = set()
        self._inputs: set[int] = set()
        self._redone: set[int] = set()

    def covers(self, seq: int, event: Event | None, turn: str) -> bool:
        """Whether this row was undone and should not be shown."""
        match event:
            case SessionRedone(undone=undone):
                self._redone.add(undone)
            case SessionUndone(turns=turns) if seq not in self._redone:
                self._turns.update(turns)
            case TurnStarted(inputs=inputs) | Steered(inputs=inputs) if (
                turn in self._turns
            ):
                self._inputs.update(inputs)
            case _:
                pass
        return turn in self._turns or seq in self._inputs


def _without(turn: Beginning, permissions: frozenset[str]) -> Beginning:
    return msgspec.structs.replace(turn, allowed=turn.allowed - permissions)


class ConversationHistory:
    """The messages so far, those that wait for a turn, and what a crash left open."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.waiting: dict[int, UserMessage] = {}
        self._withdrawn: dict[int, UserMessage] = {}
        self.open_calls: dict[str, ToolCall] = {}
        self._started: dict[
            str, str
        ] = {}  # calls that began, and those nested in them, without a result: their tools
        self.asked_calls: dict[str, Request] = {}
        """Calls that wait for a person, with their question."""
        self._answered_calls: dict[str, Request] = {}  # and have no result yet
        self.allowed: set[str] = set()
        """Scopes and shapes of calls that the user has allowed for the rest of the session."""
        self.mode: Mode | None = None
        """What the user chose to run without asking; None for the default of the surface."""
        self.approved: Counter[str] = Counter()
        """How often calls were allowed, by scope, or by shape if they have no scope."""
        self.has_images = False
        """Whether any message so far brought an image."""
        self.text_only: set[str] = set()
        """Images that the user was told the model can't see."""
        self.call_ids: set[str] = set()
        """Every call of the session so far."""
        self.open_turn = ""
        self.prompt: SessionPrompted | None = None
        self.title = ""
        """The title, whoever chose it; empty while there is none."""
        self.agent = ""
        """The agent file that the session works as."""
        self.model = ""
        """The model that was chosen for the session; empty for that of the settings."""
        self.codex_thread: CodexThread | None = None
        """The thread that codex continues, if it still matches this history."""
        self.goal = GoalProgress()
        """What the session works towards, beyond single turns."""
        self.pinned: dict[int, MessagePinned] = {}
        """The messages that compaction keeps word for word, by the `seq` of their pin."""
        self.turns: list[Beginning] = []
        """The turns that the model sees, in order."""
        self._taken_back: list[_TakenBack] = []
        self._results: dict[str, ToolFinished] = {}

    @property
    def system(self) -> tuple[str, ...]:
        """The parts of the system prompt; empty before the first turn."""
        return self.prompt.system if self.prompt else ()

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools that the model was offered; empty before the first turn."""
        return self.prompt.tools if self.prompt else ()

    def add(self, seq: int, event: Event | None, turn: str = "") -> None:
        """Adds the next row."""
        self.goal.add(seq, event, turn)
        match event:
            case UserMessage():
                self.has_images = self.has_images or bool(event.images)
                if event.origin == "user":
                    self.waiting[seq] = event
                else:
                    self.messages.append(event)
            case Steered(inputs=inputs):
                self._deliver(inputs)
            case MessageWithdrawn(message=number) if number in self.waiting:
                self._withdrawn[number] = self.waiting.pop(number)
            case AssistantMessage():
                self._add_reply(event)
            case ToolStarted(call_id=call_id, name=name):
                self._started[call_id] = name
            case ApprovalRequested(call_id=call_id) | QuestionAsked(call_id=call_id):
                self.asked_calls[call_id] = event
            case ApprovalAnswered() | QuestionAnswered():
                self._answered(event)
            case ToolFinished():
                self.has_images = self.has_images or bool(event.images)
                self._finished(event)
            case SessionPrompted():
                self.prompt = event
            case _:
                self._pass_over(seq, event, turn)

    def _pass_over(self, seq: int, event: Event | None, turn: str) -> None:
        """Adds the beginning or end of a turn, an undo, or a redo."""
        match event:
            case TurnStarted(inputs=inputs):
                self._begin(seq, turn)
                self._deliver(inputs)
            case TurnEnded():
                # Whoever ended the turn of a dead process gave a result to every call but those it knew to wait. An
                # answer that it had not read reached nobody: the question is open again.
                asked = self.asked_calls | self._answered_calls
                self.open_turn = ""
                self._answered_calls = {}
                self.asked_calls = {
                    call_id: request
                    for call_id, request in asked.items()
                    if call_id in self.open_calls
                }
            case SessionTrimmed():
                self.messages = trim(self.messages, event)
            case SessionCompacted():
                self._compact(event)
            case PictureWithheld(sources=sources, why="text_only"):
                self.text_only.update(sources)
            case PictureDescribed() | PictureReduced() | PictureWithheld():
                self.messages = change_pictures(self.messages, event)
            case SessionUndone(since=since):
                self._undo(seq, since)
            case SessionRedone(undone=undone):
                self._redo(undone)
            case _:
                self._choose(seq, event)

    def _choose(self, seq: int, event: Event | None) -> None:
        """Adds what was chosen for the session: a title, a thread of codex, an agent, a model, a pin."""
        match event:
            case PermissionsRevoked(permissions=permissions):
                self._revoke(frozenset(permissions))
            case ModeChanged(mode=mode):
                self.mode = mode
            case SessionTitled(title=title):
                self.title = title
            case CodexThread():
                self.codex_thread = event
            case SessionAgentChosen(agent=agent):
                self.agent = agent
            case SessionModelChosen(model=model):
                self.model = model
            case MessagePinned():
                self.pinned[seq] = event
            case MessageUnpinned(pinned=pinned):
                self.pinned.pop(pinned, None)
            case _:
                pass

    def _begin(self, seq: int, turn: str) -> None:
        self.open_turn = turn
        self._taken_back = []
        if self.open_calls and self.turns:
            last = self.turns[-1]
            self.turns[-1] = msgspec.structs.replace(last, then=(*last.then, turn))
        else:
            self.turns.append(
                Beginning(seq, turn, len(self.messages), frozenset(self.allowed))
            )

    def steers(self) -> tuple[int, ...]:
        """Messages that steer the running turn."""
        return tuple(
            seq for seq, message in self.waiting.items() if message.delivery == "steer"
        )

    @property
    def redoable(self) -> int:
        """The `seq` of the undo that can be redone; 0 if there is none."""
        return self._taken_back[-1].seq if self._taken_back else 0

    def _revoke(self, permissions: frozenset[str]) -> None:
        """Revokes permissions permanently: neither an undo nor a redo restores them."""
        self.allowed -= permissions
        self.turns = [_without(turn, permissions) for turn in self.turns]
        self._taken_back = [
            msgspec.structs.replace(
                taken,
                allowed=taken.allowed - permissions,
                turns=[_without(turn, permissions) for turn in taken.turns],
            )
            for taken in self._taken_back
        ]

    def _undo(self, seq: int, since: int) -> None:
        """Goes back to before the turn that began at `since`. Messages that wait go on waiting."""
        place = next(
            (place for place, turn in enumerate(self.turns) if turn.seq == since), None
        )
        if place is None:
            return
        first = self.turns[place]
        taken = _TakenBack(
            seq,
            self.messages[first.messages :],
            self.turns[place:],
            frozenset(self.allowed),
        )
        self._taken_back.append(taken)
        self.turns = self.turns[:place]
        self.messages = self.messages[: first.messages]
        self.allowed = set(first.allowed)
        self.open_turn = ""
        self._forget_calls()

    def _redo(self, undone: int) -> None:
        if self.redoable != undone or not undone:
            return
        taken = self._taken_back.pop()
        self.messages = self.messages + taken.messages
        self.turns = self.turns + taken.turns
        self.allowed = set(taken.allowed)

    def _compact(self, row: SessionCompacted) -> None:
        """Compacts the messages. Turns that are in the summary can't be undone any more."""
        start = len(self.messages) - row.tail
        before = len(self.messages)
        self.messages = compacted(self.messages, row, list(self.pinned.values()))
        shift = before - len(self.messages)
        self.turns = [
            msgspec.structs.replace(turn, messages=turn.messages - shift)
            for turn in self.turns
            if turn.messages >= start
        ]
        self._taken_back = []

    def _forget_calls(self) -> None:
        self.open_calls = {}
        self._results = {}
        self._started = {}
        self.asked_calls = {}
        self._answered_calls = {}

    def _deliver(self, inputs: tuple[int, ...]) -> None:
        for seq in inputs:
            # A turn that began at the same moment has read it all the same.
            message = self.waiting.pop(seq, None) or self._withdrawn.pop(seq, None)
            if message is not None:
                self.messages.append(message)

    def _answered(self, answer: Answer) -> None:
        request = self.asked_calls.get(answer.call_id)
        if request is None or not is_same_kind(request, answer):
            return
        if not self.open_turn:  # nobody waits for it: it must be asked again
            return
        del self.asked_calls[answer.call_id]
        self._answered_calls[answer.call_id] = request
        if not isinstance(answer, ApprovalAnswered) or not isinstance(
            request, ApprovalRequested
        ):
            return
        if answer.answer != "deny":
            self.approved[request.scope or request.shape] += 1
        if answer.answer in ("session", "always") and request.memorable:
            is_rule = bool(answer.rule) and answer.rule == request.scope
            only_same = answer.answer == "always" and not is_rule
            self.allowed.add(
                request.shape if only_same else request.scope or request.shape
            )

    def _add_reply(self, message: AssistantMessage) -> None:
        if message.text or message.tool_calls:
            self.messages.append(message)
        self._forget_calls()
        self.open_calls = {call.id: call for call in message.tool_calls}
        self.call_ids.update(self.open_calls)

    def _finished(self, result: ToolFinished) -> None:
        self.asked_calls.pop(result.call_id, None)
        self._answered_calls.pop(result.call_id, None)
        self._started.pop(result.call_id, None)
        if self.open_calls.get(result.call_id) is None:
            return
        self._results[result.call_id] = result
        if len(self._results) == len(self.open_calls):
            self.messages += [self._results[call_id] for call_id in self.open_calls]
            self.open_calls = {}
            self._results = {}

    def unfinished(self, running: str) -> list[ToolFinished]:
        """Results for the calls that have none when a turn ends. `running` is the text for those that ran.

        Calls that another call made, as `run_python` does, come before the model's own.
        """
        nested = {
            call_id: name
            for call_id, name in self._started.items()
            if call_id not in self.open_calls
        }
        own = {
            call_id: call.name
            for call_id, call in self.open_calls.items()
            if call_id not in self._results
        }
        return [
            ToolFinished(
                call_id=call_id, name=name, text=self._fate(call_id, running), ok=False
            )
            for call_id, name in (nested | own).items()
        ]

    def _fate(self, call_id: str, running: str) -> str:
        if isinstance(self.asked_calls.get(call_id), ApprovalRequested):
            return "Not run: it was not approved."
        return (
            running
            if call_id in self._started
            else "Not run: the turn ended before this call began."
        )


def change_pictures(messages: Sequence[Message], event: Event) -> list[Message]:
    """The messages with their images changed as an event says."""
    match event:
        case PictureDescribed(source=source, text=text):
            return [
                _with_pictures(message, (source,), {"description": text})
                for message in messages
            ]
        case PictureReduced(sources=sources):
            return [
                _with_pictures(message, sources, {"reduced": True})
                for message in messages
            ]
        case PictureWithheld(sources=sources, why="refused"):
            return [
                _with_pictures(message, sources, {"withheld": True})
                for message in messages
            ]
        case _:
            return list(messages)


def _with_pictures(
    message: Message, sources: Collection[str], changes: Mapping[str, Any]
) -> Message:
    """The message with those images changed, if it has any of them."""
    if isinstance(message, AssistantMessage) or all(
        image.source not in sources for image in message.images
    ):
        return message
    images = (
        msgspec.structs.replace(image, **changes) if image.source in sources else image
        for image in message.images
    )
    return msgspec.structs.replace(message, images=tuple(images))
