"""Whether a conversation holds words of others that might want to be remembered.

A memory written after such words waits for the user: what a web page or a file says must not become what Hermes knows.
"""

from collections.abc import Sequence

from hermes.learning.scan import scan
from hermes.schema.messages import Message, ToolFinished, UserMessage

_OWN = frozenset(("memory", "skills_list", "skill_view", "skill_manage", "todo", "ask_user"))
_FENCE = "<untrusted source="
_LOOKED_AT = 40_000  # characters of one result
_REMEMBERED = 4_096  # results


class Taint:
    """Looks through conversations, at each result once."""

    def __init__(self) -> None:
        self._seen: dict[int, str] = {}

    def of(self, messages: Sequence[Message], *, whole: bool = False) -> str:
        """Why what is learned now should be looked at by the user; empty when nothing speaks against it.

        Words from outside count in the turn they were read in, or with `whole` anywhere; what looks like an injected
        instruction counts anywhere.
        """
        start = 0 if whole else _turn(messages)
        for place, message in enumerate(messages):
            if not isinstance(message, ToolFinished) or message.name in _OWN:
                continue
            if place >= start and message.text.startswith(_FENCE):
                return f"what {message.name} brought from outside was read before"
            if why := self._scanned(message.text):
                return f"a result of {message.name} looks like it carries injected instructions ({why})"
        return ""

    def _scanned(self, text: str) -> str:
        key = hash(text)
        if key not in self._seen:
            while len(self._seen) >= _REMEMBERED:
                del self._seen[next(iter(self._seen))]
            self._seen[key] = scan(_ends(_inside(text)))
        return self._seen[key]


def _turn(messages: Sequence[Message]) -> int:
    """Where the user last said something."""
    places = (
        place for place, message in enumerate(messages) if isinstance(message, UserMessage) and message.origin == "user"
    )
    return max(places, default=0)


def _inside(text: str) -> str:
    """Fenced text without its fence, which is ours."""
    if not text.startswith(_FENCE):
        return text
    return text.partition("\n")[2].rpartition("\n</untrusted>")[0]


def _ends(text: str) -> str:
    return text if len(text) <= _LOOKED_AT else f"{text[: _LOOKED_AT // 2]}\n{text[-_LOOKED_AT // 2 :]}"
