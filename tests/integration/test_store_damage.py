"""A damaged `state.db` is noticed, kept aside untouched and rebuilt from what is readable; nothing is invented."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.thoroughness import rounds

from hermes.errors import StoreDamaged, StoreError
from hermes.schema.events import (
    QuestionAnswered,
    QuestionAsked,
    SessionCreated,
    SessionRecovered,
)
from hermes.schema.messages import UserMessage
from hermes.store import Store, open_store
from hermes.store.sqlite.connection import connect
from hermes.store.sqlite.schema import MIGRATIONS

PAGE = 4096
WRITER = Path(__file__).with_name("store_writer.py")

Rows = dict[tuple[str, int], tuple[float, str, str]]


class Sample:
    """A database as it lies on disk, to be damaged again and again, and what was written to it."""

    def __init__(self, folder: Path, *, with_wal: bool) -> None:
        self.path = folder / "state.db"
        store = open_store(self.path)
        rng = random.Random(5)
        for session in ("one", "two", "three"):
            store.log.create(session, SessionCreated(cwd="/home"))
        for number in range(66):
            if number == 33 and with_wal:
                run(self.path, "PRAGMA wal_checkpoint(TRUNCATE)")
            size = 13_000 if number % 13 == 0 else rng.randrange(10, 900)
            store.log.append(
                ("one", "two", "three")[number % 3],
                UserMessage(text=f"word{number} " + "x" * size),
            )
        store.search.find("word1")
        self.rows = all_rows(store)
        self.unused = int(
            run(self.path, "SELECT rootpage FROM sqlite_schema WHERE name = 'leases'")
        )
        self.epochs = {info.id: info.epoch for info in store.sessions.recent()}
        if with_wal:
            self.files = {part.name: part.read_bytes() for part in parts(self.path)}
        store.close()
        if not with_wal:
            self.files = {part.name: part.read_bytes() for part in parts(self.path)}

    @property
    def main(self) -> bytes:
        return self.files["state.db"]

    @property
    def wal(self) -> bytes:
        return self.files["state.db-wal"]

    @property
    def harmed(self) -> bytes:
        """The file with a page zeroed on which no row of the log stands."""
        return (
            self.main[: (self.unused - 1) * PAGE]
            + bytes(PAGE)
            + self.main[self.unused * PAGE :]
        )

    def lay_out(self, folder: Path, **changed: bytes | None) -> Path:
        """A new home with these files; `main` and `wal` may be replaced, or left out with None."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        names = {"state.db": "main", "state.db-wal": "wal"}
        for name, content in self.files.items():
            wanted = changed.get(names[name], content)
            if wanted is not None:
                (folder / name).write_bytes(wanted)
        return folder / "state.db"


def run(path: Path, statement: str) -> Any:
    connection = connect(path, busy_timeout=1)
    try:
        return connection.execute(statement).get
    finally:
        connection.close()


def parts(path: Path) -> list[Path]:
    return [part for part in (path, path.with_name("state.db-wal")) if part.exists()]


def all_rows(store: Store) -> Rows:
    return {
        (row.session, row.seq): (row.ts, row.type, row.data)
        for info in store.sessions.recent()
        for row in store.log.every_event(info.id)
        if row.type != SessionRecovered.topic
    }


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """A database that was closed in order: one file."""
    return Sample(tmp_path_factory.mktemp("closed"), with_wal=False)


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """A database as a crash leaves it: a part of its rows is in the write-ahead log alone."""
    return Sample(tmp_path_factory.mktemp("crashed"), with_wal=True)


def reopen(sample: Sample, path: Path, *, damaged: bool | None) -> Rows:
    """Opens, checks everything that must hold after any damage, and returns the rows that are there."""
    before = {part.name: part.read_bytes() for part in parts(path)}
    with open_store(path, busy_timeout=1) as store:
        if damaged is not None:
            assert (store.recovery is not None) == damaged
        found = all_rows(store)
        made_up = {
            place for place, row in found.items() if sample.rows.get(place) != row
        }
        if store.recovery:
            kept_aside = store.recovery.kept_aside
            for name, content in before.items():
                aside = kept_aside.with_name(name.replace("state.db", kept_aside.name))
                assert aside.read_bytes() == content
                assert aside.stat().st_mode & 0o777 == 0o600
            for info in store.sessions.recent():
                assert info.epoch > sample.epochs[info.id]
            assert (
                len(found)
                - sum(found[place][1] == "session.created" for place in made_up)
                <= store.recovery.rows
            )
            assert str(kept_aside) in str(store.recovery)
            assert store.check().problems == []
        assert all(
            seq == 1 and found[session, seq][1] == "session.created"
            for session, seq in made_up
        )
        store.log.create("new", SessionCreated())
        for info in store.sessions.recent():
            store.log.append(info.id, UserMessage(text="life goes on"))
    with open_store(path) as store:
        assert store.recovery is None
    return {place: row for place, row in found.items() if place not in made_up}


