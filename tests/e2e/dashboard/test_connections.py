"""Chat apps and MCP servers on the page: a token is tried first, people are let in and out, a login ends in the browser."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Browser, Page, expect
from tests.e2e.dashboard.conftest import Board, Complaints, again, running
from tests.e2e.dashboard.test_access import found_by_axe
from tests.e2e.dashboard.walking import go
from tests.fakes.mail_server import AUTHSERV, MailServer
from tests.fakes.oauth_mcp_server import oauth_mcp_server
from tests.fakes.telegram_server import TOKEN, TelegramServer

from hermes.app import build
from hermes.app.people_access import PeopleAccess, Person
from hermes.events import Bus
from hermes.settings import Home, Settings

_THEMES = ("light", "dark", "contrast")


async def _is_fine(page: Page) -> None:
    """Axe finds nothing in any theme, and a phone never scrolls sideways."""
    for theme in _THEMES:
        await page.evaluate(
            "name => document.documentElement.dataset.theme = name", theme
        )
        assert await found_by_axe(page) == []
    size = page.viewport_size
    await page.set_viewport_size({"width": 360, "height": 740})
    assert await page.evaluate(
        "document.scrollingElement.scrollWidth <= window.innerWidth"
    )
    if size:
        await page.set_viewport_size(size)


def _pairing_code(home: Path) -> str:
    """What a stranger reads in their chat."""
    with build(Settings(), Home(home), bus=Bus()) as app:
        access = PeopleAccess(app.settings.gateway, app.store.people, app.clock)
        return access.request("telegram", Person("77", "Ada"))


@pytest_asyncio.fixture(loop_scope="session")
async def telegram() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as server:
        yield server


async def test_a_chat_app_is_connected_and_people_come_and_go(
    browser: Browser, tmp_path: Path, telegram: TelegramServer, complaints: Complaints
) -> None:
    settings = (
        f"gateway:\n  telegram:\n    api_url: {telegram.url}\n"
        "  email:\n    security: none\n    user: of-another-mailbox\n"
    )
    async with (
        MailServer() as mail,
        running(tmp_path / "x", settings) as board,
        again(browser, board, complaints) as page,
    ):
        code = _pairing_code(board.hermes.home)
        await go(page, "/settings/platforms")
        row = page.locator('[data-platform="telegram"]')
        await row.get_by_role("button", name="Connect").click()
        await row.get_by_label("Bot token").fill("1:wrong")
        await row.get_by_role("button", name="Test and save").click()
        await expect(row.locator(".field-error")).to_contain_text(
            "Telegram rejected the token"
        )
        env = board.hermes.home / ".env"
        assert not env.exists() or "TELEGRAM" not in env.read_text()
        await row.get_by_label("Bot token").fill(TOKEN)
        await row.get_by_role("button", name="Test and save").click()
        await expect(row.get_by_text("connected", exact=True)).to_be_visible()
        assert TOKEN in env.read_text()
        assert TOKEN not in await page.content()

        await _connect_mailbox(page, mail)
        config = (board.hermes.home / "config.yaml").read_text()
        assert "of-another-mailbox" not in config
        webhook = page.locator('[data-platform="webhook"]')
        await webhook.get_by_role("button", name="Connect").click()
        await webhook.get_by_role("button", name="Generate").click()
        key = await webhook.get_by_label("Key").input_value()
        await webhook.get_by_role("button", name="Test and save").click()
        await expect(webhook.get_by_text("connected", exact=True)).to_be_visible()
        assert len(key) == 32
        assert key in env.read_text()

        await expect(page.get_by_text("Ada on telegram")).to_be_visible()
        await page.get_by_label("Pairing code").fill("WRONGONE")
        await page.get_by_role("button", name="Let in").click()
        await expect(page.locator("section .field-error")).to_be_visible()
        await page.get_by_label("Pairing code").fill(code)
        await page.get_by_role("button", name="Let in").click()
        person = page.locator('[data-person="telegram:77"]')
        await expect(person).to_contain_text("owner")
        await _is_fine(page)
        await person.get_by_role("button", name="Unpair").click()
        await page.get_by_role("dialog").get_by_role("button", name="Unpair").click()
        await expect(person).to_have_count(0)
        await row.get_by_role("button", name="Disconnect").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_role("button", name="Disconnect").click()
        await expect(row.get_by_text("connected", exact=True)).to_have_count(0)
        assert TOKEN not in env.read_text()
        complaints.expect(re.escape("/api/commands/gateway."))


async def _connect_mailbox(page: Page, mail: MailServer) -> None:
    row = page.locator('[data-platform="email"]')
    await row.get_by_role("button", name="Connect").click()
    for label, value in (
        ("Address", "hermes@loopback.test"),
        ("Password", "wrong"),
        ("IMAP server", "127.0.0.1"),
        ("SMTP server", "127.0.0.1"),
        ("Server that verifies", AUTHSERV),
        ("IMAP port", str(mail.imap_port)),
        ("SMTP port", str(mail.smtp_port)),
    ):
        await row.get_by_label(label).fill(value)
    await row.get_by_role("button", name="Test and save").click()
    await expect(row.locator(".field-error")).to_contain_text("rejected the password")
    await row.get_by_label("Password").fill(mail.password)
    await row.get_by_role("button", name="Test and save").click()
    await expect(row.get_by_text("connected", exact=True)).to_be_visible()


async def test_an_mcp_server_is_added_signed_in_at_and_removed(
    page: Page, dashboard: Board
) -> None:
    with oauth_mcp_server() as remote:
        await go(page, "/settings/mcp")
        await expect(page.get_by_role("heading", name="No MCP servers")).to_be_visible()
        await page.get_by_label("Name").fill("fake")
        await page.get_by_label("Address or command").fill(f"{remote.url}/mcp")
        await page.get_by_role("button", name="Test and add").click()
        row = page.locator('[data-server="fake"]')
        await row.get_by_role("button", name="Sign in").click()
        link = row.get_by_role("link", name="Open the login page")
        async with page.context.expect_page() as opened:
            await link.click()
        await expect((await opened.value).locator("body")).to_contain_text("Signed in")
        await (await opened.value).close()
        await expect(row.get_by_text("signed in", exact=True)).to_be_visible()
        await row.get_by_role("button", name="Test").click()
        await expect(row).to_contain_text(re.compile(r"[1-9] tools?"))
        await _is_fine(page)
        await row.get_by_role("button", name="Remove").click()
        await (
            page.get_by_role("dialog")
            .get_by_role("button", name="Remove", exact=True)
            .click()
        )
        await expect(row).to_have_count(0)
        assert "fake" not in (dashboard.hermes.home / "config.yaml").read_text()
