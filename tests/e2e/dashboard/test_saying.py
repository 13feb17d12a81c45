"""What goes along with words, and what they change: files, skills, pictures, the model, what is asked about, timing."""

import asyncio
import base64
import json
import re
from typing import Any

import msgspec
import pytest
from playwright.async_api import Page, Route, expect
from tests.e2e.dashboard.chatting import box, replies, rests, say, transcript
from tests.e2e.dashboard.conftest import Board

from hermes.testing.scripted_responses import ScriptedResponse, ServedCall, ServerFault

PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PASTE = """(data) => {
    const bytes = Uint8Array.from(atob(data), (sign) => sign.charCodeAt(0));
    const held = new DataTransfer();
    held.items.add(new File([bytes], "shot.png", { type: "image/png" }));
    const given = { clipboardData: held, bubbles: true, cancelable: true };
    document.querySelector(".composer textarea").dispatchEvent(new ClipboardEvent("paste", given));
}"""


@pytest.fixture
def dashboard(shared: Board) -> Board:
    return shared


@pytest.fixture
def page(visit: Page) -> Page:
    return visit


def edit(board: Board, name: str) -> ScriptedResponse:
    """The model wants to change a file."""
    (board.hermes.work / name).write_text("colour = 'red'\n")
    arguments = {"path": name, "old_text": "red", "new_text": "blue"}
    return ScriptedResponse(
        calls=(
            ServedCall("read_file", json.dumps({"path": name})),
            ServedCall("edit_file", json.dumps(arguments)),
        )
    )


def said(board: Board, number: int = -1) -> list[Any]:
    return [
        message["content"]
        for message in board.asked(number)
        if message["role"] == "user"
    ]


def skill(board: Board, name: str, text: str) -> None:
    folder = board.hermes.home / "skills" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(
        f"---\nname: {name}\ndescription: About {name}.\n---\n\n{text}\n"
    )


async def test_a_named_file_reaches_the_model_and_is_folded_on_the_page(
    page: Page, dashboard: Board
) -> None:
    (dashboard.hermes.work / "recipe.txt").write_text("Two eggs.\n<b>no markup</b>\n")
    dashboard.says("Eggs.")
    await say(page, "what is in @recipe.txt and @gone.txt?")
    await expect(page.locator(".toast")).to_contain_text(
        "There is no file gone.txt here"
    )
    await rests(page, 1)
    assert (
        '<attached path="recipe.txt">\nTwo eggs.\n<b>no markup</b>\n</attached>'
        in said(dashboard)[-1]
    )
    await expect(page.locator(".said")).to_have_text(
        "what is in @recipe.txt and @gone.txt?"
    )
    content = page.locator(".along-one pre")
    await expect(content).to_be_hidden()
    await page.locator(".along-one summary", has_text="recipe.txt").click()
    await expect(content).to_have_text("Two eggs.\n<b>no markup</b>")


async def test_skills_are_commands_and_give_way_to_those_of_the_page(
    page: Page, dashboard: Board
) -> None:
    skill(dashboard, "brew-tea", "Warm the pot first.")
    skill(dashboard, "undo", "Untie the knot.")
    dashboard.says("Tea.", "Untied.")
    await box(page).press_sequentially("/und")
    await expect(page.get_by_role("option", name="/skill:undo")).to_contain_text(
        "About undo."
    )
    await box(page).fill("")
    await box(page).press_sequentially("/bre")
    await expect(page.get_by_role("option", name="/brew-tea")).to_be_visible()
    await box(page).press("Tab")
    await box(page).press_sequentially("for two")
    await box(page).press("Enter")
    await rests(page, 1)
    assert said(dashboard)[-1].startswith(
        '/brew-tea for two\n\n<skill name="brew-tea">'
    )
    await expect(page.locator(".along-one summary")).to_have_text("brew-tea")
    await expect(page.locator(".said")).to_have_text("/brew-tea for two")
    await say(page, "/skill:undo the knot")
    await rests(page, 2)
    assert "Untie the knot." in said(dashboard)[-1]
    await say(page, "/brw-tea please")
    await expect(page.locator(".toast.bad")).to_contain_text(
        "There is no command /brw-tea."
    )
    await expect(box(page)).to_have_value("/brw-tea please")
    await page.get_by_role("button", name="Dismiss").click()
    await say(page, "/undo")
    await expect(page.locator("details.taken > summary")).to_contain_text(
        "2 messages undone"
    )


