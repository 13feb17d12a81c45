"""Names for new things, made from the time and some randomness, so that they sort by age and never meet."""

import os
import time

from hermes.core.ports import Clock


class SystemIds:
    """Ids from a clock and the system's randomness: `YYYYMMDD-HHMMSS-xxxxxx`, UTC and six hexadecimal digits."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def session(self) -> str:
        """The id of a new session."""
        return self._stamped()

    def turn(self) -> str:
        """The id of a new turn."""
        return self._stamped()

    def _stamped(self) -> str:
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(self._clock.now()))
        return f"{stamp}-{os.urandom(3).hex()}"
