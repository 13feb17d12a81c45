"""Answers the kernel's questions about system calls that Landlock does not cover: changing a file's mode, owner and
times, and on older kernels signals.

A call whose arguments are in the caller's memory is never let through, because the caller could change them in between.
Hermes does the work in its place, on a file that it holds open and has checked.
"""

import asyncio
import contextlib
import errno
import os
import platform
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from hermes.tools.sandbox.confinement import Fence, Started
from hermes.tools.sandbox.namespace_supervisor import NamespaceSupervisor
from hermes.tools.sandbox.seccomp import SyscallNumbers, calls_of
from hermes.tools.sandbox.syscall_notices import (
    MAX_PATH_BYTES,
    NoticeChannel,
    SyscallNotice,
    read_memory,
)

_HERE, _NO_FOLLOW, _EMPTY_PATH = -100, 0x100, 0x1000
_NOW, _OMIT = (1 << 30) - 1, (1 << 30) - 2
_NO_SET_ID = 0o1777  # a file that runs as its owner would do so outside, too


def answer_notices(
    started: Started, fence: Fence, is_own: Callable[[int], bool]
) -> Callable[[], None]:
    """Answers the kernel's questions about a command on the event loop; returns the function that stops it."""
    calls = calls_of(platform.machine())
    if started.notices < 0 or calls is None:
        return lambda: None
    channel = NoticeChannel(started.notices)
    supervisor: _Supervisor
    if started.mounts is not None:
        supervisor = NamespaceSupervisor(channel, calls, started.mounts)
    else:
        folders = (fence.workspace, fence.temporary)
        supervisor = SeccompSupervisor(channel, calls, folders, is_own)
    loop = asyncio.get_running_loop()

    def answer() -> None:
        try:
            notice = channel.receive()
        except EOFError:
            loop.remove_reader(channel.handle)
            return
        if notice is not None:
            supervisor.answer(notice)

    def stop() -> None:
        loop.remove_reader(channel.handle)
        channel.close()

    loop.add_reader(channel.handle, answer)
    return stop


class _Supervisor(Protocol):
    def answer(self, notice: SyscallNotice) -> None: ...


