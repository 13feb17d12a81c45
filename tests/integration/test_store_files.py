"""`state.db` as a file: who may read it, which versions it may have, who may make it, who may carry it over a fork."""

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import pytest

from hermes.errors import StoreBusy, StoreError, StoreTooNew
from hermes.schema.events import SessionCreated, SessionPrompted
from hermes.schema.messages import Usage, UserMessage
from hermes.store import Store, open_store
from hermes.store.log_row import COLUMNS, Row, draft, earlier_checksum
from hermes.store.projection import project
from hermes.store.session_export import write_snapshot
from hermes.store.sqlite.schema import APPLICATION_ID, MIGRATIONS

WRITER = Path(__file__).with_name("store_writer.py")
NEXT = (
    *MIGRATIONS,
    "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT); UPDATE sessions SET cwd = 'moved';",
)
WAIT = 30


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def program(*arguments: str | Path) -> "Iterator[subprocess.Popen[str]]":
    command = [sys.executable, str(WRITER), *map(str, arguments)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def fill(path: Path) -> Path:
    with open_store(path) as store:
        store.log.create("s", SessionCreated(cwd="/home"))
        store.log.append("s", UserMessage(text="hello"))
    return path


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


# Permissions


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o777])
def test_every_file_is_private_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    path = tmp_path / "state.db"
    with umask(mask):
        with open_store(path) as store:
            store.log.create("s", SessionCreated())
            write_snapshot(store, "s", tmp_path)
            modes = {
                file.name: stat.S_IMODE(file.stat().st_mode)
                for file in tmp_path.iterdir()
            }
            assert {
                "state.db",
                "state.db-wal",
                "state.db-shm",
                "state.db.lock",
            } < modes.keys()
            assert set(modes.values()) == {0o600}
        with open_store(path, migrations=NEXT):
            pass
        path.write_bytes(b"no database")
        path.chmod(0o644)
        with open_store(path, migrations=NEXT) as store:
            assert store.recovery
    modes = {
        file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()
    }
    assert any("backup" in name for name in modes)
    assert any("damaged" in name for name in modes)
    assert set(modes.values()) == {0o600}


def test_a_file_that_others_could_read_is_made_private(tmp_path: Path) -> None:
    path = fill(tmp_path / "state.db")
    path.chmod(0o644)
    with open_store(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


# Versions

_VERSION_WITH_PLACES = 7


def file_of_version(path: Path, version: int) -> None:
    """A database as that version wrote it, with a session of three rows."""
    events = [
        SessionCreated(cwd="/home"),
        SessionPrompted(system=("stable " * 200, "mine")),
        UserMessage(text="hello"),
    ]
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("PRAGMA journal_mode=WAL").fetchall()
        for step in MIGRATIONS[:version]:
            connection.execute(step)
        connection.execute(
            f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={version}"
        )
        has_place = version >= _VERSION_WITH_PLACES
        if not has_place:  # what projects the rows below is of today
            connection.execute("ALTER TABLE sessions ADD COLUMN place")
        for seq, event in enumerate(events, 1):
            entry = draft(event)
            row = Row(
                0, "s", seq, 1, 1.7e9 + seq, entry.type, entry.role, "", entry.data
            )
            insert = f"INSERT INTO events ({COLUMNS}, crc) VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
            connection.execute(insert, (*row[1:], earlier_checksum(row)))
            project(connection, row, event)
        if not has_place:
            connection.execute("ALTER TABLE sessions DROP COLUMN place")


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS)))
def test_a_file_of_an_earlier_version_opens_and_goes_on(
    tmp_path: Path, version: int
) -> None:
    path = tmp_path / "state.db"
    file_of_version(path, version)
    with open_store(path) as store:
        assert store.recovery is None
        assert [row.type for row in store.log.events("s")] == [
            "session.created",
            "session.prompted",
            "agent.message.user",
        ]
        store.log.append(
            "s",
            SessionPrompted(system=("stable " * 200, "new")),
            UserMessage(text="again"),
        )
        store.claims.make("s", "2026-01-01", Usage(input_tokens=1))
        assert store.claims.of_others("t", "2026-01-01") == (1, 0.0)
    with open_store(path) as store:
        rows = store.log.events("s")
        prompts = [
            row.event.system[1]
            for row in rows
            if isinstance(row.event, SessionPrompted)
        ]
        assert prompts == ["mine", "new"]
        assert [message.text for message in store.log.messages("s")] == [
            "hello",
            "again",
        ]
        assert store.search.find("hello")[0].seq == 3
        assert store.check().problems == []
    assert version_of(path) == len(MIGRATIONS)


