"""Caps and schedules over one store: what one machine claims, no other has."""

import asyncio
from pathlib import Path

from tests.fakes.machines import Cluster
from tests.fakes.postgres_server import LocalPostgres
from tests.fakes.store_engines import OpenStore

from hermes.core.ports import SystemClock
from hermes.schema.schedules import Every, Instant, Job
from hermes.store.role_leases import RoleLeases
from hermes.store.schedules import ScheduleStore
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse

CAP_TOKENS = 12_000
CALL_TOKENS = 3_000  # about what the request is estimated at, or less


async def test_eight_processes_together_never_pass_a_cap(
    tmp_path: Path, postgres: LocalPostgres
) -> None:
    def respond(request: Recorded) -> ScriptedResponse:
        return ScriptedResponse(text="ok", input_tokens=CALL_TOKENS, output_tokens=10)

    async with ModelServer(respond=respond) as model:
        cluster = Cluster(
            folder=tmp_path, store_url=postgres.new_url(), model_url=model.url
        )
        budget = {"HERMES_BUDGET_PER_DAY": f"{CAP_TOKENS} tokens"}
        async with (
            cluster.surface() as desk,
            cluster.worker("w1", **budget),
            cluster.worker("w2", **budget),
        ):
            await desk.sees_workers(2)
            sessions = [await desk.begin() for _ in range(8)]
            await asyncio.gather(*(desk.say(one, "go") for one in sessions))
            await asyncio.gather(*(desk.answered(one) for one in sessions))
            used = sum(
                row.input_tokens + row.output_tokens
                for row in desk.store.sessions.usage()
            )
            assert 0 < used <= CAP_TOKENS


def test_each_instant_is_claimed_by_one_process(open_database: OpenStore) -> None:
    clock = SystemClock()
    with open_database() as first, open_database() as second:
        one = ScheduleStore(first.database, clock, owner="a:1:x")
        two = ScheduleStore(second.database, clock, owner="b:1:x")
        job = Job(
            id="j",
            name="j",
            prompt="p",
            schedule="every hour",
            rule=Every(3600.0, 0.0),
            zone="UTC",
            created=0.0,
        )
        instant = Instant("j", 1.0, 1.0, "schedule", "planned")
        one.put(job, dropped="", following=instant)
        claims = [one.claim(instant), two.claim(instant), one.claim(instant)]
        assert [claim is not None for claim in claims] == [True, False, False]
        assert two.end(instant, "done") is False
        assert one.end(instant, "done") is True
        assert one.end(instant, "failed") is False


def test_a_role_is_held_by_one_process_until_it_ends(open_database: OpenStore) -> None:
    clock = SystemClock()
    with open_database() as first, open_database() as second:
        one = RoleLeases(first.database, clock, owner="a:1:x")
        two = RoleLeases(second.database, clock, owner="b:1:x")
        role = one.take("gateway:telegram", {"n": 1})
        assert role is not None
        assert role.facts == {"n": 1}
        assert two.take("gateway:telegram") is None
        assert one.renew(role)
        one.release(role)
        taken = two.take("gateway:telegram")
        assert taken is not None
        assert taken.token > role.token
        assert not one.renew(role)
        assert [held.owner for held in one.held("gateway:")] == ["b:1:x"]
