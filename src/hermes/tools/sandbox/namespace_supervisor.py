"""Answers the kernel's questions about a command in namespaces: whether it may begin, and to what it may connect.

Mounts can't exclude sockets of other programs, because one may appear in the workspace at any time. So Hermes makes
each connection itself, on the command's own socket, to a file that it holds open and has checked.
"""

import contextlib
import ctypes
import errno
import logging
import os
import re
import socket
import stat
import struct
import threading
import time
from pathlib import Path

from hermes.tools.sandbox.filtered_thread import check
from hermes.tools.sandbox.listening_sockets import bound_files, kernel_device
from hermes.tools.sandbox.mount_check import ExpectedMounts
from hermes.tools.sandbox.seccomp import SyscallNumbers
from hermes.tools.sandbox.syscall_notices import (
    NoticeChannel,
    SyscallNotice,
    read_memory,
)

log = logging.getLogger("hermes.tools")

_OPENAT2, _GET_FILE = 437, 438
_IN_ROOT = 0x10
_MAX_ADDRESS_BYTES = 128
_MAX_CONNECTING = 64
"""How many connections of one command may wait at the same time."""
_FAMILY_BYTES = 2
_SETTLED_NS = 1_000_000_000
"""How old a socket's file must be to be certainly in the kernel's list."""
_OWN = re.compile(r"/proc/self/(cwd|root|fd/\d+)(?=/|$)")


class NamespaceSupervisor:
    """Answers the questions about one command."""

    def __init__(
        self, channel: NoticeChannel, calls: SyscallNumbers, mounts: ExpectedMounts
    ) -> None:
        self._channel = channel
        self._connect = calls.connect
        self._mounts = mounts
        self._has_begun = False
        self._connecting = threading.BoundedSemaphore(_MAX_CONNECTING)

    def answer(self, notice: SyscallNotice) -> None:
        """Answers one question; if it is about a connection, in a separate thread, because that may take long."""
        if notice.number != self._connect:
            self._begin(notice)
        elif self._connecting.acquire(blocking=False):
            threading.Thread(
                target=self._answer_connect,
                args=(notice,),
                name="hermes-connect",
                daemon=True,
            ).start()
        else:
            self._channel.answer(notice, errno.EAGAIN)

    def _begin(self, notice: SyscallNotice) -> None:
        """Lets bubblewrap start the command if the mounts are as required. After that, nobody can mount anything there."""
        if self._has_begun:
            self._channel.let_pass(notice)
            return
        try:
            problem = self._mounts.problem(notice.pid)
        except OSError as error:
            problem = str(error)
        if problem:
            log.warning("The sandbox of a command is made again: %s.", problem)
            self._channel.answer(notice, errno.EPERM)
        else:
            self._has_begun = True
            self._channel.let_pass(notice)

    def _answer_connect(self, notice: SyscallNotice) -> None:
        try:
            error = _connect_for(notice, self._channel)
        except OSError as problem:
            error = problem.errno or errno.EACCES
        except (OverflowError, ValueError, struct.error):
            error = errno.EINVAL
        finally:
            self._connecting.release()
        self._channel.answer(notice, error)


def _connect_for(notice: SyscallNotice, channel: NoticeChannel) -> int:
    """Connects a socket of the command as requested. Returns an error number, or 0."""
    number, at, length, *_ = notice.arguments
    length &= 0xFFFFFFFF
    if length > _MAX_ADDRESS_BYTES:
        return errno.EINVAL
    address = read_memory(notice.pid, at, length)
    if len(address) < length:
        return errno.EFAULT
    with _file_of(notice.pid, number & 0xFFFFFFFF) as own:
        channel.check_asker(notice)
        if own.family != socket.AF_UNIX or not _is_path(address):
            return _connect(own, address)
        with _opened(notice.pid, address) as handle:
            channel.check_asker(notice)
            return _connect_to_file(own, handle, notice.pid)


