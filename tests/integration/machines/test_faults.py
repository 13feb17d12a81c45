"""Faults under workers: no store for a while, machines cut from each other, and a lease that runs out elsewhere.

`make bench BENCH=cluster` has the long forms, under load.
"""

import asyncio
from pathlib import Path

import pytest
from tests.fakes.breakable_wire import Wire
from tests.fakes.machines import Cluster, until
from tests.fakes.nats_server import LocalNats
from tests.fakes.postgres_server import LocalPostgres, running_postgres
from tests.integration.machines.test_worker import Marking, texts

from hermes.core.ports import SystemClock
from hermes.errors import LeaseLost
from hermes.schema.events import TurnStarted
from hermes.schema.messages import UserMessage
from hermes.store.postgres.leases import PostgresLeases
from hermes.store.postgres.postgres_store import PostgresStore
from hermes.testing.model_server import ModelServer

WAIT_TIMEOUT_S = 60.0


async def test_workers_wait_for_a_store_that_is_away_and_go_on_by_themselves(
    tmp_path: Path,
) -> None:
    marking = Marking()
    marking.delay = 0.02
    with running_postgres() as postgres:
        async with ModelServer(respond=marking) as model:
            cluster = Cluster(
                folder=tmp_path, store_url=postgres.new_url(), model_url=model.url
            )
            async with cluster.surface() as desk, cluster.worker("one") as one:
                await desk.sees_workers(1)
                first, second = await desk.begin(), await desk.begin()
                await desk.say(first, "m1")
                await asyncio.wait_for(marking.held.wait(), WAIT_TIMEOUT_S)
                await asyncio.to_thread(postgres.stop)
                waiting = asyncio.create_task(desk.say(second, "m2"))
                await one.says("Store unreachable, waiting")
                assert not waiting.done()
                await asyncio.to_thread(postgres.start)
                await asyncio.wait_for(waiting, WAIT_TIMEOUT_S)
                for session in (first, second):
                    (end,) = await desk.answered(session)
                    assert end.reason == "done"
                    await desk.sound(session)
            marks = (cluster.work / "marks.txt").read_text().split()
            assert sorted(marks) == ["m1", "m2"]


async def test_machines_that_are_cut_from_each_other_work_as_one_over_the_store(
    tmp_path: Path, postgres: LocalPostgres, nats: LocalNats
) -> None:
    wire = Wire(nats.port)
    await wire.start()
    async with ModelServer("before", "while cut", "after") as model:
        cluster = Cluster(
            folder=tmp_path,
            store_url=postgres.new_url(),
            events_url=nats.url,
            model_url=model.url,
        )
        cut_off = f"nats://127.0.0.1:{wire.port}"
        async with (
            cluster.surface() as desk,
            cluster.worker("one", HERMES_EVENTS_URL=cut_off),
        ):
            await desk.sees_workers(1)
            session = await desk.begin()
            await desk.say(session, "one")
            await desk.answered(session)
            assert wire.connections > 0
            wire.flows.clear()  # nothing arrives, and neither side is told
            await desk.say(session, "two")
            await desk.answered(session, 2)
            wire.cut()
            wire.is_cut = False
            wire.flows.set()
            await desk.say(session, "three")
            await desk.answered(session, 3)
            said = texts(await desk.sound(session))
            assert said == ["before", "while cut", "after"]
            assert len(model.posts) == 3
            await until(lambda: desk.store.work.depth() == 0)
    await wire.stop()


async def test_a_lease_of_another_machine_runs_out_and_a_worker_closes_its_turn(
    tmp_path: Path, postgres: LocalPostgres
) -> None:
    async with ModelServer("from the worker") as model:
        cluster = Cluster(
            folder=tmp_path, store_url=postgres.new_url(), model_url=model.url
        )
        async with cluster.surface() as desk, cluster.worker("one"):
            await desk.sees_workers(1)
            assert isinstance(desk.store, PostgresStore)
            # Nobody here can tell whether that process lives: only the server's clock ends its lease.
            leases = PostgresLeases(
                desk.store._database, SystemClock(), owner="elsewhere:1:unknown"
            )
            session = await desk.begin()
            lease = await asyncio.to_thread(leases.acquire, session, ttl=2.0)
            log = desk.store.log
            started = TurnStarted(inputs=(), runtime="native")
            await asyncio.to_thread(log.append, session, started, turn="t", lease=lease)
            message = UserMessage(text="hello")
            await desk.app.writer.write(session, message, offer=True)
            ends = await desk.answered(session, 2)
            assert [end.reason for end in ends] == ["crashed", "done"]
            before = await desk.sound(session)
            with pytest.raises(LeaseLost):
                log.append(session, UserMessage(text="late"), lease=lease)
            assert await desk.sound(session) == before
            assert texts(before) == ["from the worker"]