def test_an_older_file_is_migrated_after_a_backup(tmp_path: Path) -> None:
    path = fill(tmp_path / "state.db")
    with open_store(path, migrations=NEXT) as store:
        assert store.recovery is None
        assert store.sessions.find("s").cwd == "moved"
        store.log.append("s", UserMessage(text="again"))
        assert len(store.log.messages("s")) == 2
    assert version_of(path) == len(NEXT)
    backup = tmp_path / f"state.db.v{len(MIGRATIONS)}-backup"
    with open_store(backup) as store:
        assert store.sessions.find("s").cwd == "/home"
        assert len(store.log.messages("s")) == 1
        assert store.check().problems == []


def test_a_file_with_rows_in_its_write_ahead_log_is_migrated_whole(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    with program("keep-open", path) as process:
        assert said(process) == "open"
    assert path.with_name("state.db-wal").stat().st_size
    with open_store(path, migrations=NEXT) as store:
        assert store.sessions.find("leased").cwd == "moved"
    with open_store(tmp_path / f"state.db.v{len(MIGRATIONS)}-backup") as store:
        assert store.sessions.find("leased").head == 1


def test_a_newer_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with open_store(path, migrations=NEXT):
        pass
    before = path.read_bytes()
    with pytest.raises(StoreTooNew, match="newer Hermes"):
        open_store(path)
    assert path.read_bytes() == before
    assert {file.name for file in tmp_path.iterdir()} == {"state.db", "state.db.lock"}


@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
def test_another_programs_database_is_refused_and_left_alone(
    tmp_path: Path, journal: str
) -> None:
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode={journal}")
        connection.execute("CREATE TABLE events (id INTEGER)")
        connection.commit()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        open_store(path)
    assert path.read_bytes() == before
    assert {file.name for file in tmp_path.iterdir()} == {"state.db", "state.db.lock"}


def test_a_failing_migration_leaves_the_old_version(tmp_path: Path) -> None:
    path = fill(tmp_path / "state.db")
    broken = (
        *MIGRATIONS,
        "CREATE TABLE notes (id INTEGER); INSERT INTO nowhere VALUES (1);",
    )
    with pytest.raises(StoreError, match="no such table: nowhere"):
        open_store(path, migrations=broken)
    assert version_of(path) == len(MIGRATIONS)
    with open_store(path) as store:
        assert store.recovery is None
        assert len(store.log.messages("s")) == 1
    with open_store(path, migrations=NEXT) as store:
        assert store.sessions.find("s").cwd == "moved"


def test_nothing_is_migrated_while_another_process_has_it_open(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with program("keep-open", path) as process:
        assert said(process) == "open"
        with pytest.raises(StoreBusy, match="another Hermes process"):
            open_store(path, migrations=NEXT, busy_timeout=0.2)
        with open_store(path) as store:
            assert store.sessions.find("leased").head == 1
    with open_store(path, migrations=NEXT) as store:
        assert store.sessions.find("leased").cwd == "moved"


def test_a_folder_in_the_way_or_a_missing_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "state.db").mkdir()
    with pytest.raises(StoreError, match="is not a file"):
        open_store(tmp_path / "state.db")
    with pytest.raises(StoreError, match="cannot open"):
        open_store(tmp_path / "nowhere" / "state.db")


# Processes and threads


def test_two_processes_that_create_it_at_once_share_one_database(
    tmp_path: Path,
) -> None:
    paths = [tmp_path / str(number) / "state.db" for number in range(20)]
    with program("create-at-once", *paths) as process:
        assert [said(process) for _ in paths] == ["0 0"] * len(paths)
    for path in paths:
        with open_store(path) as store:
            assert {info.id for info in store.sessions.recent()} == {"0", "1"}
            assert store.recovery is None
            assert store.check().problems == []


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_forked_child_is_told_to_open_its_own(tmp_path: Path) -> None:
    with open_store(tmp_path / "state.db") as store:
        store.log.create("s", SessionCreated())
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.write(write_end, _tried_in_child(store).encode())
            os._exit(0)
        os.close(write_end)
        with os.fdopen(read_end) as pipe:
            told = pipe.read()
        os.waitpid(pid, 0)
        assert told == "refused refused closed"
        store.log.append("s", UserMessage(text="the parent goes on"))
        assert store.check().problems == []


def _tried_in_child(store: Store) -> str:
    words: list[str] = []
    for attempt in (
        lambda: store.log.append("s", UserMessage(text="child")),
        lambda: store.log.messages("s"),
    ):
        try:
            attempt()
        except StoreError as error:
            words.append("refused" if "fork" in str(error) else str(error))
    store.close()
    return " ".join([*words, "closed"])


def test_cancelling_a_submitted_write_harms_no_other(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with open_store(path) as store:
        store.log.create("s", SessionCreated())
        with program("hold", path) as holder:
            assert said(holder) == "held"
            first = store.log.submit("s", UserMessage(text="first"))
            others = [
                store.log.submit("s", UserMessage(text=str(n))) for n in range(10)
            ]
            cancelled = [future.cancel() for future in others[::2]]
            assert holder.stdin
            holder.stdin.write("let go\n")
            holder.stdin.flush()
            first.result(WAIT)
            expected = ["first"] + [
                str(n) for n in range(10) if n % 2 or not cancelled[n // 2]
            ]
            for n in range(1, 10, 2):
                others[n].result(WAIT)
        texts = [
            message.text
            for message in store.log.messages("s")
            if isinstance(message, UserMessage)
        ]
        assert texts == expected
        store.log.append("s", UserMessage(text="goes on"))


def test_a_write_may_follow_from_the_end_of_another(tmp_path: Path) -> None:
    with open_store(tmp_path / "state.db") as store:
        store.log.create("s", SessionCreated())
        followed: Future[int] = Future()

        def follow(_: object) -> None:
            followed.set_result(
                store.log.append("s", UserMessage(text="second"))[0].seq
            )

        store.log.submit("s", UserMessage(text="first")).add_done_callback(follow)
        assert followed.result(WAIT) == 3


def test_threads_share_transactions_and_lose_nothing(tmp_path: Path) -> None:
    with open_store(tmp_path / "state.db") as store:
        store.log.create("s", SessionCreated())

        def write(name: int) -> None:
            for number in range(50):
                store.log.append("s", UserMessage(text=f"{name} {number}"))

        threads = [threading.Thread(target=write, args=(name,)) for name in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT)
        texts = [
            message.text
            for message in store.log.messages("s")
            if isinstance(message, UserMessage)
        ]
        assert sorted(texts) == sorted(
            f"{name} {number}" for name in range(8) for number in range(50)
        )
        for name in range(8):
            assert [text for text in texts if text.startswith(f"{name} ")] == [
                f"{name} {n}" for n in range(50)
            ]


def test_closing_finishes_what_was_submitted_and_refuses_what_comes_later(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    store = open_store(path)
    store.log.create("s", SessionCreated())
    futures = [store.log.submit("s", UserMessage(text=str(n))) for n in range(600)]
    store.close()
    store.close()
    assert [future.result(0)[0].seq for future in futures] == list(range(2, 602))
    with pytest.raises(StoreError, match="closed"):
        store.log.append("s", UserMessage(text="late"))
    with pytest.raises(StoreError, match="closed"):
        store.log.messages("s")


def test_one_bad_write_fails_alone(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with open_store(path) as store:
        store.log.create("s", SessionCreated())
        with program("hold", path) as holder:
            assert said(holder) == "held"
            good = store.log.submit("s", UserMessage(text="good"))
            bad = store.log.submit("nowhere", UserMessage(text="bad"))
            also_good = store.log.submit("s", UserMessage(text="also good"))
            assert holder.stdin
            holder.stdin.write("let go\n")
            holder.stdin.flush()
            assert good.result(WAIT)[0].seq == 2
            assert also_good.result(WAIT)[0].seq == 3
            assert isinstance(bad.exception(WAIT), StoreError)
