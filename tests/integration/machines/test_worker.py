"""`hermes worker` on machines of its own, over real servers."""

import asyncio
import signal
from pathlib import Path

import msgspec
import pytest
from nats import connect
from tests.fakes.machines import WAIT_TIMEOUT_S, Cluster, until
from tests.fakes.nats_server import LocalNats
from tests.fakes.postgres_server import LocalPostgres

from hermes.commands.context import CommandContext
from hermes.commands.hosts import list_hosts
from hermes.commands.views import TableBlock
from hermes.schema.events import ApprovalRequested, SessionModelChosen
from hermes.schema.messages import AssistantMessage, ToolFinished, UserMessage
from hermes.store.leases import LEASE_TTL_S
from hermes.surfaces.gateway.mcp_server.served_tools import QuietSurface
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall


def texts(events: list[object]) -> list[str]:
    return [event.text for event in events if isinstance(event, AssistantMessage)]


@pytest.fixture(params=["NATS", "NOTIFY"])
def events_url(request: pytest.FixtureRequest) -> str:
    """Where wake-ups come from; empty for the database."""
    if request.param == "NOTIFY":
        return ""
    server: LocalNats = request.getfixturevalue("nats")
    return server.url


def expire_leases(postgres: LocalPostgres, cluster: Cluster) -> None:
    """Makes as much time pass for the database as a lease lasts."""
    schema = cluster.store_url.rpartition("=")[2]
    postgres.sql(f"UPDATE {schema}.leases SET expires = expires - {LEASE_TTL_S}")  # noqa: S608 - a test


async def test_a_turn_runs_on_a_worker_and_then_on_the_next_one(
    tmp_path: Path, postgres: LocalPostgres, events_url: str
) -> None:
    async with ModelServer("from a worker", "from another") as model:
        cluster = Cluster(
            folder=tmp_path,
            store_url=postgres.new_url(),
            events_url=events_url,
            model_url=model.url,
        )
        async with cluster.surface() as desk:
            session = await desk.begin()
            async with cluster.worker("one") as one:
                await desk.sees_workers(1)
                await desk.say(session, "hello")
                assert [end.reason for end in await desk.answered(session)] == ["done"]
                one.send(signal.SIGTERM)
                assert await one.ended() == 0
                assert "worked on sessions 1 times" in one.lines[-1]
            async with cluster.worker("two"):
                await desk.sees_workers(1)
                await desk.say(session, "and now")
                await desk.answered(session, 2)
                await until(lambda: desk.store.work.depth() == 0)
            assert texts(await desk.sound(session)) == ["from a worker", "from another"]


async def test_a_worker_lets_the_model_answer_that_was_chosen_for_a_session(
    tmp_path: Path, postgres: LocalPostgres
) -> None:
    async with ModelServer("from a worker") as model:
        cluster = Cluster(
            folder=tmp_path, store_url=postgres.new_url(), model_url=model.url
        )
        async with cluster.surface() as desk, cluster.worker("one"):
            await desk.sees_workers(1)
            session = await desk.begin()
            chosen = SessionModelChosen(model="chosen-1")
            await asyncio.to_thread(desk.app.record, session, chosen)
            await desk.say(session, "hello")
            await desk.answered(session)
            assert msgspec.json.decode(model.posts[0].body)["model"] == "chosen-1"


async def test_two_places_on_one_host_are_told_apart(
    tmp_path: Path, postgres: LocalPostgres
) -> None:
    cluster = Cluster(folder=tmp_path, store_url=postgres.new_url())
    async with cluster.surface() as desk, cluster.worker("one"), cluster.worker("two"):
        context = CommandContext(QuietSurface(), app=desk.app)

        def listed() -> set[str]:
            return {one.place for one in list_hosts.function(context).hosts}

        async with asyncio.timeout(WAIT_TIMEOUT_S):
            while await asyncio.to_thread(listed) != {"one", "two"}:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.05)
        (shown,) = list_hosts.function(context).view(0.0)
    assert isinstance(shown, TableBlock)
    ends = [row.cells[0].rpartition(" ")[2] for row in shown.rows]
    assert ends == ["(one)", "(two)"]


