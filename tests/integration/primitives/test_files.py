import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.primitives.files import (
    create_private,
    make_private,
    make_private_folder,
    open_beneath,
    open_private,
    replace_file,
    replacing,
)


@pytest.fixture(params=[0o000, 0o022, 0o277], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("umask")
def test_files_and_folders_are_private_whatever_the_umask(tmp_path: Path) -> None:
    folder = make_private_folder(tmp_path / "outer" / "inner")
    os.close(open_private(folder / "opened", os.O_WRONLY | os.O_CREAT))
    create_private(folder / "created").close()
    replace_file(folder / "replaced", b"x")
    assert [_mode(path) for path in (folder, folder.parent)] == [0o700, 0o700]
    assert {_mode(path) for path in folder.iterdir()} == {0o600}


def test_opening_takes_the_permissions_of_others_away(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch(0o644)
    os.close(open_private(path, os.O_RDONLY))
    assert _mode(path) == 0o600
    path.chmod(0o644)
    make_private(tmp_path / "missing", path)
    assert _mode(path) == 0o600


def test_a_link_is_followed_only_on_request(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"x")
    link = tmp_path / "link"
    link.symlink_to("target")
    with pytest.raises(OSError, match="symbolic links"):
        open_private(link, os.O_RDONLY)
    os.close(open_private(link, os.O_RDONLY, follow_links=True))


def test_children_do_not_inherit_a_private_file(tmp_path: Path) -> None:
    fd = open_private(tmp_path / "file", os.O_WRONLY | os.O_CREAT)
    assert not os.get_inheritable(fd)
    os.close(fd)


def test_an_existing_folder_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir(0o755)
    make_private_folder(tmp_path / "folder")
    assert _mode(tmp_path / "folder") == 0o755
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        make_private_folder(tmp_path / "file")


def test_replacing_keeps_the_mode_unless_told(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.touch(0o640)
    replace_file(target, b"new")
    assert (target.read_bytes(), _mode(target)) == (b"new", 0o640)
    replace_file(target, b"newer", mode=0o600)
    assert (target.read_bytes(), _mode(target)) == (b"newer", 0o600)


@pytest.mark.parametrize("alone", [True, False])
def test_a_failed_replacement_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, alone: bool
) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"old")
    with contextlib.suppress(KeyError), replacing(target, alone=alone) as file:
        file.write(b"half")
        raise KeyError
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [
        ("file", b"old")
    ]


def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".file.new").write_bytes(b"half")
    replace_file(tmp_path / "file", b"whole")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_writers_that_are_not_alone_do_not_disturb_each_other(tmp_path: Path) -> None:
    target = tmp_path / "file"
    with (
        replacing(target, durable=False, alone=False) as one,
        replacing(target, durable=False, alone=False) as other,
    ):
        one.write(b"one")
        other.write(b"other")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [
        ("file", b"one")
    ]


def test_a_device_or_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for target in (pipe, link):
        with pytest.raises(OSError, match="Not a regular file"):
            replace_file(target, b"x", mode=0o600)
    assert pipe.is_fifo()
    assert link.is_symlink()


@pytest.fixture
def folder_with_links(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("private")
    folder = tmp_path / "folder"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "file").write_text("mine")
    (folder / "a" / "link").symlink_to(tmp_path / "outside")
    (folder / "file").symlink_to(tmp_path / "outside" / "file")
    return folder


def test_a_file_beneath_a_folder_is_opened(folder_with_links: Path) -> None:
    fd = open_beneath(folder_with_links, Path("a/b/file"), os.O_RDONLY)
    with os.fdopen(fd) as file:
        assert file.read() == "mine"


@pytest.mark.parametrize(
    "name", ["a/link/file", "file", "../outside/file", "a/../../outside/file", "."]
)
def test_no_link_leads_out_of_a_folder(folder_with_links: Path, name: str) -> None:
    with pytest.raises(OSError, match=r"Not a|symbolic links"):
        open_beneath(folder_with_links, Path(name), os.O_RDONLY)