def test_a_text_file_is_kept_aside(tmp_path: Path, closed: Sample) -> None:
    for number, content in enumerate(
        (b"hello", b"x" * 511, b"not a database\n" * 1000)
    ):
        path = closed.lay_out(tmp_path / str(number), main=content)
        assert reopen(closed, path, damaged=True) == {}


def test_an_emptied_file_is_noticed(tmp_path: Path, closed: Sample) -> None:
    path = closed.lay_out(tmp_path / "home", main=b"")
    with open_store(path) as store:
        assert store.recovery
        assert "empty" in store.recovery.reason


def test_a_file_cut_at_any_page_keeps_the_rows_before_the_cut(
    tmp_path: Path, closed: Sample
) -> None:
    kept: list[int] = []
    step = PAGE * rounds(5, 1)
    for size in reversed(range(len(closed.main) - PAGE, -1, -step)):
        path = closed.lay_out(tmp_path / "home", main=closed.main[:size])
        kept.append(len(reopen(closed, path, damaged=True)))
    assert kept == sorted(kept)
    assert kept[-1] > len(closed.rows) * 0.8


def test_a_file_that_was_changed_after_it_was_closed_is_checked(
    tmp_path: Path, closed: Sample
) -> None:
    path = closed.lay_out(tmp_path / "home")
    open_store(path).close()
    harm(path, keeps_time=False)
    with open_store(path) as store:
        assert store.recovery is not None


def test_a_file_that_nobody_changed_is_not_checked_at_each_opening(
    tmp_path: Path, closed: Sample
) -> None:
    path = closed.lay_out(tmp_path / "home")
    open_store(path).close()
    harm(path, keeps_time=True)
    with open_store(path) as store:
        assert store.recovery is None  # it was not looked for
        assert store.check().problems
    with open_store(path) as store:
        assert store.recovery is not None


def harm(path: Path, *, keeps_time: bool) -> None:
    """Changes a row in a closed file, as another program does, or with its time kept as a failing disk does."""
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(b"word40 ", b"word41 "))
    if keeps_time:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_lost_root_page_costs_no_row(tmp_path: Path, closed: Sample) -> None:
    root = int(
        run(closed.path, "SELECT rootpage FROM sqlite_schema WHERE name = 'events'")
    )
    damaged = bytearray(closed.main)
    damaged[(root - 1) * PAGE : root * PAGE] = bytes(PAGE)
    assert damaged[(root - 1) * PAGE] != closed.main[(root - 1) * PAGE], (
        "the root page must not be a leaf"
    )
    path = closed.lay_out(tmp_path / "home", main=bytes(damaged))
    assert reopen(closed, path, damaged=True) == closed.rows


def test_a_rebuild_makes_no_session_more_recent(tmp_path: Path, closed: Sample) -> None:
    def used(path: Path) -> list[tuple[str, float]]:
        with open_store(path) as store:
            return [(one.id, one.updated) for one in store.sessions.recent()]

    before = used(closed.lay_out(tmp_path / "whole"))
    assert used(closed.lay_out(tmp_path / "harmed", main=closed.harmed)) == before


def test_a_lost_header_costs_no_row(tmp_path: Path, closed: Sample) -> None:
    for number, start in enumerate((0, 16, 18, 20, 60, 68)):
        damaged = bytearray(closed.main)
        damaged[start : start + 4] = bytes(4) if start != 20 else b"\x07\x40\x20\x20"
        path = closed.lay_out(tmp_path / str(number), main=bytes(damaged))
        assert reopen(closed, path, damaged=True) == closed.rows


