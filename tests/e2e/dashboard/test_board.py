"""The board on the page: cards are made, moved by hand and by keys, changed in the drawer, and follow other processes."""

import asyncio
import re
from uuid import uuid4

import msgspec
import pytest
from playwright.async_api import Locator, Page, expect
from tests.e2e.dashboard.conftest import Board, Complaints
from tests.e2e.dashboard.walking import go

from hermes.app import build
from hermes.app.boards.board_service import Boards
from hermes.app.boards.card_draft import CardDraft
from hermes.schema.boards import Card
from hermes.settings import Home, Settings
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall


@pytest.fixture
def dashboard(shared: Board) -> Board:
    return shared


@pytest.fixture
def page(visit: Page) -> Page:
    return visit


def keep_ready(dashboard: Board, *, most: int = 0) -> None:
    """Cards that are ready stay there; with `most`, so many run."""
    (dashboard.hermes.home / "config.yaml").write_text(
        f"model:\n  default: gpt-5\nboards:\n  max_running: {most}\n"
    )


def make(dashboard: Board, *drafts: CardDraft) -> tuple[str, list[Card]]:
    """A board of its own with cards; returns its short name, and the cards."""
    slug = f"b-{uuid4().hex[:8]}"
    with build(Settings(), Home(dashboard.hermes.home)) as app:
        boards = Boards(app)
        boards.create_board(slug, slug=slug)
        return slug, [boards.create(slug, draft) for draft in drafts]


def column(page: Page, status: str) -> Locator:
    return page.locator(f'[data-status="{status}"]')


async def test_a_card_is_made_and_moved_by_drag_and_by_keys(
    page: Page, dashboard: Board, complaints: Complaints
) -> None:
    keep_ready(dashboard)
    slug, _ = make(dashboard)
    await go(page, f"/board/{slug}")
    await expect(page.get_by_role("heading", name="No cards yet")).to_be_visible()
    await page.keyboard.press("n")
    await page.keyboard.type("Fix the login")
    await page.locator("[name=start]").select_option("hold")
    await page.get_by_label("Priority", exact=True).fill("5")
    await page.get_by_label("Labels", exact=True).fill("auth, flaky")
    await page.get_by_text("Workspace, limits and time").click()
    await page.get_by_label("Budget for all runs").fill("lots")
    await page.get_by_role("button", name="Create card").click()
    await expect(page.get_by_role("alert")).to_contain_text("lots")
    complaints.expect("400")
    await page.get_by_label("Budget for all runs").fill("$2")
    await page.get_by_label("Time limit of a run").fill("2h")
    await page.get_by_role("button", name="Create card").click()

    card = page.locator(".board-card")
    await expect(column(page, "todo").locator(card)).to_contain_text("P5authflaky")
    await card.drag_to(column(page, "ready"))
    await expect(column(page, "ready").locator(card)).to_contain_text(
        "0 of 0 cards run already"
    )
    await card.drag_to(column(page, "running"))
    await expect(page.locator(".toast")).to_contain_text(
        "Cards are started by the dispatcher."
    )
    complaints.expect("409|400")
    await expect(column(page, "ready").locator(card)).to_have_count(1)

    link = card.get_by_role("link")
    await link.focus()
    await page.keyboard.press("Alt+ArrowLeft")
    await expect(column(page, "todo").locator(card)).to_have_count(1)
    await expect(link).to_be_focused()
    await page.keyboard.press("m")
    await page.get_by_role("button", name="Blocked").click()
    await page.keyboard.type("no key")
    await page.keyboard.press("Enter")
    await expect(column(page, "blocked").locator(card)).to_contain_text(
        "needs input: no key"
    )
    shown = await dashboard.hermes.run("kanban", "list", "--board", slug, "--json")
    (made,) = msgspec.json.decode(shown.out)["cards"]
    assert (made["status"], made["priority"]) == ("blocked", 5)


