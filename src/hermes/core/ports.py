"""The Protocols through which core and its siblings name their collaborators. `app` supplies them."""

import time
from typing import Protocol


class Clock(Protocol):
    """Wall time in unix seconds. Passed in, so that tests decide it."""

    def now(self) -> float: ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        return time.time()
