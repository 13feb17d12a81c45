"""Cards on several machines over one store: one whose folder is on one machine runs there, and nowhere else."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.machines import WAIT_TIMEOUT_S, Cluster
from tests.fakes.nats_server import LocalNats
from tests.fakes.postgres_server import LocalPostgres
from tests.integration.boards.harness import BYE, COMPLETE, board_bench

from hermes.app.boards.board_service import Boards
from hermes.app.boards.card_draft import CardDraft
from hermes.app.machines import find_waiting
from hermes.commands.context import CommandContext
from hermes.commands.hosts import list_hosts
from hermes.settings.sections import StoreSettings, WorkerSettings
from hermes.store.hosts import GONE_AFTER_S
from hermes.surfaces.gateway.mcp_server.served_tools import QuietSurface
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse


def machine(url: str, place: str, shared: Path) -> Mapping[str, Any]:
    return {
        "store": StoreSettings(url=url),
        "worker": WorkerSettings(place=place, places=(str(shared),)),
    }


def complete(request: Recorded) -> ScriptedResponse:
    return BYE if b'"role":"tool"' in request.body.replace(b" ", b"") else COMPLETE


async def test_a_card_runs_on_the_machine_that_has_its_folder(
    tmp_path: Path, postgres: LocalPostgres
) -> None:
    url, shared = postgres.new_url(), tmp_path / "shared"
    shared.mkdir()
    async with (
        board_bench(
            tmp_path / "a", respond=complete, sections=machine(url, "a", shared)
        ) as a,
        board_bench(
            tmp_path / "b", respond=complete, sections=machine(url, "b", shared)
        ) as b,
    ):
        own = a.card("own folder", workspace=f"dir:{tmp_path}")
        anywhere = a.card("shared folder", workspace=f"dir:{shared}")
        assert (own.place, anywhere.place) == ("a", "")
        await b.work()
        assert b.now(own).status == "ready"
        assert b.now(anywhere).status == "done"
        await a.work()
        assert b.now(own).status == "done"
        assert len(b.server.posts) == len(a.server.posts)  # one card each


async def test_a_card_from_before_machines_had_names_waits_for_one_with_its_folder(
    tmp_path: Path, postgres: LocalPostgres
) -> None:
    url, folder = postgres.new_url(), tmp_path / "project"
    async with board_bench(
        tmp_path / "a", respond=complete, sections=machine(url, "a", folder)
    ) as a:
        folder.mkdir()
        old = a.card("old", workspace=f"dir:{folder}")
        assert old.place == ""
        folder.rmdir()
        await a.work()
        assert a.now(old).status == "ready"
        why = a.boards.state().why(a.now(old))
        assert why == f"waits for a machine that has {folder}"
        other = a.app.store.roles.take("kanban/other")
        assert other is not None
        why = a.boards.state().why(a.now(old))
        assert why == "starts in a moment", "that machine may have it"
        a.app.store.roles.release(other)
        folder.mkdir()
        await a.work()
        assert a.now(old).status == "done"


async def test_a_boards_folder_and_a_new_folder_decide_too(
    tmp_path: Path, postgres: LocalPostgres
) -> None:
    url, shared = postgres.new_url(), tmp_path / "shared"
    shared.mkdir()
    async with (
        board_bench(tmp_path / "a", sections=machine(url, "a", shared)) as a,
        board_bench(
            tmp_path / "b", respond=complete, sections=machine(url, "b", shared)
        ) as b,
    ):
        a.boards.create_board("Far", workspace=f"dir:{tmp_path}")
        card = b.boards.create("far", CardDraft(title="as the board"))
        assert card.place == ""
        await b.work()
        assert b.now(card).status == "ready"
        b.boards.edit(card.id, workspace=f"dir:{tmp_path}")  # typed on b
        await b.work()
        assert b.now(card).status == "done"


async def test_many_cards_of_another_machine_do_not_keep_ours_from_starting(
    tmp_path: Path, postgres: LocalPostgres
) -> None:
    url, shared = postgres.new_url(), tmp_path / "shared"
    shared.mkdir()
    async with (
        board_bench(tmp_path / "a", sections=machine(url, "a", shared)) as a,
        board_bench(
            tmp_path / "b", respond=complete, sections=machine(url, "b", shared)
        ) as b,
    ):

        def make(tx: Any) -> None:
            draft = CardDraft(title="far", priority=9, workspace=f"dir:{tmp_path}")
            for _ in range(450):
                a.boards.create_in(tx, "default", draft)

        a.boards.ensure_default()
        a.boards.change(make)
        ours = b.card("ours", workspace=f"dir:{tmp_path}")
        await b.work()
        assert b.now(ours).status == "done"


async def test_a_card_that_waits_for_a_machine_is_shown_and_told_once(
    tmp_path: Path, postgres: LocalPostgres
) -> None:
    url, shared = postgres.new_url(), tmp_path / "shared"
    shared.mkdir()
    async with (
        board_bench(tmp_path / "a", sections=machine(url, "a", shared)) as a,
        board_bench(tmp_path / "b", sections=machine(url, "b", shared)) as b,
    ):
        card = a.card(
            "far", workspace=f"dir:{tmp_path}", notify=("telegram:1",), priority=1
        )
        await b.work()
        (found,) = find_waiting(b.app)
        assert (found.kind, found.id, found.place) == ("card", card.id, "a")
        shown = list_hosts.function(CommandContext(QuietSurface(), app=b.app))
        assert [one.board for one in shown.waiting] == ["default"]
        assert "waits for a, which has its folder" in b.boards.state().why(b.now(card))
        assert b.delivered == []  # it may come back in a moment
        for _ in range(3):
            b.clock.advance(GONE_AFTER_S + 1)
            await b.work()
            await b.work()
        ((target, text),) = b.delivered
        assert target == "telegram:1"
        assert f"hermes kanban edit {card.id} --workspace" in text
        told = [one for one in b.told if one["type"] == "kanban.card.waiting"]
        assert [one["place"] for one in told] == ["a"]
        await a.dispatcher.step()
        assert find_waiting(b.app) == ()


async def test_a_home_without_a_server_runs_every_card(tmp_path: Path) -> None:
    async with board_bench(tmp_path, respond=complete) as bench:
        draft = CardDraft(title="copied", workspace=f"dir:{tmp_path}", place="far")
        card = bench.boards.create("", draft)
        await bench.work()
        assert bench.now(card).status == "done"
        assert find_waiting(bench.app) == ()


@pytest.mark.parametrize("events", ["NOTIFY", "NATS"])
async def test_the_card_of_a_killed_worker_waits_for_its_machine_and_goes_on_there(
    tmp_path: Path, postgres: LocalPostgres, nats: LocalNats, events: str
) -> None:
    begun, back = asyncio.Event(), asyncio.Event()

    def respond(request: Recorded) -> ScriptedResponse:
        begun.set()
        return (
            complete(request)
            if back.is_set()
            else ScriptedResponse(text="slow " * 600, chunk=5, delay=0.1)
        )

    async with ModelServer(respond=respond) as model:
        cluster = Cluster(
            folder=tmp_path,
            store_url=postgres.new_url(),
            events_url=nats.url if events == "NATS" else "",
            model_url=model.url,
        )
        soon = {"HERMES_BOARDS_COOLDOWN": "0"}
        async with (
            cluster.surface() as desk,
            cluster.worker("w1", **soon),
            cluster.worker("w0", **soon) as worker,
        ):
            boards = Boards(desk.app)
            draft = CardDraft(title="far", workspace=f"dir:{tmp_path}", place="w0")
            card = await asyncio.to_thread(boards.create, "", draft)
            await asyncio.wait_for(begun.wait(), WAIT_TIMEOUT_S)
            await worker.kill()
            async with asyncio.timeout(WAIT_TIMEOUT_S):
                while not (found := await asyncio.to_thread(find_waiting, desk.app)):  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(0.1)
            assert [(one.id, one.place) for one in found] == [(card.id, "w0")]
            back.set()
            await worker.start()
            async with asyncio.timeout(WAIT_TIMEOUT_S):
                while (await asyncio.to_thread(boards.find, card.id)).status != "done":  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(0.1)
            runs = await asyncio.to_thread(
                boards.read, lambda reader: reader.runs(card.id)
            )
            assert [one.outcome for one in runs] == ["completed", "crashed"]
            assert len({one.owner for one in runs}) == 2
