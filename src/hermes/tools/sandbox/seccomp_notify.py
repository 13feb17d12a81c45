"""Answers the kernel's questions about system calls that Landlock does not cover: changing a file's mode, owner and
times, and on older kernels signals.

A call whose arguments are in the caller's memory is never let through, because the caller could change them meanwhile.
Hermes does the work in its place, on a file that it holds open and has checked.
"""

import asyncio
import contextlib
import errno
import fcntl
import os
import platform
import struct
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import msgspec

from hermes.tools.sandbox.confinement import Fence, Started
from hermes.tools.sandbox.seccomp import SyscallNumbers, calls_of

_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_GO_ON = 1
_HERE, _NO_FOLLOW, _EMPTY_PATH = -100, 0x100, 0x1000
_NOW, _OMIT = (1 << 30) - 1, (1 << 30) - 2
_NO_SET_ID = 0o1777  # a file that runs as its owner would do so outside too
_PAGE_BYTES, _MAX_PATH_BYTES = 4096, 4096

Arguments: TypeAlias = tuple[int, ...]


def answer_notices(
    started: Started, fence: Fence, is_own: Callable[[int], bool]
) -> Callable[[], None]:
    """Answers the kernel's questions about a command on the event loop; returns the function that stops it."""
    calls = calls_of(platform.machine())
    if started.notices < 0 or calls is None:
        return lambda: None
    folders = (fence.workspace, fence.temporary)
    supervisor = SeccompSupervisor(started.notices, calls, folders, is_own)
    loop = asyncio.get_running_loop()

    def answer() -> None:
        if not supervisor.answer_one():
            loop.remove_reader(supervisor.notices)

    def stop() -> None:
        loop.remove_reader(supervisor.notices)
        supervisor.close()

    loop.add_reader(supervisor.notices, answer)
    return stop


class SyscallNotice(msgspec.Struct, frozen=True):
    """One question of the kernel: which process makes which call, with which arguments."""

    id: int
    pid: int
    call: str
    arguments: Arguments


class SeccompSupervisor:
    """Answers the questions about one command, whose files are in `folders`."""

    def __init__(
        self,
        notices: int,
        calls: SyscallNumbers,
        folders: tuple[Path, ...],
        is_own: Callable[[int], bool],
    ) -> None:
        self.notices = notices
        bounds = {"setrlimit": calls.setrlimit, "prlimit": calls.prlimit}
        self._names = {
            number: name
            for name, number in (calls.attended | calls.signals | bounds).items()
        }
        self._bounded: set[int] = set()
        self._folders = folders
        self._is_own = is_own

    def answer_one(self) -> bool:
        """Answers one question; False if no process can ask any more."""
        buffer = bytearray(80)
        try:
            fcntl.ioctl(self.notices, _RECEIVE, buffer)
        except OSError as error:
            return error.errno in (errno.EINTR, errno.EAGAIN) or (
                error.errno == errno.ENOENT and self._has_askers()
            )
        number, pid, _, call = struct.unpack_from("<QIIi", buffer)
        notice = SyscallNotice(
            number,
            pid,
            self._names.get(call, ""),
            struct.unpack_from("<6Q", buffer, 32),
        )
        self._answer(notice)
        return True

    def close(self) -> None:
        """Stops answering. The kernel tells whoever still asks that there is no such call."""
        os.close(self.notices)

    def _has_askers(self) -> bool:
        import select

        poll = select.poll()
        poll.register(self.notices, select.POLLIN)
        return not any(event & select.POLLHUP for _, event in poll.poll(0))

    def _answer(self, notice: SyscallNotice) -> None:
        flags = error = 0
        try:
            if notice.call in _BY_VALUE:
                allowed = (
                    self._may_bound(notice)
                    if notice.call in _BOUNDING
                    else self._may_signal(notice)
                )
                flags = _GO_ON if allowed else 0
                error = 0 if flags else errno.EPERM
            else:
                self._act(notice)
        except OSError as problem:
            error = problem.errno or errno.EPERM
        except (
            OverflowError,
            ValueError,
            struct.error,
        ):  # numbers, names or memory that nothing can be done with
            error = errno.EINVAL
        with contextlib.suppress(OSError):  # the asker is gone
            fcntl.ioctl(
                self.notices, _SEND, struct.pack("<QqiI", notice.id, 0, -error, flags)
            )

    def _act(self, notice: SyscallNotice) -> None:
        arguments = notice.arguments
        match notice.call:
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
            else struct.unpack("<4q", self._memory(notice, times, 32))
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
        """Opens the file that a call names, and checks that it is the command's own."""
        text = os.fsdecode(
            self._memory(notice, name, _MAX_PATH_BYTES).partition(b"\0")[0]
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
        """Opens a file that a process holds open, and checks that it is the command's own."""
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
            fcntl.ioctl(
                self.notices, _IS_VALID, struct.pack("<Q", notice.id)
            )  # not another process by now
        except BaseException:
            os.close(handle)
            raise
        return handle

    def _check_place(self, place: Path) -> None:
        if not any(
            place == folder or folder in place.parents for folder in self._folders
        ):
            raise PermissionError(errno.EPERM, "outside the workspace")

    def _memory(self, notice: SyscallNotice, address: int, size: int) -> bytes:
        """Reads the caller's memory, page by page, up to `size` bytes or the first NUL after a whole page."""
        handle = os.open(f"/proc/{notice.pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.pread(
                handle, min(size, _PAGE_BYTES - address % _PAGE_BYTES), address
            )
            if len(data) < size and (size < _MAX_PATH_BYTES or b"\0" not in data):
                data += os.pread(handle, size - len(data), address + len(data))
            return data
        finally:
            os.close(handle)

    def _may_bound(self, notice: SyscallNotice) -> bool:
        """Whether a resource limit may be set: once each, by what starts the command. Reading is always allowed."""
        first, second, new, *_ = notice.arguments
        bound = (first if notice.call == "setrlimit" else second) & 0xFFFFFFFF
        if notice.call == "prlimit" and new == 0:
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
    """Reads a 32-bit number as signed, as the kernel does."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def _owner(value: int) -> int:
    """Reads a user or group. The largest 32-bit number means: don't change it."""
    value &= 0xFFFFFFFF
    return -1 if value == 0xFFFFFFFF else value


def _nanoseconds(seconds: int, rest: int, before: int) -> int:
    if rest == _OMIT:
        return before
    if rest == _NOW:
        import time

        return time.time_ns()
    return seconds * 1_000_000_000 + rest
