"""A dashboard is killed and started again under an open page: the page comes back, nothing is lost or doubled."""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, Page, Request, Route, expect
from tests.e2e.dashboard.chatting import box, replayed, replies, rests, say, transcript
from tests.e2e.dashboard.conftest import (
    MODEL,
    PATIENCE,
    Board,
    Complaints,
    again,
    answering,
    visiting,
)
from tests.e2e.dashboard.walking import go

from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

_BROKEN = "ERR_CONNECTION|WebSocket connection|ERR_FAILED"


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@asynccontextmanager
async def _serving(
    hermes: InstalledHermes, port: int
) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """A dashboard on a port, and the link to it; killed without a word at the end."""
    process = await hermes.start("dashboard", "--port", str(port), "--no-open")
    assert process.stdout is not None
    said = ""
    async with asyncio.timeout(PATIENCE):
        while "code=" not in said:
            line = (await process.stdout.readline()).decode()
            assert line, said
            said += line
    try:
        yield process, re.findall(r"(\S+/login\?code=\S+)", said)[0]
    finally:
        process.kill()
        await process.communicate()


async def _users(page: Page) -> list[str]:
    return [
        item["text"]
        for item in (await replayed(page))["items"]
        if item["kind"] == "user"
    ]


async def test_a_page_outlives_its_dashboard(browser: Browser, tmp_path: Path) -> None:
    script = [ScriptedResponse(text="First."), ScriptedResponse(text="Second.")]
    async with ModelServer(respond=answering(script)) as model:
        hermes, port = InstalledHermes(tmp_path, model.url), _free_port()
        hermes.home.mkdir()
        (hermes.home / "config.yaml").write_text(f"model:\n  default: {MODEL}\n")
        async with _serving(hermes, port) as (_, link):
            context = await browser.new_context()
            page = await context.new_page()
            await page.goto(link)
            await say(page, "one")
            await rests(page, 1)
        await expect(page.locator(".offline")).to_be_visible()
        await say(page, "two, into the void")
        await expect(page.locator(".unsent.failed")).to_contain_text(
            "two, into the void"
        )
        await box(page).fill("a draft")
        async with _serving(hermes, port):
            await expect(page.locator(".offline")).to_have_count(0)
            await expect(box(page)).to_have_value("a draft")
            await page.get_by_role("button", name="Send again").click()
            await rests(page, 2)
            await expect(page.locator(".unsent")).to_have_count(0)
            assert await _users(page) == ["one", "two, into the void"]
            await context.close()


async def _session_ids(page: Page, board: Board) -> set[str]:
    answer = await page.request.get(f"{board.url}/api/sessions")
    return {one["id"] for one in (await answer.json())["sessions"]}


async def test_a_turn_of_a_killed_process_is_ended_and_keeps_what_it_had_said(
    browser: Browser, shared: Board, complaints: Complaints
) -> None:
    shared.forget()
    shared.says(
        ScriptedResponse(text="So it went on and on. " * 300, chunk=10, delay=0.05)
    )
    async with again(browser, shared, complaints) as page:
        before = await _session_ids(page, shared)
        running = await shared.hermes.start("-z", "tell me a long story")
        assert running.stdin is not None
        running.stdin.close()
        async with asyncio.timeout(PATIENCE):
            while not (found := await _session_ids(page, shared) - before):
                pass
        await go(page, f"/chat/{found.pop()}")
        live = page.locator(".message.assistant.live")
        await expect(live).to_contain_text("So it went on and on. " * 2 + "So it")
        running.kill()
        await running.communicate()
        seen = (await live.locator(".markdown").inner_text()).strip()
        await expect(page.locator(".end .note")).to_contain_text(
            "Hermes stopped during this turn. Everything up to then was saved."
        )
        await expect(live).to_have_count(0)
        await expect(page.get_by_role("button", name="Stop")).to_have_count(0)
        (kept,) = replies(await transcript(page))
        assert kept.startswith(seen)
        assert len(seen) > 40


async def test_a_request_whose_process_was_killed_can_still_be_answered(
    browser: Browser, tmp_path: Path
) -> None:
    write = ServedCall(
        "write_file", json.dumps({"path": "later.txt", "content": "after all"})
    )
    async with ModelServer(
        respond=answering(
            [ScriptedResponse(calls=(write,)), ScriptedResponse(text="It is written.")]
        )
    ) as model:
        hermes, port = InstalledHermes(tmp_path, model.url), _free_port()
        hermes.home.mkdir()
        (hermes.home / "config.yaml").write_text(f"model:\n  default: {MODEL}\n")
        context = await browser.new_context()
        async with _serving(hermes, port) as (_, link):
            page = await context.new_page()
            await page.goto(link)
            await say(page, "write it")
            await expect(page.get_by_role("button", name="Allow once")).to_be_visible()
        async with _serving(hermes, port):
            await expect(page.locator(".end .note")).to_contain_text(
                "Hermes stopped during this turn."
            )
            asking = page.get_by_role("group", name="Hermes wants to use write_file")
            await expect(asking).to_contain_text("Hermes stopped before you answered.")
            await expect(asking).not_to_contain_text("Denied automatically")
            await asking.get_by_role("button", name="Allow once").click()
            await rests(page, 2)
            await expect(page.locator(".message.assistant").last).to_contain_text(
                "It is written."
            )
            assert (hermes.work / "later.txt").read_text() == "after all"
            await context.close()


async def test_clocks_that_differ_make_no_message_twice(
    browser: Browser, shared: Board, complaints: Complaints
) -> None:
    """The receipts of two messages with the same words get lost, and the browser's clock is an hour ahead."""
    shared.says("First.", "Second.", "Third.")
    async with visiting(browser, await shared.new_link(), complaints) as page:
        await page.add_init_script(
            "{ const now = Date.now; Date.now = () => now.call(Date) + 3_600_000; }"
        )
        await page.reload()
        await say(page, "again")
        await rests(page, 1)
        lost = 0

        async def deliver_without_a_word(route: Route, _: Request) -> None:
            nonlocal lost
            lost += 1
            if lost == 1:
                await route.fetch()
            await route.abort()

        await page.route("**/messages", deliver_without_a_word)
        await say(page, "again")
        await rests(page, 2)
        await expect(page.locator(".unsent")).to_have_count(0)
        await say(page, "again")  # this one really gets lost
        await expect(page.locator(".unsent.failed")).to_have_count(1)
        await page.unroute("**/messages")
        await page.reload()
        await rests(page, 2)
        await expect(page.locator(".unsent.failed")).to_have_count(1)
        await page.get_by_role("button", name="Send again").click()
        await rests(page, 3)
        await expect(page.locator(".unsent")).to_have_count(0)
        assert await _users(page) == ["again"] * 3
        complaints.expect(_BROKEN)
