"""A long reply while one types: heap, keys and main thread.

First 300 KB come in 200 pieces a second, each of 16 characters: four times a token, so that it takes a minute and a
half. The heap is measured with them. Below them, 200 tokens a second of four characters come for a minute, while
somebody types: that is what keys and main thread are measured with. A field in an empty page is the floor for keys.
"""

import asyncio
import random
import statistics
import time
from typing import Any

from playwright.async_api import Browser, CDPSession, Page

from benchmarks.page.running_dashboard import PageHost
from hermes.testing.model_server import Recorded
from hermes.testing.scripted_responses import ScriptedResponse

REPLY_CHARS = 300_000
PIECE_CHARS = 16
TOKEN_CHARS = 4
TOKENS_S = 60
PIECES_PER_S = 200
KEY_EVERY_S = (0.06, 0.18)  # as people type: not in step with anything
KEYS_BEFORE = (
    60  # what the same keys take while nothing is streamed, and in an empty page
)
PATIENCE_S = 600.0
BARS = {
    "heap growth, 300 KB reply": (20.0, "MB"),
    "typing p95 in an empty page": (30.0, "ms"),
    "typing p95 before it": (30.0, "ms"),
    "typing p95, 200 tokens/s": (30.0, "ms"),
    "main thread, 200 tokens/s": (25.0, "%"),
}
_BLOCK = """## Part {number}

Some *words* in a **paragraph** with `code`, [a link](https://example.org/{number}) and enough of them to fill lines.

- one item of a list
- another with more words in it

```python
def part_{number}(value: int) -> int:
    return value + {number}
```

| name | value |
|---|--:|
| part | {number} |

"""
_TEXT = "".join(_BLOCK.format(number=number) for number in range(1200))[:REPLY_CHARS]
REPLY = ScriptedResponse(text=_TEXT, chunk=PIECE_CHARS, delay=1 / PIECES_PER_S)
_TOKENS = ScriptedResponse(
    text=_TEXT[: TOKEN_CHARS * PIECES_PER_S * TOKENS_S],
    chunk=TOKEN_CHARS,
    delay=1 / PIECES_PER_S,
)
_TOKENS_PLEASE = "now as fast as a model"
_EMPTY_PAGE = "<div class=composer><textarea></textarea></div>"
_WATCH_KEYS = """() => {
    window.keyTimes = [];
    document.querySelector(".composer textarea").addEventListener("keydown", (event) => {
        requestAnimationFrame(() => {
            const { port1, port2 } = new MessageChannel();
            port1.onmessage = () => window.keyTimes.push(performance.now() - event.timeStamp);
            port2.postMessage(0);  // runs after the frame is painted
        });
    }, { capture: true });
}"""
_WRITTEN = (
    "() => document.querySelector('.message.live .markdown')?.textContent.length ?? 0"
)


async def _metrics(cdp: CDPSession) -> dict[str, float]:
    await cdp.send("HeapProfiler.collectGarbage")
    found: dict[str, Any] = await cdp.send("Performance.getMetrics")
    return {one["name"]: one["value"] for one in found["metrics"]}


def respond(asked: Recorded) -> ScriptedResponse:
    """The long reply, or the one at a model's speed."""
    return _TOKENS if _TOKENS_PLEASE.encode() in asked.body else REPLY


async def _type_before(page: Page) -> float:
    intervals = random.Random(1)
    await _watch_keys(page)
    for _ in range(KEYS_BEFORE):
        await page.keyboard.press("x")
        await asyncio.sleep(intervals.uniform(*KEY_EVERY_S))
    return await _p95(page)


async def _watch_keys(page: Page) -> None:
    await page.evaluate(_WATCH_KEYS)
    await page.locator(".composer textarea").focus()


async def _p95(page: Page) -> float:
    keys: list[float] = await page.evaluate("window.keyTimes")
    return statistics.quantiles(keys, n=20)[-1]


async def _type_until_done(page: Page) -> float:
    """Types while the reply comes; returns the seconds that it took."""
    await page.wait_for_function(_WRITTEN, timeout=PATIENCE_S * 1000)
    intervals, begun = random.Random(2), time.monotonic()
    while await page.locator(".message.live").count():
        if time.monotonic() - begun > PATIENCE_S:
            raise SystemExit("the reply did not end")
        await page.keyboard.press("x")
        await asyncio.sleep(intervals.uniform(*KEY_EVERY_S))
    return time.monotonic() - begun


async def _send(page: Page, text: str) -> None:
    await page.locator(".composer textarea").fill(text)
    await page.keyboard.press("Enter")
    await page.wait_for_selector(".composer textarea")


async def measure_streaming(browser: Browser, host: PageHost) -> dict[str, float]:
    """The figures of two replies. The main thread is measured by its CPU time, which other processes don't lengthen."""
    context = await browser.new_context(
        storage_state=host.state, viewport={"width": 1280, "height": 800}
    )
    try:
        page = await context.new_page()
        cdp = await context.new_cdp_session(page)
        await page.set_content(_EMPTY_PAGE)
        floor_ms = await _type_before(page)
        await page.goto(host.url)
        await page.wait_for_selector(".composer textarea")
        quiet_ms = await _type_before(page)
        await cdp.send("Performance.enable", {"timeDomain": "threadTicks"})
        before = await _metrics(cdp)
        await _send(page, "write a lot")
        await _type_until_done(page)
        long = await _metrics(cdp)
        await _send(page, _TOKENS_PLEASE)
        await _watch_keys(page)
        begun = await _metrics(cdp)
        took_s = await _type_until_done(page)
        after = await _metrics(cdp)
        grown = long["JSHeapUsedSize"] - before["JSHeapUsedSize"]
        busy_s = after["TaskDuration"] - begun["TaskDuration"]
        figures = (grown / 1e6, floor_ms, quiet_ms, await _p95(page))
        return dict(zip(BARS, (*figures, 100 * busy_s / took_s), strict=True))
    finally:
        await context.close()