class SeccompSupervisor:
    """Answers the questions about one command, whose files are in `folders`."""

    def __init__(
        self,
        channel: NoticeChannel,
        calls: SyscallNumbers,
        folders: tuple[Path, ...],
        is_own: Callable[[int], bool],
    ) -> None:
        self._channel = channel
        bounds = {"setrlimit": calls.setrlimit, "prlimit": calls.prlimit}
        self._names = {
            number: name
            for name, number in (calls.attended | calls.signals | bounds).items()
        }
        self._bounded: set[int] = set()
        self._folders = folders
        self._is_own = is_own

    def answer(self, notice: SyscallNotice) -> None:
        """Answers one question."""
        error = 0
        call = self._names.get(notice.number, "")
        try:
            if call in _BY_VALUE:
                allowed = (
                    self._may_bound(notice, call)
                    if call in _BOUNDING
                    else self._may_signal(notice)
                )
                if allowed:
                    self._channel.let_pass(notice)
                    return
                error = errno.EPERM
            else:
                self._act(notice, call)
        except OSError as problem:
            error = problem.errno or errno.EPERM
        except (
            OverflowError,
            ValueError,
            struct.error,
        ):  # invalid numbers, names or memory
            error = errno.EINVAL
        self._channel.answer(notice, error)

    def _act(self, notice: SyscallNotice, call: str) -> None:
        arguments = notice.arguments
        match call:
            case "chmod":
                self._chmod(self._at(notice, _HERE, arguments[0], 0), arguments[1])
            case "fchmod":
                self._chmod(self._held(notice, arguments[0]), arguments[1])
            case "fchmodat":
                self._chmod(
                    self._at(notice, arguments[0], arguments[1], 0), arguments[2]
                )
            case "fchmodat2":
                self._chmod(
                    self._at(notice, arguments[0], arguments[1], arguments[3]),
                    arguments[2],
                )
            case "chown":
                self._chown(
                    self._at(notice, _HERE, arguments[0], 0), arguments[1], arguments[2]
                )
            case "lchown":
                self._chown(
                    self._at(notice, _HERE, arguments[0], _NO_FOLLOW),
                    arguments[1],
                    arguments[2],
                )
            case "fchown":
                self._chown(
                    self._held(notice, arguments[0]), arguments[1], arguments[2]
                )
            case "fchownat":
                self._chown(
                    self._at(notice, arguments[0], arguments[1], arguments[4]),
                    arguments[2],
                    arguments[3],
                )
            case "utimensat":
                self._utime(notice)
            case _:
                raise OSError(errno.EPERM, "not attended")

    def _chmod(self, handle: int, mode: int) -> None:
        with _owned(handle) as path:
            os.chmod(path, mode & _NO_SET_ID)  # noqa: PTH101 - a file held open, by number

    def _chown(self, handle: int, user: int, group: int) -> None:
        with _owned(handle) as path:
            os.chown(path, _owner(user), _owner(group))

    def _utime(self, notice: SyscallNotice) -> None:
        folder, name, times, flags, *_ = notice.arguments
        wanted = (
            None
            if times == 0
            else struct.unpack("<4q", read_memory(notice.pid, times, 32))
        )
        handle = (
            self._held(notice, folder)
            if name == 0
            else self._at(notice, folder, name, flags)
        )
        with _owned(handle) as path:
            if wanted is None:
                os.utime(path)
                return
            now = os.stat(handle)  # noqa: PTH116 - a file held open, by number
            access = _nanoseconds(wanted[0], wanted[1], now.st_atime_ns)
            change = _nanoseconds(wanted[2], wanted[3], now.st_mtime_ns)
            os.utime(path, ns=(access, change))

    def _at(self, notice: SyscallNotice, folder: int, name: int, flags: int) -> int:
        """Opens the file that a call names, and checks that it belongs to the command."""
        text = os.fsdecode(
            read_memory(notice.pid, name, MAX_PATH_BYTES).partition(b"\0")[0]
        )
        if not text and flags & _EMPTY_PATH:
            return self._held(notice, folder)
        if not text:
            raise FileNotFoundError(errno.ENOENT, "empty path")
        base = (
            f"/proc/{notice.pid}/cwd"
            if _signed(folder) == _HERE
            else f"/proc/{notice.pid}/fd/{_signed(folder)}"
        )
        for own in ("/proc/self/", "/proc/thread-self/", "/dev/fd/"):
            if text.startswith(own):
                text = f"/proc/{notice.pid}/{'fd/' if own == '/dev/fd/' else ''}{text[len(own) :]}"
        more = os.O_NOFOLLOW if flags & _NO_FOLLOW else 0
        return self._checked(
            notice,
            os.open(os.path.join(base, text), os.O_PATH | os.O_CLOEXEC | more),  # noqa: PTH118
        )

    def _held(self, notice: SyscallNotice, number: int) -> int:
        """Opens a file that a process holds open, and checks that it belongs to the command."""
        return self._checked(
            notice,
            os.open(
                f"/proc/{notice.pid}/fd/{_signed(number)}", os.O_PATH | os.O_CLOEXEC
            ),
        )

    def _checked(self, notice: SyscallNotice, handle: int) -> int:
        try:
            place = Path(os.readlink(f"/proc/self/fd/{handle}"))  # noqa: PTH115 - no path, a link of the kernel's
            self._check_place(place)
            self._channel.check_asker(notice)
        except BaseException:
            os.close(handle)
            raise
        return handle

    def _check_place(self, place: Path) -> None:
        if not any(
            place == folder or folder in place.parents for folder in self._folders
        ):
            raise PermissionError(
                errno.EPERM, "outside the workspace"
            )  # not translated

    def _may_bound(self, notice: SyscallNotice, call: str) -> bool:
        """Whether a resource limit may be set: each only once, by the code that starts the command. Reading is always
        allowed."""
        first, second, new, *_ = notice.arguments
        bound = (first if call == "setrlimit" else second) & 0xFFFFFFFF
        if call == "prlimit" and new == 0:
            return True
        if bound in self._bounded:
            return False
        self._bounded.add(bound)
        return True

    def _may_signal(self, notice: SyscallNotice) -> bool:
        """Whether the target of a signal is one of the command's processes. It is passed by value, so it can't change."""
        target = _signed(notice.arguments[0])
        if target == 0:
            return True
        if target < -1:
            target = -target
        return target > 0 and self._is_own(target)


_BOUNDING = ("setrlimit", "prlimit")
_BY_VALUE = frozenset(
    (
        "kill",
        "tkill",
        "tgkill",
        "pidfd_open",
        "rt_sigqueueinfo",
        "rt_tgsigqueueinfo",
        *_BOUNDING,
    )
)


@contextlib.contextmanager
def _owned(handle: int) -> "contextlib.Iterator[str]":
    """Yields the path under which an open file can be changed, and closes the file."""
    try:
        yield f"/proc/self/fd/{handle}"
    finally:
        os.close(handle)


def _signed(value: int) -> int:
    """Interprets a 32-bit number as signed, as the kernel does."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def _owner(value: int) -> int:
    """Interprets a user or group id. The largest 32-bit number means: don't change it."""
    value &= 0xFFFFFFFF
    return -1 if value == 0xFFFFFFFF else value


def _nanoseconds(seconds: int, rest: int, before: int) -> int:
    if rest == _OMIT:
        return before
    if rest == _NOW:
        import time

        return time.time_ns()
    return seconds * 1_000_000_000 + rest
