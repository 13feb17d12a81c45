"""Asks the kernel which files the sockets of this machine are bound to, whatever they are called now."""

import socket
import struct

_SOCK_DIAG, _BY_FAMILY, _DUMP = 4, 20, 0x301
_ERROR, _DONE = 2, 3
_ALL_STATES, _SHOW_FILE = 0xFFFFFFFF, 2
_HEADER, _MESSAGE = 16, 16
_FILE = 1
_TIMEOUT_S = 1.0
_READ_BYTES = 256 * 1024


def bound_inodes() -> set[int]:
    """Returns the inode numbers (32 bits) of the files that sockets of this network are bound to. Raises OSError."""
    body = struct.pack(
        "<BBHIIIII", socket.AF_UNIX, 0, 0, _ALL_STATES, 0, _SHOW_FILE, 0, 0
    )
    found: set[int] = set()
    with socket.socket(
        socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG
    ) as kernel:
        kernel.settimeout(_TIMEOUT_S)
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
                    raise OSError("the kernel does not list sockets")
                found.update(_files(data[_HEADER + _MESSAGE : length]))
                data = data[(length + 3) & ~3 :]


def _files(attributes: bytes) -> list[int]:
    found: list[int] = []
    while len(attributes) >= 4:
        length, kind = struct.unpack_from("<HH", attributes)
        if kind == _FILE:
            found.append(struct.unpack_from("<I", attributes, 4)[0])
        attributes = attributes[max(4, (length + 3) & ~3) :]
    return found
