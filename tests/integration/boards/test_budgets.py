"""Budgets of cards, of the cards they make and of boards; and cards that work in a worktree."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from tests.integration.boards.harness import BYE, COMPLETE, board_bench, call
from tests.integration.boards.test_commands import SilentSurface
from tests.integration.gateway.harness import until
from tests.integration.test_worktrees import checkout, git

from hermes.app.boards.listing import card_details, list_board
from hermes.commands.cards import complete_card
from hermes.commands.context import CommandContext
from hermes.testing.model_server import Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServerFault

__all__ = ["checkout"]  # a fixture
LIMIT = 100_000


def _uses(tokens: int) -> ScriptedResponse:
    return ScriptedResponse(text="hm", input_tokens=tokens, output_tokens=10)


async def test_a_budget_in_dollars_ends_a_card(tmp_path: Path) -> None:
    async with board_bench(tmp_path, _uses(900_000)) as b:
        card = b.card(budget="$0.50", model="gpt-4.1")
        for _ in range(4):
            await b.work()
            b.clock.advance(100_000)
        ended = b.now(card)
        assert b.outcomes(card)[0] == "budget"
        assert ended.status == "blocked"
        assert f"hermes kanban edit {card.id} --budget" in ended.block_reason
        assert len(b.server.posts) == 1
        b.boards.edit(card.id, budget="$9")
        b.boards.unblock(card.id)
        await b.work()
        assert len(b.server.posts) > 1, "a higher budget lets it go on"


async def test_cards_that_a_card_makes_share_its_budget(tmp_path: Path) -> None:
    def respond(request: Recorded) -> ScriptedResponse:
        if b"The card is closed" in request.body:
            return BYE
        reply = COMPLETE
        if b"three parts please" in request.body and b"Made card" not in request.body:
            made = [call("kanban_create", title=f"part {n}").calls[0] for n in range(3)]
            reply = ScriptedResponse(calls=tuple(made))
        return ScriptedResponse(calls=reply.calls, input_tokens=30_000)

    async with board_bench(tmp_path, respond=respond, max_running=1) as b:
        card = b.card("many", body="three parts please", budget=f"{LIMIT} tokens")
        for _ in range(8):
            await b.work()
            b.clock.advance(100_000)
        first = b.now(card)
        parts = [b.boards.find(name) for name in first.made]
        assert len(parts) == 3
        assert {part.family for part in parts} == {card.id}
        runs = [run for one in (first, *parts) for run in card_details(b.boards, one.id).runs]  # fmt: skip
        used = sum(run.tokens for run in runs)
        assert used < LIMIT + 30_100, "the last call may be larger than it was thought"
        blocked = [part for part in parts if part.status != "done"]
        assert blocked
        assert any(f"shares with {card.id}" in part.block_reason for part in blocked)
        own = blocked[-1]
        b.boards.edit(own.id, budget="200k tokens")
        b.boards.unblock(own.id)
        await b.work()
        assert b.now(own).status == "done", "a budget of its own lets it go on"


async def test_cards_of_a_family_that_run_at_once_claim_what_they_may_use(
    tmp_path: Path,
) -> None:
    silent = ScriptedResponse(fault=ServerFault(hang="head"))
    async with board_bench(tmp_path, silent, max_running=5) as b:
        first = b.card("first", budget="60k tokens", triage=True)
        for number in range(3):
            b.card(f"part {number}", family=first.id)
        await b.dispatcher.step()
        await until(lambda: len(b.server.posts) == 3)
        asked = [msgspec.json.decode(post.body) for post in b.server.posts]
        assert 0 < sum(one["max_tokens"] for one in asked) <= 60_000


async def test_a_board_that_has_used_its_budget_of_the_day_starts_nothing_and_says_so(
    tmp_path: Path,
) -> None:
    async with board_bench(tmp_path, _uses(60_000), max_running=1) as b:
        board = b.boards.ensure_default()
        b.boards.edit_board(board.slug, budget="50k tokens")
        first, second = b.card("first", priority=1), b.card("second")
        await b.work()
        assert b.outcomes(first) == ["budget"], "the running card is stopped too"
        assert b.outcomes(second) == []
        (why,) = [one.why for one in list_board(b.boards).cards if one.id == second.id]  # fmt: skip
        assert "the board's budget of today is used up" in why
        b.clock.advance(86_400)
        await b.work()
        assert len(b.outcomes(second)) + len(b.outcomes(first)) > 1, "the next day"


async def test_a_person_who_ends_a_card_is_told_what_its_worktree_holds(
    tmp_path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def respond(request: Recorded) -> ScriptedResponse:
        if b"The card is closed" in request.body:
            return BYE
        if b'"role":"tool"' not in request.body:
            return call("write_file", path="made.txt", content="made")
        return call("kanban_request_review", summary="look")

    async with board_bench(tmp_path, respond=respond, approvals="auto-edit") as b:
        done = b.card(workspace=f"worktree:{checkout}", notify=("telegram:1",))
        archived = b.card("no more", workspace=f"worktree:{checkout}")
        await b.work()
        context = CommandContext(SilentSurface(), app=b.app)
        change = await asyncio.to_thread(complete_card.function, context, done.id, "")
        assert f"hermes worktree merge {done.id}" in change.why
        b.boards.archive(archived.id)  # as a page or a killed process leaves it
        await b.work()
        for card in (done, archived):
            comments = card_details(b.boards, card.id).comments
            assert [one.text for one in comments if "hermes worktree drop" in one.text]
        assert any("left something behind" in text for _, text in b.delivered)
        await b.work()
        assert len(card_details(b.boards, done.id).comments) == 1, "said once"


@pytest.mark.parametrize("writes", [True, False])
async def test_a_card_works_in_a_worktree_and_says_where_its_work_is(
    tmp_path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch, writes: bool
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def respond(request: Recorded) -> ScriptedResponse:
        if b"The card is closed" in request.body:
            return BYE
        if writes and b'"role":"tool"' not in request.body:
            return call("write_file", path="made.txt", content="made")
        return COMPLETE

    async with board_bench(tmp_path, respond=respond, approvals="auto-edit") as b:
        card = b.card(workspace=f"worktree:{checkout}")
        await b.work()
        assert b.now(card).status == "done"
        assert not (checkout / "made.txt").exists()
        details = card_details(b.boards, card.id)
        folder = Path(details.runs[0].workspace)
        exists = await asyncio.to_thread(folder.exists)
        assert exists == writes, "one without work is not left behind"
        comments = [entry.text for entry in details.comments]
        if not writes:
            assert comments == []
            return
        assert (folder / "made.txt").read_text() == "made"
        assert str(folder) in comments[0]
        assert f"hermes worktree merge {card.id}" in comments[0]
        assert b.now(card).branch in git(folder, "branch", "--show-current")
