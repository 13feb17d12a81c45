"""Reactions as answers: a thumb on a request for approval allows or denies it.

For platforms without buttons. Only requests that were sent since the start are known; an
older one is answered by its number. Whether the person may answer is decided where every
`/approve` is.
"""

from hermes.primitives.recent import RecentDict
from hermes.surfaces.gateway.adapter import Chat, Outbound

_MAX_REQUESTS = 500
_SKIN_TONES = str.maketrans(dict.fromkeys(("🏻", "🏼", "🏽", "🏾", "🏿", "\ufe0f"), ""))
_COMMANDS = {
    **dict.fromkeys(("👍", "✅", "+1", "thumbsup", "white_check_mark"), "approve"),
    **dict.fromkeys(("👎", "❌", "⛔", "-1", "thumbsdown", "x", "no_entry"), "deny"),
}


class QuestionReactions:
    """The requests for approval that one platform has sent."""

    def __init__(self) -> None:
        self._requests: RecentDict[str, tuple[Chat, str]] = RecentDict(_MAX_REQUESTS)

    def sent(self, message: str, chat: Chat, out: Outbound) -> None:
        """Notes a message, if it asks for approval."""
        if out.request:
            self._requests[message] = (chat, out.request)

    def answer(self, message: str, emoji: str) -> tuple[Chat, str] | None:
        """The chat and the command that a reaction to a message stands for; None for none."""
        command = _COMMANDS.get(emoji.translate(_SKIN_TONES))
        if command is None or message not in self._requests:
            return None
        chat, number = self._requests[message]
        return chat, f"/{command} {number}"
