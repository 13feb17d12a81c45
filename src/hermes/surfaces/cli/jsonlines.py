"""`--json`: every event of the run as a line of JSON, as it happens."""

import os
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

import msgspec


class JsonLines:
    """Writes events to stdout, each at once. The fields are those of docs/events.md."""

    def __init__(self) -> None:
        self._encode = msgspec.json.Encoder().encode
        self._writing = threading.Lock()  # events come from whichever thread wrote them
        sys.stdout.flush()
        self._fd = sys.stdout.fileno()
        self.failure: OSError | None = None
        self.on_failure: Callable[[], object] | None = None

    def see(self, event: Mapping[str, Any]) -> None:
        """Writes one event. When nobody reads any more, says so once and writes no further."""
        if self.failure is not None:
            return
        line = memoryview(self._encode(event) + b"\n")
        with self._writing:
            try:
                while line:
                    line = line[os.write(self._fd, line) :]
            except OSError as error:
                self.failure = error
        if self.failure is not None and self.on_failure is not None:
            self.on_failure()
