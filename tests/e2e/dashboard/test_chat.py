"""The chat in a browser with a scripted model: said, streamed, shown, continued elsewhere, taken back."""

import base64
import json
import re
from pathlib import Path

import pytest
from playwright.async_api import Page, Request, Route, expect
from tests.e2e.dashboard.chatting import (
    box,
    replayed,
    replies,
    rests,
    say,
    session_of,
    transcript,
)
from tests.e2e.dashboard.conftest import Board, Complaints

from hermes.app import build
from hermes.schema.events import (
    CompactionFailed,
    SessionCompacted,
    TurnEnded,
    TurnStarted,
)
from hermes.settings import Home, Settings
from hermes.testing.scripted_responses import (
    ScriptedResponse,
    ServedCall,
    ServerFault,
)

ANSWER = """\
## What I found

It was **one line**, in `shop.py`:

```python
def total(items):
    return sum(items)  # all of them
```

| check | result |
|---|--:|
| three items | 6 |

1. First
2. See [the notes](https://example.org/notes)
"""
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def dashboard(shared: Board) -> Board:
    return shared


@pytest.fixture
def page(visit: Page) -> Page:
    return visit


async def test_a_question_is_streamed_shown_as_markdown_and_kept(
    page: Page, dashboard: Board
) -> None:
    dashboard.says(
        ScriptedResponse(text=ANSWER, reasoning="Let me think about shop.py.")
    )
    await say(page, "why is the total too small?")
    await rests(page, 1)
    reply = page.locator(".message.assistant")
    await expect(reply.locator("h4")).to_have_text("What I found")
    await expect(reply.locator("strong")).to_have_text("one line")
    await expect(reply.locator("pre code")).to_have_text(
        "def total(items):\n    return sum(items)  # all of them"
    )
    await expect(reply.locator("pre .hl-keyword").first).to_have_text("def")
    await expect(reply.locator("td").last).to_have_class("align-right")
    await expect(reply.get_by_role("link", name="the notes")).to_have_attribute(
        "rel", re.compile("noopener")
    )
    await expect(reply.locator("details.reasoning")).not_to_have_attribute("open", "")
    await expect(reply.locator(".reasoning-text")).to_have_text(
        "Let me think about shop.py."
    )
    await expect(page.get_by_role("heading", name="why is the total")).to_be_visible()
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await reply.get_by_role("button", name="Copy code").click()
    assert (await page.evaluate("navigator.clipboard.readText()")).startswith(
        "def total(items):"
    )
    before = await transcript(page)
    assert replies(before) == [ANSWER]
    await page.reload()
    await rests(page, 1)
    assert (await transcript(page))["items"] == before["items"]


async def test_the_same_conversation_goes_on_from_a_terminal_and_back(
    page: Page, dashboard: Board
) -> None:
    dashboard.says("Here.", "From the terminal.", "And back.")
    await say(page, "hello from the page")
    await rests(page, 1)
    session = await session_of(page)
    done = await dashboard.hermes.run("--resume", session, "hello from the terminal")
    assert "From the terminal." in done.out
    await expect(page.locator(".message.user").last).to_contain_text(
        "hello from the terminal"
    )
    await expect(page.locator(".message.assistant").last).to_contain_text(
        "From the terminal."
    )
    await say(page, "and here again")
    await rests(page, 3)
    said = [
        message["content"] for message in dashboard.asked() if message["role"] == "user"
    ]
    assert said[-3:] == [
        "hello from the page",
        "hello from the terminal",
        "and here again",
    ]


async def test_reloading_in_mid_stream_loses_nothing(
    page: Page, dashboard: Board
) -> None:
    text = "".join(f"word{number} " for number in range(150))
    dashboard.says(ScriptedResponse(text=text, chunk=9, pauses=True))
    await say(page, "tell me a lot")
    live = page.locator(".message.assistant.live")
    await expect(live).to_contain_text("word50 ")
    row = page.locator(".drawer-row.current .drawer-title")
    for named in (row, page.locator(".chat-title")):  # before it has a title
        await expect(named).to_have_text("tell me a lot")
    for _ in range(2):
        await page.reload()
        await expect(live).to_contain_text("word50 ")
    dashboard.model.go_on.set()
    await rests(page, 1)
    assert replies(await transcript(page)) == [text]
    assert (await transcript(page))["items"] == (await replayed(page))["items"]


