"""The chat at a real pseudo-terminal: CPU until its first prompt, how long a token takes to the screen, and the CPU
that a token takes at the end of a long paragraph, table or code block. Beside both are the figures of the least
possible Python program in the same seconds: where that one is late too, the machine was, because other load makes every
program slower and dearer.

A small server of our own notes when it sends each token; the token is seen when the terminal's other side reads it.
"""

import asyncio
import json
import os
import pty
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

from hermes.app import build
from hermes.events import Bus
from hermes.schema.events import SessionCreated, TurnEnded, TurnStarted
from hermes.schema.messages import AssistantMessage, UserMessage
from hermes.settings import Home, Settings
from hermes.testing.installed import InstalledHermes, TerminalProcess, executable

TOKENS = 400
INTERVAL = 0.015  # seconds
STARTS = 7
BARS = {
    "cpu until the prompt": 150.0,
    "token to the screen, p50": 8.0,
    "token to the screen, p95": 16.0,
    "token to the screen, p99": 18.0,
    "cpu until 2,000 turns are back": 500.0,
}
_PERCENTILES = (50, 95, 99)
TURNS = 2_000  # of the session that is resumed
KINDS = {"prose": ("", " "), "code": ("```python\n", " = 1\n")}
FAST = 0.005  # seconds between tokens: 200 in a second
LONG = 16_000  # characters of a block before the tokens whose CPU counts
CPU_PER_TOKEN_MS = 0.5
BLOCKS = {
    "paragraph": ("", "some more words and `code` for a paragraph. "),
    "table": (
        "| name | value | text |\n|---|---|---|\n",
        "| row | 4711 | what is said of a row |\n",
    ),
    "code": (
        "```python\nclass A:\n",
        "    def method(self, value: int = 1) -> str: return f'{value}'\n",
    ),
}

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


class Paced:
    """Answers every request with tokens at a steady pace, and remembers when each was sent."""

    def __init__(self, kind: str) -> None:
        self._before, self._behind = KINDS[kind]
        self.sent: dict[int, float] = {}
        self.left = asyncio.Event()

    async def handle(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """One request, one stream."""
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            found = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
            await reader.readexactly(int(found[1]) if found else 0)
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
                + _delta({"content": self._before})
            )
            for number in range(TOKENS):
                self.sent[number] = time.perf_counter()
                writer.write(_delta({"content": f"q{number:03d}z{self._behind}"}))
                await writer.drain()
                await asyncio.sleep(INTERVAL)
            writer.write(_delta({}, finish="stop") + _chunk(b"[DONE]") + b"0\r\n\r\n")
            await writer.drain()
        self.left.set()


