"""Receives the kernel's questions about system calls of a confined command, and sends the answers."""

import errno
import fcntl
import os
import struct
import threading
from typing import TypeAlias

import msgspec

_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_GO_ON = 1
_PAGE_BYTES = 4096
MAX_PATH_BYTES = 4096

Arguments: TypeAlias = tuple[int, ...]


class SyscallNotice(msgspec.Struct, frozen=True):
    """One question from the kernel: which thread makes which call, with which arguments."""

    id: int
    pid: int
    number: int
    arguments: Arguments


class NoticeChannel:
    """The file on which the kernel asks. Any thread may answer."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self._lock = threading.Lock()
        self._is_open = True

    def receive(self) -> SyscallNotice | None:
        """Returns the next question; None if the calling thread is gone. Raises EOFError if no process can ask any
        more."""
        buffer = bytearray(80)
        try:
            fcntl.ioctl(self.handle, _RECEIVE, buffer)
        except OSError as error:
            if error.errno in (errno.EINTR, errno.EAGAIN) or (
                error.errno == errno.ENOENT and self._has_askers()
            ):
                return None
            raise EOFError from error
        id_, pid, _, number = struct.unpack_from("<QIIi", buffer)
        return SyscallNotice(id_, pid, number, struct.unpack_from("<6Q", buffer, 32))

    def answer(self, notice: SyscallNotice, error: int) -> None:
        """Lets the call return: 0, or an error."""
        self._send(notice, error, 0)

    def let_pass(self, notice: SyscallNotice) -> None:
        """Lets the kernel execute the call. Memory that it points to can have changed since, so only its numbers can be
        relied on."""
        self._send(notice, 0, _GO_ON)

    def check_asker(self, notice: SyscallNotice) -> None:
        """Raises OSError if the calling thread is gone, because another process may have its number now."""
        fcntl.ioctl(self.handle, _IS_VALID, struct.pack("<Q", notice.id))

    def close(self) -> None:
        """Stops answering. The kernel then reports to callers that there is no such call."""
        with self._lock:
            self._is_open = False
            os.close(self.handle)

    def _send(self, notice: SyscallNotice, error: int, flags: int) -> None:
        with self._lock:
            if not self._is_open:
                return
            try:
                fcntl.ioctl(
                    self.handle,
                    _SEND,
                    struct.pack("<QqiI", notice.id, 0, -error, flags),
                )
            except OSError:  # the calling thread is gone
                return

    def _has_askers(self) -> bool:
        import select

        poll = select.poll()
        poll.register(self.handle, select.POLLIN)
        return not any(event & select.POLLHUP for _, event in poll.poll(0))


def read_memory(pid: int, address: int, size: int) -> bytes:
    """Reads a thread's memory page by page, up to `size` bytes; for a path, up to the page that contains its end."""
    handle = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.pread(handle, min(size, _PAGE_BYTES - address % _PAGE_BYTES), address)
        if len(data) < size and (size < MAX_PATH_BYTES or b"\0" not in data):
            data += os.pread(handle, size - len(data), address + len(data))
        return data
    finally:
        os.close(handle)
