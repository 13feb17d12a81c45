"""Gateways during an update: they finish their turns, wait, and go on as the copy that the link starts by then.

A waiting gateway has closed the session log, so that the new version can migrate it, or a backup can replace it.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from hermes.app.outgoing import gateway_status_file
from hermes.primitives.file_lock import FileLock
from hermes.primitives.files import PRIVATE_FILE, replace_file
from hermes.settings import Home
from hermes.store.leases import is_gone

_DRAIN_TIMEOUT_S = 120.0
_START_TIMEOUT_S = 60.0
_LOCK_TIMEOUT_S = 5.0  # a gateway that starts again has it for a moment
_INTERVAL_S = 0.1


class _ProcessStatus(msgspec.Struct):
    """What gateways, and the process that keeps those of all profiles running, write into their status files."""

    owner: str = ""
    state: str = ""


def gateway_runs(home: Home) -> bool:
    """Returns whether a gateway serves a home."""
    path = home.root / "gateway" / "gateway.lock"
    if not path.exists():
        return False
    with FileLock(path) as lock:
        return not lock.try_acquire()


def restart_lock(home: Home) -> Path:
    """Returns the lock that keeps a gateway that has drained from going on."""
    return home.root / "gateway" / "restart.lock"


@contextlib.contextmanager
def kept_restart_requests(home: Home) -> Iterator[None]:
    """Keeps what a waiting gateway is to become, while the files of its home are replaced."""
    found: dict[Path, bytes] = {}
    for name in ("restart.json", "restart-all.json"):
        path = home.root / "gateway" / name
        if path.exists():
            found[path] = path.read_bytes()
    try:
        yield
    finally:
        for path, request in found.items():
            home.ensure(path.parent)
            replace_file(path, request, mode=PRIVATE_FILE)


class GatewayPause:
    """While it is held, the gateways of some homes wait. `restart` asks them to go on as the copy that the link starts."""

    def __init__(self, homes: Sequence[Home], restart: Callable[[], None]) -> None:
        self._homes = [one for one in homes if (one.root / "gateway").is_dir()]
        self._restart = restart
        self._locks: list[FileLock] = []
        self._running: dict[Home, str] = {}  # and the process that starts it again

    def __enter__(self) -> Self:
        self._running = {one: _owner(one) for one in self._homes if gateway_runs(one)}
        try:
            for home in self._homes:
                lock = FileLock(restart_lock(home))
                self._locks.append(lock)
                lock.acquire(_LOCK_TIMEOUT_S)
            self._restart()
            self._wait_until_drained()
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._release()

    def ended(self) -> list[Home]:
        """Waits until the gateways serve again. Returns the homes whose gateway has ended instead."""
        deadline = time.monotonic() + _START_TIMEOUT_S
        waiting = dict(self._running)
        ended: list[Home] = []
        while waiting and time.monotonic() < deadline:
            for home, owner in list(waiting.items()):
                if is_gone(owner):
                    ended.append(home)
                elif not _serves(home):
                    continue
                del waiting[home]
            time.sleep(_INTERVAL_S)
        return ended

    def _wait_until_drained(self) -> None:
        deadline = time.monotonic() + _DRAIN_TIMEOUT_S
        while time.monotonic() < deadline and any(map(gateway_runs, self._running)):
            time.sleep(_INTERVAL_S)

    def _release(self) -> None:
        while self._locks:
            self._locks.pop().close()


def _serves(home: Home) -> bool:
    return gateway_runs(home) and _status(gateway_status_file(home)).state == "running"


def _owner(home: Home) -> str:
    """Returns the process that runs the gateway of a home, or starts it again when it ends."""
    supervisor = _status(home.base.root / "gateway" / "profiles.json").owner
    if supervisor and not is_gone(supervisor):
        return supervisor
    return _status(gateway_status_file(home)).owner


def _status(path: Path) -> _ProcessStatus:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_ProcessStatus)
    except (OSError, msgspec.MsgspecError):
        return _ProcessStatus()
