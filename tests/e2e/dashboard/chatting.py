"""A person at the chat: writes, waits for answers, and looks at the transcript as the page has it."""

import asyncio
import re
from typing import Any

from playwright.async_api import Locator, Page, expect
from tests.e2e.dashboard.conftest import PATIENCE

_TRANSCRIPT = """async (id) => {
    const { conversationOf } = await import("/static/views/chat/conversation.js");
    return conversationOf(id).transcript.value;
}"""
_RESTS = """async ([id, turns]) => {
    const { conversationOf } = await import("/static/views/chat/conversation.js");
    const { transcript } = conversationOf(id);
    const holds = ({ turn, items, ready }) =>
        ready && !turn && items.filter((item) => item.kind === "end").length >= turns;
    await new Promise((done) => {
        const look = (state) => holds(state) && done();
        look(transcript.value);
        transcript.watch(look);
    });
}"""
_REPLAYED = """async (id) => {
    const { fresh, reduce } = await import("/static/views/chat/transcript.js");
    let state = fresh(id), more = true;
    while (more) {
        const page = await (await fetch(`/api/sessions/${id}/events?limit=1000&after=${state.head}`)).json();
        state = reduce(state, page.events);
        more = page.more;
    }
    return state;
}"""


def box(page: Page) -> Locator:
    """Where one writes."""
    return page.get_by_role("combobox", name="Message")


async def say(page: Page, text: str) -> None:
    await box(page).fill(text)
    await box(page).press("Enter")


async def session_of(page: Page) -> str:
    """The session that is shown, once there is one."""
    await expect(page).to_have_url(re.compile(r"#/chat/."))
    return page.url.rpartition("#/chat/")[2].partition("?")[0]


async def rests(page: Page, turns: int) -> None:
    """Waits until so many turns have ended and none runs."""
    session = await session_of(page)
    await asyncio.wait_for(page.evaluate(_RESTS, [session, turns]), PATIENCE)


async def transcript(page: Page) -> dict[str, Any]:
    """The transcript as the page has it."""
    return await page.evaluate(_TRANSCRIPT, await session_of(page))


async def replayed(page: Page) -> dict[str, Any]:
    """The transcript that the whole log gives, read at once."""
    return await page.evaluate(_REPLAYED, await session_of(page))


def replies(state: dict[str, Any]) -> list[str]:
    return [item["text"] for item in state["items"] if item["kind"] == "assistant"]


async def width(page: Page) -> int:
    """How wide the page's content is."""
    return await page.evaluate("document.documentElement.scrollWidth")
