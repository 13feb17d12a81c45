"""Measures a real dashboard under load (feeds, terminals, publishers) and idle."""

import argparse
import asyncio
import base64
import os
import socket
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import msgspec
from websockets.asyncio.client import ClientConnection, connect

from hermes.pty import PtyBridge
from hermes.settings import Home
from hermes.surfaces.dashboard.credentials import SCOPES, Keyring

_TICK = os.sysconf("SC_CLK_TCK")
_encode = msgspec.json.encode


class Server:
    """A dashboard in a separate process."""

    def __init__(self, pid: int, url: str, token: str) -> None:
        self.pid = pid
        self.url = url
        self.headers = {"Authorization": f"Bearer {token}"}
        self.client = httpx2.AsyncClient(
            base_url=url, headers=self.headers, timeout=60, trust_env=False
        )

    def open(self, path: str) -> connect:
        return connect(
            self.url.replace("http", "ws", 1) + path, additional_headers=self.headers, proxy=None, compression=None,
            max_size=None, ping_interval=None, max_queue=None,
        )  # fmt: skip

    def raw(self, path: str) -> socket.socket:
        """A WebSocket as plain bytes, for a client that costs next to nothing."""
        one = socket.create_connection(self._place())
        one.sendall(self._handshake(path))
        head = b""
        while b"\r\n\r\n" not in head:
            head += one.recv(1)
        assert b" 101 " in head, head
        return one

    async def follow(self, path: str, late: list[float]) -> asyncio.Transport:
        """Follows a feed. Appends the delay of each event to the list."""
        transport, _ = await asyncio.get_running_loop().create_connection(
            lambda: _Reader(late), *self._place()
        )
        transport.write(self._handshake(path))
        return transport

    def _place(self) -> tuple[str, int]:
        host, _, port = self.url.removeprefix("http://").partition(":")
        return host, int(port)

    def _handshake(self, path: str) -> bytes:
        key = base64.b64encode(os.urandom(16)).decode()
        return (
            f"GET {path} HTTP/1.1\r\nHost: {self.url.removeprefix('http://')}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
            f"Authorization: {self.headers['Authorization']}\r\n\r\n".encode()
        )

    async def status(self) -> dict[str, Any]:
        return (await self.client.get("/api/status")).json()

    async def end_terminals(self) -> None:
        """Ends the open terminals. They would go on without a viewer, and their number is limited."""
        for terminal in (await self.client.get("/api/terminals")).json()["terminals"]:
            (
                await self.client.delete(f"/api/terminals/{terminal['id']}")
            ).raise_for_status()

    def memory(self) -> float:
        """Resident megabytes."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return (
            next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
            / 1024
        )

    def seconds(self) -> float:
        """CPU time so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK


