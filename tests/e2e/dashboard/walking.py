"""Going through the views by their addresses."""

from playwright.async_api import Page


async def go(page: Page, path: str) -> None:
    """To a view, as a link would lead there."""
    await page.evaluate("path => { location.hash = path }", path)