async def test_the_board_follows_other_processes(page: Page, dashboard: Board) -> None:
    keep_ready(dashboard)
    slug, (first, second) = make(
        dashboard,
        CardDraft(title="First", held=True),
        CardDraft(title="Second", held=True),
    )
    await go(page, f"/board/{slug}")
    await expect(column(page, "todo").locator(".board-card")).to_have_count(2)
    await dashboard.hermes.run("kanban", "move", first.id, "review")
    await expect(column(page, "review")).to_contain_text("First")
    await expect(column(page, "todo").locator(".board-count")).to_have_text("1")
    await page.get_by_label("Search cards").fill("second")
    await expect(page.locator(".board-card")).to_have_text([re.compile("Second")])
    await go(page, f"/board/{slug}/{second.id}")
    drawer = page.get_by_role("dialog")
    await expect(drawer).to_contain_text("It has not run yet.")
    dashboard.says(
        ScriptedResponse(
            calls=(ServedCall("kanban_complete", '{"summary": "All green."}'),)
        ),
        "Bye.",
    )
    keep_ready(dashboard, most=1)
    await drawer.get_by_role("button", name="Run now").click()
    run = drawer.locator(".board-run")
    await expect(run).to_contain_text("completed")
    await expect(run).to_contain_text("All green.")
    await expect(drawer.get_by_text("Result: All green.")).to_be_visible()
    await run.get_by_role("link", name="Timeline").click()
    await expect(page).to_have_url(re.compile("#/sessions/"))
    await asyncio.to_thread(keep_ready, dashboard)


async def test_a_card_is_changed_in_its_drawer(page: Page, dashboard: Board) -> None:
    keep_ready(dashboard)
    slug, (first, second) = make(
        dashboard,
        CardDraft(title="Write the notes", held=True),
        CardDraft(title="Build it", held=True),
    )
    await go(page, f"/board/{slug}")
    await page.get_by_role("link", name="Write the notes").click()
    drawer = page.get_by_role("dialog")
    await drawer.get_by_label("Title").fill("Write the release notes")
    await page.keyboard.press("Enter")
    await expect(
        drawer.get_by_role("heading", name="Write the release notes")
    ).to_be_visible()
    await drawer.get_by_role("button", name="Edit details").click()
    await drawer.locator("textarea").first.fill("For **users**.")
    await drawer.get_by_role("button", name="Save details").click()
    await expect(drawer.locator(".board-body strong")).to_have_text("users")
    await drawer.get_by_label("Card to wait for").fill(second.id)
    await page.keyboard.press("Enter")
    await expect(drawer.locator(".board-chip")).to_contain_text("Build it")
    await drawer.get_by_label("Comment", exact=True).fill("Mind the *names*.")
    await drawer.get_by_role("button", name="Add comment").click()
    await expect(drawer.locator(".board-comment em")).to_have_text("names")
    await drawer.locator("input[type=file]").set_input_files(
        [{"name": "names.txt", "mimeType": "text/plain", "buffer": b"Ada"}]
    )
    file = drawer.get_by_role("link", name="names.txt")
    async with page.expect_download() as waiting:
        await file.click()
    assert (await (await waiting.value).path()).read_bytes() == b"Ada"
    await drawer.get_by_text("History").click()
    await expect(drawer.locator(".board-history")).to_contain_text("changed title")
    details = await dashboard.hermes.run("kanban", "show", first.id, "--json")
    found = msgspec.json.decode(details.out)
    assert found["card"]["title"] == "Write the release notes"
    assert [one["id"] for one in found["parents"]] == [second.id]


