"""What runs later is brought back, or said to be left: on real files, without a command."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.sandbox.machine import missing

from hermes.tools.sandbox.restore import Protection
from hermes.tools.sandbox.session_tmp import TemporaryFolder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / ".bashrc").write_text("mine")
    return folder


@pytest.fixture
def aside(tmp_path: Path) -> Path:
    folder = tmp_path / "aside"
    folder.mkdir()
    return folder


@pytest.fixture
def other_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder that nothing can be renamed to."""
    memory = Path("/dev/shm")  # noqa: S108 - the one other disk most machines have
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        missing("there is no second disk")
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


def test_nothing_is_written_where_the_old_could_not_be_moved_away(
    workspace: Path, aside: Path, tmp_path: Path
) -> None:
    protection = Protection(workspace, held=False)
    (workspace / ".bashrc").write_text("evil")
    aside.rmdir()
    aside.symlink_to(tmp_path)
    assert protection.undo(aside) == ([], [workspace / ".bashrc"])
    assert (workspace / ".bashrc").read_text() == "evil"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["aside", "workspace"]


@pytest.mark.parametrize(
    "name",
    [
        ".npmrc",
        ".yarnrc.yml",
        ".pnpmfile.cjs",
        ".cargo/config.toml",
        ".mise.toml",
        ".githooks/x",
        "lefthook.yml",
    ],
)
def test_what_says_where_programs_come_from_does_not_appear(
    workspace: Path, aside: Path, name: str
) -> None:
    protection = Protection(workspace, held=True)
    (workspace / name).parent.mkdir(exist_ok=True)
    (workspace / name).write_text("registry=https://evil.example/")
    folder_or_file = ".githooks" if name.startswith(".githooks") else name
    assert protection.undo(aside) == ([workspace / folder_or_file], [])
    assert not (workspace / name).exists()


def test_nothing_is_written_through_a_link_that_stays(
    workspace: Path, aside: Path, tmp_path: Path
) -> None:
    protection = Protection(workspace, held=False)
    (tmp_path / "victim").write_text("precious")
    (workspace / ".bashrc").unlink()
    (workspace / ".bashrc").symlink_to(tmp_path / "victim")
    assert protection.undo(aside) == ([workspace / ".bashrc"], [])
    assert (workspace / ".bashrc").read_text() == "mine"
    assert not (workspace / ".bashrc").is_symlink()
    assert (tmp_path / "victim").read_text() == "precious"


def test_what_is_too_large_to_be_kept_is_told(workspace: Path, aside: Path) -> None:
    (workspace / ".bashrc").write_bytes(b"x" * 300_000)
    protection = Protection(workspace, held=False)
    (workspace / ".bashrc").write_bytes(b"y")
    assert protection.undo(aside) == ([], [workspace / ".bashrc"])


def test_things_are_moved_to_another_disk_too(
    workspace: Path, other_disk: Path, tmp_path: Path
) -> None:
    (tmp_path / "victim").write_text("precious")
    protection = Protection(workspace, held=False)
    (workspace / ".bashrc").unlink()
    (workspace / ".bashrc/deep").mkdir(parents=True)
    (workspace / ".bashrc/deep/file").write_text("evil")
    (workspace / ".bashrc/deep/link").symlink_to(tmp_path / "victim")
    os.mkfifo(workspace / ".bashrc/pipe")
    (workspace / ".vscode").symlink_to(tmp_path)
    done, left = protection.undo(other_disk)
    assert workspace / ".bashrc" in done
    assert left == []
    assert (workspace / ".bashrc").read_text() == "mine"
    assert not (workspace / ".vscode").is_symlink()
    (kept,) = other_disk.glob("*-.bashrc")
    assert (kept / "deep/file").read_text() == "evil"
    assert (kept / "deep/link").readlink() == tmp_path / "victim"
    assert (tmp_path / "victim").read_text() == "precious"


