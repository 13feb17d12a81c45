"""The goal of a session as its log records it: what to reach, how far the work has come, and what comes next."""

from typing import Literal, TypeAlias

from hermes.schema.event_base import Event
from hermes.schema.events import (
    InterruptRequested,
    SessionUndone,
    TurnEnded,
    TurnStarted,
)
from hermes.schema.goals import (
    GoalCleared,
    GoalJudged,
    GoalPaused,
    GoalResumed,
    GoalSet,
    GoalWoken,
    SubgoalsChanged,
)
from hermes.schema.messages import AssistantMessage
from hermes.text.translation import translator

t = translator(__name__)

GoalStatus: TypeAlias = Literal["none", "active", "waiting", "paused", "done"]

_UNDONE = t.logged("A turn was undone.")
_STOPPED = t.logged("You stopped it.")


class GoalProgress:
    """The state of a session's goal after each row of its log."""

    def __init__(self) -> None:
        self.goal: GoalSet | None = None
        self.status: GoalStatus = "none"
        self.why = ""
        """Why it is paused, waits or is done."""
        self.subgoals: tuple[str, ...] = ()
        self.turns = 0
        """Turns that were judged since it was set or resumed."""
        self.since = 0
        """The `seq` of the row that set it."""
        self.began = 0
        """The `seq` of the row that set or resumed it."""
        self.last: GoalJudged | None = None
        self.woken = ""
        """What ended the last wait, until a turn begins."""
        self.is_due = False
        """Whether it must be judged before anything else happens."""
        self.turn = ""
        self.turn_seq = 0
        self.had_turns = False
        """Whether the session had turns before the goal."""
        self.ended: TurnEnded | None = None
        self.reply = ""
        """The last answer."""
        self.was_stopped = False
        """Whether a person stopped the last turn."""

    @property
    def is_fresh(self) -> bool:
        """Whether no turn has begun since it was set or resumed."""
        return self.turn_seq < self.began

    @property
    def is_open(self) -> bool:
        """Whether work on it goes on, now or after a wait."""
        return self.status in ("active", "waiting")

    def add(self, seq: int, event: Event | None, turn: str = "") -> None:
        """Adds the next row."""
        match event:
            case TurnStarted():
                self.turn, self.turn_seq, self.ended = turn, seq, None
                self.reply, self.was_stopped, self.woken = "", False, ""
            case AssistantMessage(text=text) if text.strip():
                self.reply = text
            case InterruptRequested():
                self.was_stopped = True
                if self.status == "waiting":
                    self.status, self.why = "paused", _STOPPED
            case TurnEnded():
                self.ended, self.had_turns = event, True
                self._turn_ended()
            case GoalSet():
                self._set(seq, event)
            case SubgoalsChanged(subgoals=subgoals):
                self.subgoals = subgoals
            case _ if self.goal is not None:
                self._change(seq, event)
            case _:
                pass

    def _set(self, seq: int, goal: GoalSet) -> None:
        self.goal, self.since, self.began, self.turns = goal, seq, seq, 0
        self.subgoals, self.last, self.why = (), None, ""
        self.status = "paused" if goal.is_draft else "active"
        self.is_due = self.status == "active"
        self.was_stopped = False

    def _turn_ended(self) -> None:
        if self.is_open:
            self.status, self.is_due = "active", True

    def _change(self, seq: int, event: Event | None) -> None:
        match event:
            case GoalJudged():
                self._judged(event)
            case GoalWoken(reason=reason) if self.status == "waiting":
                self.status, self.why, self.woken = "active", "", reason
            case GoalPaused(reason=reason) if self.is_open:
                self.status, self.why, self.is_due = "paused", reason, False
            case GoalResumed() if self.status != "none":
                self.status, self.why, self.is_due = "active", "", True
                self.began = seq
                self.turns, self.last, self.was_stopped = 0, None, False
            case GoalCleared():
                self.goal, self.status, self.why, self.is_due = None, "none", "", False
                self.subgoals = ()
            case SessionUndone() if self.status in ("active", "waiting", "done"):
                self.status, self.why, self.is_due = "paused", _UNDONE, False
            case _:
                pass

    def _judged(self, judged: GoalJudged) -> None:
        self.last, self.turns, self.is_due = judged, judged.turns, False
        self.why, self.woken = judged.reason, ""
        if not self.is_open:
            return
        match judged.verdict:
            case "done":
                self.status = "done"
            case "needs_you":
                self.status = "paused"
            case "wait":
                self.status = "waiting"
            case _:
                self.status, self.why = "active", ""