async def test_a_message_that_could_not_be_sent_is_kept_and_says_so(
    page: Page, dashboard: Board, complaints: Complaints
) -> None:
    dashboard.says("First.", "Second.")
    await say(page, "one")
    await rests(page, 1)
    await page.route("**/messages", lambda route: route.abort())
    await say(page, "two, which gets lost")
    await expect(page.locator(".unsent.failed")).to_contain_text("two, which gets lost")
    await expect(page.get_by_role("alert")).to_contain_text(
        "Not sent. The dashboard can't be reached."
    )
    await page.reload()
    await expect(page.locator(".unsent.failed")).to_contain_text("two, which gets lost")
    await page.unroute("**/messages")
    await page.get_by_role("button", name="Send again").click()
    await rests(page, 2)
    await expect(page.locator(".unsent")).to_have_count(0)
    assert [
        item["text"]
        for item in (await transcript(page))["items"]
        if item["kind"] == "user"
    ] == [
        "one",
        "two, which gets lost",
    ]
    complaints.expect("ERR_FAILED")


async def test_a_message_whose_receipt_got_lost_is_not_said_twice(
    page: Page, dashboard: Board, complaints: Complaints
) -> None:
    dashboard.says("First.", "Second.")
    await say(page, "one")
    await rests(page, 1)

    async def deliver_without_a_word(route: Route, _: Request) -> None:
        await route.fetch()
        await route.abort()

    await page.route("**/messages", deliver_without_a_word)
    await say(page, "two")
    await rests(page, 2)
    await expect(page.locator(".unsent")).to_have_count(0)
    await page.reload()
    await rests(page, 2)
    await expect(page.locator(".message.user")).to_have_count(2)
    complaints.expect("ERR_FAILED")


async def test_what_is_typed_stays_with_its_session(
    page: Page, dashboard: Board
) -> None:
    dashboard.says("Yes.")
    await say(page, "first session")
    await rests(page, 1)
    await box(page).fill("a draft")
    await page.get_by_role("link", name="New chat", exact=True).click()
    await expect(box(page)).to_have_value("")
    await page.go_back()
    await expect(box(page)).to_have_value("a draft")
    await page.reload()
    await expect(box(page)).to_have_value("a draft")


async def test_a_picture_is_shown_to_the_model_and_on_the_page(
    page: Page, dashboard: Board, tmp_path: Path
) -> None:
    dashboard.says("A dot.")
    (tmp_path / "dot.png").write_bytes(PICTURE)
    await page.locator("input[type=file]").set_input_files(tmp_path / "dot.png")
    await expect(page.locator(".attached img")).to_have_count(1)
    await say(page, "what is this?")
    await rests(page, 1)
    assert base64.b64encode(PICTURE).decode() in str(dashboard.asked())
    shown = page.locator(".message.user .picture img")
    await expect(shown).to_have_js_property("naturalWidth", 1)
    await page.reload()
    await expect(shown).to_have_js_property("naturalWidth", 1)


async def test_a_document_is_read_for_the_model_and_is_a_chip_on_the_page(
    page: Page, dashboard: Board, tmp_path: Path
) -> None:
    canvas = pytest.importorskip("reportlab.pdfgen.canvas")
    written = canvas.Canvas(str(tmp_path / "bill.pdf"))
    written.drawString(100, 700, "The bill is 4711 euros.")
    written.save()
    dashboard.says("That is a lot.")
    await page.locator("input[type=file]").set_input_files(tmp_path / "bill.pdf")
    await expect(page.locator(".attached-files li")).to_contain_text("bill.pdf")
    await say(page, "how much?")
    await rests(page, 1)
    assert "The bill is 4711 euros." in str(dashboard.asked())
    await expect(page.locator(".message.user .said")).to_have_text("how much?")
    await expect(page.locator(".message.user .along-one")).to_contain_text("bill.pdf")


