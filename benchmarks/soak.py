"""A gateway under long load: thousands of messages in many chats, one process, against a loopback Telegram and a
scripted model. Measures what grows with each message: memory, and the database by table and kind of row.

    python -m benchmarks.soak [--messages 20000] [--per-chat 2] [--quick]

Prints each figure with its bar. Exits with 1 if one is missed.
"""

import argparse
import asyncio
import contextlib
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec
from tests.fakes.telegram_server import TOKEN, TelegramServer

from benchmarks.gateway import memory_mb
from hermes.store.sqlite.connection import glance
from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse

MAX_BYTES_PER_MESSAGE = (
    3_600  # of the database: a message, its answer and everything stored about both
)
MAX_GROWTH_MB = 17.0  # of memory, from a quarter of the messages to the last one
AT_ONCE = 16  # messages at the same time
ANSWER_TIMEOUT_S = 120.0
_NUMBER = re.compile(rb"message (\d+), with")
WORDS = "and some more words of an ordinary answer, as a model would write them. " * 6


class Soak:
    """Sends the messages, a few at a time, and samples the gateway's memory."""

    def __init__(self, messages: int, chats: int) -> None:
        self.messages = messages
        self.chats = chats
        self._answered: set[bytes] = set()
        self.memory: dict[int, float] = {}
        self.handles: dict[int, int] = {}
        self._marks = {messages * part // 4 for part in (1, 2, 3, 4)}

    def respond(self, request: Recorded) -> ScriptedResponse:
        """The scripted model. Messages sent while a turn runs are answered together with it."""
        self._answered.update(_NUMBER.findall(request.body))
        return ScriptedResponse(
            text=f"answer {len(self._answered)}: {WORDS}", chunk=200
        )

    async def run(self, telegram: TelegramServer, pid: int) -> None:
        """Sends all messages, and waits for the last answer."""
        for number in range(1, self.messages + 1):
            telegram.say(
                f"message {number}, with a question of usual length about this and that",
                sender=1 + number % self.chats,
            )
            await self._until(number - AT_ONCE)
            if number in self._marks:
                await self._until(number)
                self.memory[number] = memory_mb(pid, "VmRSS")
                self.handles[number] = _open_files(pid)
            if (
                number % 500 == 0
            ):  # the fake platform stores every request, which slows this process down
                telegram.calls.clear()

    async def _until(self, answers: int) -> None:
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while len(self._answered) < answers:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"{answers - len(self._answered)} messages were not answered"
                )
            await asyncio.sleep(0.002)


def _open_files(pid: int) -> int:
    return len([*Path(f"/proc/{pid}/fd").iterdir()])


def main(argv: Sequence[str]) -> int:
    """Measures and prints. Returns 1 if a bar is missed."""
    parser = argparse.ArgumentParser(prog="benchmarks soak", description=__doc__)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--per-chat", type=int, default=2, help="messages in each chat")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="2,200 messages, in more chats than a process keeps tools for",
    )
    args = parser.parse_args(argv)
    messages = 2_200 if args.quick else args.messages
    soak = Soak(messages, max(1, messages // args.per_chat))
    with tempfile.TemporaryDirectory(prefix="hermes-soak-") as folder:
        home = asyncio.run(_run(Path(folder), soak))
        missed = _report_memory(soak) + _report_database(
            home / "state.db", soak.messages
        )
    return 1 if missed else 0


def soaked(folder: Path, messages: int) -> Soak:
    """Runs a gateway that answers this many messages, two in each chat."""
    soak = Soak(messages, max(1, messages // 2))
    asyncio.run(_run(folder, soak))
    return soak


async def _run(folder: Path, soak: Soak) -> Path:
    async with TelegramServer() as telegram, ModelServer(respond=soak.respond) as model:
        hermes = InstalledHermes(folder, model.url)
        hermes.home.mkdir()
        settings = {
            "allow": ["telegram:*"],
            "folder": str(folder / "files"),
            "telegram": {"api_url": telegram.url, "per_second": 1000},
        }
        (hermes.home / "config.yaml").write_bytes(
            msgspec.json.encode({"gateway": settings})
        )
        (hermes.home / ".env").write_text(f"TELEGRAM_BOT_TOKEN={TOKEN}\n")
        process = await hermes.start("gateway", "run")
        try:
            await telegram.until(
                lambda server: any(method == "getUpdates" for method, _ in server.calls)
            )
            await soak.run(telegram, process.pid)
        finally:
            process.terminate()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.communicate(), 60)
            if process.returncode is None:
                process.kill()
        return hermes.home


def _report_memory(soak: Soak) -> int:
    for messages, megabytes in soak.memory.items():
        print(f"memory after {messages:7,} messages {megabytes:8.1f} MB")
    sizes = list(soak.memory.values())
    growth = sizes[-1] - sizes[0]
    met = growth <= MAX_GROWTH_MB
    print(
        f"grown by {growth:.1f} MB   bar {MAX_GROWTH_MB:g}   {'ok' if met else 'MISSED'}"
    )
    return not met


def _report_database(path: Path, messages: int) -> int:
    per_message = path.stat().st_size / messages
    with closing(glance(path)) as connection:
        parts = (
            "SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC LIMIT 8"
        )
        kinds = "SELECT type, count(*), sum(length(data)) FROM events GROUP BY type ORDER BY 3 DESC LIMIT 10"
        for name, size in connection.execute(parts):
            print(f"  {name:<34} {size / messages:9,.0f} bytes a message")
        for kind, rows, size in connection.execute(kinds):
            print(
                f"    rows {kind:<29} {size / messages:9,.0f} bytes a message, {rows / messages:.2f} of them"
            )
    met = per_message <= MAX_BYTES_PER_MESSAGE
    print(
        f"database {per_message:,.0f} bytes a message   bar {MAX_BYTES_PER_MESSAGE:,}   {'ok' if met else 'MISSED'}"
    )
    return not met


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
