"""Which rows this process has published: each once, whether it wrote the row, found it in the log or was sent it."""

import threading
from bisect import bisect_right

from hermes.primitives.recent import RecentDict

_REMEMBERED = 4096  # sessions


class PublishedRows:
    """Rows by their place in the log. Of a session the stretches of rows are kept, of which there is mostly one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: RecentDict[tuple[str, int], list[list[int]]] = RecentDict(
            _REMEMBERED
        )

    def claim(self, session: str, epoch: int, seq: int) -> bool:
        """True the first time; whoever is told so publishes the row."""
        with self._lock:
            return _add(self._sessions.get_or_make((session, epoch), list), seq)

    def has(self, session: str, epoch: int, seq: int) -> bool:
        """Whether it was claimed."""
        with self._lock:
            return any(
                first <= seq <= last
                for first, last in self._sessions.get((session, epoch), ())
            )


def _add(stretches: list[list[int]], seq: int) -> bool:
    """Adds a number to sorted stretches `[first, last]`; False when it is in one."""
    if stretches and stretches[-1][1] == seq - 1:  # nearly always
        stretches[-1][1] = seq
        return True
    place = bisect_right(stretches, seq, key=lambda stretch: stretch[0])
    before = stretches[place - 1] if place else None
    if before is not None and seq <= before[1]:
        return False
    after = stretches[place] if place < len(stretches) else None
    joins_before, joins_after = (
        before is not None and before[1] == seq - 1,
        after is not None and after[0] == seq + 1,
    )
    if before is not None and after is not None and joins_before and joins_after:
        before[1] = after[1]
        del stretches[place]
    elif before is not None and joins_before:
        before[1] = seq
    elif after is not None and joins_after:
        after[0] = seq
    else:
        stretches.insert(place, [seq, seq])
    return True
