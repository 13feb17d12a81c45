"""Whatever a turn does to files, undoing it leaves the folder exactly as it was."""

from pathlib import Path

import pytest
from tests.integration.shadow.bench import Bench, everything

_START = """
mkdir -p src/deep empty/inner; printf 'one\\n' > src/a.txt; printf '\\000\\377binary' > src/b.bin; : > src/none
printf '#!/bin/sh\\n' > run.sh; chmod 755 run.sh; printf 'secret' > key; chmod 600 key
ln -s src/a.txt link; ln -s nowhere dangling; printf 'x\\r\\ny\\n' > crlf.txt
printf '*.txt text eol=lf\\n' > .gitattributes
printf 'deep\\n' > src/deep/file; mkdir other; printf 'o\\n' > other/file
"""
_WORK = {
    "edit": "printf 'two\\n' >> src/a.txt",
    "create": "mkdir -p new/folder; printf 'n' > new/folder/file; : > empty-file",
    "delete": "rm src/b.bin src/none",
    "delete a folder": "rm -r src",
    "rename": "mv src/a.txt src/c.txt",
    "rename a folder": "mv src lib",
    "permissions": "chmod 644 run.sh; chmod 640 key; chmod 600 src/a.txt",
    "only permissions git does not know": "chmod 640 key",
    "binary": "printf '\\001\\002' > src/b.bin",
    "line ends": "printf 'x\\ny\\n' > crlf.txt",
    "another link": "ln -sfn other link",
    "link to file": "rm link; printf 'file' > link",
    "file to link": "rm run.sh; ln -s src run.sh",
    "file to folder": "rm run.sh; mkdir run.sh; printf 'y' > run.sh/inside",
    "folder to file": "rm -r src; printf 'z' > src",
    "folder to link": "mv src moved; ln -s moved src",
    "folder to a link with the same files": "cp -r src copy; rm -r src; ln -s copy src",
    "empty folders": "rmdir empty/inner empty; mkdir -p void/deeper",
    "fill an empty folder": "printf 'q' > empty/inner/file",
    "names that are not text": "printf 'x' > \"$(printf 'na\\377me')\"; printf 'y' > \"$(printf 'new\\nline')\"",
    "odd names": "printf 'z' > 'back\\slash'; printf 'y' > ' lead'; printf 'x' > ':(top)*'; printf 'w' > -- -n",
    "git names": "mkdir git~1; printf 'x' > git~1/config; printf 'y' > .gitmodules",
}


@pytest.mark.parametrize("work", _WORK.values(), ids=_WORK.keys())
async def test_what_a_command_did_is_undone_and_redone(
    tmp_path: Path, work: str
) -> None:
    bench = Bench(tmp_path, workspace="a folder/mit Ümläut")
    bench.shell(_START)
    before = everything(bench.cwd)
    await bench.turn("t", lambda: bench.shell(work))
    after = everything(bench.cwd)
    assert after != before
    outcome = bench.undo("t")
    assert everything(bench.cwd) == before
    assert outcome.restored
    assert not outcome.conflicts
    assert not outcome.unkept
    again = bench.undo("undo-1")
    assert everything(bench.cwd) == after
    assert not again.conflicts


@pytest.mark.parametrize("work", _WORK.values(), ids=_WORK.keys())
async def test_the_second_turn_keeps_what_the_first_left(
    tmp_path: Path, work: str
) -> None:
    bench = Bench(tmp_path)
    bench.shell(_START)
    before = everything(bench.cwd)
    await bench.turn(
        "one", lambda: bench.shell("printf 'first\\n' >> src/a.txt; printf 'n' > first")
    )
    middle = everything(bench.cwd)
    await bench.turn("two", lambda: bench.shell(work))
    bench.undo("two")
    assert everything(bench.cwd) == middle
    bench.undo("one")
    assert everything(bench.cwd) == before


