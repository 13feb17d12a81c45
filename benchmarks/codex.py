"""The codex engine: its latency on top of codex, its throughput, its idle cost, and what it leaves running.

Latency is measured with a fake codex, so that only Hermes' part counts; the idle cost and the remains with the real
program, if it is available.
"""

import argparse
import asyncio
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from tests.fakes.codex_judge import FixedJudge
from tests.fakes.codex_peer import CodexPeer
from tests.fakes.codex_program import config_for, installed_codex

from hermes.codex.client import Client, CodexLaunch, CodexListener
from hermes.codex.projector import Projector
from hermes.codex.runtime import CodexEngine, EngineSettings
from hermes.codex.wire import CodexNotification, LineSplitter, classify
from hermes.core.budget import TurnBudget
from hermes.core.history import ConversationHistory
from hermes.core.ports import Approver, PolicyDecision
from hermes.core.turn import Turn
from hermes.schema.event_base import Event
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    QuestionAnswered,
    QuestionAsked,
    TurnStarted,
)
from hermes.schema.messages import UserMessage
from hermes.settings.sections import CodexSettings
from hermes.testing.fetched import NotFetched
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

LATENCY, SPEED, REST = (
    5.0,
    20.0,
    0.01,
)  # milliseconds, megabytes a second, seconds of CPU in five seconds


class Nobody:
    """Denies."""

    async def ask(self, request: ApprovalRequested) -> ApprovalAnswered:
        return ApprovalAnswered(call_id=request.call_id, answer="deny", by="nobody")

    async def question(self, request: QuestionAsked) -> QuestionAnswered:
        return QuestionAnswered(call_id=request.call_id, by="nobody")


class Log:
    """A journal in memory that records when something was shown."""

    def __init__(self) -> None:
        self.history = ConversationHistory()
        self.shown: asyncio.Queue[float] = asyncio.Queue()
        self._seq = 0

    async def record(self, *events: Event) -> tuple[int, ...]:
        self.note(*events)
        return tuple(range(self._seq - len(events) + 1, self._seq + 1))

    def note(self, *events: Event) -> None:
        for event in events:
            self._seq += 1
            self.history.add(self._seq, event, "turn")

    async def flush(self) -> None:
        return None

    async def nothing_under_way(self) -> None:
        return None

    def show(self, event: Event) -> None:  # noqa: ARG002 - the port's shape
        self.shown.put_nowait(time.perf_counter())


async def latency(folder: Path, turns: int) -> float:
    """The median milliseconds from codex's messages (answer to turn/start, first delta) to the event."""
    taken: list[float] = []
    approvals: Approver = Nobody()
    async with CodexPeer(folder) as codex:
        settings = CodexSettings(binary=str(codex.program))
        engine = CodexEngine(
            EngineSettings(
                codex=settings,
                environ=dict(os.environ),
                run_folder=folder,
                arguments=codex.arguments,
            )
        )
        log = Log()
        for number in range(turns):
            (seq,) = await log.record(UserMessage(text="hi"))
            await log.record(TurnStarted(inputs=(seq,), runtime="codex"))
            turn = Turn(
                session="s",
                cwd=folder,
                journal=log,
                history=log.history,
                budget=TurnBudget(),
                id=f"turn-{number}",
            )
            running = asyncio.ensure_future(
                engine.runtime(
                    "s", approvals, judge=FixedJudge(PolicyDecision("ask"))
                ).run(turn)
            )
            asked = await codex.receive("turn/start")
            began = time.perf_counter()
            codex.send({"id": asked["id"], "result": {"turn": {"id": "t"}}})
            codex.delta("Hello", turn="t")
            taken.append((await log.shown.get() - began) * 1000)
            codex.end_turn(turn="t")
            await running
        await engine.close()
    return statistics.median(taken)


def recording() -> bytes:
    """A turn with everything in it: the largest recording, repeated many times, as bytes from the pipe."""
    file = (
        Path(__file__).parents[1]
        / "tests/integration/data/codex/transcripts/02_command_completes.jsonl"
    )
    lines = [
        message
        for side, message in map(msgspec.json.decode, file.read_bytes().splitlines())
        if side == "s2c"
    ]
    large = "x" * 1_000_000
    turn = next(
        one["params"]["turn"]["id"]
        for one in lines
        if one.get("method") == "turn/started"
    )
    item: dict[str, Any] = {
        "type": "commandExecution",
        "id": "big",
        "command": "cat",
        "cwd": "/",
        "status": "completed",
    }
    params = {
        "turnId": turn,
        "threadId": "t",
        "item": {**item, "aggregatedOutput": large, "exitCode": 0},
    }
    told = [
        one
        for one in lines
        if "method" in one and "id" not in one and one["method"] != "turn/completed"
    ]
    chunk = [*told * 20, {"method": "item/completed", "params": params}]
    return b"".join(msgspec.json.encode(one) + b"\n" for one in chunk * 10)


def speed(data: bytes) -> float:
    """Megabytes per second that are split into lines, classified and projected."""
    turn = next(
        one
        for one in map(classify, data.splitlines())
        if isinstance(one, CodexNotification) and one.method == "turn/started"
    )
    began = time.perf_counter()
    lines, projector = (
        LineSplitter(),
        Projector(msgspec.json.decode(turn.params)["turn"]["id"], cwd="/workspace"),
    )
    for at in range(0, len(data), 262_144):
        for line in lines.feed(data[at : at + 262_144]):
            told = classify(line)
            if isinstance(told, CodexNotification):
                projector.feed(told)
    return len(data) / 1e6 / (time.perf_counter() - began)


