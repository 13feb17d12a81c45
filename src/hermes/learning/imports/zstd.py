"""Decompresses zstd: with Python where it can (3.14), else with the program `zstd`."""

import subprocess
from collections.abc import Sequence

from hermes.children.helper_programs import find_program
from hermes.settings.load import environment

_TIMEOUT_S = 60.0


def decompressed(frames: Sequence[tuple[bytes, int]]) -> list[bytes] | None:
    """Returns what each frame holds; None if nothing here can decompress. A frame comes with the size of its content."""
    joined = b"".join(frame for frame, _ in frames)
    whole = _with_python(joined)
    if whole is None:
        whole = _with_program(joined)
    if whole is None or len(whole) != sum(size for _, size in frames):
        return None
    contents: list[bytes] = []
    start = 0
    for _, size in frames:
        contents.append(whole[start : start + size])
        start += size
    return contents


def _with_python(joined: bytes) -> bytes | None:
    try:
        # pyrefly: ignore[missing-import]
        from compression import zstd
    except ImportError:
        return None
    try:
        return bytes(zstd.decompress(joined))
    except zstd.ZstdError:
        return None


def _with_program(joined: bytes) -> bytes | None:
    program = find_program("zstd", environment())
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "-dc"],
            input=joined,
            capture_output=True,
            check=True,
            timeout=_TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout
