"""Measures a chat at a real pseudo-terminal, with the least possible Python program beside it in the same seconds.

A token is sent by a small server of our own, which notes when; it is seen when the terminal's other side reads it.
"""

import asyncio
import os
import pty
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.chat.programs import ChatProgram, Launch
from benchmarks.chat.servers import TOKENS, Long, Paced
from hermes.testing.installed import TerminalProcess

FLOOR = """
import asyncio, json, sys
async def main():
    reader, writer = await asyncio.open_connection("127.0.0.1", int(sys.argv[1]))
    writer.write(b"POST / HTTP/1.1\\r\\nhost: x\\r\\ncontent-length: 0\\r\\n\\r\\n")
    while line := await reader.readline():
        if line.startswith(b"data: {"):
            text = json.loads(line[6:])["choices"][0]["delta"].get("content", "")
            sys.stdout.write(text)
            sys.stdout.flush()
asyncio.run(main())
"""
"""Reads a stream and writes each token to its terminal, with nothing else around it."""

_CODES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
_SEEN = re.compile(rb"q(\d{3})z")


def start_cpu(launch: Launch, until: bytes) -> float:
    """Milliseconds of CPU until that is written."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        launch.argv,
        env=launch.environ, cwd=launch.cwd, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    written = b""
    while until not in _CODES.sub(b"", written):
        written += os.read(ours, 65536)
    used = _cpu_of(process.pid)
    process.kill()
    process.wait()
    os.close(ours)
    return used


async def delays(program: ChatProgram, kind: str) -> tuple[list[float], list[float]]:
    """Milliseconds from the server to the terminal, for each token; and those of the floor meanwhile."""
    paced, plain = Paced(kind), Paced(kind)
    servers = [
        await asyncio.start_server(each.handle, "127.0.0.1", 0)
        for each in (paced, plain)
    ]
    port, floor_port = (each.sockets[0].getsockname()[1] for each in servers)
    floor_seen = FirstSeen()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        launch = program.launch(Path(folder), f"http://127.0.0.1:{port}/v1")
        async with launch.terminal() as terminal:
            await terminal.until(lambda shown: program.ready in shown)
            with _floor(floor_port, floor_seen.note):
                terminal.type("go\r")
                seen = await _watch(terminal)
                await floor_seen.all.wait()
                await plain.left.wait()
            await paced.left.wait()
    for each in servers:
        each.close()
    return _passed(paced.sent, seen), _passed(plain.sent, floor_seen.times)


async def cpu_per_token(program: ChatProgram, kind: str) -> tuple[float, float]:
    """Milliseconds of CPU of the whole process, at the end of a long block; and those of the floor meanwhile."""
    long, plain = Long(kind), Long(kind)
    servers = [
        await asyncio.start_server(each.handle, "127.0.0.1", 0)
        for each in (long, plain)
    ]
    port, floor_port = (each.sockets[0].getsockname()[1] for each in servers)
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        _floor(floor_port, lambda _: None) as floor,
    ):
        launch = program.launch(Path(folder), f"http://127.0.0.1:{port}/v1")
        async with launch.terminal() as terminal:
            await terminal.until(lambda shown: program.ready in shown)
            terminal.type("go\r")
            await asyncio.gather(long.begun.wait(), plain.begun.wait())
            await asyncio.sleep(3)  # what came at once is drawn
            before = _cpu_of(terminal.pid), _cpu_of(floor.pid)
            long.go.set()
            plain.go.set()
            await asyncio.gather(long.ended.wait(), plain.ended.wait())
            used = _cpu_of(terminal.pid) - before[0], _cpu_of(floor.pid) - before[1]
    await asyncio.gather(long.left.wait(), plain.left.wait())
    for each in servers:
        each.close()
    return used[0] / TOKENS, used[1] / TOKENS


@contextmanager
def _floor(
    port: int, on_output: Callable[[bytes], object]
) -> Iterator["subprocess.Popen[bytes]"]:
    """The least program, at a terminal that is read in a thread."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", FLOOR, str(port)], stdin=theirs, stdout=theirs
    )
    os.close(theirs)
    reading = threading.Thread(target=_read_all, args=(ours, on_output), daemon=True)
    reading.start()
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _read_all(descriptor: int, on_output: Callable[[bytes], object]) -> None:
    with suppress(OSError):
        while data := os.read(descriptor, 65536):
            on_output(data)
    os.close(descriptor)


def _cpu_of(pid: int) -> float:
    """Milliseconds of CPU so far, of all its threads."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e6


def _passed(sent: Mapping[int, float], seen: Mapping[int, float]) -> list[float]:
    return [(seen[number] - sent[number]) * 1000 for number in seen]


class FirstSeen:
    """When each token was first seen, in output that a thread reads."""

    def __init__(self) -> None:
        self.times: dict[int, float] = {}
        self.all = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._end = b""

    def note(self, data: bytes) -> None:
        """Looks for tokens in more output."""
        now = time.perf_counter()
        data = self._end + data
        for found in _SEEN.finditer(data):
            self.times.setdefault(int(found[1]), now)
        self._end = data[-4:]
        if len(self.times) == TOKENS:
            self._loop.call_soon_threadsafe(self.all.set)


async def _watch(terminal: TerminalProcess) -> dict[int, float]:
    """When each token was first seen."""
    seen: dict[int, float] = {}
    at = 0
    while len(seen) < TOKENS:
        await terminal.changed()
        now = time.perf_counter()
        for found in _SEEN.finditer(terminal.raw, max(0, at - 8)):
            seen.setdefault(int(found[1]), now)
        at = len(terminal.raw)
    return seen
