"""Derives what Hermes is doing from events: a state machine for each session, and one overall
state.

Pure: it uses no bus, no clock and no page. Events go in with the time, a `Mood` comes out.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

State: TypeAlias = Literal[
    "idle", "listening", "thinking", "speaking", "tool", "waiting", "error"
]

PATTERNS = ("agent.**", "gateway.**", "tui.**")
RANK: tuple[State, ...] = (
    "idle",
    "listening",
    "thinking",
    "tool",
    "speaking",
    "error",
    "waiting",
)
"""In ascending priority: of several sessions, the one whose state is last in this list is shown."""
LASTS: Mapping[State, float] = {
    "idle": 0.0,
    "listening": 30.0,
    "thinking": 900.0,
    "speaking": 20.0,
    "tool": 7200.0,
    "waiting": 86400.0,
    "error": 6.0,
}
"""Seconds after which a state expires: a process may have died silently."""
_MAX_ORB_SESSIONS = 256  # sessions that are remembered
_STEP = ""  # stands for calls that a gateway reports by tool name only
_STEPPED = "gateway.agent.step"
_FINE = frozenset({"done", "interrupted", ""})  # endings of a turn without an error
_Meaning: TypeAlias = State | Literal["work", "over"]
_SAYS: Mapping[str, State] = {
    "message.user": "listening",
    "message.delta": "speaking",
    "message.assistant": "speaking",
    _STEPPED: "speaking",
    "error": "error",
}
_OVER = frozenset(
    {
        "message.complete",
        "turn.ended",
        "gateway.agent.end",
        "gateway.session.end",
        "gateway.session.reset",
    }
)
_WORK = frozenset(
    {
        "message.start",
        "reasoning.delta",
        "reasoning.available",
        "model.preparing",
        "model.retried",
        "reply.rejected",
    }
    | {"turn.started", "turn.steered", "gateway.agent.start"}
    | {
        "tool.generating",
        "tool.start",
        "tool.started",
        "tool.progress",
        "tool.complete",
        "tool.finished",
    }
    | {"approval.requested", "approval.answered", "question.asked", "question.answered"}
)


class Mood(NamedTuple):
    """The overall state. `busy` counts the active sessions; `where` names a chat app, if it is one."""

    state: State = "idle"
    tool: str = ""
    where: str = ""
    session: str = ""
    busy: int = 0


class SessionActivity:
    """The state of one session, derived from its events."""

    def __init__(self) -> None:
        self.state: State = "idle"
        self.at = 0.0
        self.where = ""
        self._tools: dict[str, str] = {}
        self._questions: set[str] = set()

    @property
    def tool(self) -> str:
        """The running tool that started last."""
        if self.state == "tool":
            return next(reversed(self._tools.values()), "")
        return ""

    def take(self, event: Mapping[str, Any], now: float) -> None:
        """Applies one event."""
        kind = str(event["type"]).removeprefix("agent.").removeprefix("tui.")
        meaning = _meaning(kind, event)
        if meaning is None:
            return
        self._keep(kind, event)
        self.state = self._next(meaning, event)
        self.at = now
        self.where = str(event.get("platform") or self.where)

    def _keep(self, kind: str, event: Mapping[str, Any]) -> None:
        """Updates the running tools and the open questions."""
        call = str(event.get("call_id") or event.get("name", ""))
        match kind:
            case "tool.start" | "tool.started":
                self._tools.pop(_STEP, None)
                self._tools[call] = str(event.get("name", ""))
            case "tool.complete" | "tool.finished":
                self._tools.pop(_STEP, None)
                self._tools.pop(call, None)
            case "gateway.agent.step":
                names = event.get("tool_names")
                self._tools = {_STEP: str(names[0])} if names else {}
            case "approval.requested" | "question.asked":
                self._questions.add(call)
            case "approval.answered" | "question.answered":
                self._questions.discard(call)
            case _:
                pass

    def _next(self, meaning: _Meaning, event: Mapping[str, Any]) -> State:
        if meaning == "over":
            self._tools.clear()
            self._questions.clear()
            return "idle" if event.get("reason", "") in _FINE else "error"
        if meaning == "error":
            return "error"
        if self._questions:
            return "waiting"
        if meaning == "work":
            return "tool" if self._tools else "thinking"
        return meaning


class Orb:
    """The states of all sessions."""

    def __init__(self) -> None:
        self._sessions: dict[str, SessionActivity] = {}

    def take(self, event: Mapping[str, Any], now: float) -> None:
        """Applies an event."""
        name = str(event.get("session_id") or event["type"].partition(".")[0])
        one = self._sessions.pop(name, None) or SessionActivity()
        one.take(event, now)
        if one.state == "idle":
            return
        self._sessions[name] = one  # the newest goes last
        if len(self._sessions) > _MAX_ORB_SESSIONS:
            del self._sessions[next(iter(self._sessions))]

    def mood(self, now: float) -> Mood:
        """Returns the overall state at a time. Expired states are dropped."""
        for name in [
            name
            for name, one in self._sessions.items()
            if now - one.at > LASTS[one.state]
        ]:
            del self._sessions[name]
        if not self._sessions:
            return Mood()
        name, one = max(
            self._sessions.items(),
            key=lambda item: (RANK.index(item[1].state), item[1].at),
        )
        return Mood(one.state, one.tool, one.where, name, len(self._sessions))

    def until(self, now: float) -> float | None:
        """Returns the seconds until the state changes by itself; None if it does not."""
        return min(
            (
                max(0.0, one.at + LASTS[one.state] - now)
                for one in self._sessions.values()
            ),
            default=None,
        )


def _meaning(kind: str, event: Mapping[str, Any]) -> _Meaning | None:
    """Returns the meaning of an event of a turn, or of the terminal that shows one: `work` is
    thinking or a tool.
    """
    calls = event.get("tool_calls") or event.get("tool_names")
    if kind in _WORK or (calls and kind in {"message.assistant", _STEPPED}):
        return "work"
    if kind in _OVER:
        return "over"
    return "listening" if kind.startswith("gateway.command.") else _SAYS.get(kind)
