"""The page as an app: what its service worker keeps, and what it says while the server can't be reached."""

import re

from playwright.async_api import Browser, expect
from tests.e2e.dashboard.chatting import rests, say
from tests.e2e.dashboard.conftest import Board, Complaints, visiting

KEPT = """async () => {
    const shell = await caches.open("hermes-shell");
    return (await shell.keys()).map((request) => new URL(request.url).pathname);
}"""


async def test_the_installed_page_keeps_its_files_and_nothing_private(
    browser: Browser, dashboard: Board, complaints: Complaints
) -> None:
    complaints.expect("ERR_INTERNET_DISCONNECTED|ERR_FAILED|WebSocket")
    async with visiting(
        browser, dashboard.link, complaints, service_workers="allow"
    ) as page:
        await page.evaluate("navigator.serviceWorker.ready")
        dashboard.says("Private words.")
        await say(page, "hello")
        await rests(page, 1)
        await page.reload()
        await expect(page.get_by_text("Private words.")).to_be_visible()
        kept = await page.evaluate(KEPT)
        assert "/" in kept
        assert any(path.endswith("/main.js") for path in kept)
        expected = r"/$|/notice-words$|/static/(v|vendor)/"
        assert all(re.match(expected, path) for path in kept), kept
        await page.context.set_offline(True)
        await page.reload()
        await expect(page.get_by_role("navigation", name="Views").first).to_be_visible()
        await expect(page.get_by_text("can't be reached")).to_be_visible()
        await expect(page.get_by_text("Private words.")).to_have_count(0)
        await page.context.set_offline(False)
        await expect(page.get_by_text("Private words.")).to_be_visible()
