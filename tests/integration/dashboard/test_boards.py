"""Boards over HTTP: the JSON that the page reads, and who may do what."""

import pytest
from tests.integration.dashboard.harness import Harness

PATH = "/api/commands/kanban."


async def test_a_card_is_made_moved_and_listed_with_why_it_waits(
    harness: Harness,
) -> None:
    body = {"title": "fix it", "priority": 4, "triage": True}
    made = await harness.call("POST", f"{PATH}create", body, scope="approve")
    card = made["card"]["id"]
    listing = await harness.call("GET", f"{PATH}list", scope="observe")
    assert listing["counts"]["triage"] == 1
    (listed,) = listing["cards"]
    assert (listed["id"], listed["status"], listed["priority"]) == (card, "triage", 4)
    move = {"card": card, "status": "todo"}
    for scope in ("observe", "chat"):  # cards run by themselves
        assert (await harness.ask("POST", f"{PATH}move", move, scope=scope)).status_code == 403  # fmt: skip
    await harness.call("POST", f"{PATH}move", move, scope="approve")
    shown = await harness.call("GET", f"{PATH}show?card={card}", scope="observe")
    assert shown["card"]["title"] == "fix it"
    assert shown["why"].startswith("held")
    later = f"{PATH}history?card={card}&after={listing['last']}"
    rows = (await harness.call("GET", later, scope="observe"))["events"]
    assert [row["topic"] for row in rows] == ["kanban.card.moved"]


async def test_a_running_card_is_never_started_by_hand_and_a_board_needs_a_yes(
    harness: Harness,
) -> None:
    made = await harness.call("POST", f"{PATH}create", {"title": "x"}, scope="approve")
    wrong = {"card": made["card"]["id"], "status": "running"}
    assert (await harness.ask("POST", f"{PATH}move", wrong)).status_code == 409
    remove = {"board": "default"}
    path = f"{PATH}boards.remove"
    assert (await harness.ask("POST", path, remove, scope="chat")).status_code == 403
    assert (await harness.ask("POST", path, remove)).status_code == 409
    await harness.call("POST", path, remove | {"yes": True})


@pytest.mark.parametrize(
    "command",
    ["specify", "decompose", "unlink", "request-changes", "promote", "boards.edit"],
)
async def test_what_starts_work_or_raises_its_limits_needs_the_scope_approve(
    harness: Harness, command: str
) -> None:
    body = {"card": "c", "parent": "p", "child": "c", "board": "default", "reason": "x"}
    answer = await harness.ask("POST", f"{PATH}{command}", body, scope="chat")
    assert answer.status_code == 403
