import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hermes.primitives.file_lock import FileLock

_HOLD = "import sys; sys.stdin.read()"


def test_one_holds_it_alone_or_many_share_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with FileLock(path) as one, FileLock(path) as other:
        assert one.try_acquire(shared=True)
        assert other.try_acquire(shared=True)
        assert not other.try_acquire()
        one.close()
        assert other.try_acquire()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_waiting_is_bounded(tmp_path: Path) -> None:
    with FileLock(tmp_path / "lock") as one, FileLock(tmp_path / "lock") as other:
        assert one.acquire(0.0)
        began = time.monotonic()
        assert not other.acquire(0.05, shared=True)
        assert time.monotonic() - began >= 0.05
        one.close()
        assert other.acquire(0.0)


def test_a_lock_ends_with_the_last_process_that_has_its_file(tmp_path: Path) -> None:
    with FileLock(tmp_path / "lock") as one, FileLock(tmp_path / "lock") as other:
        assert one.try_acquire()
        with subprocess.Popen(
            [sys.executable, "-c", _HOLD], stdin=subprocess.PIPE, pass_fds=(one.fd,)
        ) as child:
            one.close()
            assert not other.try_acquire()
            child.kill()
        assert other.acquire(5.0)


def test_a_lock_can_be_looked_at_without_creating_its_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FileLock(tmp_path / "lock", create=False)
    assert not list(tmp_path.iterdir())


def test_closing_twice_does_no_harm(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    lock.close()
    lock.close()
    assert lock.fd == -1
