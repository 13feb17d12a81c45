"""Schedules on the page: a job is made in words that are tried out first, paused, run, looked back on, deleted."""

import asyncio
import re

from playwright.async_api import Page, expect
from tests.e2e.dashboard.conftest import PATIENCE, Board, Complaints
from tests.e2e.dashboard.planned import plan_job
from tests.e2e.dashboard.walking import go


async def test_a_job_is_made_paused_run_and_deleted(
    page: Page, dashboard: Board
) -> None:
    dashboard.says("The disk is fine.")
    await go(page, "/sessions")  # where no field takes keys
    await expect(page.get_by_role("heading", name="No sessions yet")).to_be_visible()
    await page.keyboard.press("g")
    await page.keyboard.press("h")
    await expect(page.get_by_role("heading", name="No jobs yet")).to_be_visible()
    await page.keyboard.press("n")
    when = page.get_by_label("When", exact=True)
    await expect(when).to_be_focused()
    meaning = page.get_by_role("status", name="What the schedule means")
    await page.keyboard.type("every weekday at")
    await expect(meaning).to_contain_text(
        "Understood “every weekday at”; then a time such as 9:00 or 5:30pm is missing."
    )
    await page.keyboard.type(" 9:30 in Asia/Tokyo")
    await expect(meaning.locator(".coming li")).to_have_count(5)
    await expect(meaning.locator(".coming li").first).to_contain_text("09:30")
    await expect(meaning).to_contain_text("Asia/Tokyo")
    await page.get_by_label("What to do").fill("Check the disk.")
    await page.keyboard.press("Control+Enter")

    await expect(
        page.get_by_role("heading", name="Check the disk.", level=1)
    ).to_be_visible()
    await expect(page.locator(".coming li")).to_have_count(5)
    await expect(page.locator(".unwatched")).to_contain_text("No scheduler is running.")
    await page.keyboard.press("Alt+p")
    await expect(page.locator(".page-head .tag")).to_have_text("paused")
    await expect(page.locator(".past tbody tr")).to_contain_text("the job was paused")
    await page.keyboard.press("Alt+r")
    done = page.locator(".past tr[data-state=done]")
    await expect(done).to_contain_text("started by hand")
    await expect(page.locator(".page-head .tag")).to_have_text("paused")
    await done.get_by_role("link").click()
    await expect(page.locator("main")).to_contain_text("The disk is fine.")

    await go(page, "/schedules")
    row = page.locator(".job")
    await expect(row).to_contain_text("every weekday at 9:30 in Asia/Tokyo")
    await expect(row.locator(".job-facts")).to_contain_text("done")
    await row.get_by_role("button", name="Delete: Check the disk.").click()
    await page.get_by_role("button", name="Cancel").click()
    await expect(row).to_have_count(1)
    await row.get_by_role("button", name="Delete: Check the disk.").click()
    await page.get_by_role("button", name="Delete job").click()
    await expect(row).to_have_count(0)
    assert "There are no jobs yet" in (await dashboard.hermes.run("cron", "list")).out


async def test_a_job_with_a_past_is_looked_at_and_changed(
    page: Page, dashboard: Board, complaints: Complaints
) -> None:
    job = plan_job(dashboard.hermes.home)
    daemon = await dashboard.hermes.start("cron", "daemon")
    assert daemon.stdout is not None
    try:
        assert b"Running jobs" in await asyncio.wait_for(
            daemon.stdout.readline(), PATIENCE
        )
        await go(page, "/schedules")
        row = page.locator(f'[data-job="{job}"]')
        await expect(row.locator(".job-facts")).to_contain_text("failed")
        await expect(row.locator(".job-facts")).to_contain_text("$0.50 per run")
        await expect(page.locator(".unwatched")).to_have_count(0)
        await page.keyboard.press("j")
        await page.keyboard.press("Enter")
        states = page.locator(".past tbody .tag")
        await expect(states).to_have_text(["failed", "done", "missed ×140", "skipped"])
        await expect(page.locator(".past tr[data-state=failed]")).to_contain_text(
            "it took longer than 10 minutes"
        )
        await page.keyboard.press("e")
        await expect(page.get_by_label("What to do")).to_have_value(
            "Summarize the inbox."
        )
        await page.get_by_label("When", exact=True).fill("every 3 days at 8")
        await page.get_by_label("Limit per run").fill("lots")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("alert")).to_contain_text("lots")
        complaints.expect("400")
        await page.get_by_label("Limit per run").fill("")
        await page.get_by_label("Destination type").select_option("file")
        await page.get_by_label("Destination", exact=True).fill("/var/inbox.md")
        await page.get_by_role("button", name="Save").click()
        await expect(page.locator(".job-when")).to_have_text("every 3 days at 8")
        await expect(page.locator(".facts")).to_contain_text("/var/inbox.md")
        await expect(page.locator(".facts")).not_to_contain_text("$0.50")
        await page.keyboard.press("g")
        await page.keyboard.press("p")  # not “pause”
        await expect(page).to_have_url(re.compile("#/plugins$"))
        assert (
            '"state": "active"'
            in (await dashboard.hermes.run("cron", "show", job, "--json")).out
        )
    finally:
        daemon.terminate()
        await asyncio.wait_for(daemon.communicate(), PATIENCE)
