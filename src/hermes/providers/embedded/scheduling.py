"""How the engine's threads share the processor with other programs."""

import ctypes
import os
import platform
import struct
import sys

_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}  # system call number
_ATTRIBUTES = struct.Struct("IIQiIQQQ")
_SLICE_NS = 100_000  # the shortest slice that Linux accepts


def prefer_short_slices() -> bool:
    """Asks Linux to run this thread, and threads it starts, in short slices. Returns True if Linux accepts.

    The engine's threads wait for each other several hundred times per token. Next to a busy process with slices of 3
    ms, each wait may take that long. A thread with short slices runs as soon as it wakes, and gets no more time in
    total. Linux 6.12 and later support this without privileges; older versions ignore it.
    """
    number = _SCHED_SETATTR.get(platform.machine())
    if sys.platform != "linux" or number is None:
        return False
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, 0, 0, nice, 0, _SLICE_NS, 0, 0)
    return ctypes.CDLL(None).syscall(number, 0, attributes, 0) == 0