async def test_what_is_asked_about_is_chosen_for_a_session(
    page: Page, dashboard: Board
) -> None:
    dashboard.says(
        "Hello.",
        edit(dashboard, "paint.py"),
        "It is blue.",
        edit(dashboard, "other.py"),
        "Not changed.",
    )
    await say(page, "hello")
    await rests(page, 1)
    await page.get_by_role("button", name="Approvals: Ask").click()
    await page.get_by_role("button", name="Auto-edit").click()
    await say(page, "paint it")
    await rests(page, 2)
    assert (dashboard.hermes.work / "paint.py").read_text() == "colour = 'blue'\n"
    await expect(page.locator(".mode.warn")).to_have_text("Auto-edit")
    await page.reload()
    await expect(
        page.get_by_role("button", name="Approvals: Auto-edit")
    ).to_be_visible()
    await say(page, "/approvals ask")
    await expect(page.get_by_role("button", name="Approvals: Ask")).to_be_visible()
    await say(page, "paint the other")
    await page.get_by_role("button", name="Deny").click()
    await rests(page, 3)
    assert (dashboard.hermes.work / "other.py").read_text() == "colour = 'red'\n"


async def test_full_is_warned_about_and_other_sessions_go_on_asking(
    page: Page, dashboard: Board
) -> None:
    dashboard.says(
        edit(dashboard, "free.py"), "Blue.", edit(dashboard, "kept.py"), "No."
    )
    await page.get_by_role("button", name="Approvals: Ask").click()
    await page.get_by_role("button", name="Full").click()
    warning = page.get_by_role("dialog", name="Let Hermes work without asking?")
    await expect(warning).to_contain_text("will not wait for you")
    await page.keyboard.press("Enter")  # one that came too soon changes nothing
    await expect(page.get_by_role("dialog", name="Approval mode")).to_be_visible()
    await page.get_by_role("button", name="Full").click()
    await warning.get_by_role("button", name="Don't ask me").click()
    await say(page, "paint it")
    await rests(page, 1)
    assert (dashboard.hermes.work / "free.py").read_text() == "colour = 'blue'\n"
    await expect(page.locator(".mode.bad")).to_have_text("Full")
    await page.get_by_role("link", name="New chat", exact=True).click()
    await expect(page.get_by_role("button", name="Approvals: Ask")).to_be_visible()
    await say(page, "paint that")
    await page.get_by_role("button", name="Deny").click()
    await rests(page, 1)
    assert (dashboard.hermes.work / "kept.py").read_text() == "colour = 'red'\n"


async def test_keys_that_come_with_the_question_do_not_answer_it(
    page: Page, dashboard: Board
) -> None:
    dashboard.says(edit(dashboard, "early.py"), "I left it.")
    await page.evaluate("performance.now = () => 1000")
    await say(page, "paint it")
    asking = page.get_by_role("group", name="Hermes wants to use edit_file")
    await expect(asking).to_be_visible()
    await box(page).evaluate("element => element.blur()")
    await page.keyboard.press("Alt+y")
    await page.evaluate("performance.now = () => 1400")
    await page.keyboard.press("Alt+n")
    await rests(page, 1)
    await expect(page.locator(".answered")).to_contain_text("Denied")
    assert (dashboard.hermes.work / "early.py").read_text() == "colour = 'red'\n"


async def test_a_key_pressed_twice_answers_one_of_two_questions(
    page: Page, dashboard: Board
) -> None:
    outside = dashboard.hermes.work.parent / "notes.pem"
    outside.write_text("something\n")
    read = ServedCall("read_file", json.dumps({"path": str(outside)}))
    dashboard.says(ScriptedResponse(calls=(read, read)), "Done.")
    await page.evaluate("performance.now = () => 1000")
    await say(page, "read both")
    asking = page.get_by_role("group", name="Hermes wants to use read_file")
    await expect(asking).to_have_count(2)
    await page.evaluate("performance.now = () => 1400")
    await asking.first.focus()
    await page.keyboard.press("Alt+y")
    await expect(asking).to_have_count(1)
    await page.keyboard.press("Alt+y")
    await page.evaluate("performance.now = () => 1800")
    await page.keyboard.press("Alt+n")
    await rests(page, 1)
    answers = await page.locator(".answered").all_inner_texts()
    assert ["Denied" in text for text in answers].count(True) == 1
    assert len(answers) == 2


