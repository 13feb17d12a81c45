"""A real gateway under load: many chats at once in one process, with a fake Telegram and a scripted model.

Measures the time from Telegram's delivery of a message to the first byte of the model request; memory; and whether each
message got exactly one answer. `--sessions` instead starts that many sessions, each with a turn, and checks whether
memory keeps growing.
"""

import argparse
import asyncio
import contextlib
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from tests.fakes.telegram_server import TOKEN, TelegramServer

from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse

_P99 = 250.0  # milliseconds
_MEMORY = 400.0  # MB
_PATIENCE = 120.0  # seconds to wait for the last answers
_AT_ONCE = 64  # sessions that run at the same time
_GROWTH = 1024  # bytes a session may leave in memory, once all caches are full
_NUMBER = re.compile(rb"message-(\d+)-of-the-benchmark")


class Timed(TelegramServer):
    """Records when each message was delivered."""

    def __init__(self) -> None:
        super().__init__()
        self.handed: dict[int, float] = {}

    # pyrefly: ignore[missing-override-decorator]
    async def _do_getUpdates(self, fields: dict[str, Any]) -> list[dict[str, Any]]:  # noqa: N802 - the API's name
        updates = await super()._do_getUpdates(fields)
        now = time.perf_counter()
        for update in updates:
            if found := _NUMBER.search(update["message"]["text"].encode()):
                self.handed.setdefault(int(found[1]), now)
        return updates


class Load:
    """Sends messages at a steady rate, spread over the chats."""

    def __init__(self, chats: int, rate: float, seconds: float) -> None:
        self.chats = chats
        self.rate = rate
        self.messages = int(rate * seconds)
        self.asked: dict[int, float] = {}
        self.promised: set[int] = set()  # answers that the model gave

    def respond(self, request: Recorded) -> ScriptedResponse:
        now = time.perf_counter()
        numbers = _NUMBER.findall(request.body)
        for number in map(int, numbers):
            self.asked.setdefault(number, now)
        self.promised.add(int(numbers[-1]))
        return ScriptedResponse(
            text=f"answer-{int(numbers[-1])}-to-you " + "and some more words " * 10,
            chunk=40,
        )

    async def run(self, telegram: TelegramServer) -> None:
        begin = time.perf_counter()
        for number in range(self.messages):
            wait = begin + number / self.rate - time.perf_counter()
            if wait > 0:
                await asyncio.sleep(wait)
            telegram.say(
                f"message-{number}-of-the-benchmark", sender=1 + number % self.chats
            )


class Crowd(Load):
    """Sends one message in each of many chats, a few at a time. `sizes` is the memory by number of chats."""

    def __init__(self, sessions: int) -> None:
        super().__init__(sessions, 0.0, 0.0)
        self.messages = sessions
        self.sizes: dict[int, float] = {}
        self._marks = {sessions * fifth // 5 for fifth in (1, 3, 5)}

    async def begin(self, telegram: TelegramServer, pid: int) -> None:
        for number in range(self.messages):
            telegram.say(f"message-{number}-of-the-benchmark", sender=1 + number)
            while number - len(self.promised) >= _AT_ONCE:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
            if number + 1 in self._marks:
                self.sizes[number + 1] = memory_mb(pid, "VmRSS")

    def report(self) -> int:
        for sessions, size in self.sizes.items():
            print(f"memory after {sessions:6,} sessions   {size:7.1f} MB")
        (middle, before), (last, after) = list(self.sizes.items())[-2:]
        growth = (after - before) * 2**20 / (last - middle)
        ok = growth < _GROWTH
        print(
            f"grown by {growth:,.0f} bytes a session   bar {_GROWTH:,}   {'ok' if ok else 'MISSED'}"
        )
        return 0 if ok else 1


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks gateway")
    parser.add_argument(
        "--quick", action="store_true", help="fewer chats, a shorter time"
    )
    parser.add_argument("--chats", type=int, default=0)
    parser.add_argument("--rate", type=float, default=50.0, help="messages a second")
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument(
        "--sessions", type=int, default=0, help="look at memory over that many sessions"
    )
    args = parser.parse_args(argv)
    chats, seconds = (200, 8.0) if args.quick else (1000, 60.0)
    load = (
        Crowd(args.sessions)
        if args.sessions
        else Load(args.chats or chats, args.rate, args.seconds or seconds)
    )
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_measure(Path(folder), load))


