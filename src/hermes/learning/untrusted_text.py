"""Whether a conversation holds words of others that might want to be remembered.

A memory written after such words waits for the user: what a web page or a file says must not become what Hermes knows.
"""

from collections.abc import Iterable

from hermes.core.calls import FENCE
from hermes.learning.scan import scan
from hermes.primitives.recent import RecentDict
from hermes.schema.event import Event
from hermes.schema.events import TurnStarted
from hermes.schema.messages import ToolFinished

_OWN = frozenset(
    ("memory", "skills_list", "skill_view", "skill_manage", "todo", "ask_user")
)
_MAX_SCANNED_CHARS = 40_000  # characters of one result
_MAX_CACHED_RESULTS = 4_096  # results


class UntrustedText:
    """Looks through conversations, at each result once."""

    def __init__(self) -> None:
        self._seen: RecentDict[int, str] = RecentDict(_MAX_CACHED_RESULTS)

    def of(self, events: Iterable[Event | None], *, whole: bool = False) -> str:
        """Why what is learned now should be looked at by the user; empty when nothing speaks against it.

        The log of a session is asked, not what the model sees: a summary may hold the words of a result that is gone.
        Words from outside count in the turn they were read in, or with `whole` anywhere; what looks like an injected
        instruction counts anywhere.
        """
        outside = injected = ""
        for event in events:
            if isinstance(event, TurnStarted) and not whole:
                outside = ""
            if not isinstance(event, ToolFinished) or event.name in _OWN:
                continue
            if event.text.startswith(FENCE):
                outside = f"what {event.name} brought from outside was read before"
            if not injected and (why := self._scanned(event.text)):
                injected = f"a result of {event.name} looks like it carries injected instructions ({why})"
        return outside or injected

    def _scanned(self, text: str) -> str:
        return self._seen.get_or_make(hash(text), lambda: scan(_ends(_inside(text))))


def _inside(text: str) -> str:
    """Fenced text without its fence, which is ours."""
    if not text.startswith(FENCE):
        return text
    return text.partition("\n")[2].rpartition("\n</untrusted>")[0]


def _ends(text: str) -> str:
    return (
        text
        if len(text) <= _MAX_SCANNED_CHARS
        else f"{text[: _MAX_SCANNED_CHARS // 2]}\n{text[-_MAX_SCANNED_CHARS // 2 :]}"
    )