@pytest.mark.slow
def test_any_lost_page_costs_only_its_own_rows(tmp_path: Path, closed: Sample) -> None:
    rng = random.Random(11)
    for number in range(0, len(closed.main) // PAGE, rounds(5, 1)):
        damaged = bytearray(closed.main)
        damaged[number * PAGE : (number + 1) * PAGE] = rng.choice(
            (bytes(PAGE), rng.randbytes(PAGE))
        )
        path = closed.lay_out(tmp_path / "home", main=bytes(damaged))
        rows = reopen(closed, path, damaged=None)
        assert len(closed.rows) - len(rows) <= 40


@settings(max_examples=rounds(15, 60), deadline=None)
@given(
    places=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)),
        min_size=1,
        max_size=30,
    )
)
def test_flipped_bytes_invent_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    closed: Sample,
    places: list[tuple[float, int]],
) -> None:
    damaged = bytearray(closed.main)
    for place, change in places:
        damaged[int(place * len(damaged))] ^= change
    path = closed.lay_out(
        tmp_path_factory.mktemp("flipped") / "home", main=bytes(damaged)
    )
    before = path.read_bytes()
    try:
        with open_store(path, busy_timeout=1) as store:
            if store.recovery:
                assert store.recovery.kept_aside.read_bytes() == before
                found = {
                    place: row
                    for place, row in all_rows(store).items()
                    if row != closed.rows.get(place)
                }
                assert all(row[1] == "session.created" for row in found.values())
                assert store.check().problems == []
            else:
                assert all_rows(store) == closed.rows, "the damage was not noticed"
    except StoreError as error:
        assert "another program" in str(error) or "newer Hermes" in str(error)  # noqa: PT017 - the header was hit
        assert path.read_bytes() == before


def test_a_leftover_write_ahead_log_is_part_of_the_database(
    tmp_path: Path, crashed: Sample
) -> None:
    assert len(crashed.wal) > 100 * PAGE
    path = crashed.lay_out(tmp_path / "home")
    assert reopen(crashed, path, damaged=False) == crashed.rows


