"""The frame of the page: it loads, it moves between views, and it knows when it is signed out."""

import re

import pytest
from playwright.async_api import Page, expect
from tests.e2e.dashboard.conftest import Board, Complaints
from tests.e2e.dashboard.walking import go


@pytest.fixture
def dashboard(shared: Board) -> Board:
    return shared


@pytest.fixture
def page(visit: Page) -> Page:
    return visit


async def test_it_loads_without_a_complaint(page: Page, dashboard: Board) -> None:
    await expect(page.locator("nav.rail .place")).not_to_have_count(0)
    await expect(page.locator(".connection")).to_have_class(re.compile("live"))
    answer = await page.request.get(dashboard.url)
    assert "script-src 'self' 'sha256-" in answer.headers["content-security-policy"]
    outside = await page.evaluate(
        "performance.getEntriesByType('resource').map(one => one.name).filter(one => !one.startsWith(location.origin))"
    )
    assert outside == []


async def test_an_inline_script_is_stopped_by_the_policy(
    page: Page, complaints: Complaints
) -> None:
    """What the test above would see: the console says so when the policy steps in."""
    await page.evaluate(
        "() => { const one = document.createElement('script'); one.textContent = 'window.ran = true';"
        " document.body.append(one); }"
    )
    assert await page.evaluate("window.ran") is None
    assert any("Content Security Policy" in one for one in complaints.all)
    complaints.expect("Content Security Policy")


async def test_keys_go_to_views_and_open_help_and_palette(page: Page) -> None:
    await expect(page.get_by_role("combobox", name="Message")).to_be_focused()
    keys = page.get_by_role("dialog", name="Keyboard shortcuts")
    await page.keyboard.press("Control+/")
    await expect(keys).to_contain_text("Open the command palette")
    await expect(keys).not_to_contain_text(
        "Go to Sessions"
    )  # in the chat those letters are words
    await page.keyboard.press("Escape")
    await go(page, "/settings")
    await expect(page.get_by_role("heading", name="Settings", level=1)).to_be_visible()
    await page.keyboard.press("?")
    await expect(keys).to_contain_text("Go to Sessions")
    await keys.get_by_role("switch", name="Single-key shortcuts").uncheck()
    await expect(keys).not_to_contain_text("Go to Sessions")
    await page.keyboard.press("Escape")
    await page.reload()
    await expect(page.get_by_role("heading", name="Settings", level=1)).to_be_visible()
    await page.keyboard.type("?gs/")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(page).to_have_url(re.compile("#/settings"))
    await expect(page.get_by_label("Search the settings")).not_to_be_focused()
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox", name="Find a command").fill("go to chat")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(page).to_have_url(re.compile("#/chat"))


async def test_the_theme_is_kept(page: Page) -> None:
    await page.get_by_role("button", name="Theme: auto").click()
    await expect(page.locator("html")).to_have_attribute("data-theme", "light")
    await page.get_by_role("button", name="Theme: light").click()
    await page.reload()
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    await page.get_by_role("button", name="Theme: dark").click()
    await page.reload()
    await expect(page.locator("html")).to_have_attribute("data-theme", "contrast")
    await page.get_by_role("button", name="Theme: high contrast").click()
    await page.emulate_media(contrast="more")
    await page.reload()
    await expect(page.locator("html")).to_have_attribute("data-theme", "contrast")


async def test_a_browser_that_is_no_longer_known_is_told_how_to_get_in(
    page: Page, dashboard: Board, complaints: Complaints
) -> None:
    await dashboard.hermes.run("dashboard", "--sign-out")
    dashboard.sign_in_with(await dashboard.new_link())
    await page.evaluate("fetch('/api/auth').catch(() => {})")
    await page.keyboard.press("Control+k")  # asks for sessions
    await expect(page.get_by_role("heading", name="You are signed out")).to_be_visible()
    await expect(page.locator("body")).to_contain_text("hermes dashboard --link")
    complaints.expect("401")


async def test_a_view_that_could_not_be_loaded_can_be_tried_again(
    page: Page, dashboard: Board, complaints: Complaints
) -> None:
    await page.route("**/live.js", lambda route: route.abort())
    await page.goto(f"{dashboard.url}/#/live")
    await expect(page.get_by_role("alert")).to_contain_text("Live could not be shown.")
    await page.unroute("**/live.js")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("heading", name="Live", exact=True)).to_be_visible()
    complaints.expect("ERR_FAILED")