async def test_while_hermes_works_words_wait_steer_or_stop_it(
    page: Page, dashboard: Board
) -> None:
    dashboard.says(
        ScriptedResponse(
            text="on and on " * 40, delay=0.05, fault=ServerFault(hang="middle")
        ),
        "To the one that waited.",
    )
    await say(page, "begin")
    await expect(page.locator(".message.assistant.live")).to_contain_text("on and on")
    await expect(page.get_by_role("radio", name="After this turn")).to_be_checked()
    await say(page, "after that, this")
    await expect(page.locator(".message.user").last).to_contain_text("queued")
    await box(page).press("Escape")
    await rests(page, 2)
    await expect(page.locator(".note.info").first).to_contain_text("Stopped.")
    assert replies(await transcript(page))[-1] == "To the one that waited."
    kinds = [
        (item["kind"], item.get("text", "")[:10])
        for item in (await transcript(page))["items"]
    ]
    assert kinds == [  # the words that waited stand where they were heard
        ("user", "begin"),
        ("assistant", "on and on "),
        ("end", ""),
        ("user", "after that"),
        ("assistant", "To the one"),
        ("end", ""),
    ]


async def test_a_turn_can_be_taken_back_brought_again_and_branched(
    page: Page, dashboard: Board
) -> None:
    dashboard.says("One.", "Two.", "Another two.", "In the branch.")
    await say(page, "first")
    await rests(page, 1)
    await say(page, "second")
    await rests(page, 2)
    await say(page, "/undo")
    await expect(page.locator("details.taken summary")).to_contain_text(
        "2 messages undone"
    )
    await say(page, "/redo")
    await expect(page.locator("details.taken")).to_have_count(0)
    await page.locator(".message.assistant").last.hover()
    await (
        page.locator(".message.assistant")
        .last.get_by_role("button", name="Try again")
        .click()
    )
    await expect(page.locator(".message.assistant").last).to_contain_text(
        "Another two."
    )
    await rests(page, 3)
    old = await session_of(page)
    await page.locator(".message.user", has_text="second").last.hover()
    branch = page.locator(".message.user", has_text="second").last.get_by_role(
        "button", name="Branch from here"
    )
    await branch.click()
    await expect(page).not_to_have_url(re.compile(old))
    await expect(box(page)).to_have_value("second")
    await say(page, "something else")
    await expect(page.locator(".message.assistant").last).to_contain_text(
        "In the branch."
    )
    said = [
        message["content"] for message in dashboard.asked() if message["role"] == "user"
    ]
    assert said[-2:] == ["first", "something else"]


async def test_commands_and_files_are_completed(page: Page, dashboard: Board) -> None:
    (dashboard.hermes.work / "shop.py").write_text("")
    dashboard.says("Yes.")
    await say(page, "hello")
    await rests(page, 1)
    await box(page).press_sequentially("/ti")
    await expect(page.get_by_role("option", name="/title")).to_be_visible()
    await box(page).press("Tab")
    await box(page).press_sequentially("A better name")
    await box(page).press("Enter")
    await expect(page.get_by_role("heading", name="A better name")).to_be_visible()
    await box(page).press_sequentially("look at @sh")
    await expect(page.get_by_role("option", name="shop.py")).to_be_visible()
    await box(page).press("Enter")
    await expect(box(page)).to_have_value("look at @shop.py ")


async def test_a_new_chat_begins_with_a_goal(page: Page, dashboard: Board) -> None:
    verdict = '{"verdict": "done", "reason": "It rhymes."}'
    dashboard.says("Roses are red.", verdict)
    await say(page, "/goal")
    await expect(page.locator(".toast")).to_contain_text("goal")
    await expect(page).not_to_have_url(re.compile("#/chat/."))
    await say(page, "/goal write a poem  turns: 2")
    await expect(page.get_by_role("log")).to_contain_text("It rhymes.")
    await say(page, "/goal show")
    shown = page.get_by_role("dialog", name="/goal")
    await expect(shown).to_contain_text("write a poem")


