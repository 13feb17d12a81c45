"""Long sessions in the chat: the end at once, the rest when it is wanted, nothing twice, missing or out of place."""

import asyncio
import json
import time
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect
from tests.e2e.dashboard.chatting import replayed, rests, say, transcript
from tests.e2e.dashboard.conftest import PATIENCE, Board, Complaints
from tests.e2e.dashboard.past import Past, call, past_of, reply

from hermes.schema.event_base import Event
from hermes.schema.events import SessionCompacted, SessionUndone, TurnEnded, TurnStarted
from hermes.schema.learning import LearningReviewed
from hermes.schema.messages import UserMessage
from hermes.store.log_row import Row

TURNS = 120
OTHER = 100  # turns of the other session
CALLS = 150
BACK = 70  # turns that are taken back: more than are read at first, and none before room was made
DRAWN = 240  # rows that the page draws at most

_UP = """async () => {
    const box = document.querySelector(".scroll");
    const first = () => document.querySelector(".transcript > .item");
    box.scrollTop = 0;
    const row = first();
    const before = row.getBoundingClientRect().top;
    while (first() === row && document.querySelector(".earlier")) await new Promise(requestAnimationFrame);
    const moved = row.isConnected ? row.getBoundingClientRect().top - before : null;
    return { moved, keys: [...document.querySelectorAll(".transcript > .item")].map((one) => one.dataset.key) };
}"""


@pytest.fixture
def dashboard(shared: Board) -> Board:
    return shared


@pytest.fixture
def page(visit: Page) -> Page:
    return visit


@pytest.fixture(scope="module")
def ids(shared: Board) -> dict[str, str]:
    """Sessions with a long past, by what they are."""
    with past_of(shared.hermes.home, time.time() - 86_400.0) as past:
        busy = _busy(past, reply("All done."), TurnEnded(reason="done"))
        return {
            "talk": _talk(past, "talk"),
            "other": _talk(past, "other", OTHER),
            "busy": busy,
            "open": _busy(past),
        }