def _delta(delta: dict[str, str], finish: str | None = None) -> bytes:
    return _chunk(
        json.dumps(
            {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        ).encode()
    )


def _chunk(data: bytes) -> bytes:
    event = b"data: " + data + b"\n\n"
    return f"{len(event):x}\r\n".encode() + event + b"\r\n"


class Long:
    """Answers with a long block at once, then with tokens of four characters at a steady pace. Notes where it is."""

    def __init__(self, kind: str) -> None:
        before, line = BLOCKS[kind]
        self._head = before + line * (LONG // len(line))
        self._more = line * (TOKENS * 4 // len(line) + 1)
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        self.ended = asyncio.Event()
        self.left = asyncio.Event()

    async def handle(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """One request, one stream."""
        try:
            await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.left.set()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        found = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        await reader.readexactly(int(found[1]) if found else 0)
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        for at in range(0, len(self._head), 400):
            writer.write(_delta({"content": self._head[at : at + 400]}))
        await writer.drain()
        self.begun.set()
        await self.go.wait()
        for number in range(TOKENS):
            writer.write(_delta({"content": self._more[number * 4 : number * 4 + 4]}))
            await writer.drain()
            await asyncio.sleep(FAST)
        self.ended.set()
        await reader.read()  # until the chat is gone


async def _cpu_per_token(kind: str) -> tuple[float, float]:
    """Milliseconds of CPU of the whole process, at the end of a long block; and those of the floor meanwhile."""
    long, plain = Long(kind), Long(kind)
    servers = [
        await asyncio.start_server(each.handle, "127.0.0.1", 0)
        for each in (long, plain)
    ]
    port, floor_port = (each.sockets[0].getsockname()[1] for each in servers)
    with (
        tempfile.TemporaryDirectory() as folder,
        _floor(floor_port, lambda _: None) as floor,
    ):
        hermes = InstalledHermes(Path(folder), f"http://127.0.0.1:{port}/v1")
        async with hermes.terminal("--model", "bench", size=(100, 30)) as terminal:
            await terminal.sees("Ctrl-D quits ›")
            await terminal.until(lambda shown: "bench · ask ·" in shown)
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


async def _delays(kind: str) -> tuple[list[float], list[float]]:
    """Milliseconds from the server to the terminal, for each token; and those of the floor meanwhile."""
    paced, plain = Paced(kind), Paced(kind)
    servers = [
        await asyncio.start_server(each.handle, "127.0.0.1", 0)
        for each in (paced, plain)
    ]
    port, floor_port = (each.sockets[0].getsockname()[1] for each in servers)
    floor_seen = FirstSeen()
    with tempfile.TemporaryDirectory() as folder:
        hermes = InstalledHermes(Path(folder), f"http://127.0.0.1:{port}/v1")
        async with hermes.terminal("--model", "bench", size=(100, 30)) as terminal:
            await terminal.sees("Ctrl-D quits ›")
            await terminal.until(
                lambda shown: "bench · ask ·" in shown
            )  # everything is loaded
            with _floor(floor_port, floor_seen.note):
                terminal.type("go\r")
                seen = await _watch(terminal)
                await floor_seen.all.wait()
                await plain.left.wait()
            await terminal.until(lambda shown: "tokens\n" in shown)
    for each in servers:
        each.close()
    return _passed(paced.sent, seen), _passed(plain.sent, floor_seen.times)


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


def _resume_cpu() -> float:
    """Milliseconds of CPU until the end of a long conversation is shown again."""
    with tempfile.TemporaryDirectory() as folder:
        hermes = InstalledHermes(Path(folder), "http://127.0.0.1:9/v1")
        with build(Settings(), Home(hermes.home), bus=Bus()) as app:
            created = SessionCreated(surface="cli", cwd=str(hermes.work))
            session = app.begin(created).session
            for number in range(TURNS):
                (asked,) = app.record(session, UserMessage(text=f"question {number}"))
                rows = (
                    TurnStarted(inputs=(asked.seq,)),
                    AssistantMessage(text=f"The **answer** is {number}. " * 20),
                    TurnEnded(reason="done"),
                )
                app.record(session, *rows, turn=app.ids.turn())
        last = f"The answer is {TURNS - 1}.".encode()
        return statistics.median(
            _start_cpu(hermes, "--resume", session, until=last) for _ in range(3)
        )


def _start_cpu(
    hermes: InstalledHermes, *arguments: str, until: bytes = "›".encode()
) -> float:
    """Milliseconds of CPU until the prompt, or what is given, is there."""
    ours, theirs = pty.openpty()
    environ = hermes.environ({"TERM": "xterm-256color"})
    process = subprocess.Popen(
        [executable(), "--model", "bench", *arguments],
        env=environ, cwd=hermes.work, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
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


def main(argv: Sequence[str]) -> int:  # noqa: ARG001 - as every benchmark
    """Measures and prints; 1 when a bar is missed."""
    with tempfile.TemporaryDirectory() as folder:
        hermes = InstalledHermes(Path(folder), "http://127.0.0.1:9/v1")
        starts = [_start_cpu(hermes) for _ in range(STARTS)]
    figures = {"cpu until the prompt": statistics.median(starts)}
    delays, least = zip(*(asyncio.run(_delays(kind)) for kind in KINDS), strict=True)
    cuts, floor = (
        statistics.quantiles(chain.from_iterable(each), n=100)
        for each in (delays, least)
    )
    figures |= {f"token to the screen, p{at}": cuts[at - 1] for at in _PERCENTILES}
    floors = {f"token to the screen, p{at}": floor[at - 1] for at in _PERCENTILES}
    figures["cpu until 2,000 turns are back"] = _resume_cpu()
    for name, figure in figures.items():
        word = "ok" if figure <= BARS[name] else "MISSED"
        beside = f"  floor {floors[name]:.2f}" if name in floors else ""
        print(f"chat: {name:28s} {figure:8.2f} ms  bar {BARS[name]:g} {word}{beside}")
    missed = any(figure > BARS[name] for name, figure in figures.items())
    for kind in BLOCKS:
        used, least = asyncio.run(_cpu_per_token(kind))
        missed |= used > CPU_PER_TOKEN_MS
        word = "ok" if used <= CPU_PER_TOKEN_MS else "MISSED"
        print(
            f"chat: {f'cpu of a token, long {kind}':28s} {used:8.2f} ms  bar {CPU_PER_TOKEN_MS:g} {word}"
            f"  {used / least:.1f}x the floor"
        )
    return int(missed)