async def test_keys_answer_the_request_that_has_the_focus(
    page: Page, dashboard: Board
) -> None:
    for name in ("upper.pem", "lower.pem"):
        (dashboard.hermes.work.parent / name).write_text(f"text of {name}\n")
    upper, lower = (
        ServedCall(
            "read_file", json.dumps({"path": str(dashboard.hermes.work.parent / name)})
        )
        for name in ("upper.pem", "lower.pem")
    )
    dashboard.says(ScriptedResponse(calls=(upper, lower)), "Done.")
    await page.evaluate("performance.now = () => 1000")
    await say(page, "read both")
    asking = page.get_by_role("group", name="Hermes wants to use read_file")
    await expect(asking).to_have_count(2)
    await page.evaluate("performance.now = () => 1400")
    await box(page).focus()
    await page.keyboard.press("Alt+y")
    await expect(page.get_by_text("More than one request is open")).to_be_visible()
    await expect(asking).to_have_count(2)
    await asking.nth(1).locator(".asking-title").click()
    await page.keyboard.press("Alt+n")
    await expect(asking).to_have_count(1)
    await expect(asking).to_contain_text("upper.pem")
    await expect(page.locator(".answered")).to_contain_text("Denied")
    await page.evaluate("performance.now = () => 1800")
    await page.keyboard.press("Alt+y")  # the only one left
    await rests(page, 1)
    answers = await page.locator(".answered").all_inner_texts()
    assert ["Denied" in text for text in answers] == [False, True]


async def test_words_are_said_into_the_turn_that_runs(
    page: Page, dashboard: Board
) -> None:
    dashboard.says(
        ScriptedResponse(text="on and on " * 20, chunk=2, pauses=True), "In green then."
    )
    await say(page, "paint it")
    await expect(page.locator(".message.assistant.live")).to_contain_text("on and on")
    await box(page).fill("in green, please")
    await box(page).press("Control+Enter")
    await expect(page.locator(".message.user").last).to_contain_text(
        "will be read during this turn"
    )
    dashboard.model.go_on.set()
    await rests(page, 1)
    assert "in green, please" in said(dashboard)[-1]
    state = await transcript(page)
    assert len([item for item in state["items"] if item["kind"] == "end"]) == 1
    assert replies(state) == ["on and on " * 20, "In green then."]
    await expect(page.locator(".message.user").last).to_contain_text(
        "sent during the turn"
    )


async def test_words_can_take_the_place_of_the_turn_that_runs(
    page: Page, dashboard: Board
) -> None:
    dashboard.says(
        ScriptedResponse(
            text="on and on " * 40, delay=0.05, fault=ServerFault(hang="middle")
        ),
        "Something else.",
    )
    await say(page, "begin")
    await expect(page.locator(".message.assistant.live")).to_contain_text("on and on")
    await page.locator(".deliveries span", has_text="Instead").click()
    await say(page, "no, this")
    await rests(page, 2)
    assert said(dashboard)[-1].endswith("no, this")
    assert replies(await transcript(page))[-1] == "Something else."
    await expect(page.locator(".note.info").first).to_contain_text("Stopped.")


