"""Which processes belong to a command, and to a session: found by marks that they hand on when they fork.

There are two marks: a variable of the environment, and an unused resource limit, which also survives a cleared
environment, closed files, a new session and a lost parent. A mark names its session, so that what a killed Hermes left
running can be found and ended later.
"""

import contextlib
import hashlib
import os
import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

PROC = Path("/proc")
MARK_NAME = "HERMES_CALL"
_BASE, _SESSION_SHIFT, _RANDOM_BYTES = 1 << 60, 24, 3
_LIMIT = re.compile(rb"Max file locks +(\d+)")
_VARIABLE = re.compile(rb"(?:^|\0)" + MARK_NAME.encode() + rb"=(\d+)(?:\0|$)")
_KILL_ROUNDS = 100


def new_mark(session: str) -> int:
    """A mark for one more command of a session."""
    return _first_mark(session) + int.from_bytes(os.urandom(_RANDOM_BYTES), "big")


def _first_mark(session: str) -> int:
    digest = hashlib.blake2b(session.encode(errors="replace"), digest_size=4).digest()
    return _BASE + (int.from_bytes(digest, "big") << _SESSION_SHIFT)


def end_leftovers(session: str) -> list[str]:
    """Ends what commands of this session still run, wherever they were started from. Returns their names.

    For the time after a crash: no command of the session may be running that somebody still waits for.
    """
    first = _first_mark(session)
    own = range(first, first + (1 << _SESSION_SHIFT))
    names: dict[int, str] = {}

    def left() -> list[int]:
        found = [
            pid
            for pid in processes()
            if pid != os.getpid() and any(mark in own for mark in marks_of(pid))
        ]
        names.update((pid, name_of(pid)) for pid in found if pid not in names)
        return found

    kill_all(left)
    return sorted(names.values())


def processes() -> Iterator[int]:
    """The numbers of all processes that can be seen."""
    with contextlib.suppress(OSError):
        yield from (int(name) for name in os.listdir(PROC) if name.isdigit())  # noqa: PTH208 - numbers are all


def marks_of(pid: int) -> list[int]:
    """The marks a running process carries."""
    try:
        if state_of(pid)[:1] in ([b"Z"], [b"X"], []):
            return []
        found = _LIMIT.findall((PROC / str(pid) / "limits").read_bytes())
        with contextlib.suppress(
            OSError
        ):  # another user's, or just becoming another program
            found += _VARIABLE.findall((PROC / str(pid) / "environ").read_bytes())
    except OSError:  # gone, or another user's
        return []
    return [int(mark) for mark in found]


def state_of(pid: int) -> list[bytes]:
    """What the kernel says of a process: its state, parent, group, session and so on; nothing when it is gone."""
    try:
        return (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return []


def name_of(pid: int) -> str:
    """The name of a process."""
    try:
        return (PROC / str(pid) / "comm").read_text(errors="replace").strip()
    except OSError:
        return str(pid)


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """Sends a signal to whichever of these processes can be reached."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def kill_all(left: Callable[[], Sequence[int]]) -> bool:
    """Kills until nothing is left. All are stopped first: what is stopped can't fork faster than it is killed."""
    for number in range(_KILL_ROUNDS):
        pids = left()
        if not pids:
            return True
        send(
            pids,
            signal.SIGSTOP if len(pids) > 8 and number % 2 == 0 else signal.SIGKILL,
        )
        time.sleep(0.001)
    return not left()
