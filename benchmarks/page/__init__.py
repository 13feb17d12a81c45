"""The page of a real dashboard in a real browser, on loopback: first visits, a long reply, long
sessions, many sessions, a full board.

`--lighthouse` also asks Lighthouse, which npm fetches on first use. `--only NAME` runs one part.
"""

import argparse
import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, async_playwright

from benchmarks.page.first_visit import BARS as VISIT_BARS
from benchmarks.page.first_visit import measure_visits
from benchmarks.page.full_board import BARS as BOARD_BARS
from benchmarks.page.full_board import measure_board, stay_silent, write_cards
from benchmarks.page.lighthouse import BARS as LIGHTHOUSE_BARS
from benchmarks.page.lighthouse import measure_lighthouse
from benchmarks.page.long_lists import BARS as LIST_BARS
from benchmarks.page.long_lists import measure_lists, write_past
from benchmarks.page.running_dashboard import PageHost, running_dashboard
from benchmarks.page.streaming import BARS as STREAM_BARS
from benchmarks.page.streaming import measure_streaming, respond
from hermes.settings.load import environment
from hermes.testing.chromium import installed_chromium
from hermes.tools.browser.executable import browser_environment, needs_no_sandbox

PARTS = ("visit", "stream", "lists", "board", "lighthouse")
_PREPARED = {"lists": write_past, "board": write_cards}


@asynccontextmanager
async def _chromium() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=installed_chromium(environment()),
            env=dict[str, str | float | bool](browser_environment(environment())),
            chromium_sandbox=not needs_no_sandbox(),
        )
        yield browser
        await browser.close()


async def _measure(folder: Path, parts: Sequence[str]) -> dict[str, float]:
    measures: dict[str, Callable[[Browser, PageHost], Awaitable[dict[str, float]]]] = {
        "visit": lambda browser, host: measure_visits(browser, host.url, host.state),
        "stream": measure_streaming,
        "lists": measure_lists,
        "board": measure_board,
        "lighthouse": measure_lighthouse,
    }
    found: dict[str, float] = {}
    async with _chromium() as browser:
        for part in parts:
            home = folder / part
            home.mkdir()
            answers = stay_silent if part == "board" else respond
            prepare = _PREPARED.get(part)
            async with running_dashboard(browser, home, answers, prepare) as host:
                found |= await measures[part](browser, host)
    return found


def main(argv: Sequence[str]) -> int:
    """Measures and prints; 1 when a bar is missed."""
    parser = argparse.ArgumentParser(prog="page", description=__doc__)
    parser.add_argument("--lighthouse", action="store_true")
    parser.add_argument("--only", choices=PARTS, action="append")
    options = parser.parse_args(argv)
    parts = options.only or [*PARTS[:4], *(PARTS[4:] if options.lighthouse else ())]
    bars = VISIT_BARS | STREAM_BARS | LIST_BARS | BOARD_BARS
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(_measure(Path(folder), parts))
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    print(f"page: {load:.1f} processes per core wanted to run; times are longer then")
    missed = 0
    for name, figure in figures.items():
        if name in LIGHTHOUSE_BARS:
            bar, unit, is_good = (
                LIGHTHOUSE_BARS[name],
                "",
                figure >= LIGHTHOUSE_BARS[name],
            )
        else:
            (bar, unit), is_good = bars[name], figure <= bars[name][0]
        missed += not is_good
        verdict = "ok" if is_good else "MISSED"
        print(f"page: {name:32s} {figure:8.2f} {unit:2s}  bar {bar:g} {verdict}")
    return int(missed > 0)
