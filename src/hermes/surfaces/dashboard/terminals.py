"""The terminals of a dashboard.

A terminal without a viewer lives on for half an hour, so that a reload or a lost
connection costs nothing.
"""

import asyncio
import os
import pwd
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias

import msgspec

from hermes.children.own_python import hermes_command
from hermes.errors import HermesError, UsageError
from hermes.primitives.tasks import BackgroundTasks
from hermes.pty import PtyBridge, PtyUnavailableError, Terminal
from hermes.settings.load import current_folder, environment, typed_path
from hermes.settings.sections import DashboardSettings
from hermes.text.translation import translator

t = translator(__name__)


Command: TypeAlias = Literal["hermes", "shell"]

MAX_TERMINALS = 64
UNWATCHED_TIMEOUT_S = 1800.0
ENDED_TIMEOUT_S = 300.0
"""How long a terminal whose program has ended is kept, for its last output."""
_SWEEP_INTERVAL_S = 5.0
_MAX_TERMINAL_COLUMNS = 1000


class TerminalLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """What a new terminal runs."""

    command: Command = "hermes"
    session: str = ""
    cwd: str = ""
    cols: int = 80
    rows: int = 24


class TerminalInfo(msgspec.Struct, frozen=True):
    """A terminal as it is listed."""

    id: str
    command: str
    cwd: str
    pid: int
    cols: int
    rows: int
    created: float
    ended: bool
    exit_code: int | None
    viewers: int


class OpenTerminal:
    """A terminal of the dashboard."""

    def __init__(
        self,
        name: str,
        terminal: Terminal,
        opening: TerminalLaunch,
        *,
        cwd: str,
        now: float,
    ) -> None:
        self.id = name
        self.terminal = terminal
        self.opening = opening
        self.cwd = cwd
        self.created = time.time()
        self.unwatched_since = now
        self.size = (opening.cols, opening.rows)
        self._followers: set[asyncio.Event] = set()

    @contextmanager
    def following(self) -> Iterator[asyncio.Event]:
        """Inside, the event is set whenever somebody else changes the size."""
        resized = asyncio.Event()
        self._followers.add(resized)
        try:
            yield resized
        finally:
            self._followers.discard(resized)

    def resize(self, cols: int, rows: int, by: asyncio.Event | None = None) -> None:
        self.size = (
            min(max(1, cols), _MAX_TERMINAL_COLUMNS),
            min(max(1, rows), _MAX_TERMINAL_COLUMNS),
        )
        self.terminal.resize(*self.size)
        for follower in self._followers - {by}:
            follower.set()

    def redraw(self) -> None:
        """Makes a full-screen program draw again, by changing the size for a moment."""
        cols, rows = self.size
        self.terminal.resize(cols, rows + 1)
        self.terminal.resize(cols, rows)

    def describe(self) -> TerminalInfo:
        one = self.terminal
        return TerminalInfo(
            self.id,
            self.opening.command,
            self.cwd,
            one.pid,
            *self.size,
            self.created,
            one.ended,
            one.exit_code,
            one.viewers,
        )


class Terminals:
    """Opens, finds and ends terminals."""

    def __init__(
        self, settings: DashboardSettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._open: dict[str, OpenTerminal] = {}
        self._opening = 0
        self._sweeping = BackgroundTasks("sweeping terminals")

    def overview(self) -> list[TerminalInfo]:
        return [one.describe() for one in self._open.values()]

    def unavailable(self) -> str:
        """Why terminals are not possible here; empty when they are."""
        if PtyBridge.is_available():
            return ""
        try:
            PtyBridge.spawn(["true"]).close()
        except PtyUnavailableError as error:
            return f"{error.message} {error.hint}"
        return ""

    def find(self, name: str) -> OpenTerminal | None:
        return self._open.get(name)

    async def open(self, opening: TerminalLaunch) -> OpenTerminal:
        """Starts a program in a new terminal."""
        if len(self._open) + self._opening >= MAX_TERMINALS:
            await self._make_room()
        self._opening += 1  # many may be opened at once
        try:
            return await self._start(opening)
        finally:
            self._opening -= 1

    async def _start(self, opening: TerminalLaunch) -> OpenTerminal:
        cwd = _folder(opening.cwd)
        env = {**environment(), "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        argv = self._program(opening)
        try:
            bridge = await asyncio.to_thread(
                PtyBridge.spawn,
                argv,
                cwd=cwd,
                env=env,
                cols=opening.cols,
                rows=opening.rows,
            )
        except OSError as error:
            raise HermesError(
                t("The terminal can't be opened: {error}.", error=error),
                hint=t("Nothing was started."),
            ) from error
        one = OpenTerminal(
            secrets.token_urlsafe(12),
            Terminal(bridge),
            opening,
            cwd=cwd,
            now=self._clock(),
        )
        self._open[one.id] = one
        if not self._sweeping:
            self._sweeping.start(self._keep_sweeping())
        return one

    async def end(self, name: str) -> bool:
        """Ends a terminal and all it started; returns False when there is none of that name."""
        one = self._open.pop(name, None)
        if one is not None:
            await one.terminal.close()
        return one is not None

    async def close(self) -> None:
        """Ends all terminals."""
        self._sweeping.cancel()
        await asyncio.gather(*(self.end(name) for name in list(self._open)))

    async def _make_room(self) -> None:
        """Removes a terminal whose program has ended; it was kept only for its last output."""
        over = next(
            (
                one.id
                for one in self._open.values()
                if one.terminal.ended and not one.terminal.viewers
            ),
            None,
        )
        if over is None:
            raise UsageError(
                t(
                    "There are {max_terminals} terminals open.",
                    max_terminals=MAX_TERMINALS,
                ),
                hint=t("Close one of them."),
            )
        await self.end(over)

    async def sweep(self) -> None:
        """Ends terminals that nobody has watched for long."""
        now = self._clock()
        for one in list(self._open.values()):
            if one.terminal.viewers:
                one.unwatched_since = now
            elif now - one.unwatched_since > (
                ENDED_TIMEOUT_S if one.terminal.ended else UNWATCHED_TIMEOUT_S
            ):
                await self.end(one.id)

    async def _keep_sweeping(self) -> None:
        while self._open:
            await asyncio.sleep(_SWEEP_INTERVAL_S)
            await self.sweep()

    def _program(self, opening: TerminalLaunch) -> list[str]:
        if opening.command == "shell":
            shell = (
                self._settings.shell
                or environment().get("SHELL")
                or pwd.getpwuid(os.getuid()).pw_shell
            )
            return [shell or "/bin/sh"]
        return list(
            hermes_command(*(("--resume", opening.session) if opening.session else ()))
        )


def _folder(name: str) -> str:
    return str(typed_path(name) if name else current_folder())
