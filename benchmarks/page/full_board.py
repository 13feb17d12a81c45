"""A board of 10,000 cards with 200 of them running: how soon it is on the screen.

The dashboard itself runs the cards, with a model that never answers, so their sessions are as real as a person's.
"""

import asyncio
from pathlib import Path

from playwright.async_api import Browser, Page
from tests.fakes.board_kills import fill

from benchmarks.page.long_lists import opened_ms
from benchmarks.page.running_dashboard import PageHost
from hermes.testing.model_server import Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServerFault

CARDS = 10_000
RUNNING = 200
VISITS = 5
SETTLE_S = 20.0  # the sessions of cards that just began to run are still starting
BARS = {
    "board of 10,000 cards": (1000.0, "ms"),
    "board of 10,000 cards, first visit": (1000.0, "ms"),
}
_PATIENCE_MS = 120_000
_SHOWN = ".board-column[data-status=running] .board-card-title"
_ALL_RUN = f"""() => document.querySelector(
    ".board-column[data-status=running] .board-count")?.textContent === "{RUNNING}" """


def stay_silent(_: Recorded) -> ScriptedResponse:
    """A model that never answers."""
    return ScriptedResponse(fault=ServerFault(hang="head"))


def write_cards(home: Path) -> None:
    """Fills the default board."""
    config = home / "config.yaml"
    config.write_text(config.read_text() + f"boards:\n  max_running: {RUNNING}\n")
    fill(home / "state.db", cards=CARDS)


async def measure_board(browser: Browser, host: PageHost) -> dict[str, float]:
    """Medians: from another view of an open page, and from the address in a browser that was never here."""
    context = await browser.new_context(storage_state=host.state)
    page = await context.new_page()
    await page.goto(f"{host.url}#/board")
    await page.wait_for_function(_ALL_RUN, timeout=_PATIENCE_MS)
    await asyncio.sleep(SETTLE_S)
    again = sorted([await _again(page) for _ in range(VISITS)])
    await context.close()
    first = sorted([await _first(browser, host) for _ in range(VISITS)])
    return dict(zip(BARS, (again[VISITS // 2], first[VISITS // 2]), strict=True))


async def _again(page: Page) -> float:
    await opened_ms(page, "/settings", "body:not(:has(.board-card-title))")
    return await opened_ms(page, "/board", _SHOWN)


async def _first(browser: Browser, host: PageHost) -> float:
    context = await browser.new_context(storage_state=host.state)
    page = await context.new_page()
    await page.goto(f"{host.url}#/board")
    await page.wait_for_selector(_SHOWN)
    since_start_ms: float = await page.evaluate("performance.now()")
    await context.close()
    return since_start_ms
