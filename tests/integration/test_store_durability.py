"""What was acknowledged is there: after SIGKILL, with many writers, on a full disk, behind a lock."""

import contextlib
import os
import queue
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.fakes.postgres_server import LocalPostgres
from tests.fakes.thoroughness import rounds
from tests.integration.store_writer import opened

from hermes.errors import SessionNotFound, StoreBusy
from hermes.schema.events import SessionCreated
from hermes.schema.messages import UserMessage
from hermes.store import Store, open_store
from hermes.store.postgres.options import PostgresOptions
from hermes.store.postgres.postgres_store import open_postgres

WRITER = Path(__file__).with_name("store_writer.py")
KILLS = rounds(45, 201)
WAIT = 30  # seconds any single step may take


@contextmanager
def program(*arguments: str | Path) -> "Iterator[subprocess.Popen[str]]":
    """A writer process; it is gone when the block ends."""
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


def tell(process: "subprocess.Popen[str]", line: str) -> None:
    assert process.stdin
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def texts_by_seq(store: Store, session: str) -> dict[int, str]:
    rows = list(store.log.every_event(session))
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1)), (
        "a sequence has a hole or a double"
    )
    return {
        row.seq: row.event.text for row in rows if isinstance(row.event, UserMessage)
    }


class Killer:
    """Starts writers through one forking process, kills them at random moments, and collects what they acknowledged."""

    def __init__(
        self, process: "subprocess.Popen[str]", seed: int, kills: int = KILLS
    ) -> None:
        self._wanted = kills
        self.acknowledged: list[tuple[str, int, str]] = []
        self.kills = 0
        self._process = process
        self._seed = seed
        self._asking = threading.Lock()
        self._heard: dict[str, queue.Queue[str]] = {
            name: queue.Queue() for name in ("a", "b", "c")
        }
        self._listener = threading.Thread(target=self._listen)

    def run(self) -> None:
        self._listener.start()
        killers = [
            threading.Thread(target=self._kill_writers, args=(name,))
            for name in self._heard
        ]
        for thread in killers:
            thread.start()
        for thread in killers:
            thread.join()
        tell(self._process, "")
        self._listener.join(WAIT)

    def _listen(self) -> None:
        for line in self._process.stdout or ():
            kind, name, *rest = line.split()
            if kind == "ack":
                session, seq, text = rest
                self.acknowledged.append((session, int(seq), text))
            self._heard[name].put(f"{kind} {rest[0]}")

    def _kill_writers(self, name: str) -> None:
        rng = random.Random(f"{self._seed} {name}")
        for _ in range(self._wanted // 3):
            with self._asking:
                tell(self._process, name)
            while not (line := self._heard[name].get(timeout=WAIT)).startswith("pid"):
                pass  # acknowledgements of the writer before
            for _ in range(rng.choice((0, 0, 1, 2, 5, 12))):
                self._heard[name].get(timeout=WAIT)
            time.sleep(rng.uniform(0, 0.03))  # the random moment itself
            os.kill(int(line.split()[1]), signal.SIGKILL)
            self.kills += 1


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_kills_of_three_writers_lose_and_double_nothing_in_a_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    with program("fork-writers", path) as process:
        killer = Killer(process, seed=int(time.time()))
        killer.run()
    assert killer.kills == KILLS
    assert len(killer.acknowledged) > KILLS
    with open_store(path) as store:
        assert store.recovery is None
        require_acknowledged(store, killer)


@pytest.mark.slow
def test_kills_of_three_writers_lose_and_double_nothing_on_a_server(
    postgres: LocalPostgres,
) -> None:
    url = postgres.new_url()
    with program("fork-writers", url) as process:
        killer = Killer(process, seed=int(time.time()), kills=rounds(9, 24))
        killer.run()
    assert killer.kills == rounds(9, 24)
    assert killer.acknowledged
    with open_postgres(PostgresOptions(url)) as store:
        require_acknowledged(store, killer)


def require_acknowledged(store: Store, killer: Killer) -> None:
    """Everything acknowledged is there, in its place and once."""
    assert store.check().problems == []
    for session in ("a", "b", "c", "shared"):
        acknowledged = [ack for ack in killer.acknowledged if ack[0] == session]
        texts: dict[int, str] = {}
        with contextlib.suppress(
            SessionNotFound
        ):  # if each writer was killed before its first row
            texts = texts_by_seq(store, session)
        assert len(set(texts.values())) == len(texts), "an event was written twice"
        assert [ack for ack in acknowledged if texts.get(ack[1]) != ack[2]] == []


@pytest.mark.slow
def test_racing_writers_lose_nothing_and_each_gets_its_turn(
    tmp_path: Path, store_url: str
) -> None:
    count = 50
    database = store_url or str(tmp_path / "state.db")
    waits = waits_of_racing_writers(database, writers=rounds(8, 16), count=count)
    p99, share = waits[int(len(waits) * 0.99)], sum(waits) / len(waits)
    assert p99 < share * count / 2, "a writer waited for half of the race"


def waits_of_racing_writers(database: str, *, writers: int, count: int) -> list[float]:
    """Seconds that each append took, in order of size, once it is sure that all are there."""
    with opened(database) as store:
        store.log.create("shared", SessionCreated())
    command = [sys.executable, str(WRITER), "race", database]
    processes = [
        subprocess.Popen(
            [*command, f"w{n}", str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(writers)
    ]
    try:
        assert [said(process) for process in processes] == ["ready"] * writers
        for process in processes:
            tell(process, "go")
        said_by_all = [process.communicate(timeout=WAIT)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    acknowledged = [line.split() for text in said_by_all for line in text.splitlines()]
    places = {(session, int(seq)) for _, session, seq, _ in acknowledged}
    assert len(acknowledged) == len(places) == writers * count
    with opened(database) as store:
        assert store.check().problems == []
        written = {
            (info.id, seq)
            for info in store.sessions.recent()
            for seq in texts_by_seq(store, info.id)
        }
    assert written == places
    return sorted(float(words[3]) for words in acknowledged)


def on_tiny_disk(command: str, tmp_path: Path, size: str) -> list[str]:
    """Runs a command of store_writer.py on a real file system of that size, and returns what it said."""
    disk = tmp_path / "disk"
    disk.mkdir()
    script = 'mount -t tmpfs -o "size=$1,mode=700" tmpfs "$2" && shift 2 && exec "$@"'
    own_mounts = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    if subprocess.run(
        [*own_mounts, "true"], check=False, capture_output=True
    ).returncode:
        pytest.skip("this machine does not let us mount a small file system")
    ours = [sys.executable, str(WRITER), command, str(disk / "state.db")]
    done = subprocess.run(
        [*own_mounts, "sh", "-c", script, "sh", size, str(disk), *ours],
        check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_full_disk_refuses_and_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    refused, kept, last = on_tiny_disk("fill-disk", tmp_path, "2m")
    assert refused.startswith("StoreFull: not saved")
    assert kept == "kept True"
    assert last == "kept True, [], recovered False"


def test_a_database_that_could_not_be_made_for_lack_of_space_can_be_made_later(
    tmp_path: Path,
) -> None:
    refused, later = on_tiny_disk("full-from-the-start", tmp_path, "1m")
    assert refused.startswith("StoreFull")
    assert later == "works, recovered False"


def test_where_many_write_the_thread_commits_what_waits_together(
    tmp_path: Path,
) -> None:
    with open_store(tmp_path / "state.db") as store:
        store.log.create("s", SessionCreated())
        assert (
            store._db.submit(lambda _: threading.current_thread()).result(WAIT)
            is threading.current_thread()
        )
        store.share()
        entered, go_on, commits = threading.Event(), threading.Event(), list[str]()

        def hold(_: object) -> str:
            entered.set()
            assert go_on.wait(WAIT)
            return threading.current_thread().name

        held = store._db.submit(hold)
        assert entered.wait(WAIT)
        later = [
            store.log.submit("s", UserMessage(text=str(number))) for number in range(3)
        ]
        store._database._writer.set_commit_hook(lambda: bool(commits.append("one")))
        go_on.set()
        assert held.result(WAIT) == "hermes-store"
        assert [future.result(WAIT)[0].seq for future in later] == [2, 3, 4]
        assert commits == [
            "one",
            "one",
        ]  # of the one that was held, and of all that waited


def test_where_many_write_the_log_is_moved_into_the_file_beside_them(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    with open_store(path) as store:
        store.log.create("s", SessionCreated())
        store.share()
        before = path.stat().st_size
        for _ in range(60):
            store.log.append(
                "s", UserMessage(text="x" * 100_000)
            )  # more pages than a commit moves by itself
        deadline = time.monotonic() + WAIT
        while path.stat().st_size < before + 3_000_000:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert "hermes-checkpoints" in {thread.name for thread in threading.enumerate()}
    assert "hermes-checkpoints" not in {thread.name for thread in threading.enumerate()}
    with open_store(path) as store:
        assert len(store.log.messages("s")) == 60
        assert not store.check().problems


def test_a_short_lock_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with open_store(path) as store:
        store.log.create("s", SessionCreated())
        with program("hold", path) as holder:
            assert said(holder) == "held"
            future = store.log.submit("s", UserMessage(text="patient"))
            assert not future.done()
            tell(holder, "let go")
            assert said(holder) == "free"
            future.result(timeout=WAIT)
        assert texts_by_seq(store, "s")[2] == "patient"


def test_a_long_lock_is_an_error_and_no_loss(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with open_store(path, busy_timeout=0.2) as store:
        store.log.create("s", SessionCreated())
        with program("hold", path) as holder:
            assert said(holder) == "held"
            with pytest.raises(StoreBusy, match="locked by another process"):
                store.log.append("s", UserMessage(text="impatient"))
            assert store.log.messages("s") == []
            tell(holder, "let go")
            assert said(holder) == "free"
        store.log.append("s", UserMessage(text="later"))
        assert texts_by_seq(store, "s") == {2: "later"}
        assert store.check().problems == []
