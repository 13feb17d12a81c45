"""The part of a session that is not in its log yet: the reply being streamed and the output of running tools."""

from collections.abc import Mapping
from typing import Any

from hermes.primitives.untyped import object_in

_MAX_TOOL_OUTPUT_CHARS = 64 * 1024  # the end of it
_MAX_REPLY_CHARS = 1024 * 1024  # the beginning of it


class _StreamedText:
    """Text that arrives in pieces. Only its beginning is kept."""

    __slots__ = ("_chars_left", "_pieces")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self._pieces: list[str] = []
        self._chars_left = _MAX_REPLY_CHARS

    def add(self, piece: str) -> None:
        if piece and self._chars_left > 0:
            self._chars_left -= len(piece)
            self._pieces.append(piece)

    def text(self) -> str:
        self._pieces = ["".join(self._pieces)[:_MAX_REPLY_CHARS]]
        return self._pieces[0]


class LiveReply:
    """Follows the events of one session. A durable event that repeats the streamed text clears it."""

    def __init__(self) -> None:
        self.epoch = 0
        self.head = 0
        self.turn = ""
        self.restored_at = (0, 0)
        """Rows up to this one are known to what was restored."""
        self._text = _StreamedText()
        self._reasoning = _StreamedText()
        self._tools: dict[str, str] = {}

    def note(self, event: Mapping[str, Any]) -> None:
        """Applies an event of the session."""
        match event.get("type"):
            case "agent.message.delta":
                self._text.add(str(event.get("text", "")))
                self.turn = str(event.get("turn_id", ""))
            case "agent.reasoning.delta":
                self._reasoning.add(str(event.get("text", "")))
                self.turn = str(event.get("turn_id", ""))
            case "agent.tool.progress":
                call = str(event.get("call_id", ""))
                output = self._tools.get(call, "") + str(event.get("text", ""))
                self._tools[call] = output[-_MAX_TOOL_OUTPUT_CHARS:]
            case "agent.tool.finished":
                self._tools.pop(str(event.get("call_id", "")), None)
            case (
                "agent.message.assistant"
                | "agent.model.retried"
                | "agent.reply.rejected"
            ):
                self._clear_text()
            case "agent.turn.started" | "agent.turn.ended":
                self._clear_text()
                self._tools.clear()
            case _:
                pass

    def restore(self, partial: Mapping[str, Any], position: tuple[int, int]) -> None:
        """Takes over what another process knows, as a `feed.partial` event that follows the row at `position`."""
        self.restored_at = position
        self._clear_text()
        self.turn = str(partial.get("turn_id", ""))
        self._text.add(str(partial.get("text", "")))
        self._reasoning.add(str(partial.get("reasoning", "")))
        self._tools = dict(object_in(partial, "tools"))

    def text(self) -> str:
        """The text of the reply so far."""
        return self._text.text()

    def event(self, session: str) -> dict[str, Any]:
        """The `feed.partial` event, for a reader that joins in the middle of a reply."""
        return {
            "type": "feed.partial",
            "session_id": session,
            "turn_id": self.turn,
            "text": self._text.text(),
            "reasoning": self._reasoning.text(),
            "tools": dict(self._tools),
        }

    def _clear_text(self) -> None:
        self._text.clear()
        self._reasoning.clear()
