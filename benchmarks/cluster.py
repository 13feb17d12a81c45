"""Simulates many machines that share one PostgreSQL and one NATS: speed, and what survives kills and restarts.

`--sessions`, `--workers`, `--rate` (one or several) and `--seconds` set the load; `--kills`, `--restarts` and `--losses`
how often workers are killed, PostgreSQL is restarted without a checkpoint, and NATS is stopped; `--outages` and
`--outage-seconds` how often and how long PostgreSQL is down; `--freezes` how often a worker is frozen past its lease;
`--cap-workers` how many workers share a cap. Numbers are for this machine and its load.
"""

import argparse
import asyncio
import contextlib
import os
import random
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import asyncpg
import msgspec
from tests.fakes.machines import Cluster, Desk, WorkerProcess
from tests.fakes.nats_server import LocalNats, running_nats
from tests.fakes.postgres_server import LocalPostgres, running_postgres

from hermes.app.agent import Agent
from hermes.app.app import build
from hermes.app.feed import SessionFeed
from hermes.app.log_follower import LogFollower
from hermes.events import Bus
from hermes.primitives.tasks import cancel_and_wait
from hermes.schema.events import (
    MessageDelta,
    SessionCreated,
    SessionTitled,
    Steered,
    TurnEnded,
    TurnStarted,
)
from hermes.schema.messages import UserMessage
from hermes.settings import Home, Secrets, Settings
from hermes.settings.sections import EventSettings, StoreSettings
from hermes.store.leases import LEASE_TTL_S
from hermes.store.log_row import Row
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

_MAX_FIRST_REQUEST_S = 0.250
_MAX_ROW_S = 0.050
_MAX_DELTA_S = 0.020
_MAX_CPU_RATIO = 2.0
_MAX_LIVE_AGAIN_S = 5.0
_MAX_SILENCE_S = LEASE_TTL_S + 2.0  # a lease, and a worker's next check
_CAP_TOKENS = 12_000
_CALL_TOKENS = 3_000
_TURN_TIMEOUT_S = 120.0
_SQLITE_TURNS = 500
_WARM_UP_TURNS = 5  # for each worker, and before the turns on SQLite
_KEY = "sk-test-0000000000000000"


class Load:
    """Answers requests, and records when the first one for each message came."""

    def __init__(self, *, marks: bool = False) -> None:
        self._marks = marks
        self.asked: dict[str, float] = {}

    def __call__(self, request: Recorded) -> ScriptedResponse:
        now = time.perf_counter()
        messages = msgspec.json.decode(request.body)["messages"]
        said = next(
            str(one["content"]) for one in reversed(messages) if one["role"] == "user"
        )
        self.asked.setdefault(said, now)
        if not self._marks or messages[-1]["role"] == "tool":
            return ScriptedResponse(text="an answer of a few words", chunk=8)
        command = {"command": f"echo {said} >> marks.txt"}
        arguments = msgspec.json.encode(command).decode()
        call = ServedCall(name="terminal", arguments=arguments, id=f"c-{said}")
        return ScriptedResponse(calls=(call,))


