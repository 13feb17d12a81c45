"""The dispatcher on a real database with a scripted model: every run ends once, with its reason, and no card loops."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.fakes.store_engines import sqlite_database
from tests.integration.boards.harness import (
    BYE,
    COMPLETE,
    NOON,
    board_bench,
    call,
    close_once,
)

from hermes.app.boards.card_draft import CardDraft
from hermes.app.boards.claims import claim_ready
from hermes.app.boards.dispatcher import Dispatcher
from hermes.app.boards.listing import card_details, list_board
from hermes.app.boards.queue_state import DISPATCHER_ROLE
from hermes.app.boards.workspaces import clear_workspaces, scratch_root
from hermes.app.schedules.delivery import put_into_session
from hermes.errors import StoreFull
from hermes.schema.boards import CardNotice
from hermes.schema.events import SessionCreated
from hermes.schema.messages import UserMessage
from hermes.settings.boards import BoardSettings
from hermes.store.boards import LEFT_WORKSPACE, UNDELIVERED, BoardStore
from hermes.store.role_leases import RoleLeases
from hermes.testing.model_server import Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServerFault


async def test_a_card_runs_as_a_session_and_its_children_follow(tmp_path: Path) -> None:
    async with board_bench(tmp_path, COMPLETE, BYE, COMPLETE, BYE) as b:
        first = b.card("first", body="the details", notify=("telegram:7",))
        second = b.card("second", parents=(first.id,))
        assert (first.status, second.status) == ("ready", "todo")
        await b.work()
        assert (b.now(first).status, b.now(second).status) == ("done", "done")
        details = card_details(b.boards, first.id)
        assert details.card.result == "All of it is done."
        (run,) = details.runs
        assert run.outcome == "completed"
        info = b.app.store.sessions.find(run.session)
        assert (info.surface, info.title) == ("kanban", "first")
        assert b"the details" in b.server.posts[0].body
        assert not (scratch_root(b.app) / first.id).exists(), "scratch is cleared up"
        assert b.delivered == [
            ("telegram:7", f"Card {first.id} “first” is done.\n\nAll of it is done.")
        ]
        topics = [event["type"] for event in b.told]
        assert topics.count("kanban.run.ended") == 2
        numbers = [event["id"] for event in b.told if event["id"]]
        assert numbers == sorted(set(numbers))


async def test_news_for_a_session_is_left_to_the_process_that_is_telling_sessions(
    tmp_path: Path,
) -> None:
    async with board_bench(tmp_path, COMPLETE, BYE) as b:
        made = b.app.begin(SessionCreated(surface="cli")).session
        b.card("told", notify=(f"session:{made}",))

        def heard() -> list[str]:
            rows = b.app.store.log.events(made)
            return [one.event.text for one in rows if isinstance(one.event, UserMessage)]  # fmt: skip

        role = b.app.store.roles.take("card-news")
        assert role is not None
        await b.work()
        assert heard() == []
        b.app.store.roles.release(role)
        b.dispatcher.notices.begin()
        await b.dispatcher.notices.join()
        assert len(heard()) == 1
        b.dispatcher.notices.begin()
        await b.dispatcher.notices.join()
        assert len(heard()) == 1


async def test_news_for_a_chat_waits_until_a_gateway_can_deliver_it(
    tmp_path: Path,
) -> None:
    async with board_bench(tmp_path) as b:
        heard = b.card("heard", notify=("telegram:1",))
        lost = b.card("lost", notify=("telegram:2",))
        for card in (heard, lost):
            b.boards.complete(card.id)
        await b.work()
        await b.work()
        first, second = b.app.store.sends.open()  # once, however often it is looked at
        for one in (first, second):
            reason = "" if one.target == "telegram:1" else "the chat is gone"
            b.app.store.sends.end(one.id, "failed" if reason else "sent", reason)
        await b.work()
        assert b.boards.read(lambda reader: reader.notices()) == []
        assert card_details(b.boards, heard.id).comments == []
        (comment,) = card_details(b.boards, lost.id).comments
        assert comment.text == "telegram:2: not delivered: the chat is gone"


async def test_whoever_waits_for_a_card_hears_that_it_was_archived(
    tmp_path: Path,
) -> None:
    async with board_bench(tmp_path) as b:
        first = b.card("first", triage=True, notify=("telegram:1",))
        part = b.card("part", triage=True, family=first.id)
        removed = b.boards.create_board("Old")
        draft = CardDraft(title="kept", triage=True, notify=("telegram:3",))
        kept = b.boards.create(removed.slug, draft)
        b.boards.link(part.id, first.id)
        b.boards.archive(part.id)
        b.boards.move(first.id, "done")
        b.boards.archive(first.id)
        b.boards.remove_board(removed.slug)
        await b.work()
        told = {(target, text.splitlines()[0]) for target, text in b.delivered}
        gone = f"Card {kept.id} “kept” will not go on: its board was removed."
        assert told == {
            ("telegram:1", f"Card {part.id} “part” was archived before it was done."),
            ("telegram:1", f"Card {first.id} “first” is done."),
            ("telegram:3", gone),
        }


async def test_news_that_a_killed_process_put_into_a_session_does_not_come_again(
    tmp_path: Path,
) -> None:
    async with board_bench(tmp_path, COMPLETE, BYE) as b:
        made = b.app.begin(SessionCreated(surface="cli")).session
        role = b.app.store.roles.take("card-news")
        assert role is not None
        b.card("told", notify=(f"session:{made}",))
        await b.work()
        (notice,) = b.boards.read(lambda reader: reader.notices())
        once = f"board#{notice.id}"
        put_into_session(b.app, made, "Board", notice.text, once=once)
        b.app.store.roles.release(role)  # killed before it noted the delivery
        b.dispatcher.notices.begin()
        await b.dispatcher.notices.join()
        assert not b.boards.read(lambda reader: reader.notices())
        assert len(b.app.store.log.messages(made)) == 1


async def test_a_dispatcher_that_drains_finishes_its_cards_and_starts_no_more(
    tmp_path: Path,
) -> None:
    async with board_bench(tmp_path, respond=close_once) as b:
        first = b.card("first")
        await b.dispatcher.step()
        assert b.dispatcher.running == 1
        b.dispatcher.drain()
        second = b.card("second")
        await b.dispatcher.step()
        why = card_details(b.boards, second.id).why
        assert why == "no dispatcher is running (hermes kanban run)"
        b.boards.stop(first.id, "not now")  # it is still heeded
        await b.dispatcher.step()
        await b.work()
        assert (b.now(first).status, b.now(second).status) == ("blocked", "ready")


async def test_a_worker_that_never_closes_its_card_is_reminded_twice_and_counted(
    tmp_path: Path,
) -> None:
    async with board_bench(tmp_path, ScriptedResponse(text="I think so.")) as b:
        card = b.card(retries=2)
        await b.work()
        assert b.outcomes(card) == ["unclosed", "unclosed"]
        assert len(b.server.posts) == 6, "the task and two reminders, twice"
        ended = b.now(card)
        assert ended.status == "blocked"
        assert "2 runs in a row ended badly" in ended.block_reason


async def test_a_card_that_fails_three_times_is_blocked_and_runs_no_more(
    tmp_path: Path,
) -> None:
    broken = ScriptedResponse(fault=ServerFault(status=400, message="no such thing"))
    async with board_bench(tmp_path, broken) as b:
        card = b.card()
        for _ in range(6):
            await b.work()
            b.clock.advance(100_000)
        assert b.outcomes(card) == ["failed", "failed", "failed"]
        assert b.now(card).status == "blocked"
        asked = len(b.server.posts)
        b.boards.unblock(card.id)
        for _ in range(6):
            await b.work()
            b.clock.advance(100_000)
        assert len(b.outcomes(card)) == 6
        assert len(b.server.posts) == 2 * asked
        assert b.now(card).status == "triage", "blocked twice for the same reason"


async def test_different_bad_endings_are_counted_together(tmp_path: Path) -> None:
    wall = ScriptedResponse(fault=ServerFault(status=402, message="no credit"))
    broken = ScriptedResponse(fault=ServerFault(status=400, message="no such thing"))
    async with board_bench(tmp_path, wall, broken, BYE) as b:
        card = b.card()
        for _ in range(6):
            await b.work()
            b.clock.advance(100_000)
        assert b.outcomes(card) == ["quota", "failed", "unclosed"]
        assert b.now(card).status == "blocked"
        assert "3 runs in a row ended badly" in b.now(card).block_reason


async def test_a_quota_wall_has_its_own_ending_and_a_longer_pause_each_time(
    tmp_path: Path,
) -> None:
    wall = ScriptedResponse(fault=ServerFault(status=402, message="no credit"))
    async with board_bench(tmp_path, wall, cooldown=100) as b:
        card = b.card()
        await b.work()
        assert b.outcomes(card) == ["quota"]
        assert b.now(card).due == NOON + 100
        assert "scheduled for" in list_board(b.boards).cards[0].why
        await b.work()
        assert b.outcomes(card) == ["quota"], "it waits"
        b.clock.advance(101)
        await b.work()
        assert b.now(card).due == b.clock.now() + 300
        b.clock.advance(301)
        await b.work()
        assert b.outcomes(card) == ["quota"] * 3
        assert b.now(card).status == "blocked"


async def test_a_run_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    silent = ScriptedResponse(fault=ServerFault(hang="head"))
    async with board_bench(tmp_path, silent) as b:
        card = b.card(time_limit=0.05, retries=1)
        await b.work()
        assert b.outcomes(card) == ["timed_out"]
        assert "took longer" in b.now(card).block_reason


async def test_a_blocked_card_goes_on_when_somebody_answers(tmp_path: Path) -> None:
    block = call("kanban_block", reason="which colour?", kind="needs_input")
    async with board_bench(tmp_path, block, BYE, COMPLETE, BYE) as b:
        card = b.card(notify=("slack:C1",))
        await b.work()
        assert (b.now(card).status, b.now(card).block_kind) == (
            "blocked",
            "needs_input",
        )
        assert "which colour?" in b.delivered[0][1]
        b.boards.comment(card.id, "blue")
        b.boards.unblock(card.id)
        await b.work()
        assert b.now(card).status == "done"
        assert b"blue" in b.server.posts[2].body


async def test_a_reviewer_sends_a_card_back_and_then_accepts_it(
    tmp_path: Path,
) -> None:
    review = call("kanban_request_review", summary="please look", reviewer="reviewer")
    changes = call("kanban_request_changes", reason="the name is wrong")
    script = (review, BYE, changes, BYE, review, BYE, COMPLETE, BYE)
    async with board_bench(tmp_path, *script) as b:
        card = b.card()
        await b.work()
        assert b.outcomes(card) == ["review", "changes", "review", "completed"]
        assert b.now(card).status == "done"
        assert b"the name is wrong" in b.server.posts[4].body
        assert b"kanban_request_changes" not in b.server.posts[0].body


async def test_a_reviewer_that_only_asks_for_reviews_ends_blocked(
    tmp_path: Path,
) -> None:
    review = call("kanban_request_review", summary="please look", reviewer="reviewer")

    def respond(request: Recorded) -> ScriptedResponse:
        return BYE if b'"role":"tool"' in request.body.replace(b" ", b"") else review

    async with board_bench(tmp_path, respond=respond) as b:
        card = b.card(retries=2)
        for _ in range(6):
            await b.work()
            b.clock.advance(600)
        assert b.outcomes(card) == ["review", "unclosed", "unclosed"]
        assert b.now(card).status == "blocked"


async def test_cards_of_a_removed_board_do_not_start(tmp_path: Path) -> None:
    async with board_bench(tmp_path, COMPLETE, BYE) as b:
        card = b.card()
        b.boards.remove_board(card.board)
        await b.work()
        assert b.now(card).status == "ready"
        assert not b.server.posts


async def test_limits_are_read_at_every_tick_and_waiting_cards_say_why(
    tmp_path: Path,
) -> None:
    silent = ScriptedResponse(fault=ServerFault(hang="head"))
    async with board_bench(tmp_path, silent, max_running=1) as b:
        for number in range(3):
            b.card(f"number {number}")
        waits = [one.why for one in list_board(b.boards).cards]
        assert all("no dispatcher is running" in why for why in waits)
        await b.dispatcher.step()
        waits = [one.why for one in list_board(b.boards, statuses=("ready",)).cards]
        assert waits == ["1 of 1 cards run already (boards.max_running)"] * 2
        config = b.app.home.config
        config.write_text("boards:\n  max_running: 2\n")
        await b.dispatcher.step()
        assert b.dispatcher.running == 2


async def test_a_dispatcher_that_died_between_claim_and_start_loses_no_card(
    tmp_path: Path,
) -> None:
    async with board_bench(tmp_path, COMPLETE, BYE) as b:
        card = b.card()
        gone = BoardStore(b.app.store.database, b.clock, owner="gone:1:2:3:4")
        gone.change(lambda tx: claim_ready(tx, BoardSettings(), gone.owner))
        assert b.now(card).status == "running"
        b.clock.advance(1_000)
        await b.work()
        await b.work()
        assert b.outcomes(card) == ["crashed", "completed"]
        runs = b.boards.read(lambda reader: reader.runs(card.id))
        assert "before it started" in runs[1].reason


async def test_of_two_dispatchers_one_works_and_the_other_takes_over(
    tmp_path: Path,
) -> None:
    async with board_bench(tmp_path, COMPLETE, BYE, COMPLETE, BYE) as b:
        first = b.card("first")
        other = RoleLeases(b.app.store.database, b.clock)
        held = other.take(DISPATCHER_ROLE)
        assert held is not None
        other.owner = "x"
        await b.dispatcher.step()
        assert not b.dispatcher.is_active
        assert b.now(first).status == "ready"
        other.release(held)
        await b.work()
        assert b.dispatcher.is_active
        assert b.now(first).status == "done"


async def test_both_dispatchers_never_run_a_card_twice(tmp_path: Path) -> None:
    async with board_bench(tmp_path, respond=close_once, max_running=50) as b:
        cards = [b.card(f"number {number}") for number in range(12)]
        second = Dispatcher(b.app, b.secrets)
        async with asyncio.timeout(60):
            await asyncio.gather(b.dispatcher.tick(), second.tick())
            await asyncio.gather(b.dispatcher.finished(), second.finished())
        await second.close()
        assert [b.outcomes(card) for card in cards] == [["completed"]] * 12


async def test_stopping_a_card_blocks_it_and_stopping_hermes_does_not(
    tmp_path: Path,
) -> None:
    silent = ScriptedResponse(fault=ServerFault(hang="head"))
    async with board_bench(tmp_path, silent) as b:
        stopped, kept = b.card("stopped"), b.card("kept")
        await b.dispatcher.step()
        async with asyncio.timeout(30):
            workers = b.dispatcher._workers.values()
            while not all(worker.session for worker in workers):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            await b.server.hanging.wait()
            b.boards.stop(stopped.id, "not now")
            while b.now(stopped).status == "running":
                await b.dispatcher.step()
                await asyncio.sleep(0.01)
            assert b.now(stopped).block_reason == "not now"
            await b.dispatcher.close()
        after = b.now(kept)
        assert (after.status, after.failures) == ("ready", 0)
        assert b.outcomes(kept) == ["stopped"]


@pytest.mark.parametrize("is_heeded", [False, True])
async def test_a_card_that_is_stopped_before_its_first_turn_makes_none(
    tmp_path: Path, is_heeded: bool
) -> None:
    silent = ScriptedResponse(fault=ServerFault(hang="head"))
    async with board_bench(tmp_path, silent) as b:
        card = b.card("stopped")
        await b.dispatcher.step()
        b.boards.stop(card.id, "not now")
        if is_heeded:
            (worker,) = b.dispatcher._workers.values()
            await worker.stop("not now")
        async with asyncio.timeout(30):
            await b.dispatcher.finished()  # the board does not look again
        assert (b.now(card).status, b.now(card).block_reason) == ("blocked", "not now")
        assert b.outcomes(card) == ["stopped"]
        assert not b.server.posts


async def test_archiving_a_parent_while_its_child_runs_changes_nothing_for_the_child(
    tmp_path: Path,
) -> None:
    async with board_bench(tmp_path, respond=close_once) as b:
        parent = b.card("parent", triage=True)
        child = b.card("child")
        grandchild = b.card("grandchild", parents=(child.id, parent.id))
        await b.dispatcher.step()
        assert b.now(child).status == "running"
        b.boards.link(parent.id, child.id)
        b.boards.archive(parent.id)
        await b.work()
        assert b.now(child).status == "done"
        assert b.now(grandchild).status == "done"


async def test_on_a_full_disk_nothing_is_claimed_and_the_card_runs_once_there_is_room(
    tmp_path: Path,
) -> None:
    async with board_bench(tmp_path, respond=close_once) as b:
        card = b.card()
        database = sqlite_database(b.app.store)
        await b.dispatcher.step()
        await b.dispatcher.finished()
        other = b.card("other", body="x" * 50_000)

        def fill(connection: Any) -> None:
            pages = connection.execute("PRAGMA page_count").get
            connection.execute(f"PRAGMA max_page_count = {pages}").fetchall()

        def free(connection: Any) -> None:
            connection.execute("PRAGMA max_page_count = 1073741823").fetchall()

        database.write(fill)
        problems = 0
        for _ in range(200):  # until not even a small row fits
            try:
                b.boards.comment(other.id, "y" * 20_000)
            except StoreFull:
                problems += 1
                break
        assert problems
        await b.dispatcher._step_safely()
        assert b.now(other).status == "ready", "nothing is half claimed"
        assert b.outcomes(other) == []
        database.write(free)
        await b.work()
        assert b.now(card).status == b.now(other).status == "done"


async def test_a_card_that_has_used_its_budget_is_blocked_before_it_runs_again(
    tmp_path: Path,
) -> None:
    used = ScriptedResponse(text="hm", input_tokens=60_000, output_tokens=100)
    async with board_bench(tmp_path, used) as b:
        card = b.card(budget="50k tokens")
        for _ in range(4):
            await b.work()
            b.clock.advance(10_000)
        ended = b.now(card)
        assert ended.status == "blocked"
        assert "budget" in ended.block_reason
        assert len(b.server.posts) == 1


async def test_a_removed_agent_blocks_its_card_at_once(tmp_path: Path) -> None:
    async with board_bench(tmp_path, COMPLETE, BYE) as b:
        card = b.card(assignee="nobody")
        await b.work()
        assert b.outcomes(card) == ["blocked"]
        assert "There is no agent 'nobody'" in b.now(card).block_reason
        assert b.server.posts == []


async def test_an_agent_file_works_on_its_card_and_can_close_it(
    tmp_path: Path,
) -> None:
    async with board_bench(tmp_path, COMPLETE, BYE) as b:
        folder = b.app.home.root / "agents"
        folder.mkdir(parents=True)
        text = "---\ndescription: reads\ntools: [read_file]\n---\nYou only read."
        (folder / "reader.md").write_text(text)
        card = b.card(assignee="reader")
        await b.work()
        assert b.now(card).status == "done"
        body = b.server.posts[0].body
        assert b"You only read." in body
        assert b'"kanban_complete"' in body
        assert b'"write_file"' not in body
        assert b'"kanban_create"' not in body, "others would do it with more tools"


@pytest.mark.parametrize("dies", ["working", "closed"])
async def test_what_a_killed_worker_had_closed_counts(
    tmp_path: Path, dies: str
) -> None:
    async with board_bench(tmp_path, COMPLETE, BYE) as b:
        card = b.card()
        gone = BoardStore(b.app.store.database, b.clock, owner="gone:1:2:3:4")
        (claimed,), _ = gone.change(
            lambda tx: claim_ready(tx, BoardSettings(), gone.owner)
        )
        closing = '{"outcome": "completed", "summary": "just before it died"}'
        gone.change(
            lambda tx: tx.put_run(
                msgspec.structs.replace(
                    claimed.run,
                    session="s",
                    closing=closing if dies == "closed" else "",
                )
            )
        )
        b.clock.advance(1_000)
        await b.work()
        await b.work()
        wanted = ["completed"] if dies == "closed" else ["crashed", "completed"]
        assert b.outcomes(card) == wanted


@pytest.mark.parametrize(
    ("target", "table"), [("telegram:1", "gateway_sends"), ("session", "events")]
)
async def test_news_that_the_store_could_not_take_are_told_later(
    tmp_path: Path, target: str, table: str
) -> None:
    async with board_bench(tmp_path) as b:
        made = b.app.begin(SessionCreated(surface="cli")).session
        place = f"session:{made}" if target == "session" else target
        card = b.card("told", triage=True, notify=(place,))
        b.boards.complete(card.id)
        database = sqlite_database(b.app.store)
        refusal = f"CREATE TRIGGER busy BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'busy'); END"
        database.write(lambda connection: connection.execute(refusal).fetchall())

        async def tell() -> int:
            b.dispatcher.notices.begin()
            await b.dispatcher.notices.join()
            told = [one for one in b.app.store.log.events(made) if isinstance(one.event, UserMessage)]  # fmt: skip
            return len(b.delivered) + len(told)

        assert await tell() == 0
        assert b.boards.read(lambda reader: reader.notices()), "it is not given up"
        database.write(lambda connection: connection.execute("DROP TRIGGER busy").fetchall())  # fmt: skip
        assert await tell() == 1


async def test_news_for_a_session_that_is_gone_are_given_up(tmp_path: Path) -> None:
    async with board_bench(tmp_path) as b:
        gone = b.app.begin(SessionCreated(surface="cli")).session
        card = b.card("told", triage=True, notify=(f"session:{gone}", "nobody"))
        b.app.store.sessions.delete(gone)
        b.boards.complete(card.id)
        b.dispatcher.notices.begin()
        await b.dispatcher.notices.join()
        assert not b.boards.read(lambda reader: reader.notices())
        nobody, session = sorted(one.text for one in card_details(b.boards, card.id).comments)  # fmt: skip
        expected = "nobody: not delivered: Nobody and no chat is called 'nobody'."
        assert nobody == expected, "one sentence"
        assert f"session:{gone}: not delivered: there is no session" in session


async def test_a_workspace_that_cant_be_cleared_is_logged_once_and_given_up_in_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with board_bench(tmp_path, respond=close_once) as b:
        card = b.card()
        root = scratch_root(b.app)
        root.parent.mkdir(parents=True, exist_ok=True)

        def leave(tx: Any) -> None:
            for place in ("", "a machine that is gone"):
                made = CardNotice(f"n_{place}", card.id, LEFT_WORKSPACE, place, NOON, UNDELIVERED)  # fmt: skip
                tx.notify(made)

        b.boards.archive(card.id)
        b.boards.change(leave)
        folder = root / card.id
        folder.parent.mkdir(exist_ok=True)
        folder.symlink_to(tmp_path / ("x" * 300))  # an OSError, also for root
        for _ in range(3):
            clear_workspaces(b.app, b.boards)
        logged = [one for one in caplog.messages if "workspace" in one]
        assert len(logged) == 1
        assert len(b.boards.read(lambda reader: reader.left_workspaces())) == 2
        b.clock.advance(8 * 86_400.0)
        clear_workspaces(b.app, b.boards)
        assert b.boards.read(lambda reader: reader.left_workspaces()) == []