def _is_path(address: bytes) -> bool:
    """Returns whether an address is that of a Unix socket with a path, and not an abstract one."""
    family = struct.pack("=H", socket.AF_UNIX)
    return (
        address.startswith(family) and len(address) > _FAMILY_BYTES and address[2] > 0
    )


def _connect_to_file(own: socket.socket, handle: int, pid: int) -> int:
    """Connects to a socket's file unless a program outside is bound to it."""
    info = os.fstat(handle)
    if not stat.S_ISSOCK(info.st_mode):
        return errno.ECONNREFUSED
    if _is_others(info, pid):
        return errno.EACCES
    path = f"/proc/self/fd/{handle}".encode()
    error = _connect(own, struct.pack("=H", socket.AF_UNIX) + path + b"\0")
    is_new = time.time_ns() - info.st_ctime_ns < _SETTLED_NS
    if not error and is_new and _is_others(info, pid):  # bound while it was looked up
        own.shutdown(socket.SHUT_RDWR)
        return errno.EACCES
    return error


def _is_others(info: os.stat_result, pid: int) -> bool:
    """Returns whether a socket outside the command's network is bound to a file. Raises OSError if the kernel can't
    tell."""
    inode = info.st_ino & 0xFFFFFFFF
    devices = {device for bound, device in bound_files() if bound == inode}
    if not devices:
        return False
    # In some file systems, files have other device numbers than in the kernel's list.
    name = f" {os.major(info.st_dev)}:{os.minor(info.st_dev)} "
    is_comparable = name in Path(f"/proc/{pid}/mountinfo").read_text(errors="replace")
    return not is_comparable or kernel_device(info.st_dev) in devices


@contextlib.contextmanager
def _opened(pid: int, address: bytes) -> "contextlib.Iterator[int]":
    """Opens the file of an address as the command would find it, without using it.

    Every name and link is resolved below the command's root. Hermes' own root has sockets that the command must not
    see, and `bound_files` does not list those of programs with another network, such as containers.
    """
    path = _place(pid, os.fsdecode(address[_FAMILY_BYTES:].partition(b"\0")[0]))
    root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        handle = _open_in(root, path)
    finally:
        os.close(root)
    try:
        yield handle
    finally:
        os.close(handle)


def _place(pid: int, path: str) -> str:
    """Returns a path from the command's root, with folders that only the process itself can name replaced by their real
    paths."""
    if found := _OWN.match(path):
        return os.readlink(f"/proc/{pid}/{found[1]}") + path[found.end() :]  # noqa: PTH115 - a link of the kernel's
    if path.startswith("/"):
        return path
    return os.readlink(f"/proc/{pid}/cwd") + "/" + path  # noqa: PTH115 - a link of the kernel's


@contextlib.contextmanager
def _file_of(pid: int, number: int) -> "contextlib.Iterator[socket.socket]":
    """Duplicates a socket that a process holds open. Raises OSError if the process has none with that number."""
    process = os.pidfd_open(_leader(pid))
    try:
        handle = check(_libc().syscall(_GET_FILE, process, number, 0))
    finally:
        os.close(process)
    try:
        own = socket.socket(fileno=handle)
    except BaseException:
        os.close(handle)
        raise
    with own:
        yield own


def _leader(thread: int) -> int:
    """Returns the process to which a thread belongs."""
    for line in Path(f"/proc/{thread}/status").read_text().splitlines():
        if line.startswith("Tgid:"):
            return int(line.split()[1])
    raise ProcessLookupError(errno.ESRCH, "the thread has ended")  # not translated


def _open_in(root: int, path: str) -> int:
    how = struct.pack("<QQQ", os.O_PATH | os.O_CLOEXEC, 0, _IN_ROOT)
    return check(
        _libc().syscall(
            _OPENAT2, root, os.fsencode(path), how, ctypes.c_size_t(len(how))
        )
    )


def _connect(own: socket.socket, address: bytes) -> int:
    failed = _libc().connect(own.fileno(), address, len(address))
    return ctypes.get_errno() if failed else 0


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