def main(argv: Sequence[str]) -> int:
    """Runs everything. Returns 1 if a bar is missed, or something was lost or done twice."""
    parser = argparse.ArgumentParser(prog="benchmarks cluster", description=__doc__)
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument(
        "--rate", type=float, nargs="+", default=[100.0], help="turns per second"
    )
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--restarts", type=int, default=20)
    parser.add_argument("--losses", type=int, default=5)
    parser.add_argument("--outages", type=int, default=1)
    parser.add_argument("--outage-seconds", type=float, default=30.0)
    parser.add_argument("--freezes", type=int, default=1)
    parser.add_argument("--cap-workers", type=int, default=8)
    parser.add_argument("--sqlite-turns", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--model-url", default="", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.sqlite_turns:
        asyncio.run(_sqlite(options.sqlite_turns, options.model_url))
        return 0
    print(f"load of the machine before: {os.getloadavg()[0]:.1f}")
    with running_postgres() as postgres, running_nats() as nats:
        missed = asyncio.run(_run(options, postgres, nats))
    print(f"load of the machine after: {os.getloadavg()[0]:.1f}")
    return int(missed > 0)


async def _run(
    options: argparse.Namespace, postgres: LocalPostgres, nats: LocalNats
) -> int:
    missed = await _feed(postgres, nats)
    missed += await _live_again(postgres, nats)
    if options.cap_workers:
        missed += await _caps(options.cap_workers, postgres, nats)
    if options.seconds:
        missed += await _speed(options, postgres, nats)
    for name, number in (
        ("kills of workers", options.kills),
        ("restarts of PostgreSQL", options.restarts),
        ("losses of NATS", options.losses),
        ("outages of PostgreSQL", options.outages),
        ("freezes of workers", options.freezes),
    ):
        if number:
            fault = _Fault(name, number, options.outage_seconds)
            missed += await _faults(fault, postgres, nats)
    return missed


class _Fault(msgspec.Struct, frozen=True):
    """A kind of failure that is repeated."""

    name: str
    number: int
    outage_s: float


def _bar(name: str, value: float, limit: float, unit: str = "ms") -> int:
    scale = 1000.0 if unit == "ms" else 1.0
    is_ok = value <= limit
    print(
        f"  {name:44s} {value * scale:9.2f} {unit}  bar {limit * scale:g}  {'ok' if is_ok else 'MISSED'}"
    )
    return int(not is_ok)


def _p99(values: list[float]) -> float:
    return sorted(values)[max(0, int(len(values) * 0.99) - 1)]


async def _feed(postgres: LocalPostgres, nats: LocalNats) -> int:
    """Measures rows and deltas from one machine to a reader on another."""
    print("feed on another machine")
    settings = Settings(
        store=StoreSettings(url=postgres.new_url()),
        events=EventSettings(url=nats.url, subject="bench-feed"),
    )
    arrived: dict[str, float] = {}
    with (
        tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder,
        build(settings, Home(Path(folder) / "a"), bus=Bus()) as a,
        build(settings, Home(Path(folder) / "b"), bus=Bus()) as b,
    ):
        for app in (a, b):
            await asyncio.to_thread(app.go_live, Secrets({}, {}), "dashboard")
            assert app.exporters is not None
            app.exporters.receive_live_events(app.feed, everything=True)
        row = await asyncio.to_thread(a.begin, SessionCreated(surface="tui"))
        await a.writer.write(row.session, TurnStarted(inputs=(), runtime="native"))

        async def read() -> None:
            async for batch in SessionFeed(b, b.feed, row.session).batches():
                now = time.perf_counter()
                for item in batch:
                    name = str(item.event.get("text") or item.event.get("title") or "")
                    arrived.setdefault(name, now)

        tasks = [
            asyncio.create_task(LogFollower(b).run()),
            asyncio.create_task(read()),
        ]
        await asyncio.sleep(2.0)
        sent: dict[str, float] = {}
        for number in range(300):
            sent[f"d{number}"] = time.perf_counter()
            a.show(row.session, "t", MessageDelta(text=f"d{number}"))
            await asyncio.sleep(0.005)
        for number in range(300):
            titled = SessionTitled(title=f"r{number}")
            await a.writer.write(row.session, titled)
            sent[f"r{number}"] = time.perf_counter()
            await asyncio.sleep(0.01)
        await asyncio.sleep(2.0)
        await cancel_and_wait(*tasks)
    late = {name: arrived[name] - at for name, at in sent.items() if name in arrived}
    lost = len(sent) - len(late)
    rows = [max(0.0, took) for name, took in late.items() if name[0] == "r"]
    deltas = [took for name, took in late.items() if name[0] == "d"]
    floor = await _notify_floor(postgres)
    print(f"  {'p99 of a bare NOTIFY (floor)':44s} {floor * 1000:9.2f} ms")
    missed = _bar("p99 of row to reader", _p99(rows), _MAX_ROW_S)
    missed += _bar("p99 of delta to reader", _p99(deltas), _MAX_DELTA_S)
    print(f"  {lost} of {len(sent)} not seen")
    return missed + (lost > 0)


async def _notify_floor(postgres: LocalPostgres) -> float:
    """How long notifications take between two connections without Hermes, at this load."""
    heard = asyncio.Event()
    took: list[float] = []
    listening = await asyncpg.connect(postgres.url())
    sending = await asyncpg.connect(postgres.url())

    def hear(*_: object) -> None:
        heard.set()

    await listening.add_listener("floor", hear)
    for _ in range(300):
        heard.clear()
        begun = time.perf_counter()
        await sending.execute("NOTIFY floor")
        await heard.wait()
        took.append(time.perf_counter() - begun)
        await asyncio.sleep(0.01)
    await listening.close()
    await sending.close()
    return _p99(took)


async def _live_again(postgres: LocalPostgres, nats: LocalNats) -> int:
    """Measures how soon after NATS returns text is live again on another machine."""
    print("return of NATS")
    settings = Settings(
        store=StoreSettings(url=postgres.new_url()),
        events=EventSettings(url=nats.url, subject="bench-return"),
    )
    with (
        tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder,
        build(settings, Home(Path(folder) / "a"), bus=Bus()) as a,
        build(settings, Home(Path(folder) / "b"), bus=Bus()) as b,
    ):
        arrived = asyncio.Event()
        loop = asyncio.get_running_loop()
        for app in (a, b):
            await asyncio.to_thread(app.go_live, Secrets({}, {}), "dashboard")
            assert app.exporters is not None
            app.exporters.receive_live_events(app.feed, everything=True)
        b.bus.subscribe(
            MessageDelta.topic, lambda _: loop.call_soon_threadsafe(arrived.set)
        )
        row = await asyncio.to_thread(a.begin, SessionCreated(surface="tui"))
        await a.writer.write(row.session, TurnStarted(inputs=(), runtime="native"))

        async def until_seen() -> float:
            begun = time.perf_counter()
            arrived.clear()
            async with asyncio.timeout(_TURN_TIMEOUT_S):
                while not arrived.is_set():
                    a.show(row.session, "t", MessageDelta(text="."))
                    await asyncio.sleep(0.02)
            return time.perf_counter() - begun

        await until_seen()
        await asyncio.to_thread(nats.stop)
        await asyncio.sleep(2.0)
        await asyncio.to_thread(nats.start)
        took = await until_seen()
    return _bar("text live again after", took, _MAX_LIVE_AGAIN_S)


async def _caps(number: int, postgres: LocalPostgres, nats: LocalNats) -> int:
    """Runs sessions on this many workers, which share a daily cap of tokens."""
    print(f"a cap with {number} workers")

    def respond(_: Recorded) -> ScriptedResponse:
        return ScriptedResponse(text="ok", input_tokens=_CALL_TOKENS, output_tokens=10)

    cap = {"HERMES_BUDGET_PER_DAY": f"{_CAP_TOKENS} tokens"}
    async with _opened(postgres, nats, respond, number, **cap) as (desk, _):
        sessions = [await desk.begin() for _ in range(4 * number)]
        await asyncio.gather(*(desk.say(one, "go") for one in sessions))
        await asyncio.gather(*(desk.answered(one) for one in sessions))
        rows = await asyncio.to_thread(lambda: list(desk.store.sessions.usage()))
    used = sum(row.input_tokens + row.output_tokens for row in rows)
    return _bar("tokens used under the cap", used, _CAP_TOKENS, "tokens")


async def _speed(
    options: argparse.Namespace, postgres: LocalPostgres, nats: LocalNats
) -> int:
    """Runs turns at steady rates over many sessions and several workers. The bars are for the last rate."""
    async with ModelServer(respond=Load()) as model:
        before = time.process_time()
        baseline = await asyncio.to_thread(_sqlite_cpu, _SQLITE_TURNS, model.url)
        answering = (time.process_time() - before) / _SQLITE_TURNS
    load = Load()
    missed = 0
    async with _opened(postgres, nats, load, options.workers) as (desk, workers):
        await _warm_up(desk, options.workers)
        sessions = [await desk.begin() for _ in range(options.sessions)]
        machines = _Machines(workers, postgres, nats, answering)
        for rate in options.rate:
            turns = int(rate * options.seconds)
            print(
                f"{options.sessions} sessions, {options.workers} workers, {rate:g} turns/s, {turns} turns"
            )
            spent = machines.cpu_s()
            begun = time.perf_counter()
            said = await _submit(desk, sessions, turns, rate)
            await _settled(desk)
            took = time.perf_counter() - begun
            cost = {
                name: (now - spent[name]) / turns
                for name, now in machines.cpu_s(turns).items()
            }
            missed = _report(load, said, cost, baseline, turns / took)
    return missed


async def _submit(
    desk: Desk, sessions: list[str], turns: int, rate: float
) -> dict[str, float]:
    """Submits messages at a steady rate. Returns when each was submitted."""
    said: dict[str, float] = {}
    submits: set[asyncio.Task[None]] = set()
    begun = time.perf_counter()
    for number in range(turns):
        wait = begun + number / rate - time.perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        text = f"message-{rate:g}-{number}"
        said[text] = time.perf_counter()
        task = asyncio.create_task(desk.say(sessions[number % len(sessions)], text))
        submits.add(task)
        task.add_done_callback(submits.discard)
    await asyncio.gather(*submits)
    return said


class _Machines(NamedTuple):
    """Everything that shares the processors of this machine."""

    workers: list[WorkerProcess]
    postgres: LocalPostgres
    nats: LocalNats
    answering_s: float
    """What an answer costs the scripted model, which is in this process."""

    def cpu_s(self, answered: int = 0) -> dict[str, float]:
        """Seconds of processor time used so far, the model's from when on this many turns were answered."""
        return {
            "workers": sum(one.cpu_s() for one in self.workers),
            "PostgreSQL": self.postgres.cpu_s(),
            "NATS": self.nats.cpu_s(),
            "submitting": time.process_time() - answered * self.answering_s,
            "model": answered * self.answering_s,
        }


def _report(
    load: Load,
    said: dict[str, float],
    cost: dict[str, float],
    baseline: float,
    rate: float,
) -> int:
    """Prints what a rate gave. Returns how many bars were missed."""
    delays = [load.asked[text] - at for text, at in said.items() if text in load.asked]
    print(
        f"  {rate:.1f} turns/s were done; median {statistics.median(delays) * 1000:.0f} ms to the first request"
    )
    parts = ", ".join(f"{name} {used * 1000:.1f}" for name, used in cost.items())
    print(f"  CPU per turn in ms: {parts}; together {sum(cost.values()) * 1000:.1f}")
    print(f"  CPU of SQLite in one process per turn: {baseline * 1000:.1f} ms")
    missed = _bar(
        "p99 of submit to first model request", _p99(delays), _MAX_FIRST_REQUEST_S
    )
    missed += _bar(
        "CPU per turn against SQLite", cost["workers"] / baseline, _MAX_CPU_RATIO, "x "
    )
    sys.stdout.flush()
    return missed


async def _warm_up(desk: Desk, workers: int) -> None:
    """Runs turns that make the workers load what they need."""
    sessions = [await desk.begin() for _ in range(workers * _WARM_UP_TURNS)]
    await asyncio.gather(*(desk.say(one, "warm up") for one in sessions))
    await asyncio.gather(*(desk.answered(one) for one in sessions))


@contextlib.asynccontextmanager
async def _opened(
    postgres: LocalPostgres,
    nats: LocalNats,
    load: Callable[[Recorded], ScriptedResponse],
    workers: int,
    **environ: str,
):
    """Opens a desk and this many workers, with their own store."""
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder:
        async with (
            ModelServer(respond=load) as model,
            contextlib.AsyncExitStack() as stack,
        ):
            cluster = Cluster(
                folder=Path(folder),
                store_url=postgres.new_url(),
                events_url=nats.url,
                model_url=model.url,
            )
            desk = await stack.enter_async_context(cluster.surface())
            started: list[WorkerProcess] = []
            for number in range(workers):
                one = cluster.worker(f"w{number}", **environ)
                started.append(await stack.enter_async_context(one))
            await desk.sees_workers(workers)
            yield desk, started


def _sqlite_cpu(turns: int, model_url: str) -> float:
    """CPU per turn with `state.db`, measured in a separate process. The model server runs in another one."""
    command = [sys.executable, "-m", "benchmarks", "cluster"]
    done = subprocess.run(
        [*command, "--sqlite-turns", str(turns), "--model-url", model_url],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    return float(done.stdout.split()[-1])


async def _sqlite(turns: int, model_url: str) -> None:
    secrets = Secrets({"OPENAI_API_KEY": _KEY, "OPENAI_BASE_URL": model_url}, {})
    with (
        tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder,
        build(Settings(), Home(Path(folder)), bus=Bus()) as app,
    ):
        agent = Agent(app, secrets, surface="dashboard")

        async def answer(text: str) -> None:
            created = SessionCreated(surface="dashboard", cwd=folder)
            row = await asyncio.to_thread(app.begin, created)
            await agent.service.submit(row.session, text)
            await agent.service.idle(row.session)

        for number in range(_WARM_UP_TURNS):
            await answer(f"warm-up-{number}")
        before = resource.getrusage(resource.RUSAGE_SELF)
        for number in range(turns):
            await answer(f"message-{number}")
        after = resource.getrusage(resource.RUSAGE_SELF)
        await agent.close()
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(used / turns)


async def _faults(fault: _Fault, postgres: LocalPostgres, nats: LocalNats) -> int:
    """Runs turns whose commands leave marks, during repeated failures."""
    print(f"{fault.number} {fault.name} under load")
    load = Load(marks=True)
    acknowledged: dict[str, str] = {}
    async with _opened(postgres, nats, load, 3) as (desk, workers):
        sessions = [await desk.begin() for _ in range(20)]
        is_over = asyncio.Event()

        async def submit() -> None:
            count = 0
            while not is_over.is_set():
                session, text = random.choice(sessions), f"m{count}"
                count += 1
                await desk.say(session, text)
                acknowledged[text] = session
                await asyncio.sleep(0.1)

        submitting = asyncio.create_task(submit())
        begun = time.perf_counter()
        for _ in range(fault.number):
            await asyncio.sleep(random.uniform(0.1, 1.0))
            await _fail(fault, workers, postgres, nats)
        is_over.set()
        await submitting
        waited = await _settled(desk)
        took = time.perf_counter() - begun
        found = await _examined(desk, acknowledged)
    print(
        f"  {len(acknowledged)} messages in {took:.0f} s: {found.lost} lost, {found.unread} read by no turn, {found.twice} "
        f"calls run twice, {found.open_turns} turns without an end; all settled {waited:.1f} s after the last one; "
        f"ends: {dict(found.reasons)}",
        flush=True,
    )
    failed = (found.lost, found.unread, found.twice, found.open_turns)
    return sum(number > 0 for number in failed) + _bar(
        "longest time until a dead turn was closed",
        found.silence_s,
        _MAX_SILENCE_S,
        "s ",
    )


async def _fail(
    fault: _Fault,
    workers: list[WorkerProcess],
    postgres: LocalPostgres,
    nats: LocalNats,
) -> None:
    one = random.choice(workers)
    if fault.name == "kills of workers":
        await one.kill()
        await one.start()
    elif fault.name == "freezes of workers":
        one.send(signal.SIGSTOP)
        await asyncio.sleep(LEASE_TTL_S + 5.0)
        one.send(signal.SIGCONT)
    elif "PostgreSQL" in fault.name:
        await asyncio.to_thread(postgres.stop)
        if "outages" in fault.name:
            await asyncio.sleep(fault.outage_s)
        await asyncio.to_thread(postgres.start)
    else:
        await asyncio.to_thread(nats.stop)
        await asyncio.sleep(random.uniform(0.1, 3.0))
        await asyncio.to_thread(nats.start)


async def _settled(desk: Desk) -> float:
    """Waits until no session is queued for a worker. Returns how long that took."""
    begun = time.perf_counter()
    async with asyncio.timeout(_TURN_TIMEOUT_S):
        while await asyncio.to_thread(desk.store.work.depth):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.1)
        await desk.agent.service.all_idle()
    return time.perf_counter() - begun


class _Found(msgspec.Struct):
    """What the log and the marks show after the faults."""

    lost: int = 0
    """Acknowledged messages that are not in the log."""
    unread: int = 0
    """Messages that no turn read."""
    twice: int = 0
    """Commands that left more than one mark."""
    open_turns: int = 0
    silence_s: float = 0.0
    """The longest time between the last row of a turn that crashed and its end."""
    reasons: Counter[str] = msgspec.field(default_factory=Counter)


async def _examined(desk: Desk, acknowledged: dict[str, str]) -> _Found:
    """Reads every log, and the file that the commands wrote."""
    found = _Found()
    stored: set[tuple[str, str]] = set()
    for session in set(acknowledged.values()):
        rows = await asyncio.to_thread(_rows, desk, session)
        _examine(rows, found)
        texts = {row.event.text for row in rows if isinstance(row.event, UserMessage)}
        stored |= {(session, text) for text in texts}
    found.lost = sum(
        (session, text) not in stored for text, session in acknowledged.items()
    )
    file = desk.work / "marks.txt"
    marks = Counter(file.read_text().split() if file.exists() else ())
    found.twice = sum(count > 1 for count in marks.values())
    return found


def _rows(desk: Desk, session: str) -> list[Row]:
    return list(desk.store.log.every_event(session))


def _examine(rows: list[Row], found: _Found) -> None:
    """Adds the findings from the log of one session."""
    messages: set[int] = set()
    read: set[int] = set()
    last_at: dict[str, float] = {}
    for row in rows:
        event = row.event
        if isinstance(event, UserMessage):
            messages.add(row.seq)
        elif isinstance(event, TurnStarted | Steered):
            read.update(event.inputs)
        if isinstance(event, TurnStarted):
            found.open_turns += 1
        elif isinstance(event, TurnEnded):
            found.open_turns -= 1
            found.reasons[event.reason] += 1
            if event.reason == "crashed":
                silence_s = row.ts - last_at.get(row.turn, row.ts)
                found.silence_s = max(found.silence_s, silence_s)
        last_at[row.turn] = row.ts
    found.unread += len(messages - read)
