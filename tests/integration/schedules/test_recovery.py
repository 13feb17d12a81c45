"""Schedules outlive damage of the database, as far as they can be read."""

from pathlib import Path

from hermes.schema.events import SessionCreated
from hermes.schema.messages import UserMessage
from hermes.schema.schedules import Every, Instant, Job
from hermes.store import open_store
from hermes.store.sqlite.connection import connect

PAGE = 4096


def fill(path: Path) -> dict[str, int]:
    """A database with jobs; returns on which page each table begins."""
    with open_store(path) as store:
        store.log.create("s", SessionCreated())
        for number in range(200):
            store.log.append("s", UserMessage(text=f"word{number} " * 20))
        for number in range(3):
            job = Job(
                id=f"job{number}",
                name="n",
                prompt="p",
                schedule="s",
                rule=Every(60, 0),
                zone="UTC",
                created=0,
            )
            planned = Instant(job.id, 60.0, 60.0, "schedule")
            store.schedules.put(job, dropped="", following=planned)
    connection = connect(path, busy_timeout=1)
    pages = dict(
        connection.execute("SELECT name, rootpage FROM sqlite_schema").fetchall()
    )
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()
    return pages


def spoil(path: Path, page: int) -> None:
    content = bytearray(path.read_bytes())
    content[(page - 1) * PAGE : page * PAGE] = bytes(PAGE)
    path.write_bytes(content)


def test_jobs_and_what_is_planned_are_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    spoil(path, fill(path)["leases"])
    with open_store(path) as store:
        assert store.recovery is not None
        assert store.recovery.unread == ()
        assert [job.id for job in store.schedules.jobs()] == ["job0", "job1", "job2"]
        assert len(store.schedules.planned()) == 3
    assert not list(tmp_path.glob("*.reading*"))


def test_a_table_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    spoil(path, fill(path)["instants"])
    with open_store(path) as store:
        assert store.recovery is not None
        assert store.recovery.unread == ("instants",)
        assert "Parts of these tables are missing: instants." in str(store.recovery)
        assert len(store.schedules.jobs()) == 3
        assert len(store.log.messages("s")) == 200
