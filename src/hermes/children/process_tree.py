"""Finds, signals and kills everything that a child process started, wherever it went.

Children carry a mark that survives a fork: a variable of the environment, and the value of a resource limit the kernel
does not use. The limit also survives a cleared environment, closed files, a new session and a lost parent. A mark names
its session, so processes that a killed Hermes left running can be found and ended later.

Marks serve children that Hermes starts directly: commands, which must start within a millisecond and whose processes
are counted and named, and terminals. Programs on pipes run under `leash`, which costs a Python start and needs no mark.
"""

import contextlib
import hashlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from hermes.primitives.lazy_pattern import lazy_pattern

PROC = Path("/proc")
MARK_VARIABLE = "HERMES_CALL"
_FIRST_MARK, _SESSION_SHIFT_BITS, _RANDOM_BYTES = 1 << 60, 24, 3
_LIMIT = lazy_pattern(rb"Max file locks +(\d+)")
_VARIABLE = lazy_pattern(rb"(?:^|\0)" + MARK_VARIABLE.encode() + rb"=(\d+)(?:\0|$)")
_KILL_TIMEOUT_S = 2.0
_MAX_KILL_S = 30.0
_MAX_KILL_PAUSE_S = 0.02
_STOP_FIRST_ABOVE = 8  # processes
_PIDS_MAY_REPEAT_AFTER_S = 10.0
_ENDED = (b"Z", b"X")


def new_mark(session: str) -> int:
    """Returns a mark for one more child of a session."""
    return _session_mark(session) + int.from_bytes(os.urandom(_RANDOM_BYTES), "big")


def _session_mark(session: str) -> int:
    digest = hashlib.blake2b(session.encode(errors="replace"), digest_size=4).digest()
    return _FIRST_MARK + (int.from_bytes(digest, "big") << _SESSION_SHIFT_BITS)


def end_leftovers(session: str) -> list[str]:
    """Kills all processes that commands of this session left running. Returns their names.

    Call it after a crash, when nobody waits for a command of the session any more.
    """
    first = _session_mark(session)
    own_marks = range(first, first + (1 << _SESSION_SHIFT_BITS))
    names: dict[int, str] = {}

    def leftovers() -> list[int]:
        found = [
            pid
            for pid in running_pids()
            if pid != os.getpid() and any(mark in own_marks for mark in marks_of(pid))
        ]
        names.update((pid, process_name(pid)) for pid in found if pid not in names)
        return found

    kill_all(leftovers)
    return sorted(names.values())


class ProcessTree:
    """A child that Hermes started and everything that child started.

    A process belongs to the tree if it is in the child's process group or session, carries the mark, or has a parent
    that belongs to it.
    """

    def __init__(self, pid: int, is_marked: Callable[[int], bool]) -> None:
        self.pid = pid
        self._is_marked = is_marked
        self._started_at = time.monotonic()

    def members(self, *, with_child: bool) -> list[int]:
        """Returns the running processes of the tree. `with_child` says whether the child itself still runs."""
        child = [self.pid] if with_child else []
        if not PROC.joinpath("self").exists():
            return child or self._group()
        states = {
            pid: state for pid in self._candidates() if (state := read_state(pid))
        }
        found = {
            pid
            for pid, state in states.items()
            if self.pid in (state.group, state.session) or self._is_marked(pid)
        }
        while (
            descendants := {
                pid for pid, state in states.items() if state.parent in found
            }
            - found
        ):
            found |= descendants
        return child + sorted(found)

    def kill_group(self) -> None:
        """Kills the child's process group in one call, so that nothing in it can fork in between.

        The child must not have been reaped yet: afterwards, its number may belong to another process.
        """
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)

    def _group(self) -> list[int]:
        """Returns the child's process group as the one number that signals it. Without /proc, nothing more is known."""
        try:
            os.killpg(self.pid, 0)
        except OSError:
            return []
        return [-self.pid]

    def _candidates(self) -> Iterator[int]:
        """Yields the processes that the child can have started: higher numbers, or all if numbers may have wrapped."""
        newest = int((PROC / "loadavg").read_bytes().rsplit(None, 1)[1])
        age_s = time.monotonic() - self._started_at
        everything = newest < self.pid or age_s > _PIDS_MAY_REPEAT_AFTER_S
        if newest == self.pid and not everything:
            return
        for pid in running_pids():
            if pid > self.pid or (everything and pid != self.pid):
                yield pid