async def test_without_a_worker_the_turn_runs_where_the_message_came_in(
    tmp_path: Path, postgres: LocalPostgres
) -> None:
    async with ModelServer("from the desk") as model:
        cluster = Cluster(
            folder=tmp_path, store_url=postgres.new_url(), model_url=model.url
        )
        async with cluster.surface() as desk:
            session = await desk.begin()
            await desk.say(session, "hello")
            await desk.answered(session)
            assert texts(await desk.sound(session)) == ["from the desk"]
            assert not await asyncio.to_thread(
                desk.store.sessions.offered_origin, session
            )


async def test_a_session_of_another_machine_is_not_taken(
    tmp_path: Path, postgres: LocalPostgres
) -> None:
    async with ModelServer("from the desk") as model:
        cluster = Cluster(
            folder=tmp_path, store_url=postgres.new_url(), model_url=model.url
        )
        async with cluster.surface("here") as desk, cluster.worker("there") as there:
            await desk.sees_workers(1)
            folder = tmp_path / "mine"
            folder.mkdir()
            desk.work = folder
            session = await desk.begin()
            await desk.say(session, "hello")
            await desk.answered(session)
            assert desk.store.sessions.origin(session).place == "here"
            there.send(signal.SIGTERM)
            await there.ended()
            assert "worked on sessions 0 times" in there.lines[-1]


async def test_a_worker_takes_only_what_the_store_offers_whatever_nats_says(
    tmp_path: Path, postgres: LocalPostgres, nats: LocalNats
) -> None:
    async with ModelServer("real", "forged") as model:
        cluster = Cluster(
            folder=tmp_path,
            store_url=postgres.new_url(),
            events_url=nats.url,
            model_url=model.url,
        )
        async with cluster.surface("here") as desk, cluster.worker("there") as there:
            await desk.sees_workers(1)
            offered, folder = await desk.begin(), tmp_path / "mine"
            folder.mkdir()
            desk.work = folder  # of this machine alone, though the other can see it
            forged = await desk.begin()
            await asyncio.to_thread(desk.app.record, forged, UserMessage(text="wait"))
            publisher = await connect(nats.url)
            for data in (forged.encode(), b"\xff", b"\x1b]0;title\x07"):
                await publisher.publish(f"{cluster.subject}.work.there", data)
            await publisher.flush()
            await desk.say(offered, "hello")
            await desk.answered(offered)
            await publisher.close()
            there.send(signal.SIGTERM)
            await there.ended()
            assert "worked on sessions 1 times" in there.lines[-1]
            assert not any("\x1b]0" in line for line in there.lines)
            assert texts(await desk.sound(offered)) == ["real"]


