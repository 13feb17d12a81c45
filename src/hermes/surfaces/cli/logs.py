"""The log of Hermes itself, `logs/hermes.log`: made by the first record, for this user only, without secrets."""

import contextlib
import logging
import os
from pathlib import Path

from hermes.errors import HermesError
from hermes.settings.home import Home
from hermes.settings.load import find_home
from hermes.settings.secrets import mask
from hermes.surfaces.terminal.style import printable, settings_of_this_run
from hermes.surfaces.terminal.waiting import start as start_notices

MAX_BYTES = 5 * 1024 * 1024  # then the file becomes hermes.log.1, in place of the one before


class LogFile(logging.Handler):
    """Appends each record with one write, so that several processes can share the file."""

    def __init__(self, home: Home) -> None:
        super().__init__()
        self._home = home
        self.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"))

    # pyrefly: ignore[missing-override-decorator]
    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = printable(mask(self.format(record))) + "\n"
            self._append(line.encode(errors="backslashreplace"))
        except (OSError, HermesError):  # a log that can't be written stops nothing
            return
        except Exception:  # noqa: BLE001 - nor does a record that can't be formatted
            return

    def _append(self, line: bytes) -> None:
        path = self._home.ensure(self._home.logs).logs / "hermes.log"
        _rotate(path)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(handle, line)
        finally:
            os.close(handle)


def start() -> None:
    """Send what Hermes logs to its file, from the level in the settings on, and nowhere else; but what is waited for is
    shown to the person. Once per process."""
    start_notices()
    logger = logging.getLogger("hermes")
    if any(isinstance(handler, LogFile) for handler in logger.handlers):
        return
    with contextlib.suppress(HermesError):  # without a home the command fails by itself
        logger.addHandler(LogFile(find_home()))
        logger.setLevel(settings_of_this_run().logging.level.upper())
        logger.propagate = False


def _rotate(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size > MAX_BYTES:
            path.replace(path.with_name("hermes.log.1"))
