"""The installed program on several hosts (homes of their own) over one PostgreSQL database."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.fakes.postgres_server import LocalPostgres, running_postgres
from tests.integration.dashboard import harness as dashboard

from hermes import __version__
from hermes.app.app import build
from hermes.app.log_follower import LogFollower
from hermes.events import Bus
from hermes.schema.events import TurnEnded, TurnStarted
from hermes.schema.messages import AssistantMessage
from hermes.settings import Home, Settings
from hermes.settings.sections import StoreSettings
from hermes.store import Store
from hermes.store.leases import LEASE_TTL_S
from hermes.store.postgres.options import PostgresOptions
from hermes.store.postgres.postgres_store import open_postgres
from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse

TIMEOUT_S = 60.0


@pytest.fixture
def url(postgres: LocalPostgres) -> str:
    return postgres.new_url()


def said(url: str) -> list[str]:
    """What the model answered in the only session, after its log was checked."""
    with open_postgres(PostgresOptions(url)) as store:
        assert store.check().problems == []
        (session,) = store.sessions.recent()
        rows = store.log.every_event(session.id)
        events = [row.event for row in rows]
    started = sum(isinstance(event, TurnStarted) for event in events)
    assert started == sum(isinstance(event, TurnEnded) for event in events)
    return [event.text for event in events if isinstance(event, AssistantMessage)]


class Held:
    """Answers the first request only when it is told to."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.go_on = asyncio.Event()
        self._count = 0

    def __call__(self, request: Recorded) -> ScriptedResponse:
        self._count += 1
        self.asked.set()
        if self._count > 1:
            return ScriptedResponse(text="the successor answers")
        return ScriptedResponse(text="a slow answer " * 200, chunk=4, delay=0.02)


async def test_a_session_goes_on_on_another_host(tmp_path: Path, url: str) -> None:
    async with ModelServer("from a", "from b") as model:
        a = InstalledHermes(tmp_path / "a", model.url)
        b = InstalledHermes(tmp_path / "b", model.url)
        first = await a.run("-z", "hello there", HERMES_STORE_URL=url)
        assert (first.code, first.out) == (0, "from a\n"), first.err
        second = await b.run("--continue", "-z", "and now", HERMES_STORE_URL=url)
        assert (second.code, second.out) == (0, "from b\n"), second.err
        found = await a.run("sessions", "search", "there", HERMES_STORE_URL=url)
        assert "hello" in found.out
    assert said(url) == ["from a", "from b"]
    assert not (a.home / "state.db").exists()
    asked = msgspec.json.decode(model.posts[-1].body)["messages"]
    assert [one["content"] for one in asked if one["role"] == "assistant"] == ["from a"]


async def test_a_store_is_copied_there_and_back(tmp_path: Path, url: str) -> None:
    async with ModelServer("an answer") as model:
        host = InstalledHermes(tmp_path / "a", model.url)
        assert (await host.run("-z", "hello")).code == 0
        there = await host.run("store", "copy", "sqlite://", url)
        assert "compared" in there.out, there.err
        assert "sessions: 1, " in there.out
        again = await host.run("store", "copy", "sqlite://", url)
        assert again.code == 1
        assert "already" in again.err
        file = tmp_path / "back.db"
        back = await host.run("store", "copy", url, f"sqlite://{file}")
        assert "compared" in back.out, back.err
        status = await host.run("store", "status", "--json", HERMES_STORE_URL=url)
        assert msgspec.json.decode(status.out)["engine"] == "PostgreSQL"
        backup = await host.run("backup", str(tmp_path / "b.tgz"), HERMES_STORE_URL=url)
        assert backup.code == 0, backup.err
    assert said(url) == ["an answer"]


async def test_the_doctor_knows_the_server(tmp_path: Path, url: str) -> None:
    host = InstalledHermes(tmp_path)
    empty = await host.run("doctor", HERMES_STORE_URL=url)
    assert "has no tables yet" in empty.out
    open_postgres(PostgresOptions(url)).close()
    ready = await host.run("doctor", HERMES_STORE_URL=url)
    assert "PostgreSQL: postgres on" in ready.out
    assert "notices " in ready.out
    assert "latency" in ready.out
    nowhere = f"postgresql://me@/none?host={tmp_path}"
    unreachable = await host.run("doctor", HERMES_STORE_URL=nowhere)
    assert "can't be reached" in unreachable.out


