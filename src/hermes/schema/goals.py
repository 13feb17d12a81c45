"""The events of goals, which a session works towards turn by turn, and of the sessions that work for another one."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from msgspec import Meta

from hermes.schema.event_base import Event
from hermes.schema.events import RuleCheck

GoalVerdict: TypeAlias = Literal["done", "continue", "wait", "needs_you"]
GoalWait: TypeAlias = Literal["", "process", "time", "child", "event"]
GOAL_VIA = "goal"
"""The `via` of a message that Hermes wrote to go on with a goal."""


class GoalSet(Event, frozen=True, kw_only=True):
    """A goal was set: after each turn Hermes checks it, and goes on until it is reached or something stops it."""

    topic: ClassVar[str] = "agent.goal.set"
    sensitive: ClassVar[tuple[str, ...]] = ("text", "verify", "constraints")

    text: Annotated[str, Meta(description="What is to be reached.")]
    verify: Annotated[
        str,
        Meta(description="A command that must succeed; Hermes runs it in the sandbox."),
    ] = ""
    constraints: Annotated[str, Meta(description="What must stay true.")] = ""
    stop_when: Annotated[
        str, Meta(description="When to stop and ask, although it is not reached.")
    ] = ""
    max_turns: Annotated[int, Meta(description="The most turns that it may take.")] = 20
    budget: Annotated[
        str, Meta(description="The most that it may use; empty for no cap of its own.")
    ] = ""
    spent_usd: Annotated[
        float, Meta(description="What the session had cost before, with its children.")
    ] = 0.0
    spent_tokens: Annotated[
        int, Meta(description="The tokens that it had used before.")
    ] = 0
    by: Annotated[str, Meta(description="Surface that set it.")] = ""
    is_draft: Annotated[
        bool, Meta(description="Whether a model wrote it and a person must resume it.")
    ] = False


class SubgoalsChanged(Event, frozen=True, kw_only=True):
    """The list of subgoals was changed."""

    topic: ClassVar[str] = "agent.goal.subgoals_changed"
    sensitive: ClassVar[tuple[str, ...]] = ("subgoals",)

    subgoals: Annotated[
        tuple[str, ...], Meta(description="All of them, in order.")
    ] = ()


class GoalJudged(Event, frozen=True, kw_only=True):
    """A goal was checked after a turn, or before the first one."""

    topic: ClassVar[str] = "agent.goal.judged"
    reasons: ClassVar[tuple[str, ...]] = ("reason",)
    sensitive: ClassVar[tuple[str, ...]] = ("reason", "check", "wait_where")

    verdict: Annotated[GoalVerdict, Meta(description="What follows.")]
    reason: Annotated[str, Meta(description="Why, for a person.")] = ""
    turns: Annotated[
        int, Meta(description="How many turns it took since it was set or resumed.")
    ] = 0
    check: Annotated[
        RuleCheck | None, Meta(description="The result of the `verify` command.")
    ] = None
    judge: Annotated[
        str, Meta(description="Model that judged; empty if a rule decided.")
    ] = ""
    wait_for: Annotated[GoalWait, Meta(description="What a wait ends with.")] = ""
    wait_name: Annotated[
        str,
        Meta(
            description="The process, the child session or the topic of the event that is waited for."
        ),
    ] = ""
    wait_where: Annotated[
        tuple[str, ...],
        Meta(description="What the awaited event must have, as `field=value`."),
    ] = ()
    wait_row: Annotated[
        int, Meta(description="Id of the log's row after which the event counts.")
    ] = 0
    wait_since: Annotated[
        float, Meta(description="Unix seconds since when the event counts.")
    ] = 0.0
    until: Annotated[
        float, Meta(description="Unix seconds at which a wait ends at the latest.")
    ] = 0.0
    reply: Annotated[
        str, Meta(description="Hash of the turn's answer, to notice a repetition.")
    ] = ""
    failure: Annotated[
        str, Meta(description="Hash of what failed, to notice a repetition.")
    ] = ""


class GoalWoken(Event, frozen=True, kw_only=True):
    """The wait of a goal has ended; work goes on."""

    topic: ClassVar[str] = "agent.goal.woken"
    reasons: ClassVar[tuple[str, ...]] = ("reason",)

    reason: Annotated[str, Meta(description="What ended the wait.")] = ""


class GoalPaused(Event, frozen=True, kw_only=True):
    """A goal was paused, by a person or by a limit. Nothing goes on until somebody resumes it."""

    topic: ClassVar[str] = "agent.goal.paused"
    reasons: ClassVar[tuple[str, ...]] = ("reason",)
    sensitive: ClassVar[tuple[str, ...]] = ("reason",)

    reason: Annotated[str, Meta(description="Why, for a person.")] = ""
    by: Annotated[
        str, Meta(description="Surface that paused it; `hermes` for a limit.")
    ] = ""


class GoalResumed(Event, frozen=True, kw_only=True):
    """A goal goes on, with its turns counted from zero."""

    topic: ClassVar[str] = "agent.goal.resumed"

    by: Annotated[str, Meta(description="Surface that resumed it.")] = ""


class GoalCleared(Event, frozen=True, kw_only=True):
    """A goal was dropped."""

    topic: ClassVar[str] = "agent.goal.cleared"

    by: Annotated[str, Meta(description="Surface that cleared it.")] = ""


class GoalChecking(Event, frozen=True, kw_only=True):
    """Hermes is checking a goal."""

    topic: ClassVar[str] = "agent.goal.checking"
    durable: ClassVar[bool] = False

    step: Annotated[
        Literal["verify", "judge", ""],
        Meta(description="What runs: the command, or the judge; empty at the end."),
    ] = ""


class ChildAttached(Event, frozen=True, kw_only=True):
    """Another session works in the background for whoever is in this one."""

    topic: ClassVar[str] = "agent.child.attached"

    child: Annotated[str, Meta(description="The session that works.")]
    is_moved: Annotated[
        bool, Meta(description="Whether it was the session of this chat before.")
    ] = False


class ChildEnded(Event, frozen=True, kw_only=True):
    """A session that worked for this one has ended."""

    topic: ClassVar[str] = "agent.child.ended"
    reasons: ClassVar[tuple[str, ...]] = ("detail",)
    sensitive: ClassVar[tuple[str, ...]] = ("title", "text")

    child: Annotated[str, Meta(description="The session that worked.")]
    kind: Annotated[
        str, Meta(description="How it was started: delegate, background, review.")
    ] = ""
    reason: Annotated[str, Meta(description="How its last turn ended.")] = ""
    detail: Annotated[str, Meta(description="Details for the user.")] = ""
    title: Annotated[str, Meta(description="What it worked on.")] = ""
    text: Annotated[str, Meta(description="The beginning of its answer.")] = ""
    cost_usd: Annotated[float, Meta(description="What it cost, as far as known.")] = 0.0
    ended: Annotated[
        int, Meta(description="`seq` of the end of its last turn, in its own log.")
    ] = 0


GOAL_EVENTS: tuple[type[Event], ...] = (
    GoalSet,
    SubgoalsChanged,
    GoalJudged,
    GoalWoken,
    GoalPaused,
    GoalResumed,
    GoalCleared,
    GoalChecking,
    ChildAttached,
    ChildEnded,
)