async def _measure(folder: Path, load: Load) -> int:
    async with Timed() as telegram, ModelServer(respond=load.respond) as model:
        hermes = InstalledHermes(folder, model.url)
        hermes.home.mkdir()
        gateway = {
            "allow": ["telegram:*"],
            "folder": str(folder / "files"),
            "telegram": {"api_url": telegram.url, "per_second": 1000},
        }
        (hermes.home / "config.yaml").write_bytes(
            msgspec.json.encode({"gateway": gateway})
        )
        (hermes.home / ".env").write_text(f"TELEGRAM_BOT_TOKEN={TOKEN}\n")
        process = await hermes.start("gateway", "run")
        try:
            await telegram.until(
                lambda server: any(method == "getUpdates" for method, _ in server.calls)
            )
            telegram.calls.clear()
            before = _cpu(process.pid)
            if isinstance(load, Crowd):
                await load.begin(telegram, process.pid)
            else:
                await load.run(telegram)
            await _answered(telegram, load)
            memory, cpu = memory_mb(process.pid), _cpu(process.pid) - before
        finally:
            process.terminate()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.communicate(), 60)
            if process.returncode is None:
                process.kill()
        return (
            load.report()
            if isinstance(load, Crowd)
            else _report(telegram, load, memory, cpu)
        )


async def _answered(telegram: Timed, load: Load) -> None:
    """Waits until every message has reached the model and every answer is delivered, or a timeout passes."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            while (  # noqa: ASYNC110
                len(load.asked) < load.messages
                or set(_answers(telegram)) < load.promised
            ):
                await asyncio.sleep(0.2)


def _answers(telegram: Timed) -> list[int]:
    """The delivered answers, including duplicates."""
    texts = "\n".join(shown.text for shown in telegram.messages)
    return [int(number) for number in re.findall(r"answer-(\d+)-to-you", texts)]


def _report(telegram: Timed, load: Load, memory: float, cpu: float) -> int:
    took = sorted(
        (load.asked[number] - handed) * 1000
        for number, handed in telegram.handed.items()
        if number in load.asked
    )
    answers = _answers(telegram)
    # A message sent while a turn of the same chat runs goes into that turn, so one reply answers both.
    lost = load.messages - len(load.asked) + len(load.promised - set(answers))
    doubled = len(answers) - len(set(answers))
    p99 = took[int(len(took) * 0.99)] if took else float("inf")
    median = statistics.median(took) if took else float("inf")
    each = cpu / load.messages * 1000
    print(
        f"{load.chats} chats, {load.messages} messages at {load.rate:g} a second, {each:.1f} ms CPU each"
    )
    ok = p99 < _P99 and memory < _MEMORY and not lost and not doubled
    print(
        f"message to first token request   p50 {median:7.1f} ms   p99 {p99:7.1f} ms   bar {_P99:g}"
    )
    print(f"memory                           {memory:7.1f} MB   bar {_MEMORY:g}")
    print(
        f"lost {lost}, answered twice {doubled}, answers {len(set(answers))}   {'ok' if ok else 'MISSED'}"
    )
    return 0 if ok else 1


def memory_mb(pid: int, which: str = "VmHWM") -> float:
    """The memory of a process in megabytes: the peak (`VmHWM`) or now (`VmRSS`)."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(rf"{which}:\s+(\d+) kB", status)
    return int(found[1]) / 1024 if found else float("inf")


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