async def test_rows_of_one_host_reach_a_reader_on_another_in_order(
    tmp_path: Path, url: str
) -> None:
    seen: list[tuple[str, int]] = []
    is_over = asyncio.Event()

    def note(event: Any) -> None:
        seen.append((event["session_id"], event["seq"]))
        if event["type"] == TurnEnded.topic:
            is_over.set()

    settings, home = Settings(store=StoreSettings(url=url)), Home(tmp_path / "b")
    with build(settings, home, bus=(bus := Bus())) as reader:
        for pattern in ("session.**", "agent.**"):
            bus.subscribe(pattern, note)
        following = asyncio.create_task(LogFollower(reader).run())
        async with ModelServer("an answer") as model:
            await asyncio.to_thread(reader.store.log.newest)
            a = InstalledHermes(tmp_path / "a", model.url)
            assert (await a.run("-z", "hello", HERMES_STORE_URL=url)).code == 0
        await asyncio.wait_for(is_over.wait(), TIMEOUT_S)
        (session,) = reader.store.sessions.recent()
        await _until(lambda: len(seen) >= session.head)
        following.cancel()
        assert seen == [(session.id, seq) for seq in range(1, session.head + 1)]


async def test_a_frozen_process_is_fenced_once_another_host_took_its_session(
    tmp_path: Path, postgres: LocalPostgres, url: str
) -> None:
    held = Held()
    async with ModelServer(respond=held) as model:
        a = InstalledHermes(tmp_path / "a", model.url)
        b = InstalledHermes(tmp_path / "b", model.url)
        frozen = await a.start("-z", "hello", HERMES_STORE_URL=url)
        assert frozen.stdin is not None
        frozen.stdin.close()
        await asyncio.wait_for(held.asked.wait(), TIMEOUT_S)
        frozen.send_signal(signal.SIGSTOP)
        try:
            schema = url.rpartition("=")[2]
            past = f"UPDATE {schema}.leases SET expires = expires - {LEASE_TTL_S}"  # noqa: S608 - a test
            postgres.sql(past)
            after = await b.run("--continue", "-z", "go on", HERMES_STORE_URL=url)
            assert after.out == "the successor answers\n", after.err
        finally:
            frozen.send_signal(signal.SIGCONT)
        _, errors = await asyncio.wait_for(frozen.communicate(), TIMEOUT_S)
        assert frozen.returncode == 1
        assert b"Another process took over this session" in errors
    answers = said(url)
    assert answers[-1] == "the successor answers"
    assert not any("slow" in answer for answer in answers)


async def test_a_restart_of_the_server_in_the_middle_of_a_turn_is_waited_for(
    tmp_path: Path,
) -> None:
    with running_postgres() as server:
        held = Held()
        async with ModelServer(respond=held) as model:
            a = InstalledHermes(tmp_path / "a", model.url)
            running = await a.start("-z", "hello", HERMES_STORE_URL=server.url())
            assert running.stdin is not None
            assert running.stderr is not None
            running.stdin.close()
            await asyncio.wait_for(held.asked.wait(), TIMEOUT_S)
            await asyncio.to_thread(server.stop)
            notice = await asyncio.wait_for(running.stderr.readline(), TIMEOUT_S)
            assert b"Store unreachable, waiting" in notice
            await asyncio.to_thread(server.start)
            out, _ = await asyncio.wait_for(running.communicate(), TIMEOUT_S)
            assert running.returncode == 0
            assert out.decode().strip() == ("a slow answer " * 200).strip()
        assert len(said(server.url())) == 1


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not is_so():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)


async def test_a_dashboard_is_listed_on_every_host_while_it_runs(
    tmp_path: Path, url: str
) -> None:
    settings = Settings(store=StoreSettings(url=url))
    async with dashboard.opened(tmp_path / "a", settings) as harness:
        who = await harness.call("GET", "/api/auth")
        assert who["shared_store"]
        store = harness.app.store
        await _until_async(lambda: asyncio.to_thread(_roles, store), ["dashboard"])
        shown = await harness.call("GET", "/api/commands/hosts.list")
        (listed,) = shown["hosts"]
        assert (listed["role"], listed["version"], listed["is_live"]) == (
            "dashboard",
            __version__,
            True,
        )
        other = InstalledHermes(tmp_path / "b")
        told = await other.run("hosts", "list", HERMES_STORE_URL=url)
        assert "dashboard" in told.out, told.err
    with open_postgres(PostgresOptions(url)) as after:
        assert _roles(after) == []


def _roles(store: Store) -> list[str]:
    return [one.role for one in store.hosts.state().processes]


async def _until_async(find: Callable[[], Awaitable[object]], wanted: object) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while await find() != wanted:  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.02)