async def test_cards_are_filtered_by_words_label_assignee_and_archive(
    page: Page, dashboard: Board
) -> None:
    keep_ready(dashboard)
    slug, (_, _, old) = make(
        dashboard,
        CardDraft(title="Fix the login", held=True, labels=("auth",), assignee="ada"),
        CardDraft(title="Fix the build", held=True, labels=("ci",)),
        CardDraft(title="Fix the past", held=True),
    )
    await dashboard.hermes.run("kanban", "archive", old.id)
    await go(page, f"/board/{slug}")
    titles = page.locator(".board-card-title")
    await expect(titles).to_have_text(["Fix the login", "Fix the build"])
    await page.get_by_label("All labels").select_option("ci")
    await expect(titles).to_have_text(["Fix the build"])
    await expect(column(page, "todo").locator(".board-count")).to_have_text("1")
    await page.get_by_label("All labels").select_option("")
    await page.get_by_label("All assignees").select_option("ada")
    await expect(titles).to_have_text(["Fix the login"])
    await page.get_by_label("Search cards").fill("build")
    await expect(titles).to_have_count(0)
    await page.get_by_role("button", name="Show all cards").click()
    await expect(titles).to_have_count(2)
    await expect(page.get_by_label("Search cards")).to_have_value("")
    await page.get_by_label("Search cards").fill("build")
    await expect(titles).to_have_text(["Fix the build"])
    await page.get_by_label("Search cards").fill("")
    await page.get_by_label("Archived").check()
    await expect(column(page, "archived")).to_contain_text("Fix the past")
    await expect(titles).to_have_count(3)


async def test_a_refusal_is_shown_with_its_reason(
    page: Page, dashboard: Board, complaints: Complaints
) -> None:
    keep_ready(dashboard)
    slug, (above,) = make(dashboard, CardDraft(title="Before", held=True))
    with build(Settings(), Home(dashboard.hermes.home)) as app:
        below = Boards(app).create(slug, CardDraft(title="After", parents=(above.id,)))
    await go(page, f"/board/{slug}")
    card = column(page, "todo").locator(f'[data-card="{below.id}"]')
    await expect(card).to_contain_text("waits for “Before”")
    await card.drag_to(column(page, "ready"))
    await expect(page.locator(".toast.bad")).to_contain_text(
        "“After” waits for “Before”. Complete or unlink them first."
    )
    complaints.expect("409|400|403")
    await expect(card).to_be_visible()
    await page.get_by_role("link", name="After").click()
    drawer = page.get_by_role("dialog")
    await drawer.get_by_role("button", name="Run now").click()
    await expect(drawer.get_by_role("alert")).to_contain_text("waits for “Before”")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("link", name="After")).to_be_focused()


async def test_a_long_column_is_loaded_and_drawn_in_parts(
    page: Page, dashboard: Board
) -> None:
    keep_ready(dashboard)
    slug, _ = make(
        dashboard,
        *(CardDraft(title=f"Card {number}", held=True) for number in range(120)),
    )
    await go(page, f"/board/{slug}")
    todo = column(page, "todo")
    await expect(todo.locator(".board-count")).to_have_text("120")
    rows = await todo.locator(".board-rows").element_handle()
    await page.wait_for_function(
        "box => { box.scrollTo(0, 1e6); return box.textContent.includes('Card 119'); }",
        arg=rows,
    )
    await expect(todo.get_by_text("Card 119", exact=True)).to_be_visible()
    assert await todo.locator(".board-card").count() < 40


async def test_a_card_that_asks_is_answered_from_the_board(
    page: Page, dashboard: Board
) -> None:
    outside = dashboard.hermes.home.parent / "elsewhere.txt"
    write = msgspec.json.encode({"path": str(outside), "content": "written"}).decode()
    done = '{"summary": "Written."}'
    dashboard.says(
        ScriptedResponse(calls=(ServedCall("write_file", write),)),
        ScriptedResponse(calls=(ServedCall("kanban_complete", done),)),
        "Bye.",
    )
    keep_ready(dashboard, most=1)
    slug, _ = make(dashboard, CardDraft(title="write it there"))
    await go(page, f"/board/{slug}")
    card = column(page, "running").locator(".board-card")
    await expect(card).to_contain_text("waits for your answer")
    await card.get_by_role("link", name="Answer").click()
    await page.get_by_role("button", name="Allow once").click()
    await go(page, f"/board/{slug}")
    await expect(column(page, "done").locator(".board-card")).to_be_visible()
    assert await asyncio.to_thread(outside.read_text) == "written"
    await asyncio.to_thread(keep_ready, dashboard)
