"""Plugins on the page: read before they are enabled, alive with pages and widgets, gone without a trace."""

import asyncio
import re
import time
from pathlib import Path
from typing import Any

import msgspec
from playwright.async_api import Page, Route, expect
from tests.e2e.dashboard.conftest import PATIENCE, Board, Complaints
from tests.e2e.dashboard.past import call, past_of, reply, write_past
from tests.e2e.dashboard.walking import go

_GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "plugins.md"
_FILES = re.compile(
    r"^`dashboard/([\w.]+)`:\n\n```\w+\n(.*?)^```", re.DOTALL | re.MULTILINE
)
_LISTENER = """
export default function mount(element, { api, events, html, ui, kind }) {
  const seen = [];
  const draw = () => ui.render(html`<p>${kind}: ${seen.join(" ")}</p>`, element);
  draw();
  events.subscribe("agent.tool.started", (event) => { seen.push(event.name); draw(); });
  window.left = false;
  return () => { window.left = true; };
}
"""


def _write(board: Board, name: str, files: dict[str, str], **manifest: Any) -> Path:
    folder = board.hermes.home / "plugins" / name / "dashboard"
    folder.mkdir(parents=True)
    said = {"name": name, "label": name.title(), "version": "1", **manifest}
    (folder / "manifest.json").write_bytes(msgspec.json.encode(said))
    for file, text in files.items():
        (folder / file).write_text(text)
    return folder


def write_tally(board: Board) -> Path:
    """The plugin of the guide, word for word."""
    folder = board.hermes.home / "plugins" / "tally" / "dashboard"
    folder.mkdir(parents=True)
    for name, text in _FILES.findall(_GUIDE.read_text()):
        (folder / name).write_text(text)
    return folder


async def _enable(page: Page, name: str) -> None:
    row = page.locator(f'[data-plugin-row="{name}"]')
    await row.get_by_role("button", name=re.compile("^Review")).click()
    await page.get_by_role("button", name="Enable exactly this").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_the_plugin_of_the_guide_from_enabling_to_its_end(
    page: Page, dashboard: Board, complaints: Complaints
) -> None:
    ids = write_past(dashboard.hermes.home, time.time())
    folder = write_tally(dashboard)
    route = f"{dashboard.url}/api/plugins/tally/counts"
    rail = page.get_by_role("navigation", name="Views", exact=True)
    await go(page, "/plugins")
    row = page.locator('[data-plugin-row="tally"]')
    await expect(row).to_have_attribute("data-state", "off")
    assert (await page.request.get(route)).status == 404
    await row.get_by_role("button", name="Review and enable").click()
    dialog = page.get_by_role("dialog", name="Enable tally?")
    await expect(dialog).to_contain_text("calls.update([event")
    await expect(dialog).to_contain_text("3 files")
    await dialog.get_by_role("button", name="Enable exactly this").click()
    await expect(row).to_have_attribute("data-state", "enabled")
    assert await (await page.request.get(route)).json() == {}
    with past_of(dashboard.hermes.home, time.time()) as past:
        past.turn(
            ids["old"],
            "look",
            *call("c8", "read_file"),
            *call("c9", "read_file"),
            reply("seen"),
        )
    await page.wait_for_function(
        "async (at) => (await (await fetch(at)).json()).read_file === 2", arg=route
    )
    await rail.get_by_role("link", name="Tally").click()
    await expect(page.locator('[data-plugin="tally"]')).to_have_text("read_file: 2")
    await expect(rail.get_by_role("link", name="Tally")).to_have_attribute(
        "aria-current", "page"
    )

    (folder / "plugin_api.py").write_text(
        "raise SystemExit('not what you agreed to')\n"
    )
    await go(page, "/plugins")
    await expect(row).to_have_attribute("data-state", "changed")
    await expect(rail.get_by_role("link", name="Tally")).to_have_count(0)
    assert (await page.request.get(route)).status == 404
    folder.joinpath("plugin_api.py").unlink()
    for name, text in _FILES.findall(_GUIDE.read_text()):
        (folder / name).write_text(text + ("\n" if name.endswith(".js") else ""))
    await page.get_by_role("button", name="Refresh").click()
    await _enable(page, "tally")
    await expect(row).to_have_attribute("data-state", "enabled")
    await row.get_by_role("button", name="Disable").click()
    await expect(row).to_have_attribute("data-state", "off")
    await expect(rail.get_by_role("link", name="Tally")).to_have_count(0)
    assert (await page.request.get(route)).status == 404
    assert (
        await page.request.get(f"{dashboard.url}/plugins/tally/tally.js")
    ).status == 404


