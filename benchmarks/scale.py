"""Measures what a turn costs in the store, and simulates 10,000 and 1,000,000 people with that.

    python -m benchmarks.scale [--turns 400] [--sessions 100000]

A turn here means the writes of a turn without tools (message, lease, start, reply, end, release) on SQLite and on a
PostgreSQL server on this machine. CPU is that of this process, without the server's. The simulation of leases and
queues takes its transactions and bytes per turn from the measurement. `--sessions` is how many sessions the larger of two
databases holds, in which turns must cost as much as among 1,000; there the server's CPU is counted too.
"""

import argparse
import heapq
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.fakes.postgres_server import LocalPostgres, running_postgres

from hermes.schema.events import SessionCreated, TurnEnded, TurnStarted
from hermes.schema.messages import AssistantMessage, Usage, UserMessage
from hermes.store import Store, open_store
from hermes.store.postgres.options import PostgresOptions
from hermes.store.postgres.postgres_store import PostgresStore, open_postgres
from hermes.store.sql import SqlConnection

_SEED = 16
_SESSIONS = 20
_MODEL_S = 8.0  # of a turn, spent waiting for the model
_TURNS_PER_PERSON_DAY = 20
_PEAK = 4.0  # load of the busiest hour, relative to the mean
_TURNS_PER_WORKER = 100
_RENEWALS_PER_S = 0.1  # of a lease that is held
_PEOPLE = (1_000, 10_000, 100_000, 1_000_000)
_WAL = "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn, xact_commit FROM pg_stat_database WHERE datname = current_database()"


_FEW_SESSIONS = 1_000
_ROUNDS = 8
_MAX_GROWTH = (
    1.25  # of a turn's CPU; two runs on the same database can differ this much
)
_TABLES = {"sessions": "id", "events": "session", "leases": "session", "usage": "session"}  # fmt: skip


class TurnCost(NamedTuple):
    """What one turn costs."""

    cpu_ms: float
    elapsed_ms: float
    rows: float
    bytes: float
    transactions: float


def run_turns(store: Store, turns: int, prefix: str = "") -> tuple[float, float]:
    """Writes turns in new sessions, one after another. Returns CPU and elapsed seconds."""
    sessions = [f"{prefix}s{number}" for number in range(_SESSIONS)]
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
    """The cost on a server. Counts the bytes of its write-ahead log."""
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
    """The cost in a file. Counts the bytes of the file and its log at the end."""
    with open_store(folder / "state.db") as store:
        cpu, elapsed = run_turns(store, turns)
        rows = store.size()[1] - _SESSIONS
        size = sum(file.stat().st_size for file in folder.glob("state.db*"))
    return TurnCost(
        1000 * cpu / turns, 1000 * elapsed / turns, rows / turns, size / turns, 5.0
    )


def fill(store: PostgresStore, sessions: int) -> None:
    """Adds copies of the first session, with all its rows."""
    columns = """SELECT string_agg(column_name, ', ') FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name = ? AND column_name != 'id' AND column_name != ?"""

    def job(connection: SqlConnection) -> None:
        for table, name in _TABLES.items():
            names = connection.execute(columns, (table, name)).get
            connection.execute(
                f"INSERT INTO {table} ({name}, {names}) SELECT 'f' || number, {names} "  # noqa: S608 - our own names
                f"FROM {table}, generate_series(1, CAST(? AS integer)) AS number WHERE {name} = 's0'",
                (sessions,),
            )

    store.database.write(job)


def measure_growth(server: LocalPostgres, turns: int, sessions: int) -> float:
    """How much more CPU a turn takes among many sessions than among few, here and on the server."""
    used = {_FEW_SESSIONS: list[float](), sessions: list[float]()}
    turns = max(turns // _ROUNDS, _SESSIONS)
    with ExitStack() as stack:
        stores: dict[int, PostgresStore] = {}
        for number in used:
            options = PostgresOptions(server.new_url())
            stores[number] = stack.enter_context(open_postgres(options))
            run_turns(stores[number], _SESSIONS)
            fill(stores[number], number)
        server.sql("VACUUM ANALYZE")  # else the server does it while we measure
        server.sql("CHECKPOINT")
        for place in range(_ROUNDS):
            for number, store in stores.items():
                before = time.process_time() + server.cpu_s()
                run_turns(store, turns, f"r{place}-")
                spent = time.process_time() + server.cpu_s() - before
                used[number].append(1000 * spent / turns)
    few, many = (statistics.median(found) for found in used.values())
    print(
        f"CPU of a turn, with the server's: {few:.1f} ms among {_FEW_SESSIONS:,} sessions, {many:.1f} ms among {sessions:,}"
    )
    return many / few


def simulate(rate: float, workers: int, seconds: float) -> tuple[float, float]:
    """Simulates turns that arrive at random and wait for a free worker slot. Returns the median and p99 wait."""
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
    parser.add_argument("--sessions", type=int, default=100_000)
    options = parser.parse_args(argv)
    turns = options.turns
    with tempfile.TemporaryDirectory() as folder, running_postgres() as server:
        file = measure_sqlite(Path(folder), turns)
        shared = measure_postgres(server, turns)
        growth = measure_growth(server, turns, options.sessions)
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
    is_flat = growth <= _MAX_GROWTH
    print(
        f"growth {growth:.2f} x  bar {_MAX_GROWTH:g}  {'ok' if is_flat else 'MISSED'}"
    )
    return int(not is_flat)
