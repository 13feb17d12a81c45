"""Boards: how long a tick, the page's view and a listing take with 10,000 cards and 200 running, and what 300 kills leave.

    python -m benchmarks boards [--cards 10000] [--running 200] [--kills 300] [--seed 18]

Ticks, views and listings are measured in CPU time of this process and in elapsed time. The runs are real sessions with a
scripted model that keeps them waiting. A kill is SIGKILL to `hermes kanban run` or `hermes gateway run`, with all workers
in it, or to a program of a worker; most kills hit a running card.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
from tests.fakes.board_kills import fill, run_kills

from hermes.app import build
from hermes.app.boards.board_service import Boards
from hermes.app.boards.columns import CardFilter, ColumnPage, board_columns
from hermes.app.boards.dispatcher import Dispatcher
from hermes.app.boards.listing import OPEN_STATUSES, list_board
from hermes.events import Bus
from hermes.settings import Home, Secrets, Settings
from hermes.settings.boards import BoardSettings
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServerFault

TICK_BAR_MS, VIEW_BAR_MS = 50.0, 1_000.0
_TICKS = 30
_SILENT = ScriptedResponse(fault=ServerFault(hang="head"))


def main(argv: Sequence[str]) -> int:
    """Measures, then kills. Returns 1 if a bar is missed."""
    parser = argparse.ArgumentParser(prog="benchmarks boards", description=__doc__)
    parser.add_argument("--cards", type=int, default=10_000)
    parser.add_argument("--running", type=int, default=200)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=18)
    given = parser.parse_args(argv)
    missed = False
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder:
        missed = given.cards and asyncio.run(
            _measure(Path(folder), given.cards, given.running)
        )
    if given.cards and given.kills:
        print()
    if given.kills:
        with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder:
            missed |= asyncio.run(_kills(Path(folder), given.kills, given.seed))
    return int(missed)


async def _measure(folder: Path, cards: int, running: int) -> bool:
    home = Home(folder / "home").ensure()
    fill(home.state, cards=cards)
    settings = Settings(boards=BoardSettings(max_running=running))
    async with ModelServer(_SILENT, repeat=True) as server:
        keys = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"}
        with build(settings, home, bus=Bus()) as app:
            dispatcher = Dispatcher(app, Secrets({}, keys))
            try:
                return await _measured(dispatcher, Boards(app), running)
            finally:
                await dispatcher.close()


async def _measured(dispatcher: Dispatcher, boards: Boards, running: int) -> bool:
    settings = BoardSettings(max_running=running)
    await dispatcher.step()  # takes the role, and starts the first cards
    claiming: list[tuple[float, float]] = []
    while dispatcher.running < running:  # measured alone: workers share the event loop
        began, cpu = time.perf_counter(), time.process_time()
        claimed = boards.change(lambda tx: dispatcher._claim(tx, settings))  # noqa: SLF001
        claiming.append(_ms(began, cpu))
        for one in claimed:
            dispatcher._start(one, settings)  # noqa: SLF001
    workers = dispatcher._workers  # noqa: SLF001
    while not all(worker.session for worker in workers.values()):  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    first_ms = max(claiming, default=(0.0, 0.0))
    ticks = [await _tick_ms(dispatcher) for _ in range(_TICKS)]
    began, cpu = time.perf_counter(), time.process_time()
    view = await asyncio.to_thread(_board_view, boards)
    view_ms, view_cpu_ms = _ms(began, cpu)
    began, cpu = time.perf_counter(), time.process_time()
    listing = await asyncio.to_thread(list_board, boards)
    listing_ms, listing_cpu_ms = _ms(began, cpu)
    tick_ms = statistics.median(elapsed for elapsed, _ in ticks)
    tick_cpu_ms = statistics.median(cpu for _, cpu in ticks)
    print(
        f"{len(listing.cards):,} open cards, {dispatcher.running} running (of {running})"
    )
    print(
        f"longest tick that claims 25     {first_ms[0]:7.1f} ms elapsed, {first_ms[1]:7.1f} ms CPU"
    )
    print(
        f"tick, median of {_TICKS}            {tick_ms:7.1f} ms elapsed, {tick_cpu_ms:7.1f} ms CPU   bar {TICK_BAR_MS:g}"
    )
    print(
        f"board view ({len(view):,} bytes)       {view_ms:7.1f} ms elapsed, {view_cpu_ms:7.1f} ms CPU   bar {VIEW_BAR_MS:g}"
    )
    print(
        f"listing of the whole board      {listing_ms:7.1f} ms elapsed, {listing_cpu_ms:7.1f} ms CPU   bar {VIEW_BAR_MS:g}"
    )
    return tick_ms > TICK_BAR_MS or max(view_ms, listing_ms) > VIEW_BAR_MS


def _board_view(boards: Boards) -> bytes:
    """The data that the page requests to show a board."""
    page = ColumnPage(statuses=(*OPEN_STATUSES, "done"), limit=50)
    return msgspec.json.encode(board_columns(boards, "", page, CardFilter()))


async def _tick_ms(dispatcher: Dispatcher) -> tuple[float, float]:
    began, cpu = time.perf_counter(), time.process_time()
    await dispatcher.step()
    return _ms(began, cpu)


def _ms(began: float, cpu: float) -> tuple[float, float]:
    return (time.perf_counter() - began) * 1e3, (time.process_time() - cpu) * 1e3


async def _kills(folder: Path, kills: int, seed: int) -> bool:
    began = time.perf_counter()
    report = await run_kills(folder, kills=kills, cards=kills, seed=seed)
    took_s = time.perf_counter() - began
    print(
        f"{report.kills} kills in {took_s:.0f} s, {report.hits} of a running card: {report.by_kind}"
    )
    print(
        f"{report.done} of {report.cards} cards done, {report.unblocked} of them after 100 hits each, {report.outcomes}"
    )
    print(
        f"lost {len(report.lost)}, run twice at once {len(report.overlapping)}, runs without an end {report.unended}"
    )
    for one in (*report.lost, *report.overlapping)[:10]:
        print(f"  {one}")
    return bool(report.lost or report.overlapping or report.unended)
