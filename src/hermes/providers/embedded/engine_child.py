"""The child process that holds the model: `python -m hermes.providers.embedded.engine_child`.

It owns the engine library, its slots and the saved states of the prompts' prefixes. It reads commands from stdin and
writes reports to stdout (`engine_wire`). It ends when stdin closes, or after a while without work.
"""

import ctypes
import os
import platform
import queue
import select
import struct
import sys
import threading
from typing import BinaryIO

import msgspec

from hermes.providers.embedded import engine_slot, engine_wire

_READ_BYTES = 1 << 16
_PREPARE_AFTER_S = 3.0
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}  # system call number
_SCHED_ATTRIBUTES = struct.Struct("IIQiIQQQ")
_SLICE_NS = 100_000  # the shortest slice that Linux accepts


class Reporter:
    """Writes reports to the parent, one line each, from any thread."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._lock = threading.Lock()
        self._encoder = msgspec.json.Encoder()

    def send(self, report: engine_wire.Report) -> None:
        with self._lock:
            self._out.write(self._encoder.encode(report) + b"\n")
            self._out.flush()


class Work:
    """State shared by the two threads: the jobs, whether one is running, and the last cancelled id (ids increase)."""

    def __init__(self) -> None:
        self.jobs: queue.SimpleQueue[engine_wire.Job] = queue.SimpleQueue()
        self.busy = True
        self.cancelled = 0


def main() -> None:
    """Loads the model, then serves until stdin closes or the child has been idle for too long."""
    out = _take_stdout()
    reporter = Reporter(out)
    lines = _Lines(sys.stdin.fileno())
    first = lines.read(None)
    if first is None:
        return
    load = msgspec.json.decode(first, type=engine_wire.Load)
    work = Work()
    threading.Thread(target=_work, args=(load, work, reporter), daemon=True).start()
    _listen(lines, load.idle_seconds, work, reporter)
    os._exit(
        0
    )  # the library's threads have nothing to clean up and must not delay the exit


def _listen(
    lines: "_Lines", idle_seconds: float, work: Work, reporter: Reporter
) -> None:
    """Hands commands to the worker until stdin closes, or until nothing arrived and nothing ran for a while."""
    decoder = msgspec.json.Decoder(engine_wire.Job | engine_wire.Cancel)
    while True:
        try:
            line = lines.read(idle_seconds)
        except TimeoutError:
            if work.busy or not work.jobs.empty():
                continue
            return
        if line is None:
            return
        command = decoder.decode(line)
        if isinstance(command, engine_wire.Cancel):
            work.cancelled = max(work.cancelled, command.id)
        else:
            reporter.send(engine_wire.Accepted(id=command.id))
            work.jobs.put(command)


def _work(load: engine_wire.Load, work: Work, reporter: Reporter) -> None:
    """Runs the jobs in a thread. A failed start ends the process, a failed job ends only the job; both are reported."""
    prefer_short_slices()
    try:
        engine = engine_slot.SlotBank(load, reporter.send)
    except engine_slot.CannotStart as error:
        reporter.send(engine_wire.Failed(reason=error.reason, message=str(error)))
        os._exit(1)
    while True:
        job = _next_job(engine, work)
        try:
            reporter.send(engine.run(job, lambda job=job: work.cancelled >= job.id))
        except BrokenPipeError:
            os._exit(0)
        except Exception as error:  # noqa: BLE001 - a request's boundary: it becomes a report
            reporter.send(
                engine_wire.Failed(
                    id=job.id,
                    reason="engine",
                    message=f"{type(error).__name__}: {error}",
                )
            )


def _next_job(engine: engine_slot.SlotBank, work: Work) -> engine_wire.Job:
    """Waits for a job. After a short idle time it prepares what later jobs will need."""
    try:
        work.busy = False
        job = work.jobs.get(timeout=_PREPARE_AFTER_S)
    except queue.Empty:
        engine.prepare(lambda: not work.jobs.empty())
        job = work.jobs.get()
    work.busy = True
    return job


class _Lines:
    """Reads lines from a file descriptor, with a timeout."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._buffer = b""

    def read(self, timeout: float | None) -> bytes | None:
        """Returns the next line; None at the end. Raises TimeoutError if nothing arrives in time."""
        while b"\n" not in self._buffer:
            if not select.select([self._fd], (), (), timeout)[0]:
                raise TimeoutError
            data = os.read(self._fd, _READ_BYTES)
            if not data:
                return None
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line


def _take_stdout() -> BinaryIO:
    """Reserves stdout for reports; anything that the library prints goes to stderr."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return out


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
    attributes = _SCHED_ATTRIBUTES.pack(
        _SCHED_ATTRIBUTES.size, 0, 0, nice, 0, _SLICE_NS, 0, 0
    )
    return ctypes.CDLL(None).syscall(number, 0, attributes, 0) == 0


if __name__ == "__main__":
    main()
