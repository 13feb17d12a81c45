"""Sockets that a program named from its own folder are found in the workspace, without a search for each command."""

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from hermes.tools.sandbox.confinement import Fence
from hermes.tools.sandbox.protected_paths import sockets

_listed: list[str] | None = None


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event == "os.scandir" and _listed is not None:
        _listed.append(str(arguments[0]))


sys.addaudithook(_note)


@contextmanager
def listed_folders() -> Iterator[list[str]]:
    """The folders that are listed meanwhile."""
    global _listed  # noqa: PLW0603 - a hook can't be taken away again
    _listed = found = list[str]()
    try:
        yield found
    finally:
        _listed = None


class Workspace:
    """A workspace with sockets in it that were named from their own folders, so that no table has their paths."""

    def __init__(self, base: Path) -> None:
        self.folder = base / "work"
        self.table = base / "unix"
        self.fence = Fence(self.folder, base / "temporary")
        (self.folder / "a").mkdir(parents=True)
        self.table.write_text("Num RefCount Protocol Flags Type St Inode Path\n")
        self._bound: list[socket.socket] = []

    def close(self) -> None:
        for one in self._bound:
            one.close()

    def bind(self, folder: str) -> Path:
        before = Path.cwd()
        os.chdir(self.folder / folder)
        try:
            one = socket.socket(socket.AF_UNIX)
            self._bound.append(one)
            one.bind("server")
        finally:
            os.chdir(before)
        return self.folder / folder / "server"

    def found(self) -> tuple[Path, ...]:
        return sockets(self.fence, self.table)


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Workspace]:
    with closing(Workspace(tmp_path)) as one:
        yield one


def test_nothing_is_searched_again_while_nothing_changed(work: Workspace) -> None:
    one = work.bind("a")
    assert work.found() == (one,)
    with listed_folders() as listed:
        assert work.found() == (one,)
    assert listed == []


def test_a_socket_that_moved_is_found_though_the_times_of_its_folder_were_set_back(
    work: Workspace,
) -> None:
    work.bind("a")
    before = work.folder.stat()
    work.found()
    (work.folder / "a").rename(work.folder / "b")
    os.utime(work.folder, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert work.found() == (work.folder / "b" / "server",)


def test_another_socket_of_the_same_name_is_found(work: Workspace) -> None:
    (work.folder / "c").mkdir()
    first = work.bind("a")
    work.found()
    second = work.bind("c")
    assert set(work.found()) == {first, second}


def test_it_is_said_once_when_not_all_of_a_workspace_is_searched(
    work: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    work.bind("a")
    for number in range(5_001):
        (work.folder / str(number)).mkdir()
    work.found()
    (work.folder / "more").mkdir()
    work.found()
    (told,) = [record.getMessage() for record in caplog.records]
    assert str(work.folder) in told
    assert "5,000 folders" in told