def test_rows_in_the_write_ahead_log_survive_the_loss_of_the_file(
    tmp_path: Path, crashed: Sample
) -> None:
    for number, main in enumerate(
        (None, b"", b"text", crashed.main[: len(crashed.main) // 2])
    ):
        path = crashed.lay_out(tmp_path / str(number), main=main)
        assert len(reopen(crashed, path, damaged=True)) >= 1


def test_a_write_ahead_log_that_is_cut_anywhere_gives_an_earlier_state(
    tmp_path: Path, crashed: Sample
) -> None:
    rng = random.Random(3)
    for _ in range(rounds(8, 25)):
        path = crashed.lay_out(
            tmp_path / "home", wal=crashed.wal[: rng.randrange(len(crashed.wal))]
        )
        rows = reopen(crashed, path, damaged=None)
        for session in ("one", "two", "three"):
            seqs = sorted(seq for name, seq in rows if name == session)
            assert seqs == list(range(1, len(seqs) + 1))


def test_damage_in_the_middle_of_the_write_ahead_log_is_noticed(
    tmp_path: Path, crashed: Sample
) -> None:
    """SQLite takes the first bad frame for the end of the log and would drop what follows without a word."""
    rng = random.Random(4)
    for _ in range(rounds(5, 12)):
        damaged = bytearray(crashed.wal)
        damaged[rng.randrange(len(damaged) // 2)] ^= 0x55
        path = crashed.lay_out(tmp_path / "home", wal=bytes(damaged))
        rows = reopen(crashed, path, damaged=None)
        assert len(crashed.rows) - len(rows) <= 12


def test_a_process_killed_while_rebuilding_loses_nothing(
    tmp_path: Path, crashed: Sample
) -> None:
    rng = random.Random(9)
    for _ in range(rounds(4, 12)):
        path = crashed.lay_out(tmp_path / "home", main=crashed.harmed)
        command = [sys.executable, str(WRITER), "open-once", str(path), "new"]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdout
            assert process.stdout.readline() == b"ready\n"
            assert process.stdin
            process.stdin.write(b"go\n")
            process.stdin.flush()
            time.sleep(rng.uniform(0.001, 0.08))  # the random moment
            process.send_signal(signal.SIGKILL)
        with open_store(path) as store:
            assert {
                place: row
                for place, row in all_rows(store).items()
                if place[0] != "new"
            } == crashed.rows
            assert store.check().problems == []
        aside = list(path.parent.glob("state.db.damaged-*"))
        assert [part for part in aside if part.read_bytes() == crashed.harmed]
        assert not list(path.parent.glob("state.db.rebu*"))


@pytest.mark.parametrize(
    "moved", [(), ("state.db",), ("state.db-wal",), ("state.db", "state.db-wal")]
)
def test_a_rebuilt_database_is_put_in_place_however_far_that_had_come(
    tmp_path: Path, crashed: Sample, moved: tuple[str, ...]
) -> None:
    rebuilt_from = crashed.lay_out(tmp_path / "other", main=crashed.harmed)
    with open_store(rebuilt_from) as store:
        assert all_rows(store) == crashed.rows
    path = crashed.lay_out(tmp_path / "home", main=crashed.harmed)
    shutil.copy(rebuilt_from, path.with_name("state.db.rebuilt-20260101-000000"))
    for name in moved:
        aside = path.with_name(
            name.replace("state.db", "state.db.damaged-20260101-000000")
        )
        path.with_name(name).rename(aside)
    with open_store(path) as store:
        assert all_rows(store) == crashed.rows
    assert (
        path.with_name("state.db.damaged-20260101-000000").read_bytes()
        == crashed.harmed
    )
    assert (
        path.with_name("state.db.damaged-20260101-000000-wal").read_bytes()
        == crashed.wal
    )


def large_database(path: Path) -> Store:
    """More than opening looks at page by page."""
    store = open_store(path)
    store.log.create("s", SessionCreated())
    for _ in range(9):
        store.log.append(
            "s", *(UserMessage(text=f"needle{i} " + "x" * 2000) for i in range(1000))
        )
    store.search.find("needle1")
    assert path.stat().st_size > 16 * 1024 * 1024
    return store


def pages_of(path: Path, table: str, kind: str) -> list[int]:
    connection = connect(path, busy_timeout=1)
    rows = connection.execute(
        "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = ?", (table, kind)
    ).fetchall()
    connection.close()
    return [int(row[0]) for row in rows]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "state.db"
    large_database(path).close()
    return path


def page_of(path: Path, number: int) -> bytes:
    with path.open("rb") as file:
        file.seek((number - 1) * PAGE)
        return file.read(PAGE)


def overwrite(path: Path, page: int, change: Callable[[bytes], bytes]) -> None:
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE)
        content = change(file.read(PAGE))
        file.seek((page - 1) * PAGE)
        file.write(content)
        os.fsync(file.fileno())


def test_damage_met_while_open_stops_writing_and_is_repaired_at_the_next_opening(
    tmp_path: Path, large: Path
) -> None:
    path = tmp_path / "state.db"
    shutil.copy(large, path)
    victim = pages_of(path, "events", "leaf")[40]
    overwrite(path, victim, lambda page: bytes(len(page)))
    with open_store(path) as store:
        assert store.recovery is None
        with pytest.raises(StoreDamaged):
            store.log.messages("s")
        for _ in range(2):
            with pytest.raises(StoreDamaged, match="damaged"):
                store.log.append("s", UserMessage(text="no"))
    with open_store(path) as store:
        assert store.recovery
        assert 0 < store.recovery.lost < 10
        assert store.recovery.rows + store.recovery.lost == 9001
        assert store.check().problems == []
        assert len(store.search.find('"needle5"')) == 9
    with open_store(path) as store:
        assert store.recovery is None


@pytest.mark.parametrize(
    "table", ["sqlite_schema", "sessions", "search_config", "jobs"]
)
def test_damage_that_opening_meets_in_a_large_database_is_repaired_at_once(
    tmp_path: Path, large: Path, table: str
) -> None:
    path = tmp_path / "state.db"
    shutil.copy(large, path)
    overwrite(path, pages_of(path, table, "leaf")[-1], lambda page: bytes(len(page)))
    with open_store(path) as store:
        assert store.recovery
        assert store.recovery.rows == 9001
        store.log.append("s", UserMessage(text="goes on"))
    with open_store(path) as store:
        assert store.recovery is None


REBUILD = """
import re, sys
from pathlib import Path
from hermes.store import open_store

def most_memory():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024

open_store(Path(sys.argv[1]).with_name("sound.db")).close()
before = most_memory()
with open_store(Path(sys.argv[1])) as store:
    print(store.recovery is not None, most_memory() - before)
"""


def test_a_rebuild_needs_far_less_memory_than_the_file_has(
    tmp_path: Path, large: Path
) -> None:
    path = tmp_path / "state.db"
    shutil.copy(large, path)
    overwrite(path, pages_of(path, "jobs", "leaf")[0], lambda page: bytes(len(page)))
    done = subprocess.run(
        [sys.executable, "-c", REBUILD, str(path)],
        check=True,
        capture_output=True,
        text=True,
    )
    rebuilt, memory = done.stdout.split()
    assert rebuilt == "True"
    assert int(memory) < path.stat().st_size / 2


def test_a_damaged_database_of_an_older_version_is_rebuilt_in_the_new_one(
    tmp_path: Path, large: Path
) -> None:
    path = tmp_path / "state.db"
    shutil.copy(large, path)
    overwrite(path, pages_of(path, "events", "leaf")[40], lambda page: bytes(len(page)))
    with open_store(
        path, migrations=(*MIGRATIONS, "CREATE TABLE notes (text TEXT)")
    ) as store:
        assert store.recovery
        assert store.recovery.rows + store.recovery.lost == 9001
        assert store.check().problems == []


def test_a_flipped_bit_in_a_large_database_is_not_served(
    tmp_path: Path, large: Path
) -> None:
    path = tmp_path / "state.db"
    shutil.copy(large, path)
    victim = next(
        page
        for page in pages_of(path, "events", "leaf")
        if b"needle77 " in page_of(path, page)
    )
    overwrite(path, victim, lambda page: page.replace(b"needle77 ", b"noodle77 "))
    readers: list[Callable[[Store], object]] = [
        lambda store: store.log.messages("s"),
        lambda store: list(store.log.every_event("s")),
        lambda store: store.log.every(limit=9001),
        lambda store: store.log.since(0, limit=9001),
        lambda store: store.log.branch("s", "branch"),
        lambda store: store.search.find("needle77"),
        lambda store: list(store.transfer.export("s")),
    ]
    for read in readers:
        with open_store(path) as store:
            assert store.recovery is None
            with pytest.raises(StoreDamaged, match="does not match its checksum"):
                read(store)
        path.with_name("state.db.suspect").unlink()
    with pytest.raises(StoreDamaged), open_store(path) as store:
        store.log.messages("s")
    with open_store(path) as store:
        assert store.recovery
        assert store.recovery.lost == 1


def test_a_question_that_was_damaged_takes_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with open_store(path) as store:
        store.log.create("s", SessionCreated(surface="test", cwd="/"))
        store.log.append("s", QuestionAsked(call_id="q", text="Delete the old one?"))
        with connect(path, busy_timeout=1000) as other:
            other.execute("UPDATE events SET data = replace(data, 'old', 'new')")
        with pytest.raises(StoreDamaged, match="does not match its checksum"):
            store.log.append("s", QuestionAnswered(call_id="q", text="yes"))


def test_damage_met_while_open_leaves_the_file_as_it_was(
    tmp_path: Path, large: Path
) -> None:
    path = tmp_path / "state.db"
    shutil.copy(large, path)
    overwrite(path, pages_of(path, "events", "leaf")[40], lambda page: bytes(len(page)))
    damaged = path.read_bytes()
    with open_store(path) as store:
        store.log.append("s", UserMessage(text="in the write-ahead log"))
        with pytest.raises(StoreDamaged):
            store.log.messages("s")
    assert path.read_bytes() == damaged
    with open_store(path) as store:
        assert store.log.messages("s")[-1] == UserMessage(text="in the write-ahead log")


@pytest.mark.parametrize("left", [None, b"", bytes(200_000)])
def test_a_lost_write_ahead_log_is_told(tmp_path: Path, left: bytes | None) -> None:
    path = tmp_path / "state.db"
    with open_store(path) as store:
        store.log.create("s", SessionCreated())
        run(path, "PRAGMA wal_checkpoint(TRUNCATE)")
        for number in range(7):
            store.log.append("s", UserMessage(text=f"{number}"))
        main, changed = path.read_bytes(), path.stat().st_mtime_ns
    path.write_bytes(main)  # as a crash leaves it, but for the log
    os.utime(path, ns=(changed, changed))
    for part in path.parent.glob("state.db-*"):
        part.unlink()
    if left is not None:
        path.with_name("state.db-wal").write_bytes(left)
    with open_store(path) as store:
        assert store.recovery
        assert store.recovery.lost == 7
        assert (
            "the last 7 rows are missing: its write-ahead log is gone or was emptied"
            in str(store.recovery)
        )
        store.log.append("s", UserMessage(text="goes on"))
        assert len(store.log.messages("s")) == 1
    with open_store(path) as store:
        assert store.recovery is None


@pytest.mark.parametrize("copy", [shutil.copyfile, shutil.copy2])  # `cp`, `cp -p`
def test_an_older_copy_that_was_put_back_by_hand_has_lost_nothing(
    tmp_path: Path, copy: Callable[[Path, Path], object]
) -> None:
    path, backup = tmp_path / "state.db", tmp_path / "backup.db"
    with open_store(path) as store:
        store.log.create("s", SessionCreated())
        store.log.append("s", UserMessage(text="kept"))
    shutil.copyfile(path, backup)
    os.utime(backup, (1.7e9, 1.7e9))
    with open_store(path) as store:
        store.log.append("s", UserMessage(text="not in the copy"))
    inode = path.stat().st_ino
    copy(backup, path)
    assert path.stat().st_ino == inode
    with open_store(path) as store:
        assert store.recovery is None
        assert store.log.messages("s") == [UserMessage(text="kept")]
    assert not list(tmp_path.glob("*damaged*"))


def test_a_database_that_was_put_in_its_place_has_lost_nothing(tmp_path: Path) -> None:
    path, other = tmp_path / "state.db", tmp_path / "other.db"
    for name, rows in ((path, 9), (other, 2)):
        with open_store(name) as store:
            store.log.create("s", SessionCreated())
            store.log.append(
                "s", *(UserMessage(text=str(number)) for number in range(rows))
            )
    other.replace(path)
    with open_store(path) as store:
        assert store.recovery is None
        assert len(store.log.messages("s")) == 2


def test_damage_in_the_search_index_alone_is_repaired_in_place(
    tmp_path: Path, large: Path
) -> None:
    path = tmp_path / "state.db"
    shutil.copy(large, path)
    run(path, "UPDATE search_data SET block = zeroblob(length(block)) WHERE id > 10")
    with open_store(path) as store:
        assert store.recovery is None
        assert len(store.search.find('"needle5"')) == 9
        store.log.append("s", UserMessage(text="goes on"))
        assert len(store.search.find("goes")) == 1
        assert store.check().problems == []
    assert not list(tmp_path.glob("state.db.damaged*"))


def test_an_index_that_contradicts_itself_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with open_store(path) as store:
        store.log.create("s", SessionCreated())
        store.log.append("s", UserMessage(text="needle"))
        numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION SELECT i + 1 FROM n WHERE i < 2000)"
        run(
            path,
            numbers  # noqa: S608
            + " INSERT OR IGNORE INTO search_idx SELECT i, CAST('' AS BLOB), 2 FROM n",
        )
        assert [hit.seq for hit in store.search.find("needle")] == [2]
        store.log.append("s", UserMessage(text="another needle"))
        assert [hit.seq for hit in store.search.find("needle")] == [3, 2]


def test_a_damaged_index_does_not_keep_a_session_from_being_deleted(
    tmp_path: Path, large: Path
) -> None:
    path = tmp_path / "state.db"
    shutil.copy(large, path)
    run(path, "UPDATE search_data SET block = zeroblob(length(block)) WHERE id > 10")
    with open_store(path) as store:
        assert store.sessions.delete("s") == 9001
        assert store.sessions.recent() == []
        assert store.check().problems == []


def test_a_bad_row_is_found_by_the_thorough_check(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with open_store(path) as store:
        store.log.create("s", SessionCreated())
        store.log.append("s", UserMessage(text="true"))
        run(path, """UPDATE events SET data = '{"text":"false"}' WHERE seq = 2""")
        run(path, "DELETE FROM events WHERE seq = 1")
        content, sequence = store.check().problems
        assert "row 2" in content
        assert "1 missing" in sequence
    with open_store(path) as store:
        assert store.recovery
        assert "row 2" in store.recovery.reason
        assert store.check().problems == []