async def test_a_list_that_comes_late_does_not_hide_what_was_enabled_meanwhile(
    page: Page, dashboard: Board
) -> None:
    _write(dashboard, "listener", {"p.js": _LISTENER}, entry="p.js")
    await go(page, "/plugins")
    row = page.locator('[data-plugin-row="listener"]')
    await expect(row).to_have_attribute("data-state", "off")
    held, enabled = asyncio.Event(), asyncio.Event()

    async def late(route: Route) -> None:
        answer = await route.fetch()  # as the list is now, before anything is enabled
        held.set()
        await enabled.wait()
        await route.fulfill(response=answer)

    await page.route("**/api/plugins", late)
    await page.get_by_role("button", name="Refresh").click()
    await asyncio.wait_for(held.wait(), PATIENCE)
    await _enable(page, "listener")
    await expect(row).to_have_attribute("data-state", "enabled")
    async with page.expect_response("**/api/plugins"):
        enabled.set()
    await page.evaluate(
        "async () => (await fetch('/api/status')).json()"
    )  # by now the page has handled it
    assert await row.get_attribute("data-state") == "enabled"
    await page.unroute_all(behavior="wait")


async def test_what_changed_while_it_was_read_is_not_enabled(
    page: Page, dashboard: Board, complaints: Complaints
) -> None:
    folder = _write(
        dashboard,
        "shifty",
        {"page.js": "export default () => {}"},
        entry="page.js",
        tab=True,
    )
    await go(page, "/plugins")
    await page.locator('[data-plugin-row="shifty"]').get_by_role("button").click()
    await expect(page.get_by_role("dialog")).to_contain_text("page.js")
    (folder / "page.js").write_text("export default () => { window.owned = true }")
    await page.get_by_role("button", name="Enable exactly this").click()
    await expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text(
        "changed in the meantime"
    )
    await page.get_by_role("button", name="Not now").click()
    await expect(page.locator('[data-plugin-row="shifty"]')).to_have_attribute(
        "data-state", "off"
    )
    complaints.expect("400")


async def test_one_that_fails_is_shown_and_harms_nothing(
    page: Page, dashboard: Board, complaints: Complaints
) -> None:
    _write(
        dashboard,
        "throws",
        {"p.js": "export default () => { throw new Error('no coffee') }"},
        entry="p.js",
        tab=True,
    )
    _write(
        dashboard,
        "later",
        {"p.js": "export default async () => { await 0; throw new Error('too late') }"},
        entry="p.js",
    )
    _write(dashboard, "nomod", {"api.py": "import nothing_like_this\n"}, api="api.py")
    _write(dashboard, "listener", {"p.js": _LISTENER}, entry="p.js")
    await go(page, "/plugins")
    for name in ("throws", "later", "nomod", "listener"):
        await _enable(page, name)
    await expect(page.locator('[data-plugin-row="nomod"]')).to_have_attribute(
        "data-state", "failed"
    )
    await expect(page.locator('[data-plugin-row="nomod"]')).to_contain_text(
        "No module named 'nothing_like_this'"
    )
    await expect(page.locator(".widget", has_text="Later")).to_contain_text(
        "Error: too late"
    )
    await expect(page.locator(".widget", has_text="Listener")).to_contain_text(
        "widget:"
    )
    await go(page, "/plugins/throws")
    await expect(page.get_by_role("alert")).to_contain_text("Error: no coffee")
    await go(page, "/plugins/nomod")
    await expect(
        page.get_by_role("heading", name="Nomod is not running")
    ).to_be_visible()
    await page.get_by_role("link", name="Go to plugins").click()
    await expect(page.locator(".widget", has_text="Listener")).to_contain_text(
        "widget:"
    )
    complaints.expect("no coffee|too late")


async def test_a_page_hears_the_bus_and_leaves_nothing_behind(
    page: Page, dashboard: Board
) -> None:
    ids = write_past(dashboard.hermes.home, time.time())
    _write(dashboard, "listener", {"p.js": _LISTENER}, entry="p.js", tab=True)
    await go(page, "/plugins")
    await _enable(page, "listener")
    feeds = f"async (wanted) => (await (await fetch('{dashboard.url}/api/status')).json()).feeds.open === wanted"
    await page.wait_for_function(feeds, arg=1)  # that of the page itself
    await go(page, "/plugins/listener")
    await page.wait_for_function(feeds, arg=2)
    with past_of(dashboard.hermes.home, time.time()) as past:
        past.turn(ids["old"], "look", *call("c8", "read_file"), *call("c9", "terminal"))
    await expect(page.locator('[data-plugin="listener"]')).to_have_text(
        "page: read_file terminal"
    )
    await go(page, "/settings")
    await page.wait_for_function("() => window.left === true")
    await page.wait_for_function(feeds, arg=1)
