"""Reads from git's index which files a repository tracks.

Git itself is never run for this: in a repository that a command made, its settings would decide what else runs, without
any confinement.
"""

import os
import stat
import struct
from collections.abc import Iterator

_MAX_INDEX_BYTES = 64 * 1024 * 1024
_HASH_BYTES = (20, 32)  # SHA-1, SHA-256
_FIXED_ENTRY_BYTES = 40  # times, numbers and size, before the hash
_EXTENDED_FLAG = 0x4000
_POINTER = b"gitdir: "


def index_of(repository: str) -> str:
    """The path of a repository's index; `.git` can be a file that names another folder."""
    place = f"{repository}/.git"
    pointer = _content(place, 4096)
    if pointer.startswith(_POINTER):
        place = os.path.join(repository, os.fsdecode(pointer[len(_POINTER) :].strip()))  # noqa: PTH118 - a text
    return f"{place}/index"


def tracked(repository: str) -> frozenset[str]:
    """The names of the files in the index, relative to the repository; none if it can't be read."""
    data = _content(index_of(repository), _MAX_INDEX_BYTES)
    for size in _HASH_BYTES:
        try:
            return frozenset(map(os.fsdecode, _names(data, size)))
        except (ValueError, struct.error, IndexError):
            continue
    return frozenset()


def _names(data: bytes, hash_size: int) -> Iterator[bytes]:
    """The names, in git's order. Raises ValueError if the content has another form, as with hashes of another size."""
    mark, version, count = struct.unpack_from(">4sII", data)
    if mark != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("not an index")  # not translated
    at, name = 12, b""
    for _ in range(count):
        start, last = at, name
        at += _FIXED_ENTRY_BYTES + hash_size
        (flags,) = struct.unpack_from(">H", data, at)
        at += 4 if flags & _EXTENDED_FLAG and version > 2 else 2
        shared = b""
        if version == 4:
            cut, at = _number(data, at)
            shared = last[: len(last) - cut]
        end = data.index(b"\0", at)
        name = shared + data[at:end]
        if name < last or flags & 0xFFF != min(len(name), 0xFFF):
            raise ValueError("not a name")
        yield name
        at = end + 1 if version == 4 else end + 8 - (end - start) % 8


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Decodes a number of variable length, and returns where it ends."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = (value + 1) << 7 | data[at] & 0x7F
    return value, at + 1


def _content(path: str, most: int) -> bytes:
    """The content of a regular file; empty for anything else, which could block its reader."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return b""
    try:
        info = os.fstat(handle)
        return (
            _read(handle, info.st_size)
            if stat.S_ISREG(info.st_mode) and info.st_size <= most
            else b""
        )
    except OSError:
        return b""
    finally:
        os.close(handle)


def _read(handle: int, size: int) -> bytes:
    pieces: list[bytes] = []
    while size > 0 and (piece := os.read(handle, size)):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
