"""Tells the user what Hermes is waiting for, on stderr or where a surface shows such notices."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hermes.surfaces.terminal.stderr_message import remark


class WaitNotices(logging.Handler):
    """Shows log records about waiting."""

    def __init__(self) -> None:
        super().__init__()
        self._say: Callable[[str], object] = remark

    # pyrefly: ignore[missing-override-decorator]
    def emit(self, record: logging.LogRecord) -> None:
        self._say(record.getMessage())

    @contextmanager
    def shown_by(self, say: Callable[[str], object]) -> Iterator[None]:
        """Shows notices with `say`, from any thread, while the context is open."""
        before, self._say = self._say, say
        try:
            yield
        finally:
            self._say = before


NOTICES = WaitNotices()


def start() -> None:
    """Installs the handler, whatever the log level. Once per process."""
    logger = logging.getLogger("hermes.waiting")
    if NOTICES not in logger.handlers:
        logger.addHandler(NOTICES)
        logger.setLevel(logging.WARNING)
