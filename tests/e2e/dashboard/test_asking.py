"""What waits for a person: approvals with exactly what will run, and questions; also of a session's helpers."""

import asyncio
import json
from typing import Any

import msgspec
import pytest
from playwright.async_api import Browser, Page, expect
from tests.e2e.dashboard.chatting import box, rests, say, session_of, transcript, width
from tests.e2e.dashboard.conftest import PATIENCE, Board, Complaints, again
from tests.e2e.dashboard.test_access import found_by_axe

from hermes.core.answers import approval_hash
from hermes.schema.event_base import payload_of
from hermes.schema.events import ApprovalRequested
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall


@pytest.fixture
def dashboard(shared: Board) -> Board:
    return shared


@pytest.fixture
def page(visit: Page) -> Page:
    return visit


def edit(board: Board, name: str) -> ScriptedResponse:
    """The model wants to change a file."""
    (board.hermes.work / name).write_text(
        "def total(items):\n    return sum(items[:-1])\n"
    )
    arguments = {"path": name, "old_text": "sum(items[:-1])", "new_text": "sum(items)"}
    return ScriptedResponse(
        calls=(
            ServedCall("read_file", json.dumps({"path": name})),
            ServedCall("edit_file", json.dumps(arguments)),
        )
    )


async def test_a_change_is_shown_exactly_and_made_only_when_allowed(
    page: Page, dashboard: Board
) -> None:
    dashboard.says(edit(dashboard, "one.py"), "It is repaired.")
    await say(page, "repair it")
    asking = page.get_by_role("group", name="Hermes wants to use edit_file")
    await expect(asking.locator(".diff-del .diff-text")).to_have_text(
        "    return sum(items[:-1])"
    )
    await expect(asking.locator(".diff-add .diff-text")).to_have_text(
        "    return sum(items)"
    )
    await expect(asking).to_contain_text(str(dashboard.hermes.work))
    await expect(page.locator(".rail .badge")).to_have_text("1")
    assert (
        await found_by_axe(page) == []
    )  # also the keys on the buttons, which a phone does not show
    assert "[:-1]" in (dashboard.hermes.work / "one.py").read_text()
    await box(page).evaluate("element => element.blur()")
    async with asyncio.timeout(PATIENCE):
        while (
            await asking.is_visible()
        ):  # a key counts only once the question can have been read
            await page.keyboard.press("Alt+y")
    await rests(page, 1)
    assert (dashboard.hermes.work / "one.py").read_text().endswith("sum(items)\n")
    await expect(page.locator(".answered")).to_contain_text(
        "Allowed once (by dashboard)"
    )
    await expect(page.locator(".rail .badge")).to_have_count(0)


async def test_a_no_with_a_reason_reaches_the_model_together(
    page: Page, dashboard: Board
) -> None:
    dashboard.says(edit(dashboard, "two.py"), "Then I leave it.")
    await say(page, "repair that too")
    await page.get_by_label("Tell the model why not").fill("it is meant to be so")
    await page.get_by_role("button", name="Deny").click()
    await rests(page, 1)
    assert "[:-1]" in (dashboard.hermes.work / "two.py").read_text()
    assert dashboard.asked()[-1] == {
        "role": "tool",
        "tool_call_id": dashboard.asked()[-1]["tool_call_id"],
        "content": "Not run: the user said no: it is meant to be so",
    }
    assert (
        len(dashboard.asked()) == 5
    )  # nothing was said behind it: system, words, calls and two results
    await expect(page.locator(".answered")).to_contain_text(
        "Denied (by dashboard): it is meant to be so"
    )
    calls = [
        item for item in (await transcript(page))["items"] if item["kind"] == "tool"
    ]
    assert calls[-1]["status"] == "failed"


@pytest.mark.parametrize("is_secure", [True, False])
async def test_the_page_and_the_server_agree_on_the_hash_of_what_is_shown(
    page: Page, dashboard: Board, is_secure: bool
) -> None:
    """Whatever characters are in it; the answers of the other tests would not count otherwise. Also over plain http,
    where a browser offers no SHA-256."""
    if not is_secure:
        await page.add_init_script("delete Crypto.prototype.subtle")
    text = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x10000), 0x1F600)))
    request = ApprovalRequested(
        call_id="c", name="terminal", arguments='{"a": "\\u2028"}', summary=text
    )
    await page.goto(dashboard.url)
    assert await page.evaluate("Boolean(crypto.subtle)") is is_secure
    script = "async (request) => (await import('/static/app/approval_hash.js')).approvalHash(request)"
    for length in (len(text), *range(64)):  # the last block may be full or not
        shown = msgspec.structs.replace(request, summary=text[-length:])
        assert await page.evaluate(script, payload_of(shown)) == approval_hash(shown)


