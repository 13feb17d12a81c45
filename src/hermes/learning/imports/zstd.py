"""Decompresses zstd: with Python if it can (3.14), otherwise with the program `zstd`.

A small frame may expand to any size, so decompression stops at the declared size.
"""

import subprocess
import tempfile
import threading

from hermes.children.helper_programs import find_program
from hermes.settings.load import environment

_DECOMPRESSION_TIMEOUT_S = 60.0


def decompressed(frame: bytes, size: int) -> bytes | None:
    """Returns the content of a frame; None if it is damaged, does not have `size` bytes, or nothing here can decompress
    it."""
    try:
        # pyrefly: ignore[missing-import]
        from compression import zstd
    except ImportError:
        return _with_program(frame, size)
    stream = zstd.ZstdDecompressor()
    try:
        found = bytes(stream.decompress(frame, max_length=size + 1))
    except zstd.ZstdError:
        return None
    is_whole = stream.eof and not stream.unused_data
    return found if is_whole and len(found) == size else None


def _with_program(frame: bytes, size: int) -> bytes | None:
    program = find_program("zstd", environment())
    if program is None:
        return None
    try:
        with tempfile.TemporaryFile() as file:
            file.write(frame)
            file.seek(0)
            with subprocess.Popen(
                [program, "-dc"],
                stdin=file,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            ) as running:
                found = _output(running, size + 1)
    except OSError:
        return None
    return found if running.returncode == 0 and len(found) == size else None


def _output(running: "subprocess.Popen[bytes]", most: int) -> bytes:
    """Returns the first bytes that a program writes. Kills it if it reaches the limit or takes too long."""
    timer = threading.Timer(_DECOMPRESSION_TIMEOUT_S, running.kill)
    timer.start()
    try:
        found = running.stdout.read(most) if running.stdout else b""
        if len(found) == most:
            running.kill()
        running.wait()
    finally:
        timer.cancel()
        running.kill()
    return found
