"""The orb on the page: it follows a scripted run here, and what another process publishes."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect
from tests.e2e.dashboard.conftest import PATIENCE, Board, Complaints, visiting
from tests.e2e.dashboard.test_access import found_by_axe
from websockets.asyncio.client import connect

from hermes.testing.scripted_responses import ScriptedResponse, ServerFault

PAGE = ".orb-page"
_BEGIN = """async () => (await (await fetch('/api/sessions', { method: 'POST',
  headers: { 'content-type': 'application/json' }, body: JSON.stringify({ text: 'How are you?' }) })).json()).id"""


async def _show_orb(page: Page, board: Board) -> None:
    await page.goto(f"{board.url}/#/plugins")
    row = page.locator("[data-plugin-row=orb]")
    await row.get_by_role("button", name="Enable").click()
    await row.get_by_role("link", name="Open").click()
    await expect(page.locator(PAGE)).to_have_attribute("data-state", "idle")
    await expect(page.get_by_role("status").filter(has_text="Idle")).to_be_visible()


@asynccontextmanager
async def _elsewhere(board: Board) -> AsyncIterator[Any]:
    """Publishes as a gateway in another process does, with what the dashboard left for it."""
    running = json.loads((board.hermes.home / "dashboard" / "running.json").read_text())
    headers = {"Authorization": f"Bearer {running['token']}"}
    async with connect(
        f"{running['pub_url']}?channel=gateway", additional_headers=headers, proxy=None
    ) as socket:

        async def publish(kind: str, **fields: Any) -> None:
            envelope = {"session_id": "far", "platform": "telegram", **fields}
            await socket.send(
                json.dumps({"_bus_relay": True, "topic": kind, "envelope": envelope})
            )

        yield publish


async def test_the_orb_follows_a_run_here(page: Page, dashboard: Board) -> None:
    await _show_orb(page, dashboard)
    await page.reload()
    orb = page.locator(PAGE)
    await expect(orb).to_have_attribute("data-state", "idle")
    dashboard.says(
        ScriptedResponse(fault=ServerFault(hang="body")),
        ScriptedResponse(text="All is well. " * 20, fault=ServerFault(hang="middle")),
    )
    for state in (
        "thinking",
        "speaking",
    ):  # as long as the model is silent, and as long as it speaks
        session = await page.evaluate(_BEGIN)
        await expect(orb).to_have_attribute("data-state", state)
        await page.evaluate(
            "(id) => fetch(`/api/sessions/${id}/interrupt`, { method: 'POST' })",
            session,
        )
        await expect(orb).to_have_attribute("data-state", "idle")
    assert dashboard.left == 0


async def test_the_orb_follows_another_process_and_so_does_the_small_one(
    page: Page, dashboard: Board
) -> None:
    await _show_orb(page, dashboard)
    orb, words = page.locator(PAGE), page.locator(".orb-words")
    async with _elsewhere(dashboard) as publish:
        await publish("gateway.agent.start")
        await expect(orb).to_have_attribute("data-state", "thinking")
        await expect(words).to_contain_text("on telegram")
        await publish("gateway.agent.step", tool_names=["web_search"])
        await expect(words).to_contain_text("Using web_search")
        await expect(page.locator(".rail .orb-small")).to_have_attribute(
            "aria-label", "Using web_search, on telegram"
        )
        await publish("agent.approval.requested", call_id="1")
        await expect(words).to_contain_text("Waiting for you")
        assert await found_by_axe(page) == []
        await publish("agent.approval.answered", call_id="1")
        await publish("gateway.agent.end", reason="failed")
        await expect(orb).to_have_attribute("data-state", "error")
        patience = PATIENCE * 1000
        await expect(orb).to_have_attribute(
            "data-state", "idle", timeout=patience
        )  # nobody is in trouble for ever


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
async def test_it_moves_only_for_those_who_like_that(
    browser: Browser, dashboard: Board, complaints: Complaints, motion: Any
) -> None:
    async with visiting(
        browser, dashboard.link, complaints, reduced_motion=motion
    ) as page:
        await _show_orb(page, dashboard)
        async with _elsewhere(dashboard) as publish:
            await publish("gateway.agent.start")
            await expect(page.locator(PAGE)).to_have_attribute("data-state", "thinking")
        same = await page.evaluate(
            """async () => {
              const canvas = document.querySelector(".orb-page canvas");
              const frames = (count) => new Promise((done) => {
                const next = () => (count-- ? requestAnimationFrame(next) : done());
                next();
              });
              await frames(20);
              const before = canvas.toDataURL();
              await frames(20);
              return before === canvas.toDataURL();
            }"""
        )
        assert same == (motion == "reduce")
