"""What a turn costs at the store, and what that means for 10,000 and 1,000,000 people: measured, then simulated.

    python -m benchmarks.scale [--turns 400]

A turn here is the writes of a turn without tools (message, lease, start, reply, end, release) on SQLite and on a
PostgreSQL server on this machine. CPU is that of this process; the server's is not in it. The simulation of leases and
queues takes its transactions and bytes per turn from the measurement.
"""

import argparse
import heapq
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.fakes.postgres_server import LocalPostgres, running_postgres

from hermes.schema.events import SessionCreated, TurnEnded, TurnStarted
from hermes.schema.messages import AssistantMessage, Usage, UserMessage
from hermes.store import Store, open_store
from hermes.store.postgres.options import PostgresOptions
from hermes.store.postgres.postgres_store import open_postgres

_SEED = 16
_SESSIONS = 20
_MODEL_S = 8.0  # of a turn that is spent waiting for a model
_TURNS_PER_PERSON_DAY = 20
_PEAK = 4.0  # busiest hour over the mean
_TURNS_PER_WORKER = 100
_RENEWALS_PER_S = 0.1  # of a lease that is held
_PEOPLE = (1_000, 10_000, 100_000, 1_000_000)
_WAL = "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn, xact_commit FROM pg_stat_database WHERE datname = current_database()"


class TurnCost(NamedTuple):
    """What one turn costs."""

    cpu_ms: float
    elapsed_ms: float
    rows: float
    bytes: float
    transactions: float


def run_turns(store: Store, turns: int) -> tuple[float, float]:
    """Writes turns, one after the other. Returns CPU and elapsed seconds."""
    sessions = [f"s{number}" for number in range(_SESSIONS)]
    for session in sessions:
        store.log.create(session, SessionCreated())
    began, cpu = time.perf_counter(), time.process_time()
    for number in range(turns):
        session = sessions[number % _SESSIONS]
        store.log.append(session, UserMessage(text="What is the weather like? " * 4))
        lease = store.leases.acquire(session)
        turn = f"t{number}"
        store.log.append(session, TurnStarted(inputs=()), turn=turn, lease=lease)
        usage = Usage(input_tokens=2_000, output_tokens=200)
        reply = AssistantMessage(text="It rains. " * 60, model="m", usage=usage)
        ended = TurnEnded(reason="done", usage=usage)
        store.log.append(session, reply, ended, turn=turn, lease=lease)
        store.leases.release(lease)
    return time.process_time() - cpu, time.perf_counter() - began


def measure_postgres(server: LocalPostgres, turns: int) -> TurnCost:
    """The cost on a server: bytes are those of its write-ahead log."""
    with open_postgres(PostgresOptions(server.url())) as store:
        ((wal, commits),) = store.database.select(_WAL)
        cpu, elapsed = run_turns(store, turns)
        rows = store.size()[1] - _SESSIONS
        store.database.select("SELECT pg_stat_clear_snapshot()::text")
    with open_postgres(PostgresOptions(server.url())) as store:
        ((wal_after, commits_after),) = store.database.select(_WAL)
    return TurnCost(
        1000 * cpu / turns,
        1000 * elapsed / turns,
        rows / turns,
        float(wal_after - wal) / turns,
        (commits_after - commits) / turns,
    )


def measure_sqlite(folder: Path, turns: int) -> TurnCost:
    """The cost in a file: bytes are those of the file and its log at the end."""
    with open_store(folder / "state.db") as store:
        cpu, elapsed = run_turns(store, turns)
        rows = store.size()[1] - _SESSIONS
        size = sum(file.stat().st_size for file in folder.glob("state.db*"))
    return TurnCost(
        1000 * cpu / turns, 1000 * elapsed / turns, rows / turns, size / turns, 5.0
    )


def simulate(rate: float, workers: int, seconds: float) -> tuple[float, float]:
    """Turns that arrive at random and wait for a free place of a worker. Returns the median and p99 of waiting."""
    chance = random.Random(_SEED)
    free = [0.0] * (workers * _TURNS_PER_WORKER)
    heapq.heapify(free)
    now = 0.0
    waits: list[float] = []
    while now < seconds:
        now += chance.expovariate(rate)
        start = max(now, heapq.heappop(free))
        heapq.heappush(free, start + chance.expovariate(1 / _MODEL_S))
        waits.append(start - now)
    quantiles = statistics.quantiles(waits, n=100)
    return statistics.median(waits), quantiles[98]


def main(argv: Sequence[str]) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="benchmarks scale", description=__doc__)
    parser.add_argument("--turns", type=int, default=400)
    turns = parser.parse_args(argv).turns
    with tempfile.TemporaryDirectory() as folder, running_postgres() as server:
        file = measure_sqlite(Path(folder), turns)
        shared = measure_postgres(server, turns)
    print("cost of a turn     CPU ms   elapsed ms   rows   bytes   transactions")
    for name, cost in (("SQLite", file), ("PostgreSQL", shared)):
        print(
            f"  {name:<14} {cost.cpu_ms:8.2f} {cost.elapsed_ms:12.2f} {cost.rows:6.1f}"
            f" {cost.bytes:7.0f} {cost.transactions:10.1f}"
        )
    print(
        "people      turns/s  running  workers  transactions/s  MB/s of log  wait p50/p99 s"
    )
    for people in _PEOPLE:
        rate = people * _TURNS_PER_PERSON_DAY * _PEAK / 86_400
        running = rate * _MODEL_S
        workers = max(1, round(1.3 * running / _TURNS_PER_WORKER + 0.5))
        load = rate * shared.transactions + running * _RENEWALS_PER_S
        median, late = simulate(rate, workers, 60_000 / rate)
        print(
            f"  {people:>9,} {rate:8.1f} {running:8.0f} {workers:8} {load:15.0f} {rate * shared.bytes / 1e6:12.2f}"
            f"  {median:.2f} / {late:.2f}"
        )
    return 0