def _talk(past: Past, name: str, turns: int = TURNS) -> str:
    """Many turns, with room made and a turn taken back."""
    session = past.session(f"A long {name}")
    for number in range(turns):
        asked = (f"c{number}", "terminal", '{"command": "true"}')
        made = SessionCompacted(
            summary="Much.", head=1, tail=4, before=48_000, after=9_000, model="fake-1"
        )
        turn, first = _turn(
            past, session, f"{name} question {number}.",
            *([made] if number == turns // 4 else []),
            reply(f"Let me see {number}.", asked), *call(f"c{number}", "terminal", f"result {number}", command="true"),
            reply(f"{name} answer {number}."), TurnEnded(reason="done"),
        )  # fmt: skip
        if number == turns // 3:
            past.app.record(session, SessionUndone(turns=(turn,), since=first))
    past.app.record(
        session, LearningReviewed()
    )  # or the next turn would be looked back at
    return session


def _turn(past: Past, session: str, said: str, *steps: Event) -> tuple[str, int]:
    """A whole turn in two transactions, as there are many of them: its id and its first row."""
    past.clock.advance(30.0)
    (row,) = past.app.record(session, UserMessage(text=said))
    turn = f"t{row.seq}"
    past.app.record(session, TurnStarted(inputs=(row.seq,)), *steps, turn=turn)
    return turn, row.seq


def _busy(past: Past, *last: Event) -> str:
    """One turn that is longer than what is read at once; without a last word it goes on."""
    session = past.session("A long turn")
    steps = [
        event
        for number in range(CALLS)
        for event in (
            reply("", (f"b{number}", "terminal", '{"command": "true"}')),
            *call(f"b{number}", "terminal", f"step {number}", command="true"),
        )
    ]
    _turn(past, session, "Work for long.", *steps, *last)
    return session


def _log(board: Board, session: str, kind: str) -> list[Row]:
    """Rows of one kind, as they are in the store."""
    with past_of(board.hermes.home, time.time()) as past:
        return [
            row for row in past.app.store.log.every_event(session) if row.type == kind
        ]


async def _open(page: Page, session: str, query: str = "") -> None:
    await page.evaluate(
        "(hash) => { location.hash = hash; }", f"#/chat/{session}{query}"
    )


def _rows(state: dict[str, Any]) -> str:
    return json.dumps(state["items"])


async def test_a_long_session_opens_at_its_end_and_can_be_read_back_to_its_beginning(
    page: Page, dashboard: Board, ids: dict[str, str]
) -> None:
    await _open(page, ids["talk"])
    await expect(page.get_by_text(f"talk answer {TURNS - 1}.")).to_be_in_viewport()
    assert (await transcript(page))["first"] > TURNS
    assert await page.locator(".transcript > .item").count() <= DRAWN
    seen: set[str] = set()
    async with asyncio.timeout(4 * PATIENCE):
        while await page.locator(".earlier").count():
            step = await page.evaluate(_UP)
            assert len(step["keys"]) <= DRAWN
            assert len(set(step["keys"])) == len(step["keys"])
            assert step["moved"] is not None
            assert abs(step["moved"]) <= 2, "what is read must stay where it is"
            seen.update(step["keys"])
    await expect(page.get_by_text("talk question 0.")).to_be_attached()
    found, whole = await transcript(page), await replayed(page)
    assert found["first"] == 1
    assert _rows(found) == _rows(whole)
    stored = [row.seq for row in _log(dashboard, ids["talk"], "agent.message.user")]
    assert [item["seq"] for item in found["items"] if item["kind"] == "user"] == stored
    assert {item["key"] for item in found["items"] if not item.get("undone")} <= seen

    dashboard.says("And so it goes on.")
    await say(page, "still there?")
    await expect(page.get_by_text("And so it goes on.")).to_be_in_viewport()
    await rests(page, TURNS + 1)
    assert _rows(await transcript(page)) == _rows(await replayed(page))
    assert await page.locator(".transcript > .item").count() <= DRAWN


async def test_what_happens_meanwhile_and_what_was_before_come_together(
    page: Page, dashboard: Board, ids: dict[str, str]
) -> None:
    """The end is live before the rest is read; an undo of old turns counts for those as well."""
    await _open(page, ids["other"])
    await expect(page.get_by_text(f"other answer {OTHER - 1}.")).to_be_in_viewport()
    dashboard.says("A new answer.")
    await say(page, "a new question")
    await expect(page.get_by_text("A new answer.")).to_be_in_viewport()
    await say(page, f"/undo {BACK}")
    await expect(page.get_by_text(f"Undid {BACK} turns.").first).to_be_visible()
    await page.get_by_role("button", name="More").click()
    await page.get_by_role("button", name="Go to the beginning").click()
    await expect(page.get_by_text("other question 0.")).to_be_in_viewport()
    found, whole = await transcript(page), await replayed(page)
    assert found["first"] == 1
    assert _rows(found) == _rows(whole)


async def test_a_turn_that_is_longer_than_a_page_is_read_in_parts(
    page: Page, ids: dict[str, str]
) -> None:
    await _open(page, ids["busy"])
    await expect(page.get_by_text("All done.")).to_be_in_viewport()
    state = await transcript(page)
    assert state["first"] > 1
    assert all(item["arguments"] for item in state["items"] if item["kind"] == "tool")
    await page.locator(".scroll").press("Home")
    await expect(page.get_by_text("Work for long.")).to_be_in_viewport()
    assert _rows(await transcript(page)) == _rows(await replayed(page))
    await page.locator(".scroll").press("End")
    await expect(page.get_by_text("All done.")).to_be_in_viewport()


async def test_a_turn_goes_on_though_its_beginning_was_not_read(
    page: Page, ids: dict[str, str]
) -> None:
    await _open(page, ids["open"])
    await expect(page.get_by_role("button", name="Stop")).to_be_visible()
    assert (await transcript(page))["first"] > 1


async def test_a_hit_in_the_older_part_is_brought_into_sight(
    page: Page, dashboard: Board, ids: dict[str, str]
) -> None:
    await _open(page, ids["talk"])
    await expect(page.get_by_text(f"talk answer {TURNS - 1}.")).to_be_in_viewport()
    (hit,) = (
        row
        for row in _log(dashboard, ids["talk"], "agent.message.assistant")
        if "talk answer 7." in row.data
    )
    await _open(page, ids["talk"], f"?at={hit.seq}")
    await expect(page.locator(".item.found")).to_be_in_viewport()
    await expect(page.locator(".item.found")).to_contain_text("talk answer 7.")


async def test_the_browser_finds_words_in_parts_of_a_reply_that_are_not_drawn(
    page: Page, dashboard: Board
) -> None:
    parts = [f"Part {number} has **bold** words.\n\n" for number in range(400)]
    parts[20] = "The *needle* is **here**, in a [link](https://example.org).\n\n"
    dashboard.says("".join(parts))
    await say(page, "write a lot")
    await rests(page, 1)
    unseen = page.locator(".md-unseen", has_text="The needle is here, in a link.")
    await expect(unseen).to_have_attribute("hidden", "until-found")
    # What a browser does first when its own search finds hidden words.
    await unseen.evaluate("node => node.dispatchEvent(new Event('beforematch'))")
    await expect(page.locator(".markdown p", has_text="The needle")).to_have_count(1)


async def test_a_late_answer_of_one_session_does_not_appear_in_another(
    page: Page, ids: dict[str, str]
) -> None:
    rows = f"**/api/sessions/{ids['talk']}/events*"
    let = asyncio.Event()

    async def hold(route: Route) -> None:
        await let.wait()
        await route.continue_()

    await page.route(rows, hold)
    async with page.expect_request(rows):
        await _open(page, ids["talk"])
    await expect(page.get_by_text("Loading the session")).to_be_visible()
    await _open(page, ids["busy"])
    await expect(page.get_by_text("All done.")).to_be_in_viewport()
    async with page.expect_response(rows):
        let.set()
    await expect(page.get_by_role("heading", name="A long turn")).to_be_visible()
    assert "talk" not in await page.locator(".transcript").inner_text()
    await _open(page, ids["talk"])
    await expect(page.get_by_text(f"talk answer {TURNS - 1}.")).to_be_attached()
    assert "step" not in await page.locator(".transcript").inner_text()


async def test_a_session_that_is_deleted_elsewhere_says_so(
    page: Page, dashboard: Board, complaints: Complaints
) -> None:
    with past_of(dashboard.hermes.home, time.time() - 3600.0) as past:
        session = _talk(past, "short", 5)
    await _open(page, session)
    await expect(page.get_by_text("short answer 4.")).to_be_in_viewport()
    with past_of(dashboard.hermes.home, time.time()) as past:
        past.app.delete(session)
    await expect(page.get_by_text("This session was deleted.")).to_be_visible()
    await page.reload()
    await expect(page.get_by_text("There is no such session.")).to_be_visible()
    complaints.expect(f"status of 404 .*{session}")