class Asking:
    """The model asks for something that needs approval, then answers slowly."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, request: Recorded) -> ScriptedResponse:
        self.count += 1
        messages = msgspec.json.decode(request.body)["messages"]
        if messages[-1]["role"] == "tool":
            return ScriptedResponse(text="word " * 400, chunk=5, delay=0.02)
        if self.count > 1:
            return ScriptedResponse(text="after the interrupt")
        arguments = msgspec.json.encode({"command": "git push"}).decode()
        return ScriptedResponse(
            calls=(ServedCall(name="terminal", arguments=arguments, id="c1"),)
        )


async def test_answers_and_interrupts_of_another_machine_reach_the_worker(
    tmp_path: Path, postgres: LocalPostgres, nats: LocalNats
) -> None:
    async with ModelServer(respond=Asking()) as model:
        cluster = Cluster(
            folder=tmp_path,
            store_url=postgres.new_url(),
            events_url=nats.url,
            model_url=model.url,
        )
        async with cluster.surface() as desk, cluster.worker("one"):
            await desk.sees_workers(1)
            session = await desk.begin()
            await desk.say(session, "push it")
            asked: list[ApprovalRequested] = []
            async with asyncio.timeout(30):
                while not asked:
                    pending = await desk.agent.service.pending(session)
                    asked = [e for e in pending if isinstance(e, ApprovalRequested)]
                    await asyncio.sleep(0.05)
            service = desk.agent.service
            assert await service.answer(session, "c1", "deny", by="desk")
            await until(lambda: len(model.requests) == 2)
            await service.interrupt(session, by="desk")
            (end,) = await desk.answered(session)
            assert end.reason == "interrupted"
            await desk.say(session, "again")
            await desk.answered(session, 2)
            assert texts(await desk.sound(session))[-1] == "after the interrupt"


class Marking:
    """The model runs one command that leaves a mark, then answers."""

    def __init__(self) -> None:
        self.held = asyncio.Event()
        self.delay = 0.0

    def __call__(self, request: Recorded) -> ScriptedResponse:
        messages = msgspec.json.decode(request.body)["messages"]
        if messages[-1]["role"] == "tool":
            self.held.set()
            return ScriptedResponse(text="done " * 100, chunk=4, delay=self.delay)
        said = str(messages[-1]["content"])
        arguments = msgspec.json.encode(
            {"command": f"echo {said} >> marks.txt"}
        ).decode()
        return ScriptedResponse(
            calls=(ServedCall(name="terminal", arguments=arguments, id=f"c-{said}"),)
        )


async def test_a_killed_worker_is_followed_by_another_and_no_call_runs_twice(
    tmp_path: Path, postgres: LocalPostgres, events_url: str
) -> None:
    marking = Marking()
    marking.delay = 0.1
    async with ModelServer(respond=marking) as model:
        cluster = Cluster(
            folder=tmp_path,
            store_url=postgres.new_url(),
            events_url=events_url,
            model_url=model.url,
        )
        async with cluster.surface() as desk, cluster.worker("one") as one:
            await desk.sees_workers(1)
            session = await desk.begin()
            await desk.say(session, "m1")
            await asyncio.wait_for(marking.held.wait(), 60)
            await one.kill()
            marking.delay = 0.0
            async with cluster.worker("two"):
                expire_leases(postgres, cluster)
                ends = await desk.answered(session)
                assert [end.reason for end in ends] == ["crashed"]
                await desk.say(session, "m2")
                await desk.answered(session, 2)
            events = await desk.sound(session)
            results = [event for event in events if isinstance(event, ToolFinished)]
            assert len(results) == 2
            marks = (cluster.work / "marks.txt").read_text().split()
            assert marks == ["m1", "m2"]


async def test_a_frozen_worker_is_fenced_and_says_so(
    tmp_path: Path, postgres: LocalPostgres
) -> None:
    marking = Marking()
    marking.delay = 0.05
    async with ModelServer(respond=marking) as model:
        cluster = Cluster(
            folder=tmp_path, store_url=postgres.new_url(), model_url=model.url
        )
        async with cluster.surface() as desk, cluster.worker("one") as one:
            await desk.sees_workers(1)
            session = await desk.begin()
            await desk.say(session, "m1")
            await asyncio.wait_for(marking.held.wait(), 60)
            one.send(signal.SIGSTOP)
            async with cluster.worker("two"):
                expire_leases(postgres, cluster)
                (end,) = await desk.answered(session)
                assert end.reason == "crashed"
                before = await desk.sound(session)
                one.send(signal.SIGCONT)
                await one.says("Another process took over")
                assert await desk.sound(session) == before


async def test_a_stopped_worker_finishes_its_turn_and_hands_over_what_waits(
    tmp_path: Path, postgres: LocalPostgres
) -> None:
    marking = Marking()
    marking.delay = 0.02
    async with ModelServer(respond=marking) as model:
        cluster = Cluster(
            folder=tmp_path, store_url=postgres.new_url(), model_url=model.url
        )
        async with cluster.surface() as desk, cluster.worker("one") as one:
            await desk.sees_workers(1)
            first, second = await desk.begin(), await desk.begin()
            await desk.say(first, "m1")
            await asyncio.wait_for(marking.held.wait(), 60)
            one.send(signal.SIGTERM)
            await desk.app.writer.write(second, UserMessage(text="m2"), offer=True)
            assert await one.ended() == 0
            assert texts(await desk.sound(first))[-1].startswith("done")
            async with cluster.worker("two"):
                (end,) = await desk.answered(second)
                assert end.reason == "done"
            await desk.sound(second)
