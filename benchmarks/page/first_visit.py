"""First visits: times until the page is painted and one can write, and what is sent.

Each visit is a browser context of its own, so nothing is cached; the browser itself is running already.
"""

import asyncio
import statistics

from playwright.async_api import Browser, Page, StorageState

VISITS = 9
SETTLE_S = 2.5  # the service worker comes after the page
BARS = {
    "first paint": (300.0, "ms"),
    "first contentful paint": (300.0, "ms"),
    "ready to write": (800.0, "ms"),
    "cold requests": (25.0, ""),
    "cold transfer": (150.0, "KB"),
    "warm requests": (25.0, ""),
    "warm transfer": (10.0, "KB"),
}
_FIGURES = """() => new Promise((done) => {
    const look = () => {
        const found = { "ready to write": window.writable };
        for (const one of performance.getEntriesByType("paint")) found[one.name.replaceAll("-", " ")] = one.startTime;
        if (found["first contentful paint"] && window.writable) done(found);
        else requestAnimationFrame(look);
    };
    look();
})"""


async def _visit(browser: Browser, url: str, state: StorageState) -> dict[str, float]:
    context = await browser.new_context(
        storage_state=state, viewport={"width": 1280, "height": 800}
    )
    try:
        page = await context.new_page()
        await page.add_init_script(
            """new MutationObserver((_, observer) => {
                if (!document.querySelector(".composer textarea")) return;
                window.writable = performance.now();
                observer.disconnect();
            }).observe(document, { childList: true, subtree: true });"""
        )
        await page.goto(url)
        return await page.evaluate(_FIGURES)
    finally:
        await context.close()


class Wire:
    """The requests of a page, and the bytes of their answers as they came over the network."""

    def __init__(self) -> None:
        self.requests = 0
        self.bytes = 0.0

    async def watch(self, page: Page) -> None:
        session = await page.context.new_cdp_session(page)
        await session.send("Network.enable")
        session.on("Network.loadingFinished", self._finished)
        session.on("Network.webSocketWillSendHandshakeRequest", self._sent)

    def _finished(self, event: dict[str, float]) -> None:
        # What a browser takes from its cache costs nothing.
        if event["encodedDataLength"]:
            self._sent(event)
            self.bytes += event["encodedDataLength"]

    def _sent(self, _: object) -> None:
        self.requests += 1


async def _transfer(
    browser: Browser, url: str, state: StorageState
) -> dict[str, float]:
    """A first visit, and a second one with what the browser kept of the first."""
    context = await browser.new_context(storage_state=state)
    found: dict[str, float] = {}
    try:
        for name in ("cold", "warm"):
            wire, page = Wire(), await context.new_page()
            await wire.watch(page)
            await page.goto(url)
            await page.wait_for_selector(".composer textarea")
            await page.wait_for_load_state("networkidle")
            await asyncio.sleep(SETTLE_S)
            found[f"{name} requests"] = wire.requests
            found[f"{name} transfer"] = wire.bytes / 1000
            await page.close()
    finally:
        await context.close()
    return found


async def measure_visits(
    browser: Browser, url: str, state: StorageState
) -> dict[str, float]:
    """Medians of several first visits, and what one sends."""
    transfer = await _transfer(browser, url, state)
    visits = [await _visit(browser, url, state) for _ in range(VISITS)]
    return transfer | {
        name: statistics.median(visit[name] for visit in visits) for name in visits[0]
    }
