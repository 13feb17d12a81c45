"""The composer: files of any kind go along, and messages that wait can be edited and taken back."""

import base64

from playwright.async_api import Page, expect
from tests.e2e.dashboard.chatting import box, replies, rests, say, transcript
from tests.e2e.dashboard.conftest import Board

from hermes.testing.scripted_responses import ScriptedResponse, ServerFault

DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
DROP = """(text) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([text], "notes.txt", { type: "text/plain" }));
    const options = { dataTransfer: transfer, bubbles: true, cancelable: true };
    const place = document.querySelector(".drawer-list");
    place.dispatchEvent(new DragEvent("dragover", options));
    place.dispatchEvent(new DragEvent("drop", options));
}"""


async def test_files_go_along_and_waiting_messages_can_be_taken_back(
    page: Page, dashboard: Board
) -> None:
    dashboard.says("I read both.")
    await page.evaluate(DROP, "the secret word is heron")
    await page.locator("input[type=file]").set_input_files(
        {
            "name": "../odd.bin",
            "mimeType": "application/octet-stream",
            "buffer": b"\0\1",
        }
    )
    files = page.locator(".attached-files li")
    await expect(files).to_have_count(2)
    await expect(files.first).to_contain_text("notes.txt")
    await say(page, "Read these.")
    await rests(page, 1)
    asked = str(dashboard.asked())
    assert "the secret word is heron" in asked
    assert "[not text, 2 bytes, saved as" in asked
    sent = page.locator(".message.user").first
    await expect(sent.locator(".said")).to_have_text("Read these.")
    await expect(sent.locator(".along-one")).to_have_count(2)
    saved = {file.name for file in (dashboard.hermes.home / "media").rglob("*.*")}
    assert saved == {"notes.txt", "odd.bin"}

    slow = ScriptedResponse(
        text="on and on " * 40, delay=0.05, fault=ServerFault(hang="middle")
    )
    dashboard.says(slow, "To the changed one.")
    await say(page, "begin")
    await expect(page.locator(".message.assistant.live")).to_contain_text("on and on")
    queued = page.locator(".message.user", has_text="queued")
    for words in ("never mind", "first draft"):
        await say(page, words)
        await expect(queued.filter(has_text=words)).to_have_count(1)
    unwanted = queued.filter(has_text="never mind")
    await unwanted.get_by_role("button", name="Remove from the queue").click()
    await expect(queued).to_have_count(1)
    await queued.get_by_role("button", name="Take back and edit").click()
    await expect(queued).to_have_count(0)
    await expect(box(page)).to_have_value("first draft")
    await say(page, "final version")
    await expect(queued).to_have_count(1)
    await box(page).press("Escape")
    await rests(page, 3)
    assert replies(await transcript(page))[-1] == "To the changed one."
    heard = str(dashboard.asked())
    assert "final version" in heard
    assert "never mind" not in heard
    assert "first draft" not in heard
    await page.reload()
    await expect(page.get_by_text("final version")).to_be_visible()
    await expect(page.get_by_text("never mind")).to_have_count(0)


async def test_an_edited_message_keeps_its_attachments(
    page: Page, dashboard: Board
) -> None:
    dashboard.says("I saw both.", "Seen again.")
    await page.evaluate(DROP, "the secret word is heron")
    await page.locator("input[type=file]").set_input_files(
        {"name": "dot.png", "mimeType": "image/png", "buffer": DOT}
    )
    await expect(page.locator(".attached img")).to_have_count(1)
    await say(page, "Look at these.")
    await rests(page, 1)
    sent = page.locator(".message.user").first
    await sent.hover()
    await sent.get_by_role("button", name="Branch from here and edit").click()
    await expect(box(page)).to_have_value("Look at these.")
    await expect(page.locator(".composer .attached img")).to_have_count(1)
    await expect(page.locator(".composer .attached-files li")).to_have_text("notes.txt")
    await page.reload()
    await expect(page.locator(".composer .attached img")).to_have_count(1)
    await say(page, "Look again.")
    await rests(page, 1)
    again = page.locator(".message.user", has_text="Look again.")
    await expect(again.locator(".picture img")).to_have_count(1)
    await expect(again.locator(".along-one")).to_contain_text("notes.txt")
    await expect(page.locator(".composer .attached img")).to_have_count(0)
    assert "the secret word is heron" in str(dashboard.asked())


async def test_a_message_taken_back_keeps_the_attachments_that_stay(
    page: Page, dashboard: Board
) -> None:
    slow = ScriptedResponse(
        text="on and on " * 40, delay=0.05, fault=ServerFault(hang="middle")
    )
    dashboard.says(slow, "Only the notes.")
    await say(page, "begin")
    await expect(page.locator(".message.assistant.live")).to_contain_text("on and on")
    await page.evaluate(DROP, "the secret word is heron")
    await page.locator("input[type=file]").set_input_files(
        {"name": "dot.png", "mimeType": "image/png", "buffer": DOT}
    )
    await expect(page.locator(".attached img")).to_have_count(1)
    await say(page, "both")
    queued = page.locator(".message.user", has_text="queued")
    await queued.get_by_role("button", name="Take back and edit").click()
    await expect(box(page)).to_have_value("both")
    await page.get_by_role("button", name="Remove Picture 1").click()
    await expect(page.locator(".composer .attached")).to_have_count(0)
    await say(page, "only one")
    await expect(queued).to_contain_text("only one")
    await expect(queued.locator(".along-one")).to_contain_text("notes.txt")
    await expect(queued.locator(".picture")).to_have_count(0)
    await box(page).press("Escape")
    await rests(page, 2)
    assert "the secret word is heron" in str(dashboard.asked())
