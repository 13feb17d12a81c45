"""A `state.db` that can be read but not written: everything that only reads works, every write says why not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.schema.events import SessionCreated
from hermes.schema.messages import UserMessage
from hermes.store import open_store

WRITER = Path(__file__).with_name("store_writer.py")
READ = """
import sys
from pathlib import Path
from hermes.errors import StoreError
from hermes.schema.messages import UserMessage
from hermes.store import open_store

try:
    store = open_store(Path(sys.argv[1]))
except StoreError as error:
    sys.exit(print(f"{type(error).__name__}: {error}"))
with store:
    (info,) = store.sessions.recent()
    print(info.id, info.head, len(store.log.messages(info.id)), len(list(store.transfer.export(info.id))))
    print(store.check().problems, [hit.seq for hit in store.search.find("hello")])
    writes = [
        lambda: store.log.append(info.id, UserMessage(text="more")),
        lambda: store.log.submit(info.id, UserMessage(text="more")).result(),
        lambda: store.leases.acquire(info.id),
        lambda: store.sessions.delete(info.id),
    ]
    for write in writes:
        try:
            write()
            print("written")
        except StoreError as error:
            print("refused", "can only be read" in str(error))
"""


def read_without_writing(folder: Path) -> list[str]:
    """What the program above says of a database on a file system that is mounted read-only."""
    return without_writing(
        folder, sys.executable, "-c", READ, folder / "state.db"
    ).stdout.splitlines()


def without_writing(
    folder: Path, *command: str | Path, env: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Runs a program while the folder is mounted read-only."""
    own_mounts = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    if subprocess.run(
        [*own_mounts, "true"], check=False, capture_output=True
    ).returncode:
        pytest.skip("this machine does not let us mount a folder read-only")
    script = (
        'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'
    )
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    done = subprocess.run(
        [*own_mounts, "sh", "-c", script, "sh", str(folder), *map(str, command)],
        check=False, capture_output=True, text=True, timeout=60, env=env,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    return done


def fill(path: Path) -> None:
    with open_store(path) as store:
        store.log.create("s", SessionCreated())
        store.log.append("s", UserMessage(text="hello"))
        store.search.catch_up()
        store.log.append("s", UserMessage(text="hello again, not indexed"))


@pytest.mark.parametrize("has_lock", [True, False])
def test_a_database_that_can_not_be_written_is_read(
    tmp_path: Path, has_lock: bool
) -> None:
    fill(tmp_path / "state.db")
    if not has_lock:
        (tmp_path / "state.db.lock").unlink()
    said = read_without_writing(tmp_path)
    assert said == ["s 3 2 4", "[] [3, 2]", *["refused True"] * 4]


def test_rows_in_the_write_ahead_log_are_read_too(tmp_path: Path) -> None:
    command = [sys.executable, str(WRITER), "keep-open", str(tmp_path / "state.db")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline().strip() == "open"
        process.kill()
    assert (tmp_path / "state.db-wal").stat().st_size
    said = read_without_writing(tmp_path)
    assert said == ["leased 1 0 2", "[] []", *["refused True"] * 4]


def test_rows_in_a_write_ahead_log_without_its_index_are_read_too(
    tmp_path: Path,
) -> None:
    test_rows_in_the_write_ahead_log_are_read_too(tmp_path)
    (tmp_path / "state.db-shm").unlink()
    said = read_without_writing(tmp_path)
    assert said == ["leased 1 0 2", "[] []", *["refused True"] * 4]


def test_one_that_lost_its_write_ahead_log_is_read_with_a_warning(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    fill(path)
    with open_store(path) as store:
        store.log.append("s", UserMessage(text="only in"), UserMessage(text="the log"))
        main, changed = path.read_bytes(), path.stat().st_mtime_ns
    path.write_bytes(main)  # as a crash leaves it, but for the log
    os.utime(path, ns=(changed, changed))
    hermes = Path(sys.executable).with_name("hermes")
    environment = {"PATH": os.environ["PATH"], "HERMES_HOME": str(tmp_path)}
    done = without_writing(tmp_path, hermes, "sessions", "show", "s", env=environment)
    assert "hello again" in done.stdout, done.stderr
    assert "the last 2 rows are missing" in done.stderr


def test_a_home_that_can_not_be_written_is_read_by_the_command(tmp_path: Path) -> None:
    fill(tmp_path / "state.db")
    hermes = Path(sys.executable).with_name("hermes")
    environment = {"PATH": os.environ["PATH"], "HERMES_HOME": str(tmp_path)}
    done = without_writing(tmp_path, hermes, "sessions", "show", "s", env=environment)
    assert "hello again" in done.stdout, done.stderr


def test_a_damaged_one_is_refused_and_left_alone(tmp_path: Path) -> None:
    fill(tmp_path / "state.db")
    content = (tmp_path / "state.db").read_bytes()
    (tmp_path / "state.db").write_bytes(content[: len(content) // 2])
    (said,) = read_without_writing(tmp_path)
    assert said.startswith("StoreError")
    assert "is damaged" in said
    assert "can't write here" in said
