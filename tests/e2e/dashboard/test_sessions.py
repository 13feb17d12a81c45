"""Sessions on the page: searching, the timeline, renaming, deleting, and what is seen of those that run."""

import re
import time

import pytest
from playwright.async_api import Page, expect
from tests.e2e.dashboard.conftest import Board, Complaints
from tests.e2e.dashboard.past import past_of, reply, write_past
from tests.e2e.dashboard.walking import go


@pytest.fixture(scope="module")
def ids(shared: Board) -> dict[str, str]:
    """A past on the shared dashboard, for tests that change nothing of it."""
    return write_past(shared.hermes.home, time.time())


async def test_a_search_leads_to_the_place_in_the_timeline(
    visit: Page, ids: dict[str, str]
) -> None:
    await go(visit, "/sessions")
    await expect(visit.locator(".session-row")).to_have_count(
        3
    )  # the child is not among them
    await visit.keyboard.press("/")
    await visit.keyboard.type("eleven lines")
    hit = visit.locator(".hit")
    await expect(hit).to_have_count(1)
    await expect(hit.locator("mark")).to_have_text(["eleven", "lines"])
    await visit.keyboard.press("ArrowDown")
    await visit.keyboard.press("Enter")
    await expect(visit).to_have_url(re.compile(rf"#/sessions/{ids['main']}\?at=\d+"))
    details = visit.get_by_role("region", name="Details")
    await expect(details).to_contain_text("The release **2.4** is tagged")
    await expect(details.locator("mark")).to_have_text(["eleven", "lines"])
    await visit.go_back()
    await expect(visit.get_by_role("searchbox")).to_have_value("eleven lines")
    await visit.get_by_role("searchbox").fill("nothing of the kind")
    await expect(visit.get_by_role("heading", name="Nothing found")).to_be_visible()


async def test_filters_narrow_the_list_and_stay_in_the_address(
    visit: Page, ids: dict[str, str], complaints: Complaints
) -> None:
    await go(visit, "/sessions")
    titles = visit.locator(".session-title")
    await expect(titles).to_have_text(
        ["Release 2.4", "Nightly report", "Compare three date libraries"]
    )
    await visit.get_by_label("Cost").select_option("over $0.01")
    await expect(titles).to_have_text(["Release 2.4"])
    await visit.get_by_role("button", name="Clear filters").click()
    await visit.get_by_label("Started in").select_option("telegram")
    await expect(titles).to_have_text(["Nightly report"])
    await visit.reload()
    await expect(titles).to_have_text(["Nightly report"])
    await visit.get_by_label("Last used").select_option("Last 24 hours")
    await expect(visit.get_by_role("heading", name="No matches")).to_be_visible()
    complaints.expect(
        "preloaded using link preload"
    )  # the chat's style, on a page that began elsewhere


async def test_a_session_at_work_is_seen_and_found(
    page: Page, dashboard: Board
) -> None:
    ids = write_past(dashboard.hermes.home, time.time())
    await go(page, "/sessions")
    await expect(page.locator(".session-row")).to_have_count(3)
    with past_of(dashboard.hermes.home, time.time()) as past:
        lease = past.app.store.leases.acquire(ids["old"])
        past.turn(ids["old"], "And a fourth one?", reply("There is no fourth."))
        row = page.locator(f'[data-session="{ids["old"]}"]')
        await expect(row.get_by_text("running")).to_be_visible()
        await page.get_by_label("State").select_option("Running")
        await expect(page.locator(".session-row")).to_have_count(1)
        past.app.store.leases.release(lease)


async def test_what_a_step_holds_keeps_its_height_beside_the_row_as_json(
    visit: Page, ids: dict[str, str]
) -> None:
    await go(visit, f"/sessions/{ids['main']}?at=10")
    details = visit.get_by_role("region", name="Details")
    code = details.locator(".code")
    await details.get_by_text("The row as JSON").click()
    await expect(code.last).to_contain_text("agent.approval.requested")
    squeezed = (
        "list => list.filter((one) => one.scrollHeight > one.clientHeight + 1).length"
    )
    assert await code.count() == 2
    assert await code.evaluate_all(squeezed) == 0