async def test_several_turns_are_taken_back_at_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.shell(_START)
    before = everything(bench.cwd)
    for number, work in enumerate(("edit", "create", "permissions", "rename")):
        await bench.turn(f"t{number}", lambda work=work: bench.shell(_WORK[work]))
    after = everything(bench.cwd)
    outcome = bench.undo("t3", "t2", "t1", "t0")
    assert everything(bench.cwd) == before
    assert not outcome.conflicts
    bench.undo("undo-1")
    assert everything(bench.cwd) == after


async def test_files_that_a_tool_names_are_kept_before_the_first_change_of_the_turn(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    file, new, outside = (
        bench.cwd / "a.txt",
        bench.cwd / "x" / "y" / "new.txt",
        tmp_path / "elsewhere" / "b.txt",
    )
    file.write_text("one")
    file.chmod(0o640)
    before = everything(tmp_path / "work")
    for text in ("two", "three"):
        await bench.keeper.keep(bench.context("t"), (file, new, outside))
        for target in (file, new, outside):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
    file.chmod(0o600)
    await bench.end("t")
    outcome = bench.undo("t")
    assert everything(tmp_path / "work") == before
    assert not outside.parent.exists()
    assert set(outcome.restored) == {"a.txt", "x/y/new.txt", str(outside)}


async def test_a_named_file_and_a_command_in_one_turn(tmp_path: Path) -> None:
    """Whichever comes first, the state before the turn is what counts."""
    bench = Bench(tmp_path)
    bench.shell(
        "printf 'ignored\\n' > .gitignore; printf 'i0' > ignored; printf 'a0' > a; printf 'b0' > b"
    )
    before = everything(bench.cwd)
    await bench.keeper.keep(bench.context("t"), (bench.cwd / "a",))
    (bench.cwd / "a").write_text("a1")
    await bench.keeper.keep(bench.context("t"), ())
    bench.shell("printf 'a2' > a; printf 'b1' > b; printf 'c1' > c")
    await bench.keeper.keep(
        bench.context("t"), tuple(bench.cwd / name for name in ("b", "c", "ignored"))
    )
    for name in ("b", "c", "ignored"):
        (bench.cwd / name).write_text("last")
    await bench.end("t")
    outcome = bench.undo("t")
    assert everything(bench.cwd) == before
    assert not outcome.conflicts


async def test_a_thousand_files_of_one_turn(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    for number in range(1000):
        path = bench.cwd / f"d{number % 20}" / f"f{number}"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"line {number}\n" * 20)
    before = everything(bench.cwd)
    for number in range(500):
        path = bench.cwd / f"d{number % 20}" / f"f{number}"
        await bench.keeper.keep(bench.context("t"), (path,))
        path.write_text("edited")
    await bench.keeper.keep(bench.context("t"), ())
    bench.shell("for f in d*/f[5-9]??; do printf 'by command' > $f; done")
    await bench.end("t")
    assert len(everything(bench.cwd).items() - before.items()) == 1000
    outcome = bench.undo("t")
    assert everything(bench.cwd) == before
    assert len(outcome.restored) == 1000


async def test_a_turn_that_crashed_is_undone_as_far_as_it_came(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.shell(_START)
    before = everything(bench.cwd)
    await bench.keeper.keep(bench.context("t"), ())
    bench.shell(_WORK["rename a folder"])
    assert Bench(tmp_path).undo("t").restored  # another process: nothing is remembered
    assert everything(bench.cwd) == before


async def test_through_a_link_the_file_it_leads_to_is_kept(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.shell(
        "mkdir real; printf 'r' > real/file; ln -s real/file link; ln -s real folder"
    )
    before = everything(bench.cwd)
    paths = (bench.cwd / "link", bench.cwd / "real/file", bench.cwd / "folder/file")
    await bench.turn("t", lambda: (bench.cwd / "link").write_text("changed"), *paths)
    assert bench.undo("t").restored == ("real/file",)
    assert everything(bench.cwd) == before


async def test_nothing_is_kept_for_a_turn_that_kept_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.end("t")
    assert not bench.home.exists()
    assert bench.undo("t").restored == ()
    assert everything(bench.cwd) == {}
