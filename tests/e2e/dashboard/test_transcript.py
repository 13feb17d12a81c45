"""The transcript: the same whatever happens to the connection, and cheap to keep up to date."""

import json
import re

import pytest
from playwright.async_api import Page, WebSocketRoute, expect
from tests.e2e.dashboard.chatting import replayed, replies, rests, say, transcript
from tests.e2e.dashboard.conftest import Board

from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

CUTS = 100
TURNS = 12


@pytest.fixture
def dashboard(shared: Board) -> Board:
    return shared


@pytest.fixture
def page(visit: Page) -> Page:
    return visit


class Knife:
    """Cuts the feed of a session in mid-token: right after the page got a piece of the reply."""

    def __init__(self) -> None:
        self.left = CUTS

    def hold(self, socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()

        async def pass_on(message: str | bytes) -> None:
            socket.send(message)
            if self.left and '"agent.message.delta"' in str(message):
                self.left -= 1
                await server.close()
                await socket.close(code=3001)

        server.on_message(pass_on)


async def test_a_hundred_cuts_in_mid_token_leave_the_transcript_byte_equal(
    page: Page, dashboard: Board
) -> None:
    knife = Knife()
    await page.route_web_socket(re.compile(r"/api/sessions/[^/]+/feed"), knife.hold)
    await page.reload()
    said: list[str] = []
    text = "".join(
        f"Zeile {number}: ä€🙂 **fett** `x{number}` \n" for number in range(60)
    )
    while knife.left:
        assert len(said) < TURNS, f"{knife.left} cuts are left"
        said.append(f"{len(said)} {text}")
        dashboard.says(ScriptedResponse(text=said[-1], chunk=7, delay=0.01))
        await say(page, f"again {len(said)}")
        await rests(page, len(said))
    found = await transcript(page)
    assert replies(found) == said
    whole = await replayed(page)
    assert json.dumps(found["items"]) == json.dumps(whole["items"])
    assert (found["cost"], found["context"], found["head"]) == (
        whole["cost"],
        whole["context"],
        whole["head"],
    )


async def test_however_events_are_cut_into_batches_the_transcript_is_the_same(
    page: Page, dashboard: Board
) -> None:
    call = ServedCall("read_file", json.dumps({"path": "missing.txt"}))
    dashboard.says(
        ScriptedResponse(text="Let me see.", reasoning="Hm.", calls=(call,)),
        "It is not there.",
    )
    await say(page, "read missing.txt")
    await rests(page, 1)
    session = (await transcript(page))["session"]
    differing = await page.evaluate(
        """async (id) => {
            const { fresh, reduce } = await import("/static/views/chat/transcript.js");
            const { events } = await (await fetch(`/api/sessions/${id}/events`)).json();
            const frozen = (value) => {
                if (value && typeof value === "object") { Object.freeze(value); Object.values(value).forEach(frozen); }
                return value;
            };
            const once = JSON.stringify(reduce(fresh(id), frozen(structuredClone(events))));
            const wrong = [];
            for (let size = 1; size <= events.length; size++) {
                let state = frozen(fresh(id));
                for (let at = 0; at < events.length; at += size) {
                    const from = Math.max(0, at - 2);  // some of them come twice
                    state = frozen(reduce(state, events.slice(from, at + size)));
                }
                if (JSON.stringify(state) !== once) wrong.push(size);
            }
            return wrong;
        }""",
        session,
    )
    assert differing == []


async def test_a_reply_of_codex_names_the_engine(page: Page) -> None:
    shown = await page.evaluate(
        """async () => {
            const { fresh, reduce } = await import("/static/views/chat/transcript.js");
            const event = { type: "agent.message.assistant", session_id: "s", epoch: 1, seq: 1, ts: 1, text: "hi",
                provider: "codex", model: "gpt-5.5" };
            const state = reduce(fresh("s"), [event]);
            return [state.model, state.items[0].model];
        }"""
    )
    assert shown == ["codex gpt-5.5", "codex gpt-5.5"]


async def test_of_two_answers_to_a_request_the_first_is_shown(page: Page) -> None:
    shown = await page.evaluate(
        """async () => {
            const { fresh, reduce } = await import("/static/views/chat/transcript.js");
            const about = { session_id: "s", epoch: 1, ts: 1, turn_id: "t", call_id: "c", name: "x", arguments: "{}" };
            const types = ["tool.started", "approval.requested", "approval.answered", "approval.answered"];
            const events = types.map((type, at) => ({ ...about, type: `agent.${type}`, seq: at + 1 }));
            Object.assign(events[2], { answer: "deny", by: "first" });
            Object.assign(events[3], { answer: "once", by: "second" });
            const { items } = reduce(fresh("s"), events);
            return items.find((item) => item.approval).approval.by;
        }"""
    )
    assert shown == "first"


async def test_what_is_written_touches_nothing_above_it(
    page: Page, dashboard: Board
) -> None:
    """Each piece changes the reply that is being written; older items are left alone, however many there are."""
    dashboard.says(
        "The first answer.", ScriptedResponse(text="piece " * 60, chunk=6, delay=0.01)
    )
    await say(page, "one")
    await rests(page, 1)
    drawn = page.locator(".message.assistant:not(.live)")
    again = page.get_by_role("button", name="Try again")  # of the last reply only
    await expect(drawn.nth(0).locator(again)).to_be_attached()
    await page.evaluate(
        """() => {
            window.touched = 0;
            const isTime = ({ target }) => target.parentElement?.closest("time"); // it ages by itself
            new MutationObserver((changes) => { window.touched += changes.filter((one) => !isTime(one)).length; }).observe(
                document.querySelector(".message.assistant"), { subtree: true, childList: true, characterData: true });
        }"""
    )
    await say(page, "two")
    await rests(page, 2)
    await expect(drawn.nth(1).locator(again)).to_be_attached()
    assert (
        await page.evaluate("window.touched") <= 2
    )  # it is no longer the last, so its "Try again" goes


async def test_a_long_session_draws_only_its_end(page: Page, dashboard: Board) -> None:
    dashboard.says("The last word.")
    await say(page, "begin")
    await rests(page, 1)
    session = (await transcript(page))["session"]
    await page.evaluate(
        """async (id) => {
            const { conversationOf } = await import("/static/views/chat/conversation.js");
            const { reduce } = await import("/static/views/chat/transcript.js");
            const { transcript } = conversationOf(id);
            const { epoch, head } = transcript.value;
            const events = Array.from({ length: 4000 }, (_, n) => ({
                type: "agent.message.assistant", session_id: id,
                epoch, seq: head + 1 + n, ts: 1, turn_id: `t${n >> 1}`, text: `message ${n}`,
            }));
            transcript.set(reduce(transcript.value, events));
        }""",
        session,
    )
    await expect(page.locator(".message").last).to_contain_text("message 3999")
    assert await page.locator(".transcript > .item").count() < 100
    await page.locator(".scroll").evaluate("element => { element.scrollTop = 0; }")
    await expect(page.locator(".transcript > .item").nth(110)).to_be_attached()
    await page.get_by_role("button", name="Latest").click()
    await expect(page.get_by_text("message 3999")).to_be_in_viewport()
