"""Detects conversations that contain text from outside, which could inject memories.

A memory written after such text waits for the user: a web page or a file must not decide what Hermes remembers.
"""

from collections.abc import Iterable

from hermes.core.fence import FENCE
from hermes.learning.scan import scan
from hermes.primitives.recent import RecentDict
from hermes.schema.event_base import Event
from hermes.schema.events import TurnStarted
from hermes.schema.messages import ToolFinished
from hermes.text.translation import translator

t = translator(__name__)


_OWN = frozenset(
    ("memory", "skills_list", "skill_view", "skill_manage", "todo", "ask_user")
)
_MAX_SCANNED_CHARS = 40_000  # of one result
_MAX_CACHED_RESULTS = 4_096  # results


class UntrustedText:
    """Scans conversations, each result once."""

    def __init__(self) -> None:
        self._seen: RecentDict[int, str] = RecentDict(_MAX_CACHED_RESULTS)

    def of(self, events: Iterable[Event | None], *, whole: bool = False) -> str:
        """Returns why the user should review what is learned now; empty if there is no reason.

        Reads the session's log, not what the model sees, because a summary may repeat a result that is gone. Text from
        outside counts in the turn that read it, or with `whole` in any; an injected instruction counts anywhere.
        """
        outside = injected = ""
        for event in events:
            if isinstance(event, TurnStarted) and not whole:
                outside = ""
            if not isinstance(event, ToolFinished) or event.name in _OWN:
                continue
            if event.text.startswith(FENCE):
                outside = t.logged(
                    "{name} read text from outside before this", name=event.name
                )
            if not injected and (why := self._scanned(event.text)):
                injected = t.logged(
                    "a result of {name} seems to contain injected instructions ({why})",
                    name=event.name,
                    why=why,
                )
        return outside or injected

    def _scanned(self, text: str) -> str:
        return self._seen.get_or_make(hash(text), lambda: scan(_ends(_inside(text))))


def _inside(text: str) -> str:
    """Returns fenced text without the fence, which Hermes added."""
    if not text.startswith(FENCE):
        return text
    return text.partition("\n")[2].rpartition("\n</untrusted>")[0]


def _ends(text: str) -> str:
    return (
        text
        if len(text) <= _MAX_SCANNED_CHARS
        else f"{text[: _MAX_SCANNED_CHARS // 2]}\n{text[-_MAX_SCANNED_CHARS // 2 :]}"
    )
