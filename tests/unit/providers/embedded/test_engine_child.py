"""The engine's threads run in short slices of time, where the system can do that."""

import ctypes
import platform
import struct
import sys
import threading

import pytest

from hermes.providers.embedded.engine_child import prefer_short_slices

_SCHED_GETATTR = {"x86_64": 315, "aarch64": 275}
_SIZE_BYTES, _SLICE_OFFSET = 56, 24


def slice_ns() -> int:
    """The slice of the calling thread, as the kernel tells it; 0 where it does not."""
    attributes = ctypes.create_string_buffer(_SIZE_BYTES)
    number = _SCHED_GETATTR[platform.machine()]
    assert ctypes.CDLL(None).syscall(number, 0, attributes, _SIZE_BYTES, 0) == 0
    (value,) = struct.unpack_from("Q", attributes.raw, _SLICE_OFFSET)
    return value


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in _SCHED_GETATTR,
    reason="the call's number is not known here",
)
def test_a_thread_and_those_it_starts_get_short_slices() -> None:
    before = slice_ns()
    found: list[int] = []

    def inner() -> None:
        found.append(slice_ns())

    def outer() -> None:
        assert prefer_short_slices()
        found.append(slice_ns())
        started = threading.Thread(target=inner)
        started.start()
        started.join()

    thread = threading.Thread(target=outer)
    thread.start()
    thread.join()
    if not before:
        pytest.skip("this kernel has no slices of a thread's own")
    assert found == [100_000, 100_000]
    assert slice_ns() == before  # of other threads
