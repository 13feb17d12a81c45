"""The log of Hermes itself, `logs/hermes.log`: created by the first record, readable only by this user, without
secrets.

A record that repeats is written once, then counted, so a failing loop can't fill the disk. The file stays open once
it exists, and until then a file handle is reserved for it, so a process that has run out of handles can still log
that.
"""

import contextlib
import copy
import errno
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

from hermes.errors import HermesError
from hermes.primitives.backoff import delay_s
from hermes.primitives.files import open_private
from hermes.primitives.recent import RecentDict
from hermes.settings.home import Home
from hermes.settings.load import find_home
from hermes.settings.redaction import mask, mask_personal
from hermes.surfaces.terminal.stderr_message import start as start_notices
from hermes.surfaces.terminal.style import printable, settings_of_this_run

MAX_BYTES = (
    5 * 1024 * 1024
)  # then the file becomes hermes.log.1, in place of the one before
LIBRARIES = ("asyncio", "uvicorn")  # whose warnings go into the same file
_FIRST_QUIET_S = (
    1.0  # in which the same record is only counted; twice as long each time
)
_MAX_QUIET_S = 3600.0
_MAX_REMEMBERED = 256  # records
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND


class Repeats:
    """Writes a repeated warning or error once, then counts it and writes the count at growing intervals."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # Quiet until, how many silences in a row, how many records were counted.
        self._known: RecentDict[tuple[str, int, str], tuple[float, int, int]] = (
            RecentDict(_MAX_REMEMBERED)
        )

    def passed(self, record: logging.LogRecord) -> logging.LogRecord | None:
        """The record to write; None if it is only counted."""
        if record.levelno < logging.WARNING:
            return record
        message = record.getMessage()
        error = record.exc_info[1] if record.exc_info else None
        key = (record.name, record.levelno, f"{message} {error!r}")
        now = self._clock()
        until, silences, count = self._known.get(key, (now, 0, 0))
        if now < until:
            self._known[key] = (until, silences, count + 1)
            return None
        # After a silence as long as the last one it counts as new.
        if silences and now >= until + _quiet_s(silences):
            silences = 0
        silences += 1
        self._known[key] = (now + _quiet_s(silences), silences, 0)
        if not count:
            return record
        again = copy.copy(record)
        again.msg, again.args = f"{message} (repeated {count:,} times since)", None
        again.exc_info = again.exc_text = again.stack_info = None
        return again


class LogFile(logging.Handler):
    """Appends each record with one write, so that several processes can share the file."""

    def __init__(self, home: Home) -> None:
        super().__init__()
        self._home = home
        self._file = -1
        self._spare = _spare()
        self._repeats = Repeats()
        self.setFormatter(
            logging.Formatter(
                "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"
            )
        )

    # pyrefly: ignore[missing-override-decorator]
    def emit(self, record: logging.LogRecord) -> None:
        try:
            passed = self._repeats.passed(record)
            if passed is None:
                return
            line = printable(mask_personal(mask(self.format(passed)))) + "\n"
            self._append(line.encode(errors="backslashreplace"))
        except (OSError, HermesError):  # a log that can't be written stops nothing
            return
        except Exception:  # noqa: BLE001 - nor does a record that can't be formatted
            return

    # pyrefly: ignore[missing-override-decorator]
    def close(self) -> None:
        """Closes the file."""
        for handle in (self._file, self._spare):
            if handle >= 0:
                os.close(handle)
        self._file = self._spare = -1
        super().close()

    def _append(self, line: bytes) -> None:
        path = self._home.ensure(self._home.logs).logs / "hermes.log"
        _rotate(path)
        if self._file < 0 or not _is_at(path, self._file):
            self._open(path)
        os.write(self._file, line)

    def _open(self, path: Path) -> None:
        """Opens the file, and closes one that this or another process has moved away."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        try:
            self._file = open_private(path, _APPEND)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE) or self._spare < 0:
                raise
            os.close(self._spare)
            self._spare = -1
            self._file = open_private(path, _APPEND)


def start() -> None:
    """Sends the log of Hermes to its file and nowhere else, from the level in the settings on; notices about waiting are
    also shown to the person. Once per process."""
    start_notices()
    logger = logging.getLogger("hermes")
    if any(isinstance(handler, LogFile) for handler in logger.handlers):
        return
    with contextlib.suppress(HermesError):  # without a home the command fails by itself
        file = LogFile(find_home())
        logger.addHandler(file)
        logger.setLevel(settings_of_this_run().logging.level.upper())
        logger.propagate = False
        for name in LIBRARIES:
            library = logging.getLogger(name)
            library.addHandler(file)
            library.setLevel(logging.WARNING)
            library.propagate = False


def _quiet_s(silences: int) -> float:
    return delay_s(silences, first_s=_FIRST_QUIET_S, max_s=_MAX_QUIET_S)


def _spare() -> int:
    """A reserved file handle, closed when no other is left for the log."""
    try:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1


def _is_at(path: Path, handle: int) -> bool:
    """Whether an open file is still the one of that name."""
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except OSError:
        return False


def _rotate(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size > MAX_BYTES:
            path.replace(path.with_name("hermes.log.1"))