def test_many_new_files_keep_nothing_out_of_sight(workspace: Path, aside: Path) -> None:
    (workspace / ".claude").mkdir()
    (workspace / ".claude/mine").write_text("mine")
    protection = Protection(workspace, held=False)
    for number in range(2_500):
        (workspace / f".claude/{number}").touch()
    (workspace / ".claude/mine").write_text("evil")
    (workspace / ".vscode").mkdir()
    for number in range(450):
        (workspace / f".vscode/{number}").touch()
    (workspace / "GEMINI.md").write_text("evil")
    (workspace / "AGENTS.md").symlink_to("GEMINI.md")
    (workspace / "CLAUDE.md").mkdir()
    done, left = protection.undo(aside)
    assert left == []
    assert {
        workspace / ".vscode",
        workspace / "AGENTS.md",
        workspace / "CLAUDE.md",
        workspace / "GEMINI.md",
    } <= set(done)
    assert sorted(path.name for path in workspace.rglob("*")) == [
        ".bashrc",
        ".claude",
        "mine",
    ]
    assert (workspace / ".claude/mine").read_text() == "mine"
    assert protection.changed() == []


def test_a_workspace_with_too_many_folders_is_told(workspace: Path) -> None:
    protection = Protection(workspace, held=False)
    assert (protection.changed(), protection.is_cut) == ([], False)
    for number in range(2_001):
        (workspace / str(number)).mkdir()
    assert (protection.changed(), protection.is_cut) == ([], True)


def test_a_repository_is_found_among_thousands_of_folders_of_a_build(
    workspace: Path, aside: Path
) -> None:
    for number in range(1_200):
        (workspace / "node_modules" / str(number)).mkdir(parents=True)
    protection = Protection(workspace, held=True)
    git = workspace / "node_modules/1199/.git"
    git.mkdir()
    (git / "config").write_text("[core]\n\tfsmonitor = evil\n")
    assert protection.undo(aside) == ([git / "config"], [])
    assert not protection.is_product_cut


def test_a_persons_new_file_in_a_folder_that_is_read_only_stays(
    workspace: Path, aside: Path
) -> None:
    (workspace / ".vscode").mkdir()
    (workspace / ".git/hooks").mkdir(parents=True)
    protection = Protection(workspace, held=True)
    (workspace / ".vscode/settings.json").write_text("{}")
    (workspace / ".git/hooks/pre-commit").write_text("make lint")
    assert protection.undo(aside) == ([], [])
    assert (workspace / ".vscode/settings.json").read_text() == "{}"


def test_a_folder_in_place_of_one_that_is_read_only_does_not_stay(
    workspace: Path, aside: Path
) -> None:
    (workspace / ".git/hooks").mkdir(parents=True)
    protection = Protection(workspace, held=True)
    (workspace / ".git").rename(workspace / "old")
    (workspace / ".git/hooks").mkdir(parents=True)
    planted = workspace / ".git/hooks/pre-commit"
    planted.write_text("evil")
    assert protection.undo(aside) == ([planted], [])


def test_a_repository_is_found_in_a_folder_whose_time_was_set_back(
    workspace: Path, aside: Path
) -> None:
    folder = workspace / "a/b"
    folder.mkdir(parents=True)
    protection = Protection(workspace, held=False)
    times = folder.stat()
    (folder / ".git").mkdir()
    (folder / ".git/config").write_text("[core]\n\tfsmonitor = evil\n")
    os.utime(folder, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert protection.undo(aside) == ([folder / ".git/config"], [])


def test_what_was_moved_aside_outlives_the_session(tmp_path: Path) -> None:
    filled, empty = (TemporaryFolder(tmp_path, keeps=True) for _ in range(2))
    mine = filled.path() / "AGENTS.md"
    mine.write_text("written by a person while a background command ran")
    unused = empty.path()
    filled.close()
    empty.close()
    assert mine.exists()
    assert not unused.exists()
