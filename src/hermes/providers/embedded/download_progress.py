"""The progress, speed and remaining time of a download."""

import time
from collections import deque
from collections.abc import Callable

import msgspec

from hermes.text.translation import to_translate

CHECKING = to_translate("checking the file")
_WINDOW_S = 8.0  # the speed is the average over this many seconds


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes done of total. If total is 0, the download is waiting, and `done` counts seconds.

    `source` is for every screen; `detail` has the address or the package, for those who ask for it. `notice` says that
    a source failed and the next one is tried.
    """

    source: str
    done: int
    total: int
    detail: str = ""
    notice: str = ""
    bytes_per_second: float = 0.0
    seconds_left: float | None = None


class SpeedMeter:
    """Adds speed and remaining time to the steps of one download."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._samples: deque[tuple[float, int]] = deque()

    def measure(self, step: Progress) -> Progress:
        """Returns the step with speed and remaining time, as far as they are known."""
        if not step.total:
            self._samples.clear()
            return step
        now = self._clock()
        if self._samples and step.done < self._samples[-1][1]:
            self._samples.clear()
        self._samples.append((now, step.done))
        while len(self._samples) > 2 and now - self._samples[1][0] >= _WINDOW_S:
            self._samples.popleft()
        since, before = self._samples[0]
        if now <= since or step.done <= before:
            return step
        speed = (step.done - before) / (now - since)
        left = max(0, step.total - step.done) / speed
        return msgspec.structs.replace(step, bytes_per_second=speed, seconds_left=left)
