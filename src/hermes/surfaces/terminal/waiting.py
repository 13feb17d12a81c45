"""Telling a person what Hermes waits for: on stderr, or wherever a surface shows such remarks."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hermes.surfaces.terminal.message import remark


class WaitNotices(logging.Handler):
    """Shows what is logged about waiting."""

    def __init__(self) -> None:
        super().__init__()
        self._say: Callable[[str], object] = remark

    # pyrefly: ignore[missing-override-decorator]
    def emit(self, record: logging.LogRecord) -> None:
        self._say(record.getMessage())

    @contextmanager
    def shown_by(self, say: Callable[[str], object]) -> Iterator[None]:
        """While inside, `say` shows the notices, from whatever thread they come."""
        before, self._say = self._say, say
        try:
            yield
        finally:
            self._say = before


NOTICES = WaitNotices()


def start() -> None:
    """Lets people see what is waited for, whatever the log leaves out. Once per process."""
    logger = logging.getLogger("hermes.waiting")
    if NOTICES not in logger.handlers:
        logger.addHandler(NOTICES)
        logger.setLevel(logging.WARNING)
