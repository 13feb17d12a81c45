"""What is being said right now: the parts of a session that are not in its log yet, for somebody who comes in late."""

from collections.abc import Mapping
from typing import Any

_TAIL = 64 * 1024  # characters of a tool's output that are kept
_MOST = 1024 * 1024  # characters of a reply


class _Said:
    """The beginning of a text that comes in pieces; what goes beyond is not kept."""

    __slots__ = ("_pieces", "_room")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self._pieces: list[str] = []
        self._room = _MOST

    def add(self, piece: str) -> None:
        if piece and self._room > 0:
            self._room -= len(piece)
            self._pieces.append(piece)

    def show(self) -> str:
        self._pieces = ["".join(self._pieces)[:_MOST]]
        return self._pieces[0]


class Partial:
    """Follows one session's transient events. A durable one that says the same makes them void."""

    def __init__(self) -> None:
        self.epoch = 0
        self.head = 0
        self.turn = ""
        self._text = _Said()
        self._reasoning = _Said()
        self._tools: dict[str, str] = {}

    def note(self, event: Mapping[str, Any]) -> None:
        """Takes in an event of the session."""
        match event.get("type"):
            case "agent.message.delta":
                self._text.add(str(event.get("text", "")))
                self.turn = str(event.get("turn_id", ""))
            case "agent.reasoning.delta":
                self._reasoning.add(str(event.get("text", "")))
                self.turn = str(event.get("turn_id", ""))
            case "agent.tool.progress":
                call = str(event.get("call_id", ""))
                self._tools[call] = (
                    self._tools.get(call, "") + str(event.get("text", ""))
                )[-_TAIL:]
            case "agent.tool.finished":
                self._tools.pop(str(event.get("call_id", "")), None)
            case (
                "agent.message.assistant"
                | "agent.model.retried"
                | "agent.reply.rejected"
            ):
                self._text.clear()
                self._reasoning.clear()
            case "agent.turn.started" | "agent.turn.ended":
                self._text.clear()
                self._reasoning.clear()
                self._tools.clear()
            case _:
                pass

    def show(self, session: str) -> dict[str, Any]:
        """The `feed.partial` event."""
        return {
            "type": "feed.partial",
            "session_id": session,
            "turn_id": self.turn,
            "text": self._text.show(),
            "reasoning": self._reasoning.show(),
            "tools": dict(self._tools),
        }
