"""The page in the browser's language, from right to left where it is written so."""

import pytest
from playwright.async_api import Browser, expect
from tests.e2e.dashboard.chatting import rests
from tests.e2e.dashboard.conftest import Board, Complaints, again
from tests.e2e.dashboard.test_asking import edit


@pytest.mark.parametrize(
    ("locale", "direction", "words"),
    [
        ("ar", "rtl", ("محادثة جديدة", "على ماذا نعمل؟")),
        ("de-AT", "ltr", ("Neuer Chat", "Woran arbeiten wir?")),
        ("sv", "ltr", ("New chat", "What should we work on?")),
    ],
)
async def test_the_page_is_in_the_language_of_the_browser(
    browser: Browser,
    shared: Board,
    complaints: Complaints,
    locale: str,
    direction: str,
    words: tuple[str, str],
) -> None:
    new_chat, heading = words
    async with again(browser, shared, complaints, locale=locale) as page:
        await expect(page.locator("html")).to_have_attribute("dir", direction)
        await expect(
            page.get_by_role("link", name=new_chat, exact=True)
        ).to_be_visible()
        await expect(page.get_by_role("heading", name=heading)).to_be_visible()
        rail = await page.locator(".rail").bounding_box()
        assert rail is not None
        assert (rail["x"] > 640) == (direction == "rtl")
        wide = "document.documentElement.scrollWidth <= innerWidth"
        assert await page.evaluate(wide)


async def test_a_request_says_why_in_the_browser_s_language_and_can_be_allowed(
    browser: Browser, shared: Board, complaints: Complaints
) -> None:
    shared.forget()
    shared.says(edit(shared, "german.py"), "Es ist repariert.")
    async with again(browser, shared, complaints, locale="de") as page:
        field = page.get_by_role("combobox", name="Nachricht")
        await field.fill("repariere es")
        await field.press("Enter")
        asking = page.get_by_role("group", name="Hermes möchte edit_file verwenden")
        await expect(asking).to_contain_text("es ändert eine Datei")
        await asking.get_by_role("button", name="Einmal erlauben").click()
        await rests(page, 1)
    assert "sum(items)" in (shared.hermes.work / "german.py").read_text()
