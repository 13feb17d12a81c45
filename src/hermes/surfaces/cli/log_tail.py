"""`hermes logs`: the log of Hermes itself, filtered and without secrets; with `-f` also what is written from now on."""

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec

from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.report import Redactor
from hermes.errors import UsageError
from hermes.surfaces.terminal.stderr_message import remark
from hermes.surfaces.terminal.style import printable
from hermes.text.translation import translator

t = translator(__name__)


Level: TypeAlias = Literal["debug", "info", "warning", "error"]

_LEVELS = {"DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40, "CRITICAL": 50}
_ENTRY = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d+ \d+ ([A-Z]+) ")
_AGO = re.compile(r"(\d{1,6}) ?(s|m|min|h|d|w)")
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_POLL_INTERVAL_S = 0.25
_MAX_READ_BYTES = 1024 * 1024


class LogFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries are shown. A traceback belongs to the line above it."""

    level: int = 0
    session: str = ""
    since: float = 0.0

    def shown(self, lines: Iterable[str]) -> Iterator[str]:
        """The lines of those entries. Lines before the first entry are the end of one that is not there any more."""
        is_wanted = False
        for line in lines:
            if found := _ENTRY.match(line):
                is_wanted = self._wants(found[1], found[2], line)
            if is_wanted:
                yield line

    def _wants(self, moment: str, level: str, line: str) -> bool:
        if _LEVELS.get(level, 0) < self.level:
            return False
        if self.session and self.session not in line:
            return False
        return not self.since or local_time(moment) >= self.since


def local_time(text: str) -> float:
    """The time of an entry. The log is in this machine's time zone."""
    return datetime.fromisoformat(text).timestamp()


def since_time(text: str, now: float) -> float:
    """`30m`, `2h`, `3d`, or a date and time, as seconds since 1970."""
    if found := _AGO.fullmatch(text.strip().lower()):
        return now - int(found[1]) * _SECONDS[found[2]]
    try:
        return local_time(text.strip())
    except ValueError as error:
        raise UsageError(
            t(
                "--since: expected an age such as 30m, 2h or 3d, or a time such as 2026-11-17T08:00, not {text!r}.",
                text=text,
            )
        ) from error


class LogReader:
    """Reads whole lines of a log file that may be renamed while it is read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1
        self._rest = b""

    def lines(self) -> Iterator[str]:
        """The lines written since the last call, up to the last one that is whole."""
        while True:
            if self._file < 0 and not self._open():
                return
            while data := os.read(self._file, _MAX_READ_BYTES):
                *whole, self._rest = (self._rest + data).split(b"\n")
                yield from (line.decode(errors="backslashreplace") for line in whole)
            if self._is_current():
                return
            self.close()  # it was renamed; what is left of it has just been read

    def close(self) -> None:
        """Closes the file."""
        if self._file >= 0:
            os.close(self._file)
        self._file, self._rest = -1, b""

    def _open(self) -> bool:
        try:
            self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        return True

    def _is_current(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._file), self._path.stat())
        except FileNotFoundError:
            return True


@command("logs")
def show_logs(
    context: CommandContext,
    *,
    follow: Annotated[bool, Arg("keep printing new lines", short="-f")] = False,
    level: Annotated[Level, Arg("only this level and above: debug, info, warning or error", metavar="LEVEL")] = "debug",
    session: Annotated[str, Arg("only entries that name this session", metavar="ID")] = "",
    since: Annotated[str, Arg("only lines newer than 30m, 2h, 3d, or 2026-11-17T08:00", metavar="TIME")] = "",
    lines: Annotated[int, Arg("the last N lines (default: 100; with --since all)", metavar="N", short="-n", at_least=0)] = 100,
) -> int:  # fmt: skip
    """Show the log of Hermes itself, without secrets."""
    wanted = LogFilter(
        level=_LEVELS[level.upper()],
        session=_session_id(context, session),
        since=since_time(since, context.app.clock.now()) if since else 0.0,
    )
    redact = Redactor(context.home).redacted
    file = context.home.logs / "hermes.log"
    reader = LogReader(file)
    try:
        entries = wanted.shown([*_lines_of(file.with_name("hermes.log.1")), *reader.lines()])  # fmt: skip
        text = redact("\n".join(entries))  # a key may have several lines
        old = text.split("\n") if text else []
        shown = old if since else old[len(old) - min(lines, len(old)) :]
        for line in shown:
            print(printable(line), flush=True)
        if follow:
            if not shown:
                remark(t("Following {file}. Ctrl-C stops.", file=file))
            _follow(reader, wanted, redact)
        elif not shown:
            remark(t("No matching lines in {file}.", file=file))
    finally:
        reader.close()
    return 0


def _session_id(context: CommandContext, name: str) -> str:
    """The id of a session; the name itself if there is none, because the log outlives sessions."""
    if not name or not context.app.has_log:
        return name
    from hermes.errors import SessionNotFound

    try:
        return context.app.store.sessions.find(name).id
    except SessionNotFound:
        if name == "last":
            raise
        return name


def _lines_of(path: Path) -> Iterator[str]:
    reader = LogReader(path)
    try:
        yield from reader.lines()
    finally:
        reader.close()


def _follow(reader: LogReader, wanted: LogFilter, redact: Callable[[str], str]) -> None:
    """Shows new entries until Ctrl-C."""

    def new_lines() -> Iterator[str]:
        while True:
            yield from reader.lines()
            time.sleep(_POLL_INTERVAL_S)

    for line in wanted.shown(new_lines()):
        print(printable(redact(line)), flush=True)
