"""What was learned, on the page: deciding about proposals changes files, and every change can be taken back."""

import re
import time

from playwright.async_api import Page, expect
from tests.e2e.dashboard.conftest import Board, Complaints
from tests.e2e.dashboard.past import learning_of, past_of, teach, write_past
from tests.e2e.dashboard.walking import go

from hermes.schema.learning import LearningProposed


async def test_proposals_are_decided_with_keys_and_taken_back(
    page: Page, dashboard: Board
) -> None:
    home = dashboard.hermes.home
    teach(home)
    skill = home / "skills" / "release-notes" / "SKILL.md"
    await go(page, "/learning")
    first = page.locator('[data-proposal="p1"]')
    await expect(first).to_have_attribute("aria-current", "true")
    await expect(first.locator(".diff-add")).to_contain_text("breaking changes first")
    assert "breaking" not in skill.read_text()
    await page.keyboard.press("Alt+a")
    await expect(first).to_have_count(0)
    assert "breaking changes first" in skill.read_text()
    second = page.locator('[data-proposal="p2"]')
    await expect(second).to_have_attribute("aria-current", "true")
    await page.keyboard.press("Alt+r")
    await expect(page.get_by_role("heading", name="Nothing to review")).to_be_visible()
    assert "announce@" not in (home / "memories" / "MEMORY.md").read_text()
    assert [one.status for one in learning_of(home).proposals.all()] == [
        "approved",
        "rejected",
    ]
    await page.get_by_role("tab", name="History").click()
    await expect(page.locator(".change")).to_have_count(2)
    await page.keyboard.press("j")
    await expect(page.locator(".change").first.locator(".diff-add")).to_contain_text(
        "breaking changes first"
    )
    await page.keyboard.press("Alt+u")
    await page.get_by_role("button", name="Undo change").click()
    await expect(page.locator(".change")).to_have_count(3)
    assert "breaking" not in skill.read_text()


async def test_a_new_proposal_appears_by_itself(page: Page, dashboard: Board) -> None:
    home = dashboard.hermes.home
    ids = write_past(home, time.time())
    await go(page, "/learning")
    await expect(page.get_by_role("heading", name="Nothing to review")).to_be_visible()
    teach(home)
    with past_of(home, time.time()) as past:
        proposed = LearningProposed(
            proposal="p1", kind="skill", title="skill release-notes: change"
        )
        past.turn(ids["old"], "learn", proposed)
    await expect(page.locator(".proposal")).to_have_count(2)


async def test_notes_are_added_changed_and_forgotten(
    page: Page, dashboard: Board, complaints: Complaints
) -> None:
    home = dashboard.hermes.home
    teach(home)
    memory = home / "memories" / "MEMORY.md"
    await go(page, "/learning/memory")
    file = page.locator('[data-file="MEMORY.md"]')
    await expect(file.locator(".notes li")).to_have_count(2)
    await expect(file.get_by_role("meter")).to_have_attribute("value", "73")
    await file.get_by_role("textbox", name="New note in MEMORY.md").fill(
        "Tests run with make check."
    )
    await page.keyboard.press("Enter")
    await expect(file.locator(".notes li")).to_have_count(3)
    await file.get_by_role("textbox", name="New note in MEMORY.md").fill(
        "Tests run with make check."
    )
    await page.keyboard.press("Enter")
    await expect(file.get_by_role("alert")).to_contain_text(
        "MEMORY.md already says that."
    )
    complaints.expect("400")
    await file.get_by_role("button", name="Edit note 1").click()
    await page.get_by_role("textbox", name="Note", exact=True).fill(
        "The user prefers spaces."
    )
    await page.keyboard.press("Enter")
    await expect(file.locator(".notes li").first).to_contain_text(
        "The user prefers spaces."
    )
    await file.get_by_role("button", name="Forget note 2").click()
    await page.get_by_role("button", name="Forget this note").click()
    await expect(file.locator(".notes li")).to_have_count(2)
    assert (
        memory.read_text()
        == "- The user prefers spaces.\n- Tests run with make check.\n"
    )


async def test_skills_are_switched_pinned_and_read(
    page: Page, dashboard: Board
) -> None:
    home = dashboard.hermes.home
    teach(home)
    learning_of(home).skills.records.used("release-notes", "command", time.time())
    await go(page, "/learning/skills")
    await page.get_by_role("searchbox").fill("release")
    skill = page.locator('[data-skill="release-notes"]')
    await expect(skill).to_contain_text("made by Hermes")
    await expect(skill).to_contain_text("called 1 time")
    await skill.get_by_role("switch", name="Offer release-notes").click()
    await expect(skill.get_by_role("switch")).not_to_be_checked()
    await skill.get_by_role("button", name=re.compile("^Pin release-notes")).click()
    await expect(skill.get_by_text("pinned", exact=True)).to_be_visible()
    found = learning_of(home).skills.find("release-notes")
    assert (found.enabled, found.pinned) == (False, True)
    await skill.get_by_role("link", name="release-notes").click()
    await expect(page.get_by_role("dialog", name="release-notes")).to_contain_text(
        "group them, and write one line"
    )
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
