"""Repeated errors: each is logged once, then counted, with a growing pause between attempts."""

import logging
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from hermes.primitives.backoff import delay_s
from hermes.primitives.recent import RecentDict

FIRST_PAUSE_S = 0.1
MAX_PAUSE_S = 5.0
CALM_S = 10.0
"""Something that has not failed for this long counts as working, so occasional failures don't fill the log."""

_REMEMBERED_S = 3600.0
_MAX_PROBLEMS = 32


class RepeatedProblem(NamedTuple):
    """Something that fails, or has failed in the last hour."""

    what: str
    error: str  # the last one
    count: int
    since: float  # unix seconds
    last: float
    is_over: bool


class RepeatedErrors:
    """The errors of one process, by what failed. Thread-safe."""

    def __init__(
        self,
        log: logging.Logger,
        *,
        first_pause_s: float = FIRST_PAUSE_S,
        max_pause_s: float = MAX_PAUSE_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._log = log
        self._first_pause_s = first_pause_s
        self._max_pause_s = max_pause_s
        self._clock = clock
        self._lock = threading.Lock()
        self._problems: RecentDict[str, RepeatedProblem] = RecentDict(_MAX_PROBLEMS)

    def note(self, what: str, error: BaseException | str) -> float:
        """Records that `what` failed, and logs the first failure in a row. Returns how many seconds to wait."""
        text = error if isinstance(error, str) else str(error) or type(error).__name__
        now = self._clock()
        with self._lock:
            known = self._problems.get(what)
            if known is None or known.is_over:
                problem = RepeatedProblem(what, text, 1, now, now, is_over=False)
            else:
                problem = known._replace(error=text, count=known.count + 1, last=now)
            self._problems[what] = problem
        if problem.count == 1:
            self._log.warning(
                "%s failed: %s; retrying, and counting further failures", what, text
            )
        return delay_s(
            problem.count, first_s=self._first_pause_s, max_s=self._max_pause_s
        )

    def succeeded(self, what: str) -> None:
        """Records that `what` succeeded."""
        if what not in self._problems:  # nearly always
            return
        with self._lock:
            known = self._problems.get(what)
            if known is None or known.is_over or self._clock() - known.last < CALM_S:
                return
            self._problems[what] = known._replace(is_over=True)
        self._log.warning("%s works again after failing %d times", what, known.count)

    def problems(self) -> list[RepeatedProblem]:
        """Returns what is failing or failed recently, latest last."""
        before = self._clock() - _REMEMBERED_S
        with self._lock:
            for what, known in tuple(self._problems.items()):
                if known.last < before:
                    del self._problems[what]
            return list(self._problems.values())