class ProcessState(NamedTuple):
    """The kernel's data about a running process."""

    parent: int
    group: int
    session: int


def read_state(pid: int) -> ProcessState | None:
    """Returns the state of a process; None if it has ended, even if it was not reaped yet."""
    try:
        stat = _read(pid, "stat")
    except OSError:
        return None
    state, parent, group, session, *_ = stat.rpartition(b")")[2].split()
    if state in _ENDED:
        return None
    return ProcessState(int(parent), int(group), int(session))


def running_pids() -> Iterator[int]:
    """Yields the numbers of all visible processes; none where they can't be listed."""
    with contextlib.suppress(OSError):
        yield from (int(name) for name in os.listdir(PROC) if name.isdecimal())  # noqa: PTH208 - names are enough


def marks_of(pid: int) -> list[int]:
    """Returns the marks that a running process carries."""
    if read_state(pid) is None:
        return []
    found: list[bytes] = []
    with contextlib.suppress(OSError):  # it has ended, or another user owns it
        found += _LIMIT.findall(_read(pid, "limits"))
        found += _VARIABLE.findall(_read(pid, "environ"))
    return [int(mark) for mark in found]


def carries(pid: int, mark: int, variable: str = MARK_VARIABLE) -> bool:
    """Whether a running process carries this mark: as its limit, or in this variable of its environment."""
    number = str(mark).encode()
    try:
        limit = _LIMIT.search(_read(pid, "limits"))
        if limit is not None and limit[1] == number:
            return True
        return variable.encode() + b"=" + number in _read(pid, "environ").split(b"\0")
    except OSError:  # it has ended, or another user owns it
        return False


def _read(pid: int, name: str) -> bytes:
    """Reads a file of the kernel about a process. Hundreds are read for each command, so creating a Path for each would
    be slow."""
    with open(f"/proc/{pid}/{name}", "rb", buffering=0) as file:  # noqa: PTH123
        return file.read()


def process_name(pid: int) -> str:
    """Returns the name of a process, or its number if it has ended."""
    try:
        return (PROC / str(pid) / "comm").read_text(errors="replace").strip()
    except OSError:
        return str(pid)


def send_signal(pids: Iterable[int], number: signal.Signals) -> None:
    """Sends a signal to each of these processes that still exists and that we may signal."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def kill_all(
    remaining: Callable[[], Sequence[int]],
    clock: Callable[[], float] = time.monotonic,
) -> bool:
    """Kills until `remaining` returns nothing. Returns False if none ends for two seconds, or some are left after 30.

    Many processes are stopped before they are killed: a stopped process can't fork faster than we kill. Listing
    thousands of them takes seconds on a busy machine, so time counts only while nothing ends.
    """
    began = progressed = clock()
    pause_s = 0.001
    kills_in_vain = 0
    before: set[int] = set()
    stop_next = True
    while pids := remaining():
        now = clock()
        if before - set(pids):
            progressed, kills_in_vain = now, 0
        in_vain = kills_in_vain > 2 and now - progressed > _KILL_TIMEOUT_S
        if in_vain or now - began > _MAX_KILL_S:
            return False
        if stop_next and len(pids) > _STOP_FIRST_ABOVE:
            send_signal(pids, signal.SIGSTOP)
        else:
            send_signal(pids, signal.SIGKILL)
            kills_in_vain += 1
        stop_next = not stop_next
        before = set(pids)
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.1, _MAX_KILL_PAUSE_S)
    return True


def describe_exit(code: int) -> str:
    """Describes a return code in words; a negative one is the signal that killed the program."""
    return (
        f"killed by signal {-code}" if code < 0 else f"exit code {code}"
    )  # not translated