async def test_a_hash_that_fails_leaves_the_card_usable_and_a_no_needs_none(
    page: Page, dashboard: Board
) -> None:
    await page.evaluate(
        "() => { SubtleCrypto.prototype.digest = async () => { throw new Error('no digest today'); }; }"
    )
    dashboard.says(edit(dashboard, "four.py"), "Then I leave it.")
    await say(page, "repair the fourth")
    await page.get_by_role("button", name="Allow once").click()
    await expect(page.get_by_text("no digest today")).to_be_visible()
    await page.get_by_role("button", name="Deny").click()
    await rests(page, 1)
    assert "[:-1]" in (dashboard.hermes.work / "four.py").read_text()
    await expect(page.locator(".answered")).to_contain_text("Denied (by dashboard)")


_SLOW_LINE = {
    "offline": False,
    "latency": 300,
    "downloadThroughput": 200_000,
    "uploadThroughput": 50_000,
}
_MOVING = "document.getAnimations().filter((one) => one.playState === 'running' && one.effect.getTiming().duration > 1)"


async def test_two_browsers_and_a_terminal_share_a_session(
    page: Page, dashboard: Board, browser: Browser, complaints: Complaints
) -> None:
    """The second browser has a slow line and is zoomed to 200 %; its person wants nothing to move."""
    dashboard.says(edit(dashboard, "three.py"), "Done.", "From the terminal.")
    await say(page, "repair the third")
    await expect(page.get_by_role("button", name="Allow once")).to_be_visible()
    session = await session_of(page)
    zoomed: dict[str, Any] = {
        "viewport": {"width": 640, "height": 400},
        "device_scale_factor": 2,
        "reduced_motion": "reduce",
    }
    async with again(browser, dashboard, complaints, **zoomed) as other:
        line = await other.context.new_cdp_session(other)
        await line.send("Network.enable")
        await line.send("Network.emulateNetworkConditions", _SLOW_LINE)
        await other.goto(f"{dashboard.url}/#/chat/{session}")
        await other.reload()
        allow = other.get_by_role("button", name="Allow once")
        await expect(allow).to_be_visible()
        assert await width(other) <= 640
        assert await other.evaluate(f"{_MOVING}.length") == 0
        assert await found_by_axe(other) == []
        await allow.click()
        await rests(page, 1)
        await expect(page.get_by_role("button", name="Allow once")).to_have_count(0)
        done = await dashboard.hermes.run("--resume", session, "and from here")
        assert "From the terminal." in done.out
        for one in (page, other):
            replies = one.locator(".message.assistant")
            await expect(replies.last).to_contain_text("From the terminal.")
            await expect(replies.nth(-2)).to_contain_text("Done.")


async def test_a_question_of_the_model_is_answered(
    page: Page, dashboard: Board
) -> None:
    arguments = json.dumps({"question": "Which colour?", "options": ["red", "blue"]})
    dashboard.says(
        ScriptedResponse(calls=(ServedCall("ask_user", arguments),)), "Blue it is."
    )
    await say(page, "paint it")
    form = page.get_by_role("form", name="A question for you")
    await expect(form).to_contain_text("Which colour?")
    await form.get_by_role("button", name="blue").click()
    await rests(page, 1)
    assert dashboard.asked()[-1]["content"].endswith("blue")


async def test_what_is_written_while_a_question_waits_answers_it(
    page: Page, dashboard: Board
) -> None:
    ask = ServedCall(
        "ask_user",
        json.dumps({"question": "Which colour?", "options": ["red", "blue"]}),
    )
    dashboard.says(ScriptedResponse(calls=(ask,)), "Green it is.")
    await say(page, "paint it all")
    await expect(page.get_by_role("form", name="A question for you")).to_contain_text(
        "write your answer below"
    )
    await expect(page.get_by_role("radio", name="Answer")).to_be_checked()
    await say(page, "green, please")
    await rests(page, 1)
    assert dashboard.asked()[-1]["content"].endswith("green, please")
    users = [
        item["text"]
        for item in (await transcript(page))["items"]
        if item["kind"] == "user"
    ]
    assert users == ["paint it all"]
    await expect(page.locator(".answered")).to_contain_text("green, please")
    await expect(page.get_by_role("radiogroup")).to_have_count(0)


