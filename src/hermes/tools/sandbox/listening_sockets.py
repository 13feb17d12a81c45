"""Asks the kernel to which files the sockets of this machine are bound, whatever the files are called now."""

import os
import socket
import struct

_SOCK_DIAG, _BY_FAMILY, _DUMP = 4, 20, 0x301
_ERROR, _DONE = 2, 3
_ALL_STATES, _SHOW_FILE = 0xFFFFFFFF, 2
_HEADER, _MESSAGE = 16, 16
_FILE = 1
_REPLY_TIMEOUT_S = 1.0
_READ_BYTES = 256 * 1024


def bound_inodes() -> set[int]:
    """Returns the inode numbers (32 bits) of the files to which sockets of this network are bound. Raises OSError."""
    return {inode for inode, _ in bound_files()}


def bound_files() -> set[tuple[int, int]]:
    """Returns the files that sockets of this network are bound to: inode number (32 bits) and the kernel's number of the
    file system (`kernel_device`). Raises OSError."""
    body = struct.pack(
        "<BBHIIIII", socket.AF_UNIX, 0, 0, _ALL_STATES, 0, _SHOW_FILE, 0, 0
    )
    found: set[tuple[int, int]] = set()
    with socket.socket(
        socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG
    ) as kernel:
        kernel.settimeout(_REPLY_TIMEOUT_S)
        kernel.send(
            struct.pack("<IHHII", _HEADER + len(body), _BY_FAMILY, _DUMP, 1, 0) + body
        )
        while True:
            data = kernel.recv(_READ_BYTES)
            while data:
                length, kind = struct.unpack_from("<IH", data)
                if kind == _DONE:
                    return found
                if kind == _ERROR or length < _HEADER:
                    raise OSError("the kernel does not list sockets")  # not translated
                found.update(_files(data[_HEADER + _MESSAGE : length]))
                data = data[(length + 3) & ~3 :]


def kernel_device(st_dev: int) -> int:
    """Returns a device number in the kernel's internal form."""
    return os.major(st_dev) << 20 | os.minor(st_dev)


def _files(attributes: bytes) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    while len(attributes) >= 4:
        length, kind = struct.unpack_from("<HH", attributes)
        if kind == _FILE:
            inode, device = struct.unpack_from("<II", attributes, 4)
            found.append((inode, device))
        attributes = attributes[max(4, (length + 3) & ~3) :]
    return found