async def rest(program: Path, folder: Path) -> float:
    """Seconds of CPU that an idle codex and its leash use in five seconds."""

    async def nothing(_: object) -> None:
        return None

    launch = CodexLaunch(
        program, ("app-server",), {**os.environ, "CODEX_HOME": str(folder)}, folder
    )
    client = await Client.start(launch, CodexListener(nothing, nothing))
    try:
        await asyncio.sleep(2)
        before = _cpu(client.pid) + time.process_time()
        await asyncio.sleep(5)
        return _cpu(client.pid) + time.process_time() - before
    finally:
        await client.close()


async def interrupt(program: Path, folder: Path) -> float:
    """Seconds from an interrupt until the turn has ended and the command it ran is dead; the worst of five."""
    script = f"sleep 98765.{os.getpid()}"
    call = ServedCall("exec_command", msgspec.json.encode({"cmd": script}).decode())
    worst = 0.0
    (folder / "home").mkdir()
    async with ModelServer(ScriptedResponse(calls=(call,)), repeat=True) as server:
        config = config_for(server.url)
        (folder / "home" / "config.toml").write_text(config)
        settings = CodexSettings(binary=str(program), home=str(folder / "home"))
        engine = CodexEngine(
            EngineSettings(codex=settings, environ=dict(os.environ), run_folder=folder)
        )
        log = Log()
        for number in range(5):
            (seq,) = await log.record(UserMessage(text="hi"))
            await log.record(TurnStarted(inputs=(seq,), runtime="codex"))
            turn = Turn(
                session="s",
                cwd=folder,
                journal=log,
                history=log.history,
                budget=TurnBudget(),
                id=f"turn-{number}",
            )
            running = asyncio.ensure_future(
                engine.runtime(
                    "s", Nobody(), judge=FixedJudge(PolicyDecision("ask"))
                ).run(turn)
            )
            while not _named(script):  # noqa: ASYNC110 - a process has no event
                await asyncio.sleep(0.01)
            began = time.perf_counter()
            turn.interrupt()
            await running
            while _named(script):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.001)
            worst = max(worst, time.perf_counter() - began)
        await engine.close()
    return worst


def _named(script: str) -> bool:
    """Whether exactly this command is running."""
    wanted = b"\0".join(word.encode() for word in script.split()) + b"\0"
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and (entry / "cmdline").read_bytes() == wanted:
                return True
        except OSError:
            continue
    return False


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(_cpu(int(child)) for child in children)


_HERMES = """
import asyncio, os, sys
from pathlib import Path
from hermes.codex.client import Client, CodexLaunch, CodexListener
async def nothing(_): return None
async def main():
    launch = CodexLaunch(Path(sys.argv[1]), ("app-server",), dict(os.environ), Path.cwd())
    client = await Client.start(launch, CodexListener(nothing, nothing))
    print(client.pid, flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


def remains(program: Path, folder: Path) -> float:
    """Seconds from `kill -9` of Hermes until no process of codex is left."""
    environ = {**os.environ, "CODEX_HOME": str(folder)}
    hermes = subprocess.Popen(
        [sys.executable, "-c", _HERMES, str(program)],
        env=environ,
        stdout=subprocess.PIPE,
        cwd=folder,
    )
    assert hermes.stdout is not None
    leash = int(hermes.stdout.readline())
    below = [
        int(pid)
        for pid in Path(f"/proc/{leash}/task/{leash}/children").read_text().split()
    ]
    began = time.perf_counter()
    os.kill(hermes.pid, signal.SIGKILL)
    hermes.wait()
    hermes.stdout.close()
    while (
        any(_lives(pid) for pid in (leash, *below)) and time.perf_counter() - began < 30
    ):
        time.sleep(0.002)
    return time.perf_counter() - began


def _lives(pid: int) -> bool:
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            not in "ZX"
        )
    except OSError:
        return False


def main(argv: Sequence[str]) -> int:
    """Measures and prints. Returns 1 if a bar is missed."""
    parser = argparse.ArgumentParser(prog="benchmarks codex", description=__doc__)
    parser.add_argument("--turns", type=int, default=100, help="turns for the latency")
    options = parser.parse_args(argv)
    missed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        missed += _row(
            "turn/start answered to first delta",
            asyncio.run(latency(folder, options.turns)),
            "ms",
            LATENCY,
        )
        data = recording()
        missed += _row(
            f"projecting {len(data) / 1e6:.0f} MB",
            max(speed(data) for _ in range(3)),
            "MB/s",
            -SPEED,
        )
        try:
            program = installed_codex()
        except NotFetched as why:
            print(f"the rest is left out: {why}")
            return int(bool(missed))
        missed += _row(
            "CPU of an idle codex in 5 s", asyncio.run(rest(program, folder)), "s", REST
        )
        missed += _row(
            "interrupt to the command's death",
            asyncio.run(interrupt(program, folder)),
            "s",
            1.0,
        )
        missed += _row(
            "kill -9 of Hermes to no codex left", remains(program, folder), "s", 5.0
        )
    return int(bool(missed))


def _row(what: str, value: float, unit: str, bar: float) -> bool:
    """Prints a figure with its bar. A negative bar is a minimum."""
    ok = value <= bar if bar >= 0 else value >= -bar
    print(
        f"{what:40s} {value:10.3f} {unit:5s} bar {abs(bar):g} {'ok' if ok else 'MISSED'}",
        flush=True,
    )
    return not ok


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
