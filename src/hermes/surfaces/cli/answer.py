"""The outcome of a one-shot run, read from its events: the answer, how the turn ended, and the exit code."""

from collections.abc import Mapping
from typing import Any

from hermes.schema.events import TurnEnd
from hermes.text.translation import translator

t = translator(__name__)


DONE, FAILED, REFUSED, INTERRUPTED = 0, 1, 3, 130

_CODES: Mapping[TurnEnd, int] = {
    "done": DONE,
    "refused": REFUSED,
    "interrupted": INTERRUPTED,
    "failed": FAILED,
    "crashed": FAILED,
    "budget": FAILED,
}


class Answer:
    """Follows the events of one session."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._is_other_turn = False
        self.message: int | None = None
        """The `seq` of the question, once it is known: turns about other messages do not count."""
        self._parts: list[str] = []
        self._goes_on = False
        self._streamed: list[str] = []
        self._asked: dict[str, str] = {}
        self.denied: list[str] = []
        """Calls that were denied because nobody could be asked."""
        self.declined: list[str] = []
        """Calls that a person denied."""
        self.failed_checks: list[str] = []
        """Commands of the project's rules that failed after the last change."""
        self.ended: TurnEnd | None = None
        self.detail = ""
        self.provider = ""
        """Who wrote the last reply."""
        self.model = ""

    @property
    def text(self) -> str:
        """The final answer; while there is none, what was streamed of it."""
        return "".join(self._parts or self._streamed).strip("\n")

    @property
    def note(self) -> str:
        """A note about a local model that answered; empty for any other."""
        if self.provider != "embedded" or not self.text:
            return ""
        from hermes.providers.local_model import display_name

        who = display_name(self.model)
        return t(
            "Answered by {who}, a small model on this machine: double-check it. For a larger model: hermes setup",
            who=who,
        )

    @property
    def code(self) -> int:
        """The exit code."""
        if self.ended is None:
            return FAILED
        if self.ended == "done" and self.failed_checks:
            return FAILED
        return (
            REFUSED
            if self.ended == "done" and (self.denied or self.declined)
            else _CODES[self.ended]
        )

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Updates the outcome from an event."""
        if event.get("session_id") != self._session:
            return
        if event["type"] == "agent.turn.started" and self.message is not None:
            self._is_other_turn = self.message not in event.get("inputs", ())
        if not self._is_other_turn:
            self._add(event)

    def _add(self, event: Mapping[str, Any]) -> None:
        match event["type"]:
            case "agent.message.delta":
                self._streamed.append(event["text"])
            case "agent.message.assistant":
                self._add_reply(event)
            case "agent.reply.rejected":
                self._reject(event["reason"])
            case "agent.model.retried":
                self._streamed.clear()
            case "agent.approval.requested":
                self._asked[event["call_id"]] = event.get("summary") or event["name"]
            case "agent.approval.answered":
                self._add_denial(event)
            case "agent.turn.checked":
                self.failed_checks = _failed_checks(event)
            case "agent.turn.started":
                self.failed_checks.clear()
                self._parts.clear()
                self._streamed.clear()
                self._goes_on = False
            case "agent.turn.ended":
                self.ended, self.detail = event["reason"], event.get("detail", "")
                if self.ended == "failed":
                    self._streamed.clear()  # half a reply is not an answer
            case _:
                pass

    def _add_denial(self, event: Mapping[str, Any]) -> None:
        if event["answer"] == "deny":
            calls = self.denied if event.get("by") == "nobody" else self.declined
            calls.append(self._asked.get(event["call_id"], event["call_id"]))

    def _add_reply(self, message: Mapping[str, Any]) -> None:
        """Adds a reply. One with calls is not the answer; one that follows a truncated reply continues it."""
        self._streamed.clear()
        self.provider, self.model = (
            message.get("provider", ""),
            message.get("model", ""),
        )
        if not self._goes_on:
            self._parts.clear()
        self._goes_on = False
        if not message.get("tool_calls"):
            self._parts.append(message.get("text", ""))

    def _reject(self, reason: str) -> None:
        if reason == "truncated":
            self._goes_on = True
        elif self._parts:
            self._parts.pop()


def _failed_checks(event: Mapping[str, Any]) -> list[str]:
    checks = event.get("checks") or ()
    return [one["command"] for one in checks if one["outcome"] == "failed"]
