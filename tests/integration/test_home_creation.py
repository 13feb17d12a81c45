"""Creating the home in a real file system, also twice at the same moment."""

import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.errors import HomeError
from hermes.settings import Home

ENSURE = """
import sys
from pathlib import Path
from hermes.settings import Home
root = Path(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
home = Home(root)
home.ensure(home.logs, home.cache)
"""

EXPLAIN = """
import os
import sys
from pathlib import Path
from hermes.errors import HomeError
from hermes.settings import Home
if os.geteuid() == 0:
    os.setuid(65534)  # root may write everywhere
try:
    Home(Path(sys.argv[1])).ensure()
except HomeError as error:
    print(error.message, error.hint)
"""


@pytest.fixture
def read_only_folder() -> Iterator[Path]:
    """A folder that exists and can't be written by whoever `ensure_as_user` runs as."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        yield Path(folder)


def ensure_as_user(root: Path) -> str:
    """What `ensure` says to a user without root's powers."""
    command = [sys.executable, "-c", EXPLAIN, str(root)]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=30
    ).stdout


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_home_and_its_folders_are_for_this_user_only(tmp_path: Path) -> None:
    home = Home(tmp_path / "deep" / "home")
    assert home.ensure(home.logs) is home
    assert (mode(home.root), mode(home.logs)) == (0o700, 0o700)


def test_a_folder_that_exists_keeps_its_permissions(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    Home(tmp_path).ensure()
    assert mode(tmp_path) == 0o755


@pytest.mark.parametrize("round_number", range(10))
def test_two_processes_creating_it_at_once_both_succeed(
    tmp_path: Path, round_number: int
) -> None:
    root = tmp_path / "a" / f"home{round_number}"
    pair = [
        subprocess.Popen(
            [sys.executable, "-c", ENSURE, str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in pair:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in pair:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in pair:
        process.communicate(timeout=30)
    assert [process.returncode for process in pair] == [0, 0]
    assert mode(root) == 0o700


def test_a_home_that_is_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("keep me")
    with pytest.raises(HomeError, match="this is a file") as refused:
        Home(file).ensure()
    assert "HERMES_HOME" in refused.value.hint
    assert file.read_text() == "keep me"


def test_a_home_below_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(HomeError, match="can't be created"):
        Home(file / "home").ensure()


def test_a_home_in_a_file_system_that_takes_no_folders_is_refused() -> None:
    with pytest.raises(HomeError) as refused:
        Home(Path("/proc/hermes/home")).ensure()
    assert "HERMES_HOME" in refused.value.hint


def test_a_home_that_can_not_be_written_is_refused(read_only_folder: Path) -> None:
    said = ensure_as_user(read_only_folder)
    assert "can't be written" in said
    assert "or set HERMES_HOME to a folder that is." in said


def test_a_home_in_a_folder_that_can_not_be_written_is_refused(
    read_only_folder: Path,
) -> None:
    said = ensure_as_user(read_only_folder / "home")
    assert "can't be created" in said
    assert "(permission denied)" in said


def test_a_dangling_link_is_named(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(HomeError, match="broken symbolic link"):
        Home(link).ensure()
