"""The order in which one session's rows are published: that of the log, whoever writes them and from where."""

import threading
from collections import deque
from collections.abc import Callable

from hermes.store.log_row import Row


class Feed:
    """Publishes what it wrote, in order.

    Rows wait in line, and one thread at a time empties the line. So a subscriber may write to the session while it is
    told of a row, and two threads may write at once: nobody sees row 3 before row 2.
    """

    def __init__(self) -> None:
        self._writing = threading.Lock()
        self._publishing = threading.Lock()
        self._line: deque[Row] = deque()

    def write(
        self, append: Callable[[], tuple[Row, ...]], publish: Callable[[Row], None]
    ) -> tuple[Row, ...]:
        """Writes through `append`, then hands each row to `publish`; the rows come back."""
        with self._writing:
            rows = append()
            self._line.extend(rows)
        # Whoever holds `_publishing` looks at the line again after letting go, so a row is never left behind.
        while self._line and self._publishing.acquire(blocking=False):
            try:
                while self._line:
                    publish(self._line.popleft())
            finally:
                self._publishing.release()
        return rows
