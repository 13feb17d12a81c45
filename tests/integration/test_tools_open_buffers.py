"""File tools in an editor that lends its unsaved files: what is seen, saved first, written, and never overwritten."""

from pathlib import Path

import pytest

from hermes.core.ports import ToolContext
from hermes.errors import ToolFailed
from hermes.tools.files.apply_patch import Patches
from hermes.tools.files.file_stamps import FileStamps
from hermes.tools.files.file_tools import FileTools
from hermes.tools.files.open_buffers import save_buffers


class Buffers:
    """An editor that has files open in memory and saves what it is told to write."""

    def __init__(self, *, saves: bool = True) -> None:
        self.open: dict[Path, str] = {}
        self.written: list[Path] = []
        self.saves = saves
        self.typed_at_next_write: dict[Path, str] = {}

    def text(self, path: Path) -> str | None:
        if path not in self.open:
            return path.read_bytes().decode().replace("\r\n", "\n")
        return self.open[path]

    def write(self, path: Path, text: str) -> bool:
        self.written.append(path)
        self.open |= self.typed_at_next_write
        if path in self.open:
            self.open[path] = text
        if self.saves:
            path.write_text(text)
        return True

    def last_text(self, path: Path) -> str | None:
        return self.text(path)


def context(folder: Path) -> ToolContext:
    return ToolContext(call_id="1", session="s", cwd=folder, show=lambda _: None)


async def test_reading_shows_what_is_not_saved_and_an_edit_keeps_it(
    tmp_path: Path,
) -> None:
    file, buffers = tmp_path / "a.py", Buffers()
    file.write_text("one\n")
    buffers.open[file] = "one\ntwo\n"
    tools = FileTools(buffers=buffers)
    read = await tools.read_file.run({"path": "a.py"}, context(tmp_path))
    assert "two" in read.text
    assert "not saved yet" in read.text
    edit = {"path": "a.py", "old_text": "two", "new_text": "2"}
    tools.edit_file.precheck(edit, tmp_path)
    save_buffers(buffers, [file])
    assert file.read_text() == "one\ntwo\n"  # what undo returns to
    await tools.edit_file.run(edit, context(tmp_path))
    assert file.read_text() == buffers.open[file] == "one\n2\n"


async def test_what_the_user_typed_meanwhile_is_never_overwritten(
    tmp_path: Path,
) -> None:
    file, buffers = tmp_path / "a.py", Buffers()
    file.write_text("one\n")
    tools = FileTools(buffers=buffers)
    await tools.read_file.run({"path": "a.py"}, context(tmp_path))
    buffers.open[file] = "one\ntyped\n"
    with pytest.raises(ToolFailed, match="changed since you read it"):
        await tools.write_file.run(
            {"path": "a.py", "content": "mine\n"}, context(tmp_path)
        )
    assert (file.read_text(), buffers.open[file]) == ("one\n", "one\ntyped\n")


async def test_an_editor_that_does_not_save_leaves_the_write_to_the_disk(
    tmp_path: Path,
) -> None:
    file, buffers = tmp_path / "a.py", Buffers(saves=False)
    file.write_text("one\n")
    tools = FileTools(buffers=buffers)
    await tools.write_file.run({"path": "a.py", "content": "2\n"}, context(tmp_path))
    await tools.write_file.run({"path": "b/c.py", "content": "3\n"}, context(tmp_path))
    assert file.read_text() == "2\n"
    assert (tmp_path / "b/c.py").read_text() == "3\n"
    buffers.open[file] = "unsaved\n"
    with pytest.raises(ToolFailed, match="unsaved changes"):
        save_buffers(buffers, [file])


async def test_windows_line_ends_are_no_unsaved_change_and_stay(tmp_path: Path) -> None:
    file, buffers = tmp_path / "a.txt", Buffers()
    file.write_bytes(b"one\r\ntwo\r\n")
    tools = FileTools(buffers=buffers)
    read = await tools.read_file.run({"path": "a.txt"}, context(tmp_path))
    assert "not saved" not in read.text
    await tools.edit_file.run(
        {"path": "a.txt", "old_text": "two", "new_text": "2"}, context(tmp_path)
    )
    assert file.read_bytes() == b"one\r\n2\r\n"
    assert not buffers.written


async def test_a_file_swapped_for_a_link_is_not_written_by_the_editor(
    tmp_path: Path,
) -> None:
    victim, link = tmp_path / "victim", tmp_path / "a.txt"
    victim.write_text("mine\n")
    buffers = Buffers()
    buffers.open[link] = "unsaved\n"
    link.symlink_to(victim)
    save_buffers(buffers, [link])  # the link's target has nothing unsaved
    assert not buffers.written
    assert victim.read_text() == "mine\n"


async def test_a_patch_of_several_files_is_taken_back_when_the_user_types_in_one(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "b.txt").write_text("two\n")
    patch = (
        "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+1\n"
        "*** Update File: b.txt\n@@\n-two\n+2\n*** End Patch\n"
    )
    buffers = Buffers()
    buffers.typed_at_next_write = {tmp_path / "b.txt": "typed\n"}
    patches = Patches(FileStamps(), buffers)
    with pytest.raises(ToolFailed, match="changed in the editor"):
        await patches.apply_patch.run({"patch": patch}, context(tmp_path))
    assert (tmp_path / "a.txt").read_text() == "one\n"
    assert (tmp_path / "b.txt").read_text() == "two\n"
