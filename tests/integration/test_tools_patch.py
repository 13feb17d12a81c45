"""`apply_patch` on real files: all of them or none, nothing lost, no link followed that was not there."""

from pathlib import Path

import pytest

from hermes.core.ports import ToolContext
from hermes.errors import ToolFailed
from hermes.tools.files.apply_patch import Patches
from hermes.tools.files.batch_write import FileWrite, write_all
from hermes.tools.files.file_content import read_content
from hermes.tools.files.file_stamps import FileStamps
from hermes.tools.files.file_tools import FileTools
from hermes.tools.files.replace_file import StagedFile


class Desk:
    """The file tools and the patch tool of one session, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        seen = FileStamps()
        self.files = FileTools(seen)
        self.tool = Patches(seen).apply_patch
        self.context = ToolContext("c", "s", folder, lambda text: None)

    async def read(self, path: str) -> None:
        await self.files.read_file.run({"path": path}, self.context)

    async def apply(self, *lines: str) -> str:
        patch = "\n".join(["*** Begin Patch", *lines, "*** End Patch"])
        return (await self.tool.run({"patch": patch}, self.context)).text

    async def refused(self, *lines: str) -> str:
        before = self.tree()
        with pytest.raises(ToolFailed) as failed:
            await self.apply(*lines)
        assert self.tree() == before
        return f"{failed.value.message} {failed.value.hint}"

    def tree(self) -> dict[str, bytes]:
        paths = sorted(self.folder.rglob("*"))
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            if path.is_file()
            else b"/"
            for path in paths
        }


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    folder = tmp_path.resolve() / "project"
    folder.mkdir()
    return Desk(folder)


async def test_a_patch_creates_changes_moves_and_deletes(desk: Desk) -> None:
    (desk.folder / "a.py").write_text("one\ntwo\nthree\n")
    (desk.folder / "run.sh").write_text("echo 1\n")
    (desk.folder / "run.sh").chmod(0o755)
    (desk.folder / "old").write_bytes(b"\0binary")
    text = await desk.apply(
        "*** Add File: deep/er/new.txt", "+hello", "*** Update File: a.py", "@@", " one", "-two", "+2",
        "*** Update File: run.sh", "*** Move to: bin/run.sh", "@@", "-echo 1", "+echo 2", "*** Delete File: old",
    )  # fmt: skip
    assert desk.tree() == {
        "a.py": b"one\n2\nthree\n", "bin": b"/", "bin/run.sh": b"echo 2\n", "deep": b"/", "deep/er": b"/",
        "deep/er/new.txt": b"hello\n",
    }  # fmt: skip
    assert (desk.folder / "bin/run.sh").stat().st_mode & 0o777 == 0o755
    assert text == (
        "Created deep/er/new.txt: 1 line.\nEdited a.py:\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
        "Moved run.sh -> bin/run.sh:\n@@ -1,1 +1,1 @@\n-echo 1\n+echo 2\nDeleted old."
    )


async def test_one_hunk_that_does_not_fit_leaves_every_file_alone(desk: Desk) -> None:
    (desk.folder / "a").write_text("1\n")
    (desk.folder / "b").write_text("2\n")
    change_a = ("*** Update File: a", "@@", "-1", "+one")
    assert "does not apply" in await desk.refused(
        *change_a, "*** Add File: c", "+c", "*** Update File: b", "@@", "-3", "+x"
    )
    assert "exists already" in await desk.refused(*change_a, "*** Add File: b", "+x")
    assert "does not exist" in await desk.refused(*change_a, "*** Delete File: missing")
    assert "exists already" in await desk.refused(
        "*** Update File: a", "*** Move to: b", "@@", "-1", "+one"
    )
    assert "can't be read" in await desk.refused(
        *change_a, "*** Add File: b/below", "+x"
    )
    assert "changes nothing" in await desk.refused(
        "*** Update File: a", "@@", "-1", "+1"
    )


async def test_a_file_can_be_patched_twice_in_one_patch(desk: Desk) -> None:
    (desk.folder / "a").write_text("1\n2\n")
    await desk.apply(
        "*** Update File: a",
        "@@",
        "-1",
        "+one",
        "*** Update File: ./a",
        "@@",
        " one",
        "-2",
        "+two",
    )
    await desk.apply("*** Delete File: a", "*** Add File: a", "+new")
    assert desk.tree() == {"a": b"new\n"}


async def test_a_file_that_changed_since_it_was_read_is_not_patched(desk: Desk) -> None:
    (desk.folder / "a").write_text("1\n2\n")
    await desk.read("a")
    (desk.folder / "a").write_text("1\n3\n")
    for lines in (("*** Update File: a", "@@", "-1", "+one"), ("*** Delete File: a",)):
        assert (
            "changed since you read it. Nothing was changed. Read it again"
            in await desk.refused(*lines)
        )
    await desk.read("a")
    await desk.apply("*** Update File: a", "@@", "-1", "+one")
    await desk.apply(
        "*** Update File: a", "@@", "-one", "+two"
    )  # its own change is known


async def test_paths_are_known_before_it_runs(desk: Desk) -> None:
    (desk.folder / "link").symlink_to("/etc")
    patch = "*** Begin Patch\n*** Update File: link/x\n*** Move to: ../y\n@@\n-a\n+b\n*** End Patch"
    assert desk.tool.paths({"patch": patch}, desk.folder) == (
        desk.folder / "link/x", Path("/etc/x"), desk.folder.parent / "y",
    )  # fmt: skip
    assert (
        desk.tool.paths({"patch": 3}, desk.folder)
        == desk.tool.paths({}, desk.folder)
        == ()
    )


async def test_encoding_mark_and_line_ends_stay(desk: Desk) -> None:
    (desk.folder / "a").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    (desk.folder / "b").write_bytes(b"caf\xe9\nx\n")
    await desk.apply(
        "*** Update File: a",
        "@@",
        " one",
        "+new",
        "*** Update File: b",
        "@@",
        "-x",
        "+y",
    )
    assert desk.tree() == {
        "a": b"\xef\xbb\xbfone\r\nnew\r\ntwo\r\n",
        "b": b"caf\xe9\ny\n",
    }
    assert "only ASCII" in await desk.refused("*** Update File: b", "@@", "-y", "+ž")


def change(path: Path, after: bytes | None) -> FileWrite:
    return FileWrite(name=path.name, path=path, before=read_content(path), after=after)


def test_what_was_written_comes_back_when_a_later_file_fails(tmp_path: Path) -> None:
    folder = tmp_path.resolve()
    (folder / "a").write_text("a")
    (folder / "a").chmod(0o640)
    (folder / "gone").write_text("gone")
    inode = (folder / "gone").stat().st_ino
    deletion = change(
        folder / "gone", None
    )  # the second time there is nothing left to delete
    changes = [
        change(folder / "a", b"new"),
        change(folder / "x/y", b"y"),
        deletion,
        deletion,
    ]
    with pytest.raises(ToolFailed, match="gone can't be written"):
        write_all(changes)
    assert sorted(path.name for path in folder.rglob("*")) == ["a", "gone"]
    assert ((folder / "a").read_text(), (folder / "a").stat().st_mode & 0o777) == (
        "a",
        0o640,
    )
    assert (folder / "gone").stat().st_ino == inode


def test_a_file_that_changes_in_between_stops_everything(tmp_path: Path) -> None:
    folder = tmp_path.resolve()
    (folder / "a").write_text("a")
    changes = [change(folder / "new", b"new"), change(folder / "a", b"b")]
    (folder / "a").write_text("c")
    with pytest.raises(ToolFailed, match="changed while it was edited"):
        write_all(changes)
    assert [path.name for path in folder.iterdir()] == ["a"]


def test_a_folder_swapped_for_a_link_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path.resolve()
    (folder / "inside").mkdir()
    (folder / "outside").mkdir()
    (folder / "outside/f").write_text("precious")
    (folder / "inside/f").write_text("plain")
    planned = change(folder / "inside/f", b"evil")
    (folder / "inside").rename(folder / "was")
    (folder / "inside").symlink_to("outside")
    with pytest.raises(ToolFailed, match="has become a link"):
        write_all([planned])
    with pytest.raises(OSError, match="has become a link"):
        StagedFile(folder / "inside/f", b"evil")
    assert (folder / "outside/f").read_text() == "precious"


def test_a_file_swapped_for_a_link_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path.resolve()
    (folder / "precious").write_text("precious")
    (folder / "f").write_text("plain")
    planned = change(folder / "f", b"evil")
    (folder / "f").unlink()
    (folder / "f").symlink_to("precious")
    with pytest.raises(ToolFailed):
        write_all([planned])
    with pytest.raises(OSError, match="become a link"):
        StagedFile(folder / "f", b"evil")
    assert (folder / "precious").read_text() == "precious"
    assert sorted(path.name for path in folder.iterdir()) == ["f", "precious"]
