"""The event inspector: patterns, pause, details, counters, and a flood that neither freezes nor fills it."""

import re
import time

import msgspec
from playwright.async_api import Page, expect
from tests.e2e.dashboard.conftest import Board
from tests.e2e.dashboard.past import call, past_of, reply, write_past
from tests.e2e.dashboard.walking import go
from websockets.asyncio.client import connect

from hermes.events import Bus

_FLOOD = 20_000
_COUNTED = """(wanted) => {
    const said = document.querySelector(".live-sum").innerText.replaceAll(",", "");
    const number = (words) => Number((said.match(new RegExp(`([0-9]+) ${words}`)) ?? ["", "0"])[1]);
    return number("events") + number("missed") >= wanted;
}"""


async def _open(page: Page) -> None:
    await go(page, "/live")
    await expect(page.locator(".live-head .tag")).to_have_text("live")


async def test_a_pattern_narrows_the_stream_and_pause_keeps_counting(
    page: Page, dashboard: Board
) -> None:
    ids = write_past(dashboard.hermes.home, time.time())
    await _open(page)
    rows = page.locator(".event-row")
    topics = page.locator(".event-topic")
    summary = page.locator(".live-sum")
    with past_of(dashboard.hermes.home, time.time()) as past:
        past.turn(
            ids["old"],
            "hello",
            *call("c9", "read_file", "text", path="a.txt"),
            reply("done"),
        )
        await expect(rows).to_have_count(6)
        await expect(summary).to_contain_text("6 events")
        await page.get_by_label("Pattern", exact=True).fill("agent.tool.*")
        await expect(topics).to_have_text(["agent.tool.started", "agent.tool.finished"])
        await rows.first.click()
        side = page.locator(".live-side")
        await expect(side).to_contain_text('"path\\": \\"a.txt')
        await side.get_by_role("link", name=ids["old"]).focus()
        await page.locator("h1").click()
        await page.keyboard.press("Space")
        await expect(page.get_by_role("button", name="Resume")).to_be_visible()
        past.turn(ids["old"], "again", *call("c10", "read_file", "text", path="b.txt"))
        await expect(summary).to_contain_text("paused, 2 more since")
        await expect(topics).to_have_count(2)
        await page.get_by_role("button", name="Resume").click()
        await expect(topics).to_have_count(4)
        await page.get_by_role("searchbox", name="Containing").fill("b.txt")
        await expect(topics).to_have_text(["agent.tool.started"])
    await page.get_by_role("tab", name="Topics").click()
    await expect(
        page.get_by_role("row", name=re.compile("agent.tool.finished 2 "))
    ).to_be_visible()
    await page.get_by_role("button", name="agent.tool.finished").click()
    await expect(page.get_by_label("Pattern", exact=True)).to_have_value(
        "agent.tool.finished"
    )
    await expect(page.get_by_label("Pattern", exact=True)).to_have_js_property(
        "spellcheck", value=False
    )
    await page.get_by_label("Pattern", exact=True).fill("agent.to*")
    await expect(page.get_by_role("alert")).to_contain_text(
        "agent.to* is not a pattern"
    )
    await page.get_by_role("button", name="Clear the stream").click()
    await expect(rows).to_have_count(0)


async def test_the_page_reads_patterns_as_the_bus_does(page: Page) -> None:
    patterns = [
        "**",
        "a",
        "a.*",
        "a.**",
        "*.b",
        "**.z",
        "a.**.z",
        "*.*",
        "a.*.**",
        "**.b.**",
        "a.**.b.**.z",
    ]
    topics = [
        "a",
        "b",
        "a.b",
        "a.z",
        "a.b.z",
        "b.a",
        "b.b",
        "a.x.b.y.z",
        "x.y.z",
        "a.b.c.d.z",
    ]
    there: list[list[str]] = []
    bus = Bus()
    for pattern in patterns:
        heard: list[str] = []
        bus.subscribe(pattern, lambda event, heard=heard: heard.append(event["type"]))
        there.append(heard)
    for topic in topics:
        bus.publish(topic, {})
    here = await page.evaluate(
        """async ([patterns, topics]) => {
            const { matcher } = await import("/static/views/live/pattern.js");
            return patterns.map((pattern) => topics.filter(matcher([pattern])));
        }""",
        [patterns, topics],
    )
    assert dict(zip(patterns, here, strict=True)) == dict(
        zip(patterns, there, strict=True)
    )


async def test_a_flood_is_counted_whole_and_kept_within_bounds(
    page: Page, dashboard: Board
) -> None:
    await _open(page)
    token = (
        await dashboard.hermes.run("dashboard", "--print-token", "--scope", "admin")
    ).out.strip()
    address = f"{dashboard.url.replace('http', 'ws', 1)}/api/pub?channel=flood"
    headers = {"Authorization": f"Bearer {token}"}
    async with connect(address, additional_headers=headers, proxy=None) as socket:
        for start in range(0, _FLOOD, 500):
            frames = [
                {
                    "_bus_relay": True,
                    "topic": f"tui.flood.{number % 7}",
                    "envelope": {"number": number, "text": "x" * 50},
                }
                for number in range(start, start + 500)
            ]
            await socket.send(msgspec.json.encode(frames).decode())
        await page.get_by_role("tab", name="Sources").click()
        await expect(page.locator(".live-side")).to_contain_text("flood")
    # What the server dropped for a slow reader is said in a `gap`, and counted as missed.
    await page.wait_for_function(_COUNTED, arg=_FLOOD)
    kept = await page.locator(".live-sum").inner_text()
    (last,) = re.findall(r"the last ([0-9,]+) are kept", kept)
    assert 0 < int(last.replace(",", "")) <= 5500
    assert await page.locator(".event-row").count() < 120
    await page.locator("h1").click()
    await page.keyboard.press("k")
    await expect(page.locator(".event-details")).to_contain_text("tui.flood.")
