"""Every view with something in it: nothing that a screen reader stumbles over, and no scrolling sideways on a phone."""

import time
from typing import Literal

import pytest
from playwright.async_api import Browser, Page, ViewportSize, expect
from tests.e2e.dashboard.chatting import width
from tests.e2e.dashboard.conftest import Board, Complaints, again
from tests.e2e.dashboard.past import call, past_of, reply, teach, write_past
from tests.e2e.dashboard.planned import fill_board, plan_job
from tests.e2e.dashboard.test_access import found_by_axe
from tests.e2e.dashboard.test_plugins import write_tally
from tests.e2e.dashboard.walking import go

_VIEWS = {
    "/live": ".event-row",
    "/sessions": ".session-row",
    "/sessions?q=release": ".hit",
    "/settings": ".setting",
    "/settings/usage": ".tiles",
    "/settings/policy": ".card",
    "/settings/models": ".big",
    "/settings/tools": ".tool-row",
    "/settings/mcp": ".empty",
    "/settings/platforms": "[data-platform]",
    "/settings/agents": ".tool-row",
    "/settings/notifications": ".key-switch",
    "/learning": ".proposal",
    "/learning/memory": ".memory-file",
    "/learning/skills": ".skill",
    "/learning/history": ".change",
    "/schedules": ".job",
    "/schedules/new": ".job-form",
    "/plugins": ".plugin",
}
_TOO_SMALL = """() => [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [role=tab]")]
    .filter((one) => !one.closest("[aria-hidden=true], label, .board") && getComputedStyle(one).display !== "inline")
    .map((one) => [one.getBoundingClientRect(), one.className, one.textContent.slice(0, 30)])
    .filter(([box]) => box.width && box.height && (box.width < 24 || box.height < 24))
    .map(([box, kind, text]) => `${kind} ${text}: ${box.width} x ${box.height}`)"""
"""What a finger can't hit: targets of less than 24 pixels, but for links within a text."""


@pytest.mark.parametrize(("scheme", "wide"), [("light", 360), ("dark", 1280)])
async def test_every_view_fits_and_can_be_read_by_everybody(
    scheme: Literal["light", "dark"],
    wide: int,
    browser: Browser,
    dashboard: Board,
    complaints: Complaints,
) -> None:
    home = dashboard.hermes.home
    ids = write_past(home, time.time())
    teach(home)
    job, card = plan_job(home), fill_board(home)
    write_tally(dashboard)
    view = ViewportSize(width=wide, height=740)
    async with again(
        browser, dashboard, complaints, viewport=view, color_scheme=scheme
    ) as page:
        await go(page, "/live")
        await expect(page.locator(".live-head .tag")).to_have_text("live")
        with past_of(home, time.time()) as past:
            past.turn(
                ids["old"],
                "w" * 300,
                *call("c8", "read_file", path="p" * 300),
                reply("Long: " + "x" * 400),
            )
        more = {
            f"/sessions/{ids['main']}?at=12": ".details .output",
            f"/schedules/{job}": ".past td",
            "/board": ".board-card",
            f"/board/default/{card}": ".board-drawer .board-comment",
        }
        for path, seen in {**_VIEWS, **more}.items():
            await _fits(page, path, seen, wide)
        await go(page, "/plugins")
        await page.get_by_role("button", name="Review and enable").first.click()
        await expect(page.get_by_role("dialog")).to_contain_text("3 files")
        assert await found_by_axe(page) == []


async def _fits(page: Page, path: str, seen: str, wide: int) -> None:
    if path != "/live":  # it is there already, with what came
        await go(page, path)
    await expect(page.locator(seen).first).to_be_visible()
    assert await width(page) <= wide, path
    assert await page.evaluate(_TOO_SMALL) == [], path
    assert await found_by_axe(page) == [], path
    if wide > 1000:  # on wide screens also with high contrast
        await page.evaluate("document.documentElement.dataset.theme = 'contrast'")
        assert await found_by_axe(page) == [], path
        await page.evaluate("delete document.documentElement.dataset.theme")