async def test_a_timeline_is_scrubbed_stepped_and_played(
    visit: Page, ids: dict[str, str]
) -> None:
    await go(visit, f"/sessions/{ids['main']}")
    slider = visit.get_by_role("slider", name="Position in the session")
    details = visit.get_by_role("region", name="Details")
    spent = visit.locator(".spent")
    head = visit.locator(".timeline-head")
    await expect(slider).to_have_attribute(
        "aria-valuetext", re.compile("^23 of 23, The turn was stopped")
    )
    await expect(details).to_contain_text("Stopped by the user.")
    await expect(spent).to_have_text("$0.110 · 10,840 tokens so far")
    await expect(
        head.get_by_role("link", name="Read the changelog of kestrel")
    ).to_be_visible()
    await visit.keyboard.press("Home")
    await expect(slider).to_have_attribute(
        "aria-valuetext", re.compile("^1 of 23, Session started")
    )
    await expect(spent).to_have_text("$0 · 0 tokens so far")
    await slider.fill("9")
    await expect(slider).to_have_attribute(
        "aria-valuetext", re.compile("^10 of 23, Approval requested")
    )
    await expect(details).to_contain_text("git push --tags")
    await expect(details).to_contain_text("it needs the network")
    await expect(spent).to_have_text("$0.040 · 5,420 tokens so far")
    await slider.blur()
    await visit.keyboard.press("ArrowRight")
    await expect(details.get_by_role("heading", name="Allowed once")).to_be_visible()
    await expect(visit).to_have_url(re.compile(r"at=11"))
    await visit.keyboard.press("Shift+ArrowRight")
    await expect(details.get_by_role("heading", name="Turn started")).to_be_visible()
    await visit.get_by_role("button", name=re.compile("^Note")).click()  # hides them
    await expect(slider).to_have_attribute("max", "17")
    await visit.keyboard.press("Home")
    await visit.get_by_label("Speed").select_option("64×")
    await visit.get_by_role("button", name="Play").click()
    await expect(slider).to_have_attribute("aria-valuetext", re.compile("^18 of 18"))
    await expect(
        visit.get_by_role("button", name="Play")
    ).to_be_visible()  # it rests at the end


async def test_a_timeline_grows_with_its_session(page: Page, dashboard: Board) -> None:
    ids = write_past(dashboard.hermes.home, time.time())
    await go(page, f"/sessions/{ids['old']}")
    slider = page.get_by_role("slider", name="Position in the session")
    await expect(slider).to_have_attribute(
        "aria-valuetext", re.compile("^6 of 6, The turn ended")
    )
    with past_of(dashboard.hermes.home, time.time()) as past:
        past.turn(
            ids["old"], "And a fourth one?", reply("There is no fourth.", cost=0.5)
        )
    await expect(slider).to_have_attribute(
        "aria-valuetext", re.compile("^10 of 10, The turn ended")
    )
    await expect(page.locator(".timeline-sum")).to_contain_text("$0.502")


async def test_a_session_is_renamed_exported_and_deleted(
    page: Page, dashboard: Board
) -> None:
    ids = write_past(dashboard.hermes.home, time.time())
    await go(page, "/sessions")
    row = page.locator(f'[data-session="{ids["main"]}"]')
    await row.locator(".session-main").focus()
    await page.keyboard.press("r")
    await page.get_by_role("textbox", name="Name").fill("The great release")
    await page.keyboard.press("Enter")
    await expect(row.locator(".session-title")).to_have_text("The great release")
    address = f"{dashboard.url}/api/sessions"
    assert (await (await page.request.get(f"{address}/{ids['main']}")).json())[
        "session"
    ]["title"] == "The great release"
    async with page.expect_download() as download:
        await row.get_by_role("link", name="Export").click()
    exported = await (await download.value).path()
    assert "git push --tags" in exported.read_text()
    await row.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog", name="Delete “The great release”?")
    await expect(dialog).to_contain_text("permanently deletes 9 messages in 2 turns")
    await expect(dialog).to_contain_text("$0.110")
    await dialog.get_by_role("button", name="Cancel").click()
    assert (await page.request.get(f"{address}/{ids['main']}")).status == 200
    await row.locator(".session-main").focus()
    await page.keyboard.press("Delete")
    await dialog.get_by_role("button", name="Delete session").click()
    await expect(row).to_have_count(0)
    assert (await page.request.get(f"{address}/{ids['main']}")).status == 404
    assert (await page.request.get(f"{address}/{ids['old']}")).status == 200
