"""Jobs on several machines over one store: one whose folder is on one machine runs there, and nowhere else."""

from pathlib import Path

import msgspec
from tests.fakes.postgres_server import LocalPostgres
from tests.integration.schedules.test_loop import HOUR, bench

from hermes.settings import Settings
from hermes.settings.gateway import ScheduleSettings
from hermes.settings.sections import StoreSettings, WorkerSettings


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