@asynccontextmanager
async def running() -> AsyncIterator[Server]:
    """Runs a dashboard with an empty home."""
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder:
        home = Home(Path(folder) / "home")
        env = {
            **os.environ,
            "HERMES_HOME": str(home.root),
            "HERMES_DASHBOARD_SHELL": "/bin/sh",
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "hermes", "dashboard", "--port", "0", "--no-open",
            env=env, cwd=folder, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout is not None
        try:
            url = (await process.stdout.readline()).decode().split()[-1]
            token = Keyring(home, time.time).mint("token", SCOPES, seconds=3600)
            server = Server(process.pid, url, token)
            yield server
            await server.client.aclose()
        finally:
            process.terminate()
            await process.communicate()


def _p99(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]


# --- idle -----------------------------------------------------------------------------------------------------------


async def idle(server: Server, seconds: float) -> list[tuple[str, float, float, str]]:
    """Memory, and CPU time per second."""
    await server.status()
    before = server.seconds()
    await asyncio.sleep(seconds)
    used = (server.seconds() - before) / seconds * 100
    return [
        ("idle memory", server.memory(), 90, "MB"),
        ("idle processor", used, 1, "%"),
    ]


# --- feeds ----------------------------------------------------------------------------------------------------------


async def feeds(server: Server, seconds: float) -> list[tuple[str, float, float, str]]:
    """480 readers of one session each and 20 of everything, at 1,000 events per second."""
    sessions = [
        (await server.client.post("/api/sessions", content=b"{}")).json()["id"]
        for _ in range(480)
    ]
    late: list[float] = []
    paths = [f"/api/sessions/{one}/feed" for one in sessions] + [
        "/api/feed?pattern=agent.**"
    ] * 20
    readers = [await server.follow(path, late) for path in paths]
    while (await server.status())["feeds"]["open"] < len(paths):  # noqa: ASYNC110 - the server knows, nobody else
        await asyncio.sleep(0.1)
    await asyncio.sleep(1.0)  # until earlier events have been sent
    async with server.open("/api/pub?channel=bench") as pub:
        before, used = server.memory(), server.seconds()
        sent = await _load(pub, sessions, seconds)
        used = (server.seconds() - used) / seconds * 100
        await _settled(late, sent * 21)
        after = server.memory()
    for reader in readers:
        reader.abort()
    print(f"    {len(late):,} deliveries of {sent:,} events, median {statistics.median(late) * 1000:.1f} ms, "
          f"{used:.0f} % of a processor")  # fmt: skip
    return [
        ("500 feeds, p99", _p99(late) * 1000, 100, "ms"),
        ("500 feeds, missing", float(sent * 21 - len(late)), 0, "events"),
        ("500 feeds, memory gained", after - before, 60, "MB"),
    ]


class _Sent(msgspec.Struct):
    sent: float = 0.0


_decode_sent = msgspec.json.Decoder(list[_Sent]).decode


class _Reader(asyncio.Protocol):
    """Reads frames with as little work as possible, so that the server is measured."""

    def __init__(self, late: list[float]) -> None:
        self._late = late
        self._data = b""
        self._shook = False

    # pyrefly: ignore[missing-override-decorator]
    def data_received(self, data: bytes) -> None:
        self._data += data
        if not self._shook:
            head, found, rest = self._data.partition(b"\r\n\r\n")
            if not found:
                return
            assert b" 101 " in head, head
            self._shook, self._data = True, rest
        while (frame := self._frame()) is not None:
            now = time.time()
            self._late += [
                now - event.sent for event in _decode_sent(frame) if event.sent
            ]

    def _frame(self) -> bytes | None:
        """The content of the next complete frame; None if there is none yet."""
        if len(self._data) < 10:
            return None
        size, start = self._data[1], 2
        if size == 126:
            size, start = struct.unpack_from("!H", self._data, 2)[0], 4
        elif size == 127:
            size, start = struct.unpack_from("!Q", self._data, 2)[0], 10
        if len(self._data) < start + size:
            return None
        frame, self._data = self._data[start : start + size], self._data[start + size :]
        return frame


async def _load(pub: ClientConnection, sessions: list[str], seconds: float) -> int:
    """Publishes 1,000 events per second, ten at a time."""
    start, sent = time.monotonic(), 0
    while time.monotonic() - start < seconds:
        now = time.time()
        batch = [
            {"_bus_relay": True, "topic": "agent.message.delta",
             "envelope": {"text": "some words ", "turn_id": "t", "sent": now,
                          "session_id": sessions[(sent + number) % len(sessions)]}}
            for number in range(10)
        ]  # fmt: skip
        await pub.send(_encode(batch).decode())
        sent += 10
        await asyncio.sleep(max(0.0, start + sent / 1000 - time.monotonic()))
    return sent


async def _settled(late: list[float], expected: int) -> None:
    before = -1
    while len(late) < expected and len(late) != before:
        before = len(late)
        await asyncio.sleep(0.5)


# --- publishers -----------------------------------------------------------------------------------------------------


async def publishers(server: Server, count: int) -> list[tuple[str, float, float, str]]:
    """Relayed events per second, in batches of 500."""
    envelope = {
        "type": "gateway.agent.step",
        "ts": 1.5,
        "src": "gateway",
        "platform": "telegram",
        "session_id": "s",
    }
    frame = _encode(
        [{"_bus_relay": True, "topic": "gateway.agent.step", "envelope": envelope}]
        * 500
    ).decode()
    before = (await server.status())["ingest"]["published"]
    async with server.open("/api/pub?channel=bench") as pub:
        start = time.perf_counter()
        for _ in range(count // 500):
            await pub.send(frame)
        while (await server.status())["ingest"][  # noqa: ASYNC110
            "published"
        ] - before < count // 500 * 500:
            await asyncio.sleep(0.005)
        seconds = time.perf_counter() - start
    return [("relayed events, at least", count / seconds, -100_000, "/s")]


# --- terminals ------------------------------------------------------------------------------------------------------

_SPILL = b"stty raw -echo; exec cat /dev/zero\n"
_PAIRS = 4  # pairs of terminals: the CPU that the kernel picks for its worker makes a difference of 3x
_WARM = 4_000_000  # bytes in buffers when a slice begins


async def throughput(
    server: Server, slices: int
) -> list[tuple[str, float, float, str]]:
    """Compares a terminal through a WebSocket with the kernel alone.

    Both write endlessly, and each waits while the other is read, in alternating slices of the same size. The client lets
    the kernel discard its bytes, so that it costs next to nothing compared with the server.
    """
    bare: list[float] = []
    dashed: list[float] = []
    for _ in range(_PAIRS):
        for one, other in await asyncio.to_thread(_race, server, slices):
            bare.append(one)
            dashed.append(other)
        await server.end_terminals()
    ratios = [other / one for one, other in zip(bare, dashed, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"    kernel alone {statistics.median(bare):.0f} MB/s, through the dashboard {statistics.median(dashed):.0f} "
          f"MB/s; pairs: {low:.2f}, {middle:.2f}, {high:.2f}")  # fmt: skip
    return [("terminal, part of the kernel's speed", middle * 100, -70, "%")]


def _race(server: Server, slices: int) -> list[tuple[float, float]]:
    """Megabytes per second of the kernel and of the dashboard, slice by slice."""
    with (
        PtyBridge.spawn(["/bin/sh"]) as bridge,
        server.raw("/api/pty?command=shell") as one,
    ):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 512 * 1024)
        os.set_blocking(bridge.fileno(), True)
        bridge.write(_SPILL)
        one.sendall(_masked(_SPILL))
        room = bytearray(1024 * 1024)
        return [
            (
                _speed(lambda: len(os.read(bridge.fileno(), 65536))),
                _speed(lambda: one.recv_into(room, len(room), socket.MSG_TRUNC)),
            )
            for _ in range(slices)
        ]


def _speed(read: Callable[[], int], size: int = 6_000_000) -> float:
    """Megabytes per second, once the buffers are full."""
    got = -_WARM
    while got < 0:
        got += read()
    start, end = time.perf_counter(), got + size
    while got < end:
        got += read()
    return size / (time.perf_counter() - start) / 1e6


def _masked(data: bytes) -> bytes:
    """A binary frame as a client sends it, with a mask of zeros."""
    assert len(data) < 126
    return struct.pack("!BB4x", 0x82, 0x80 | len(data)) + data


async def echoes(server: Server, rounds: int) -> list[tuple[str, float, float, str]]:
    """The time from a key press in one of 64 idle terminals until its echo is seen."""
    late: list[float] = []
    async with AsyncExitStack() as stack:
        sockets = [
            await stack.enter_async_context(server.open("/api/pty?command=shell"))
            for _ in range(64)
        ]
        for one in sockets:
            await one.send(b"cat\n")
            await _drained(one)
        for _ in range(rounds):
            for one in sockets:
                start = time.perf_counter()
                await one.send(b"x")
                await one.recv()
                late.append(time.perf_counter() - start)
    await server.end_terminals()
    return [("64 terminals, echo p99", _p99(late) * 1000, 50, "ms")]


async def _drained(one: ClientConnection) -> None:
    try:
        while True:
            async with asyncio.timeout(0.2):
                await one.recv()
    except TimeoutError:
        pass


async def stopped(server: Server) -> list[tuple[str, float, float, str]]:
    """Requests while a megabyte is queued for a child that does not read."""
    late: list[float] = []
    async with server.open("/api/pty?command=shell") as one:
        await one.send(b"stty raw; sleep 100\n")
        await _drained(one)
        pouring = asyncio.create_task(one.send(b"x" * 1024 * 1024))
        for _ in range(100):
            start = time.perf_counter()
            await server.client.get("/api/auth")
            late.append(time.perf_counter() - start)
        await pouring
    await server.end_terminals()
    return [
        (
            "1 MiB into a child that does not read, slowest request",
            max(late) * 1000,
            250,
            "ms",
        )
    ]


def main(argv: list[str]) -> int:
    """Prints the figures. Returns 1 if a bar is missed. A negative bar is a minimum."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks dashboard", description=__doc__
    )
    parser.add_argument("--quick", action="store_true", help="a fifth of the time")
    return asyncio.run(_all(quick=parser.parse_args(argv).quick))


async def _all(*, quick: bool) -> int:
    part = 5 if quick else 1
    async with running() as server:
        rows = await idle(server, 10 / part)
        rows += await publishers(server, 500_000 // part)
        rows += await throughput(server, 25 // part)
        rows += await echoes(server, 20 // part)
        rows += await stopped(server)
        rows += await feeds(server, 20 / part)
    missed = 0
    for what, value, bar, unit in rows:
        good = value >= -bar if bar < 0 else value <= bar
        missed += not good
        print(
            f"  {what}: {value:,.1f} {unit} {'>=' if bar < 0 else '<='} {abs(bar):,g} {'ok' if good else 'MISSED'}"
        )
    return 1 if missed else 0
