"""Jobs on several machines over one store: one whose folder is on one machine runs there, and nowhere else."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
from tests.fakes.machines import until
from tests.fakes.postgres_server import LocalPostgres
from tests.integration.schedules.test_loop import HOUR, MONDAY, Bench, bench

from hermes.app.goals.waking import waiting_role
from hermes.app.machines import find_waiting
from hermes.app.presence import Presence
from hermes.commands.command import Command
from hermes.commands.context import CommandContext
from hermes.commands.hosts import list_hosts
from hermes.commands.jobs import list_jobs, show_job
from hermes.commands.store import show_store
from hermes.schema.events import SessionCreated
from hermes.schema.messages import UserMessage
from hermes.settings import Settings
from hermes.settings.gateway import ScheduleSettings
from hermes.settings.sections import StoreSettings, WorkerSettings
from hermes.store.hosts import GONE_AFTER_S
from hermes.surfaces.gateway.mcp_server.served_tools import QuietSurface
from hermes.surfaces.terminal.render import draw
from hermes.surfaces.terminal.style import Style
from hermes.surfaces.terminal.text import TextScreen


def machine(url: str, place: str, shared: Path) -> Settings:
    return Settings(
        schedules=ScheduleSettings(timezone="Europe/Berlin"),
        store=StoreSettings(url=url),
        worker=WorkerSettings(place=place, places=(str(shared),)),
    )


async def test_a_job_runs_on_the_machine_that_has_its_folder(
    tmp_path: Path, postgres: LocalPostgres
) -> None:
    url, shared = postgres.new_url(), tmp_path / "shared"
    shared.mkdir()
    async with (
        bench(tmp_path / "a", settings=machine(url, "a", shared)) as a,
        bench(tmp_path / "b", settings=machine(url, "b", shared)) as b,
    ):
        job = a.job("every hour", cwd=str(tmp_path))
        assert job.place == "a"
        told, _ = b.book.edit(job.id, deliver="none")
        assert told.place == "a"  # only another folder moves it
        for one in (a, b):
            one.clock.advance(HOUR)
        await b.until_idle()
        assert b.history() == []
        await a.until_idle()
        assert [one[0] for one in a.history()] == ["done"]
        assert b.server.posts == []


async def test_a_job_in_a_shared_folder_runs_anywhere_and_one_can_be_moved(
    tmp_path: Path, postgres: LocalPostgres
) -> None:
    url, shared = postgres.new_url(), tmp_path / "shared"
    shared.mkdir()
    async with (
        bench(tmp_path / "a", settings=machine(url, "a", shared)) as a,
        bench(tmp_path / "b", settings=machine(url, "b", shared)) as b,
    ):
        job = a.job("every hour", cwd=str(shared))
        assert job.place == ""
        into_file = a.job("every hour", deliver=f"file:{tmp_path / 'result'}")
        assert into_file.place == "a"
        moved, _ = b.book.edit(into_file.id, deliver=f"file:{tmp_path / 'other'}")
        assert moved.place == "b"
        for one in (a, b):
            one.clock.advance(HOUR)
        await b.until_idle()
        assert [one[0] for one in b.history()] == ["done", "done"]
        assert a.server.posts == []


async def test_a_job_that_comes_from_another_machine_runs_where_nothing_is_shared(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path) as b:
        job = b.job("every hour")
        b.book.store.put(
            msgspec.structs.replace(job, place="elsewhere"),
            dropped="",
            following=b.book.store.planned()[0],
        )
        b.clock.advance(HOUR)
        await b.until_idle()
        assert [one[0] for one in b.history()][-1:] == ["done"]


async def shown(one: Bench, command: Command, **arguments: Any) -> str:
    """What a command prints on a machine."""
    with CommandContext(QuietSurface(), app=one.app) as context:
        result = await asyncio.to_thread(command.function, context, **arguments)
    screen = TextScreen(200, Style(enabled=False))
    return "\n".join(draw(result, screen, one.clock.now()))


def beat(one: Bench, role: str) -> Presence:
    """What a process of that role does every few seconds."""
    made = Presence(one.app, role)
    made._beat()
    return made


async def test_a_job_whose_machine_is_gone_is_seen_to_wait_and_its_chat_is_told_once(
    tmp_path: Path, postgres: LocalPostgres
) -> None:
    url, shared = postgres.new_url(), tmp_path / "shared"
    shared.mkdir()
    async with (
        bench(tmp_path / "a", settings=machine(url, "a", shared)) as a,
        bench(tmp_path / "b", settings=machine(url, "b", shared)) as b,
        bench(tmp_path / "c", settings=machine(url, "c", shared)) as c,
    ):
        job = a.job("every hour", cwd=str(tmp_path), deliver="telegram:1")
        gateway = beat(a, "gateway")
        b.clock.advance(HOUR + GONE_AFTER_S + 1)
        c.clock.advance(HOUR + GONE_AFTER_S + 1)
        await b.until_idle()
        assert find_waiting(b.app) == ()  # a is only late
        assert b.delivered == []

        gateway.drain()
        await until(lambda: bool(find_waiting(b.app)))
        (found,) = find_waiting(b.app)
        assert (found.kind, found.id, found.place) == ("job", job.id, "a")
        assert found.since == MONDAY + HOUR
        for one in (b, c, b):
            await one.until_idle()
        ((target, body),) = b.delivered + c.delivered
        assert target == "telegram:1"
        assert "waits for a, which has its folder" in body
        assert f"hermes cron edit {job.id} --cwd DIR" in body
        (event,) = [
            one for one in (*b.told, *c.told) if one["type"] == "schedule.waiting"
        ]
        assert (event["job"], event["place"]) == (job.id, "a")

        for text in (
            await shown(c, list_hosts),
            await shown(c, show_store),
            await shown(c, list_jobs),
            await shown(c, show_job, job=job.id),
        ):
            assert f"job {job.id}" in text
            assert "hermes cron edit JOB --cwd DIR" in text
        assert "waits for a" in await shown(c, list_jobs)

        beat(a, "gateway")
        assert find_waiting(b.app) == ()
        a.clock.advance(HOUR + GONE_AFTER_S + 1)
        await a.until_idle()
        assert [one[0] for one in a.history()][-1:] == ["done"]


async def test_a_machine_that_runs_no_jobs_is_waited_for_too(
    tmp_path: Path, postgres: LocalPostgres
) -> None:
    url, shared = postgres.new_url(), tmp_path / "shared"
    shared.mkdir()
    async with (
        bench(tmp_path / "a", settings=machine(url, "a", shared)) as a,
        bench(tmp_path / "b", settings=machine(url, "b", shared)) as b,
    ):
        job = a.job("every hour", cwd=str(tmp_path), deliver="none")
        beat(a, "dashboard")
        b.clock.advance(HOUR + 1)
        assert [one.id for one in find_waiting(b.app)] == [job.id]
        beat(a, "worker")
        assert find_waiting(b.app) == ()


async def test_a_session_that_was_left_to_a_machine_that_is_gone_is_seen_to_wait(
    tmp_path: Path, postgres: LocalPostgres
) -> None:
    url, shared = postgres.new_url(), tmp_path / "shared"
    shared.mkdir()
    async with (
        bench(tmp_path / "a", settings=machine(url, "a", shared)) as a,
        bench(tmp_path / "b", settings=machine(url, "b", shared)) as b,
    ):
        created = SessionCreated(surface="telegram", cwd=str(tmp_path))
        session = (await asyncio.to_thread(a.app.begin, created)).session
        worker = beat(a, "worker")
        await a.app.writer.write(session, UserMessage(text="go on"), offer=True)
        assert find_waiting(b.app) == ()
        worker.drain()
        await until(lambda: bool(find_waiting(b.app)))
        (found,) = find_waiting(b.app)
        assert (found.kind, found.id, found.place) == ("session", session, "a")
        assert f"session {session}" in await shown(b, list_hosts)
        lease = b.app.store.leases.acquire(session)  # somebody works on it now
        assert find_waiting(b.app) == ()
        b.app.store.leases.release(lease)

        role = waiting_role(session)
        held = a.app.store.roles.take(role)
        assert held is not None
        a.app.store.roles.release(held)  # its process is gone, and its goal waits
        kinds = {one.kind for one in find_waiting(b.app)}
        assert kinds == {"session", "goal"}
