"""Finding sessions in the drawer of the chat: groups by date, pins, folders, marks, several at once, documents."""

import re
import time
import zipfile

from playwright.async_api import Page, expect
from tests.e2e.dashboard.chatting import say
from tests.e2e.dashboard.conftest import Board
from tests.e2e.dashboard.past import past_of, reply, write_past
from tests.e2e.dashboard.test_access import found_by_axe
from tests.e2e.dashboard.walking import go

from hermes.schema.events import TurnEnded
from hermes.schema.messages import Usage
from hermes.testing.scripted_responses import ScriptedResponse, ServerFault


async def test_sessions_are_filed_found_and_exported_in_the_drawer(  # noqa: PLR0915 - one page load for all of it
    page: Page, dashboard: Board
) -> None:
    ids = write_past(dashboard.hermes.home, time.time())
    drawer = page.get_by_role("complementary", name="Sessions")
    groups = drawer.locator("section")
    await expect(groups).to_have_count(2)  # the older two are in one group
    await expect(drawer.get_by_role("heading", name="Previous 7 days")).to_be_visible()

    async def act(title: str, action: str) -> None:
        row = drawer.locator(".drawer-item", has_text=title)
        await row.hover()
        await row.get_by_role("button", name=f"Actions for {title}").click()
        await page.get_by_role("dialog").get_by_role("button", name=action).click()

    await act("Compare three", "Pin to the top")
    pinned = drawer.get_by_role("region", name="Pinned")
    await expect(pinned).to_contain_text("Compare three date libraries")
    await act("Nightly report", "Move to a folder")
    await page.get_by_label("Folder", exact=True).fill("Reports")
    await page.keyboard.press("Enter")
    await drawer.get_by_label("Show").select_option("Reports")
    await expect(drawer.locator(".drawer-item")).to_have_count(1)
    await drawer.get_by_label("Show").select_option("All sessions")
    await page.reload()
    await expect(pinned.locator(".drawer-item")).to_have_count(1)

    # Titles and words of all sessions, by the server; a mark for what came while nobody looked.
    search = drawer.get_by_role("searchbox")
    await search.fill("kestrel")
    await expect(drawer.locator(".drawer-item")).to_have_count(1)
    await search.fill("kindest")
    await expect(drawer.locator(".drawer-snippet")).to_have_count(1)
    await search.fill("")
    await go(page, f"/chat/{ids['main']}")
    await expect(page.get_by_text("is tagged")).to_be_visible()
    await expect(drawer.locator(".drawer-item .current")).to_contain_text("Release 2.4")
    await go(page, "/chat")
    with past_of(dashboard.hermes.home, time.time()) as other_process:
        other_process.turn(ids["main"], "One more thing", reply("Done."))
    unread = drawer.get_by_role("img", name="unread")
    await expect(unread).to_have_count(1)
    await expect(page).to_have_title(re.compile("^• "))
    await go(page, f"/chat/{ids['main']}")
    await expect(unread).to_have_count(0)
    await expect(page).to_have_title(re.compile("^Release"))

    # Several at once: documents in one file, the archive, and a deletion that asks.
    await drawer.get_by_role("button", name="Select").click()
    await drawer.get_by_role("checkbox", name=re.compile("Compare three")).check()
    await drawer.get_by_role("checkbox", name=re.compile("Nightly report")).check()
    tools = drawer.get_by_role("toolbar", name="Selected sessions")
    await tools.get_by_role("button", name="Export").click()
    async with page.expect_download() as download:
        await page.get_by_role("dialog").get_by_role("button", name="HTML").click()
    with zipfile.ZipFile(await (await download.value).path()) as archive:
        assert len(archive.namelist()) == 2
    await tools.get_by_role("button", name="Archive").click()
    await expect(drawer.locator(".drawer-item")).to_have_count(1)
    await drawer.get_by_label("Show").select_option("Archived")
    await expect(drawer.locator(".drawer-item")).to_have_count(2)
    await drawer.get_by_role("button", name="Select").click()
    await drawer.get_by_role("checkbox", name=re.compile("Nightly report")).check()
    await tools.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog", name="Delete 1 session?")
    await expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    await dialog.get_by_role("button", name="Delete 1 session").click()
    await expect(drawer.locator(".drawer-item")).to_have_count(1)


async def test_costs_agents_and_high_contrast_can_be_read(
    page: Page, dashboard: Board
) -> None:
    ids = write_past(dashboard.hermes.home, time.time())
    spent = Usage(input_tokens=4_800, output_tokens=620, cost_usd=0.02)
    with past_of(dashboard.hermes.home, time.time()) as past:
        ended = TurnEnded(reason="done", usage=spent)
        past.turn(ids["main"], "Once more", reply("One."), reply("Two."), end=ended)
    agents = dashboard.hermes.home / "agents"
    agents.mkdir(exist_ok=True)
    (agents / "poet.md").write_text("---\ndescription: Writes verse\n---\nIn rhymes.\n")
    await page.evaluate("localStorage.setItem('hermes.theme', 'contrast')")
    await go(page, f"/chat/{ids['main']}")
    await page.reload()
    await page.get_by_role("button", name="cost", exact=True).click()
    cost = page.get_by_role("dialog", name="Cost of this turn")
    await expect(cost).to_contain_text("$0.020 for 2 model calls")
    await expect(cost).to_contain_text("79% of them came from the provider's cache")
    await expect(cost.locator("tbody tr")).to_have_count(2)
    assert await found_by_axe(page) == []
    await page.keyboard.press("Escape")
    assert await found_by_axe(page) == []  # the chat with its drawer
    await go(page, "/settings/usage")
    surfaces = page.get_by_role("region", name="Usage by surface")
    await expect(surfaces).to_contain_text("dashboard")
    await go(page, "/settings/agents")
    await page.get_by_role("button", name="poet").click()
    await expect(page.get_by_role("dialog", name="poet")).to_contain_text("In rhymes.")
    assert await found_by_axe(page) == []


async def test_the_list_over_a_phone_s_chat_takes_the_focus_and_gives_it_back(
    page: Page, dashboard: Board
) -> None:
    slow = ScriptedResponse(
        text="on and on " * 40, delay=0.05, fault=ServerFault(hang="middle")
    )
    dashboard.says(slow)
    await page.set_viewport_size({"width": 390, "height": 740})
    await say(page, "begin")
    await expect(page.locator(".message.assistant.live")).to_contain_text("on and on")
    opener = page.get_by_role("button", name="Sessions", exact=True)
    await opener.focus()
    await page.keyboard.press("Enter")
    drawer = page.get_by_role("complementary", name="Sessions")
    await expect(drawer.get_by_role("button", name="Close the list")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(drawer).to_be_hidden()
    await expect(opener).to_be_focused()
    await expect(page.locator(".message.assistant.live")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_text("Stopped.")).to_be_visible()


async def test_escape_in_a_dialog_of_the_list_closes_only_the_dialog(
    page: Page, dashboard: Board
) -> None:
    write_past(dashboard.hermes.home, time.time())
    await page.set_viewport_size({"width": 390, "height": 740})
    await page.get_by_role("button", name="Sessions", exact=True).click()
    drawer = page.get_by_role("complementary", name="Sessions")
    actions = drawer.get_by_role("button", name=re.compile("Actions for")).first
    await actions.focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_be_hidden()
    await expect(drawer.get_by_role("button", name="Close the list")).to_be_visible()
    await expect(actions).to_be_focused()