async def test_a_new_chat_is_given_up_only_if_its_command_was_refused(
    page: Page, dashboard: Board, complaints: Complaints
) -> None:
    deleted: list[Request] = []

    async def deliver_without_a_word(route: Route, _: Request) -> None:
        await route.fetch()
        await route.abort()

    def note(request: Request) -> None:
        if request.method == "DELETE":
            deleted.append(request)

    page.on("request", note)
    await page.route("**/commands", deliver_without_a_word)
    await say(page, "/subgoal it rhymes")
    await expect(page.locator(".toast")).to_contain_text("can't be reached")
    await expect(box(page)).to_have_value("/subgoal it rhymes")
    assert deleted == []
    await page.unroute("**/commands")
    await page.route("**/commands", lambda route: route.fulfill(status=409))
    async with page.expect_request(lambda request: request.method == "DELETE"):
        await say(page, "/subgoal it scans")
    await expect(box(page)).to_have_value("/subgoal it scans")
    complaints.expect("ERR_FAILED|409")


async def test_background_work_is_listed_live_told_and_stopped(
    page: Page, dashboard: Board
) -> None:
    waits = ScriptedResponse(fault=ServerFault(hang="head"))
    dashboard.says("Hello.", waits, "Found it.", waits)
    await say(page, "hello")
    await rests(page, 1)
    await say(page, "/agents")
    work = page.get_by_role("dialog", name="Background work")
    await expect(work).to_contain_text("Nothing is running")
    await page.keyboard.press("Escape")
    await say(page, "/bg look for it")
    await say(page, "/agents")
    child = work.get_by_role("listitem")
    await expect(child).to_contain_text("working")
    await expect(child).to_contain_text("thinking")
    await child.get_by_role("button", name="Stop").click()
    await expect(child).to_contain_text("interrupted")
    await child.get_by_label("Tell it something").fill("go on")
    await child.get_by_role("button", name="Send").click()
    await expect(child).to_contain_text("done")
    await child.get_by_label("Tell it something").fill("once more")
    await page.keyboard.press("Enter")
    await expect(child).to_contain_text("working")
    await child.get_by_role("link").click()
    await expect(page.get_by_role("log")).to_contain_text("once more")
    await page.keyboard.press("Escape")


async def test_output_is_shown_while_a_command_runs(
    page: Page, dashboard: Board
) -> None:
    command = "echo first; until test -e go-on; do sleep 0.05; done; echo at last"
    dashboard.says(
        ScriptedResponse(
            calls=(ServedCall("terminal", json.dumps({"command": command})),)
        ),
        "It is done.",
    )
    await say(page, "run it")
    allow = page.get_by_role("button", name="Allow once")
    output = page.locator(".tool .output pre")
    await expect(allow.or_(output)).to_be_visible()
    if await allow.is_visible():
        await allow.click()
    await expect(output).to_have_text("first\n")
    (dashboard.hermes.work / "go-on").touch()
    await rests(page, 1)
    await page.locator(".tool-head").click()
    await expect(output).to_contain_text("at last")


async def test_compaction_by_itself_and_its_failure_are_told(
    page: Page, dashboard: Board
) -> None:
    dashboard.says("Hello.")
    await say(page, "hi")
    await rests(page, 1)
    failed = CompactionFailed(detail="the summary was empty.")
    made = SessionCompacted(
        summary="They said hello.", head=1, tail=1, before=180_000, after=20_000
    )
    with build(Settings(), Home(dashboard.hermes.home)) as app:
        app.record(
            await session_of(page),
            TurnStarted(),
            failed,
            made,
            TurnEnded(reason="done"),
            turn="automatic",
        )
    await rests(page, 2)
    await expect(page.locator(".note.warn")).to_have_text(
        "The conversation could not be shortened: the summary was empty. Nothing was removed;"
        " Hermes will try again later."
    )
    note = page.locator(".note.info")
    await expect(note).to_contain_text(
        "The conversation got too long for the model, so its middle was summarized: about 180,000 tokens became 20,000."
    )
    await note.locator("summary").click()
    await expect(note).to_contain_text("They said hello.")
    assert (await transcript(page))["context"] == 20_000