async def test_another_model_answers_when_it_is_picked(
    page: Page, dashboard: Board
) -> None:
    dashboard.model.go_on.clear()  # a test before may have set it
    dashboard.says(
        ScriptedResponse(text="One and more", chunk=2, pauses=True), "Two.", "Three."
    )

    def model() -> str:
        return msgspec.json.decode(dashboard.model.posts[-1].body)["model"]

    await say(page, "first")
    await expect(page.locator(".message.assistant.live")).to_contain_text("On")
    await page.locator(".chat-head .model").click()
    await page.get_by_role("textbox", name="Model").fill("gpt-5-mini")
    await page.get_by_role("textbox", name="Model").press("Enter")
    await expect(page.locator(".chat-head .model")).to_have_text("gpt-5-mini")
    await say(page, "second")
    await expect(page.locator(".message.user").last).to_contain_text("queued")
    assert model() == "gpt-5"  # the turn that runs keeps its own
    dashboard.model.go_on.set()
    await rests(page, 2)
    assert model() == "gpt-5-mini"
    await page.locator(".chat-head .model").click()
    await page.get_by_role("button", name="from the settings").click()
    await say(page, "third")
    await rests(page, 3)
    assert model() == "gpt-5"


async def test_a_pasted_picture_goes_along(page: Page, dashboard: Board) -> None:
    dashboard.says("A dot.")
    await box(page).focus()
    await page.evaluate(PASTE, PICTURE)
    await expect(page.locator(".attached img")).to_have_attribute("alt", "shot.png")
    await say(page, "what is this?")
    await rests(page, 1)
    assert PICTURE in str(dashboard.asked())
    assert base64.b64decode(PICTURE) in [
        file.read_bytes() for file in (dashboard.hermes.home / "pictures").iterdir()
    ]
    await expect(page.locator(".message.user .picture img")).to_have_js_property(
        "naturalWidth", 1
    )


async def test_a_picture_that_the_provider_refuses_is_said_and_the_turn_goes_on(
    page: Page, dashboard: Board
) -> None:
    refused = ScriptedResponse(
        fault=ServerFault(status=400, message="could not process image")
    )
    dashboard.says(refused, refused, "I did not get the picture.")
    await box(page).focus()
    await page.evaluate(PASTE, PICTURE)
    await expect(page.locator(".attached img")).to_have_count(1)
    await say(page, "what is this?")
    await rests(page, 1)
    await expect(
        page.get_by_text("A picture was left out, because the provider rejected it.")
    ).to_be_visible()
    await expect(page.get_by_text("I did not get the picture.")).to_be_visible()


async def test_what_fills_the_window_is_shown(page: Page, dashboard: Board) -> None:
    dashboard.says("Yes.")
    await say(page, "hello")
    await rests(page, 1)
    await page.locator(".chat-head .fill").click()
    panel = page.get_by_role("dialog", name="Context use")
    for name in ("instructions", "tools", "your words", "replies", "free"):
        await expect(panel.locator("td", has_text=name).first).to_be_visible()
    await expect(panel).to_contain_text("There is nothing to compress yet")
    await expect(panel.get_by_role("button", name="Compress now")).to_be_disabled()
    await page.keyboard.press("Escape")
    await say(page, "/context")
    await expect(panel).to_be_visible()


async def test_a_chat_goes_on_in_a_terminal(page: Page, dashboard: Board) -> None:
    dashboard.says("It is here, in the page.")
    await say(page, "hello")
    await rests(page, 1)
    await page.get_by_role("button", name="More").click()
    await page.get_by_role("link", name="Open in a terminal").click()
    await expect(page).to_have_url(re.compile(r"#/terminal/[\w-]"))
    await expect(page.locator(".xterm-rows")).to_contain_text(
        "It is here, in the page."
    )


async def test_a_queued_message_does_not_overtake_one_that_is_still_being_sent(
    page: Page, dashboard: Board
) -> None:
    dashboard.says("First.", "The file.", "The text.")
    await say(page, "begin")
    await rests(page, 1)
    sent: list[str] = []
    let = asyncio.Event()

    async def hold(route: Route) -> None:
        sent.append(json.loads(route.request.post_data or "")["text"])
        await let.wait()
        await route.continue_()

    await page.route("**/messages", hold)
    await say(page, "read the large file")
    await say(page, "and then this")
    await expect(page.locator(".unsent")).to_have_count(2)
    await page.evaluate("fetch('/api/status').then((reply) => reply.text())")
    assert sent == ["read the large file"]
    let.set()
    await rests(page, 3)
    assert said(dashboard)[-2:] == [
        "read the large file",
        "and then this",
    ]
