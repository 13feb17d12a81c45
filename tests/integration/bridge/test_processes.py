"""The bridge between real processes: nothing durable is lost or doubled, whatever is killed, cut, slow or refused."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.fakes.breakable_wire import Wire
from tests.integration.bridge.stage import Publisher, Witness, until


@pytest.fixture
async def witness(tmp_path: Path) -> AsyncIterator[Witness]:
    one = Witness(tmp_path)
    await one.start()
    yield one
    await one.kill()


def _is_whole(heard: list[int], total: int, *, kills: int = 0) -> bool:
    """All of them, once each, in order. The one that was just being published when a dashboard was killed may come
    again."""
    assert len(heard) - len(set(heard)) <= kills, "doubled"
    assert heard == sorted(heard), "out of order"
    return len(set(heard)) == total


async def test_events_of_a_process_reach_the_dashboard_of_its_home_in_the_order_of_their_birth(
    witness: Witness,
) -> None:
    publisher = await Publisher(witness.home).start()
    try:
        await publisher.tell(durable=1, transient=1, times=50, pause=0.001)
        await until(
            lambda: (
                _is_whole(witness.heard(), 50)
                and len(witness.heard("agent.tool.progress")) == 50
            )
        )
        kinds = [event["type"] for event in witness.events()]
        assert kinds == ["agent.tool.started", "agent.tool.progress"] * 50
        stats = await publisher.tell(stop=True)
        assert (
            stats["state"],
            stats["waiting"],
            stats["dropped"],
            stats["refused"],
        ) == ("stopped", 0, 0, 0)
        assert list((witness.home.root / "bridge").iterdir()) == []
    finally:
        await publisher.kill()


async def test_a_dashboard_that_is_killed_and_started_again_under_load_misses_nothing_durable(
    witness: Witness,
) -> None:
    publisher = await Publisher(witness.home).start()
    try:
        work = asyncio.ensure_future(
            publisher.tell(durable=10, transient=20, times=400, pause=0.005)
        )
        for count in (500, 1500):
            await until(lambda count=count: len(witness.heard()) > count)
            await witness.kill()
            await witness.start()
        await work
        await until(lambda: _is_whole(witness.heard(), 4000, kills=2))
        stats = await publisher.tell()
        assert (stats["refused"], stats["durable"]) == (0, 4000)
        await until(
            lambda: (
                len(witness.heard("agent.tool.progress")) + _missing(witness) >= 8000
            )
        )
        passing = witness.heard("agent.tool.progress")
        stats = await publisher.tell()
        assert passing == sorted(set(passing))
        assert 8000 <= len(passing) + stats["dropped"] <= 8000 + 2
        assert 0 < stats["dropped"] <= _missing(witness)
    finally:
        await publisher.kill()


def _missing(witness: Witness) -> int:
    return sum(event["dropped"] for event in witness.events() if event["type"] == "gap")


async def test_what_a_killed_process_left_is_sent_by_the_next_one(
    witness: Witness,
) -> None:
    publisher = await Publisher(witness.home).start()
    await until((witness.home.root / "bridge").exists)
    await witness.kill()
    await publisher.tell(durable=200)
    left = publisher.pid
    await publisher.kill()
    await witness.start()
    heir = await Publisher(witness.home).start()
    try:
        await heir.tell(durable=10)
        await until(
            lambda: (
                _is_whole(witness.heard(who=left), 200)
                and _is_whole(witness.heard(who=heir.pid), 10)
            )
        )
        await heir.tell(stop=True)
        assert list((witness.home.root / "bridge").iterdir()) == []
    finally:
        await heir.kill()


async def test_a_process_killed_under_load_loses_nothing_it_had_published(
    witness: Witness,
) -> None:
    publisher = await Publisher(witness.home).start()
    work = asyncio.ensure_future(publisher.tell(durable=10, times=10_000, pause=0.001))
    await until(lambda: len(witness.heard()) > 300)
    await publisher.kill()
    with pytest.raises(ValueError, match="Expecting value"):
        await work
    heir = await Publisher(witness.home).start()
    try:
        await until(
            lambda: (
                not [
                    one for one in _spools(witness) if not one.endswith(f"-{heir.pid}")
                ][1:]
            )
        )
        heard = witness.heard(who=publisher.pid)
        assert heard == list(range(1, len(heard) + 1))
    finally:
        await heir.kill()


def _spools(witness: Witness) -> list[str]:
    return [folder.name for folder in (witness.home.root / "bridge").iterdir()]


async def test_a_cut_wire_costs_nothing_durable(witness: Witness) -> None:
    wire = Wire(witness.port, witness.other_port)
    await wire.start()
    publisher = await Publisher(
        witness.home,
        HERMES_DASHBOARD_EVENT_URL=f"ws://127.0.0.1:{wire.port}/api/pub",
        HERMES_DASHBOARD_EVENT_TOKEN=witness.token(),
    ).start()
    try:
        work = asyncio.ensure_future(publisher.tell(durable=10, times=400, pause=0.005))
        for number in (1, 2):
            before = len(witness.heard())
            await until(
                lambda n=number, before=before: (
                    wire.connections >= n and len(witness.heard()) > before
                )
            )
            wire.cut()
            await asyncio.sleep(0)
            wire.is_cut = False
        await work
        await until(lambda: _is_whole(witness.heard(), 4000))
        assert wire.connections >= 3
    finally:
        await publisher.kill()
        await wire.stop()


async def test_a_slow_dashboard_drops_transient_events_and_the_counter_is_exact(
    witness: Witness,
) -> None:
    wire = Wire(witness.port, witness.other_port)
    await wire.start()
    publisher = await Publisher(
        witness.home,
        HERMES_DASHBOARD_EVENT_URL=f"ws://127.0.0.1:{wire.port}/api/pub",
        HERMES_DASHBOARD_EVENT_TOKEN=witness.token(),
    ).start()
    try:
        await publisher.tell(durable=1)
        await until(lambda: len(witness.heard()) == 1)
        wire.flows.clear()
        stats = await publisher.tell(
            durable=10, transient=1000, times=20, size=2000, pause=0.01
        )
        assert stats["dropped"] > 1000
        wire.flows.set()
        await until(lambda: _is_whole(witness.heard(), 201))
        await until(
            lambda: (
                len(witness.heard("agent.tool.progress")) + _missing(witness) >= 20_000
            )
        )
        dropped = (await publisher.tell())["dropped"]
        assert len(witness.heard("agent.tool.progress")) == 20_000 - dropped
        assert _missing(witness) == dropped
    finally:
        await publisher.kill()
        await wire.stop()


async def test_a_wrong_token_is_refused_and_said_and_costs_nothing_but_room(
    witness: Witness,
) -> None:
    environ = {
        "HERMES_DASHBOARD_EVENT_URL": witness.url,
        "HERMES_DASHBOARD_EVENT_TOKEN": "hd_wrong",
    }
    publisher = await Publisher(witness.home, **environ).start()
    try:
        stats = await publisher.tell(durable=5, transient=5)
        async with asyncio.timeout(30):
            while stats["state"] != "refused":
                stats = await publisher.tell(pause=0.05)
        assert (stats["waiting"], stats["refused"], stats["dropped"]) == (5, 0, 0)
        stats = await publisher.tell(stop=True)
        assert stats["state"] == "stopped"
        assert len(_spools(witness)) == 1
    finally:
        await publisher.kill()
    assert witness.heard() == []


async def test_two_dashboards_whose_bridges_face_each_other_send_nothing_back(
    tmp_path: Path,
) -> None:
    left, right = Witness(tmp_path / "left"), Witness(tmp_path / "right")
    left.link_to(right)
    right.link_to(left)
    await left.start()
    await right.start()
    publisher = await Publisher(left.home).start()
    born = "plugin.test.born"
    try:
        await publisher.tell(durable=100, transient=100)
        await until(
            lambda: (
                len(left.heard()) == 100
                and len(left.heard("agent.tool.progress")) == 100
            )
        )
        await left.bear()
        await right.bear()
        await until(lambda: len(left.heard(born)) == len(right.heard(born)) == 2)
        # Each knows what was born in the other by now: had anything been sent on or back, it would be there too.
        await left.bear()
        await until(lambda: len(right.heard(born)) == 3)
        await right.bear()
        await until(lambda: len(left.heard(born)) == 4)
        assert left.heard() == list(range(1, 101))
        assert right.heard() == right.heard("agent.tool.progress") == []
        assert (len(left.heard(born)), len(right.heard(born))) == (4, 4)
    finally:
        await publisher.kill()
        await left.kill()
        await right.kill()


async def test_beyond_the_spool_the_counter_is_exact_and_a_gap_stands_where_events_are_missing(
    witness: Witness,
) -> None:
    publisher = await Publisher(witness.home, MOST_KEPT="1000").start()
    try:
        await publisher.tell(durable=1)
        await until(lambda: len(witness.heard()) == 1)
        while (await publisher.tell(pause=0.05))["waiting"]:  # until it is acknowledged
            pass
        await witness.kill()
        stats = await publisher.tell(durable=1050)
        assert (stats["refused"], stats["waiting"]) == (50, 1000)
        await witness.start()
        while (await publisher.tell(pause=0.05))["waiting"]:
            pass
        await publisher.tell(durable=1)
        await until(lambda: len(witness.heard()) == 1002)
        assert witness.heard() == [*range(1, 1002), 1052]
        assert [
            event["dropped"] for event in witness.events() if event["type"] == "gap"
        ] == [50]
        assert witness.events()[-2]["type"] == "gap"
    finally:
        await publisher.kill()
