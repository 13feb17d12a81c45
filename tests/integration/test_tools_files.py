"""Reading, writing and editing real files."""

import os
from collections.abc import Awaitable
from pathlib import Path

import pytest

from hermes.core.ports import ToolContext
from hermes.errors import ToolFailed
from hermes.tools.files.file_tools import FileTools


class Desk:
    """The file tools in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = FileTools()
        self.context = ToolContext("c", "s", folder, lambda text: None)

    async def read(self, path: str, **more: object) -> str:
        return (
            await self.files.read_file.run({"path": path, **more}, self.context)
        ).text

    async def write(self, path: str, content: str) -> str:
        return (
            await self.files.write_file.run(
                {"path": path, "content": content}, self.context
            )
        ).text

    async def edit(self, path: str, old: str, new: str, **more: object) -> str:
        arguments = {"path": path, "old_text": old, "new_text": new, **more}
        return (await self.files.edit_file.run(arguments, self.context)).text


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path.resolve())


async def fails(call: Awaitable[str], *parts: str) -> None:
    with pytest.raises(ToolFailed) as failed:
        await call
    text = f"{failed.value.message} {failed.value.hint}"
    for part in parts:
        assert part in text


async def test_a_file_is_read_with_its_range(desk: Desk) -> None:
    (desk.folder / "a.txt").write_text("one\ntwo\nthree")
    assert await desk.read("a.txt") == "[a.txt: lines 1-3 of 3]\none\ntwo\nthree"
    assert await desk.read("a.txt", offset=2, limit=1) == (
        "[a.txt: lines 2-2 of 3]\ntwo\n[1 more lines: read_file with offset=3]"
    )
    await fails(desk.read("a.txt", offset=5), "offset 5 is past the end", "3 lines")
    (desk.folder / "empty").touch()
    assert await desk.read("empty") == "[empty: empty file]"


async def test_a_long_file_is_capped_and_says_how_to_go_on(desk: Desk) -> None:
    (desk.folder / "long").write_text(
        "".join(f"{number}\n" for number in range(1, 5001))
    )
    text = await desk.read("long")
    assert text.startswith("[long: lines 1-2000 of 5000]\n1\n")
    assert text.endswith("\n2000\n[3000 more lines: read_file with offset=2001]")
    (desk.folder / "wide").write_text("x" * 999 + "\n" + ("y" * 999 + "\n") * 99)
    text = await desk.read("wide")
    assert text.startswith("[wide: lines 1-50 of 100]\n")
    assert text.endswith("[50 more lines: read_file with offset=51]")


async def test_large_files_are_read_in_parts(desk: Desk) -> None:
    with (desk.folder / "large").open("w") as file:
        file.writelines(f"{number:08}\n" for number in range(1, 500_001))
    text = await desk.read("large", offset=400_000, limit=2)
    assert text == (
        "[large: lines 400000-400001 of 500000]\n00400000\n00400001\n[99999 more lines: read_file with offset=400002]"
    )
    assert (await desk.read("large", offset=500_000)).endswith("\n00500000\n")
    await fails(desk.read("large", offset=500_002), "past the end")


async def test_one_endless_line_is_shown_in_part(desk: Desk) -> None:
    (desk.folder / "line").write_bytes(b"e" * 20_000_000 + b"\nlast\n")
    text = await desk.read("line")
    assert len(text) < 50_300
    assert "line 1 is longer than 50,000 bytes" in text
    assert "1 more lines: read_file with offset=2" in text
    assert (await desk.read("line", offset=2)).endswith("\nlast\n")


async def test_what_is_no_text_is_described(desk: Desk) -> None:
    (desk.folder / "x.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    await fails(desk.read("x.png"), "a picture (10 bytes)", "vision_analyze")
    (desk.folder / "x.bin").write_bytes(b"\x7fELF\0\0")
    await fails(desk.read("x.bin"), "binary file (6 bytes, beginning with 7f 45 4c 46")
    (desk.folder / "x.pdf").write_bytes(b"%PDF-1.7 all of it text, as it happens")
    await fails(desk.read("x.pdf"), "can't be read", "damaged")
    (desk.folder / "u16").write_text("hello", encoding="utf-16")
    await fails(desk.read("u16"), "UTF-16", "iconv")
    (desk.folder / "latin").write_bytes("caf\xe9 au lait".encode("latin-1"))
    assert (
        await desk.read("latin")
        == "[latin: lines 1-1 of 1; not UTF-8, some bytes are shown as \ufffd]\ncaf\ufffd au lait"
    )
    await fails(
        desk.edit("latin", "au", "\xe0"),
        "not UTF-8, so only ASCII",
        "Nothing was changed",
    )
    await desk.edit("latin", "au", "ohne")
    assert (desk.folder / "latin").read_bytes() == "caf\xe9 ohne lait".encode("latin-1")
    await fails(desk.edit("u16", "h", "H"), "NUL bytes", "Nothing was changed")
    os.mkfifo(desk.folder / "pipe")
    await fails(desk.read("pipe"), "not a regular file")


async def test_escapes_in_a_file_are_spelled_out_and_line_ends_named(
    desk: Desk,
) -> None:
    (desk.folder / "a").write_bytes(b"\x1b[31mred\x9b\r\nold mac\rend\r\n")
    assert await desk.read("a") == (
        "[a: lines 1-2 of 2; not UTF-8, some bytes are shown as \ufffd; CRLF line ends; "
        "control characters are spelled out, like \\x1b]\n\\x1b[31mred\ufffd\nold mac\\x0dend\n"
    )


async def test_what_does_not_exist_suggests_what_does(desk: Desk) -> None:
    (desk.folder / "src").mkdir()
    (desk.folder / "src" / "Main.py").touch()
    await fails(desk.read("src/main.py"), "does not exist", "Main.py")
    await fails(desk.read("scr/main.py"), "there is: src")
    await fails(desk.read("src"), "is a directory", "list_files")
    await fails(desk.edit("src/mian.py", "a", "b"), "does not exist", "Main.py")
    for path in ("", "  ", "a\0b"):
        await fails(desk.read(path), "is not a path")


async def test_writing_says_what_changed(desk: Desk) -> None:
    assert (
        await desk.write("a/b/c.txt", "one\ntwo")
        == "Created a/b/c.txt: 2 lines, 7 bytes."
    )
    assert (
        await desk.write("a/b/c.txt", "")
        == "Replaced a/b/c.txt: 0 lines, 0 bytes (before: 7 bytes)."
    )
    assert [path.name for path in (desk.folder / "a/b").iterdir()] == ["c.txt"]
    await fails(desk.write("a/b", "x"), "can't be written", "Nothing was changed")
    await fails(desk.write("a/b/c.txt/d", "x"), "can't be written")


async def test_writing_keeps_the_mode_and_goes_through_links(desk: Desk) -> None:
    script = desk.folder / "run.sh"
    script.write_text("echo 1\n")
    script.chmod(0o754)
    (desk.folder / "link").symlink_to("run.sh")
    await desk.write("link", "echo 2\n")
    await desk.edit("link", "2", "3")
    assert (script.read_text(), script.stat().st_mode & 0o777) == ("echo 3\n", 0o754)
    assert (desk.folder / "link").is_symlink()


async def test_an_edit_shows_its_diff(desk: Desk) -> None:
    (desk.folder / "a.py").write_text("def f():\n    return 1\n")
    assert await desk.edit("a.py", "return 1", "return 2") == (
        "Edited a.py:\n@@ -1,2 +1,2 @@\n def f():\n-    return 1\n+    return 2"
    )
    assert await desk.edit("a.py", "f", "g", replace_all=True) == (
        "Edited a.py, 2 places:\n@@ -1,2 +1,2 @@\n-def f():\n+deg g():\n     return 2"
    )


async def test_an_unclear_edit_writes_nothing(desk: Desk) -> None:
    file = desk.folder / "a"
    file.write_text("x\nx\n")
    before = file.stat()
    await fails(
        desk.edit("a", "x", "y"), "matches 2 places (lines 1, 2)", "Nothing was changed"
    )
    await fails(desk.edit("a", "z", "y"), "not found")
    assert file.stat() == before


async def test_a_file_that_changed_since_it_was_read_is_not_overwritten(
    desk: Desk,
) -> None:
    file = desk.folder / "a"
    file.write_text("one\n")
    await desk.read("a")
    times = file.stat()
    file.write_text("two\n")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))  # only the content tells
    await fails(
        desk.edit("a", "two", "three"),
        "changed since you read it",
        "Nothing was changed",
    )
    await fails(desk.write("a", "three\n"), "changed since you read it")
    assert file.read_text() == "two\n"
    await desk.read("a")
    await desk.edit("a", "two", "three")
    await desk.edit("a", "three", "four")
    await desk.write("a", "five\n")
    assert file.read_text() == "five\n"


async def test_a_file_that_was_only_touched_may_be_edited(desk: Desk) -> None:
    file = desk.folder / "a"
    file.write_text("one\n")
    await desk.read("a", limit=1)
    os.utime(file, (1, 1))
    await desk.edit("a", "one", "two")
    assert file.read_text() == "two\n"


async def test_a_large_file_that_changed_is_noticed_too(desk: Desk) -> None:
    file = desk.folder / "large"
    file.write_text("a line\n" * 200_000 + "end\n")
    await desk.read("large", limit=1)
    await desk.edit("large", "end", "the end")
    await desk.read("large", limit=1)
    with file.open("a") as more:
        more.write("more\n")
    await fails(desk.edit("large", "the end", "end"), "changed since you read it")


async def test_a_file_named_without_its_folder_is_pointed_to(desk: Desk) -> None:
    for place in ("src", ".hidden", "node_modules/x"):
        (desk.folder / place).mkdir(parents=True)
        (desk.folder / place / "calc.py").touch()
    with pytest.raises(ToolFailed) as failed:
        await desk.read("calc.py")
    assert failed.value.hint == f"There is: {desk.folder}/src/calc.py."