async def test_a_session_that_works_for_another_asks_where_the_person_is(
    page: Page, dashboard: Board
) -> None:
    task = ServedCall("delegate", json.dumps({"task": "write child.txt"}))
    write = ServedCall(
        "write_file", json.dumps({"path": "child.txt", "content": "from the child"})
    )
    dashboard.says(
        ScriptedResponse(calls=(task,)),
        ScriptedResponse(calls=(write,)),
        "I wrote it.",
        "It was written.",
    )
    await say(page, "let somebody write it")
    await page.get_by_role("button", name="Allow once").click()
    await rests(page, 1)
    assert (dashboard.hermes.work / "child.txt").read_text() == "from the child"


async def test_typing_outside_a_field_writes_a_message_and_does_nothing_else(
    page: Page, dashboard: Board
) -> None:
    dashboard.says(edit(dashboard, "stray.py"))
    await say(page, "repair the stray one")
    asking = page.get_by_role("group", name="Hermes wants to use edit_file")
    await expect(asking).to_be_visible()
    session = await session_of(page)
    for place in (
        "document.body",
        "document.querySelector('.scroll')",
        "document.querySelector('.asking .button')",
    ):
        await box(page).fill("")
        await page.evaluate(f"document.activeElement.blur(), {place}.focus()")
        await page.keyboard.type("actually do not do that? nay, update")
        await expect(box(page)).to_have_value("actually do not do that? nay, update")
    await expect(asking).to_be_visible()
    assert await session_of(page) == session
    await expect(page.get_by_role("dialog")).to_have_count(0)
    assert "[:-1]" in (dashboard.hermes.work / "stray.py").read_text()
    await page.get_by_role("button", name="Stop").click()
    await rests(page, 1)


async def test_undo_asks_before_it_deletes_a_file(page: Page, dashboard: Board) -> None:
    write = ServedCall(
        "write_file", json.dumps({"path": "made.txt", "content": "by a turn"})
    )
    dashboard.says(ScriptedResponse(calls=(write,)), "It is there.")
    made = dashboard.hermes.work / "made.txt"
    await say(page, "make it")
    await page.get_by_role("button", name="Allow once").click()
    await rests(page, 1)
    await box(page).press("Alt+u")
    question = page.get_by_role("dialog", name="Undo the last turn?")
    await expect(question).to_contain_text(
        "This deletes 1 file that Hermes created: made.txt."
    )
    await expect(question.get_by_role("button", name="Cancel")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(question).to_have_count(0)
    assert made.read_text() == "by a turn"
    await say(page, "/undo")
    await question.get_by_role("button", name="Undo and delete").click()
    await expect(page.locator(".taken")).to_be_visible()
    assert not made.exists()
    await box(page).press("Alt+r")
    await expect(page.locator(".taken")).to_have_count(0)
    assert made.read_text() == "by a turn"


async def test_a_plan_is_edited_and_accepted_on_the_page(
    page: Page, dashboard: Board
) -> None:
    plan = {
        "title": "Add a note",
        "steps": ["Write plan.txt", "Check it"],
        "files": ["plan.txt"],
        "risks": ["none"],
        "check": "cat plan.txt",
    }
    write = ServedCall("write_file", json.dumps({"path": "plan.txt", "content": "x"}))
    dashboard.says(
        ScriptedResponse(calls=(write,)),
        ScriptedResponse(calls=(ServedCall("present_plan", json.dumps(plan)),)),
        ScriptedResponse(calls=(write,)),
        "It is written.",
    )
    await page.get_by_role("button", name="Approvals: Ask").click()
    await page.get_by_role("button", name="Hermes only reads").click()
    await say(page, "plan a note")
    asking = page.get_by_role("form", name="A plan for you to accept")
    await expect(asking).to_contain_text("Write plan.txt")
    assert not (dashboard.hermes.work / "plan.txt").exists()
    await asking.get_by_role("button", name="Edit the plan").click()
    await asking.get_by_label("The plan").fill("1. Write plan.txt\n2. Nothing else")
    await asking.get_by_role("button", name="Start, and edit files").click()
    await rests(page, 1)
    assert (dashboard.hermes.work / "plan.txt").read_text() == "x"
    results = [one["content"] for one in dashboard.asked() if one["role"] == "tool"]
    assert any("2. Nothing else" in str(text) for text in results)
    await expect(
        page.get_by_role("button", name="Approvals: Auto-edit")
    ).to_be_visible()
