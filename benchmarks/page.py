"""The page of a real dashboard in a real browser, on loopback: until something is painted, and until one can write.

Each visit is a browser context of its own, so nothing is cached; the browser itself is running already.
"""

import asyncio
import re
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from playwright.async_api import Browser, StorageState, async_playwright

from hermes.settings.load import environment
from hermes.testing.chromium import installed_chromium
from hermes.testing.installed import InstalledHermes
from hermes.tools.browser.executable import browser_environment, needs_no_sandbox

VISITS = 9
BARS = {"first paint": 300.0, "first contentful paint": 300.0, "ready to write": 800.0}
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


async def _visits(folder: Path) -> list[dict[str, float]]:
    hermes = InstalledHermes(folder, "http://127.0.0.1:9/v1")
    process = await hermes.start("dashboard", "--port", "0", "--no-open")
    assert process.stdout is not None
    try:
        said = ""
        while "code=" not in said:
            line = (await process.stdout.readline()).decode()
            if not line:
                raise SystemExit("the dashboard did not start")
            said += line
        (url,) = re.findall(r"Hermes is at (\S+)", said)
        (link,) = re.findall(r"(\S+/login\?code=\S+)", said)
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=installed_chromium(environment()),
                env=dict[str, str | float | bool](browser_environment(environment())),
                chromium_sandbox=not needs_no_sandbox(),
            )
            context = await browser.new_context()
            await (await context.new_page()).goto(link)
            state = await context.storage_state()
            await context.close()
            visits = [await _visit(browser, f"{url}/", state) for _ in range(VISITS)]
            await browser.close()
            return visits
    finally:
        process.terminate()
        await process.communicate()


def main(argv: Sequence[str]) -> int:  # noqa: ARG001 - as every benchmark
    """Measures and prints; 1 when a bar is missed."""
    with tempfile.TemporaryDirectory() as folder:
        visits = asyncio.run(_visits(Path(folder)))
    figures = {
        name: statistics.median(visit[name] for visit in visits) for name in BARS
    }
    for name, figure in figures.items():
        print(
            f"page: {name:28s} {figure:8.2f} ms  bar {BARS[name]:g} {'ok' if figure <= BARS[name] else 'MISSED'}"
        )
    return int(any(figure > BARS[name] for name, figure in figures.items()))
