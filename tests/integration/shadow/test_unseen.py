"""What was there before a turn, but was not seen, is never removed by undo, and is named."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.shadow.bench import Bench, everything

from hermes.tools.shadow.folder_snapshot import MAX_INNER_REPOSITORIES, SnapshotLimits
from hermes.tools.shadow.path_state import MAX_FILE_BYTES

_IGNORED = "git init -q .; printf 'data/\\n*.log\\n' > .gitignore; mkdir -p data/in; printf 'rows' > data/db.txt; : > a.log"


@pytest.mark.parametrize(
    "work",
    [
        "sed -i '/data/d' .gitignore",
        "rm .gitignore",
        "printf '!data/\\n' >> .gitignore",
        "rm -rf .git; rm .gitignore",
        "mkdir other; mv .gitignore other/",
    ],
)
async def test_what_was_ignored_before_stays_when_the_rules_change(
    tmp_path: Path, work: str
) -> None:
    bench = Bench(tmp_path)
    bench.shell(_IGNORED)
    await bench.turn("t", lambda: bench.shell(work + "; printf 'n' > new"))
    outcome = bench.undo("t", force=True)
    assert (bench.cwd / "data/db.txt").read_text() == "rows"
    assert (bench.cwd / "data/in").is_dir()
    assert not (bench.cwd / "new").exists()
    assert (bench.cwd / ".gitignore").read_text() == "data/\n*.log\n"
    assert "data/db.txt" not in outcome.restored
    assert "data" in [name for name, _ in outcome.unkept], "the folder, not each file"
    assert "data/db.txt" not in [name for name, _ in outcome.unkept]


async def test_a_repository_in_an_ignored_folder_stays_when_the_rules_change(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    bench.shell(_IGNORED + "; git init -q data/inner; printf 'i' > data/inner/file")
    await bench.turn("t", lambda: bench.shell("rm .gitignore"))
    bench.undo("t", force=True)
    assert (bench.cwd / "data/inner/file").read_text() == "i"


@pytest.mark.parametrize(
    "work", ["mv data seen", "mkdir seen; mv data/db.txt seen/", "mv .git seen"]
)
async def test_what_was_moved_from_where_nothing_is_kept_stays(
    tmp_path: Path, work: str
) -> None:
    bench = Bench(tmp_path)
    bench.shell(_IGNORED)
    for place in bench.cwd.rglob("*"):
        os.utime(place, (1.0, 1.0))
    await bench.turn("t", lambda: bench.shell(work + "; printf 'n' > new"))
    moved = everything(bench.cwd / "seen")
    outcome = bench.undo("t", force=True)
    assert everything(bench.cwd / "seen") == moved
    assert not (bench.cwd / "new").exists()
    assert any(name.startswith("seen/") for name, _ in outcome.unkept)


async def test_a_repository_made_in_a_folder_that_was_refused_keeps_its_files(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, limits=SnapshotLimits(files=3))
    bench.shell(
        "mkdir sub; for i in 1 2 3 4 5; do printf \"$i\" > f$i; done; printf 's' > sub/file"
    )
    await bench.turn("t", lambda: bench.shell("git init -q sub"))
    bench.undo("t", force=True)
    assert (bench.cwd / "sub/file").read_text() == "s"


async def test_files_of_a_repository_that_was_one_too_many_stay_when_it_becomes_a_folder(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    names = [f"r{number:03}" for number in range(MAX_INNER_REPOSITORIES + 2)]
    for name in names:
        (bench.cwd / name / ".git/objects").mkdir(parents=True)
        (bench.cwd / name / ".git/refs").mkdir()
        (bench.cwd / name / ".git/HEAD").write_text("ref: refs/heads/main\n")
        (bench.cwd / name / "file").write_text(name)
    await bench.turn("t", lambda: bench.shell("rm -rf r*/.git"))
    bench.undo("t", force=True)
    assert [(bench.cwd / name / "file").read_text() for name in names] == names


async def test_a_large_file_of_a_repository_that_is_dissolved_stays(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    bench.shell("git init -q sub; printf 's' > sub/small")
    (bench.cwd / "sub/big").write_bytes(b"0" * (MAX_FILE_BYTES + 1))
    await bench.turn(
        "t", lambda: bench.shell("rm -rf sub/.git; printf 'cut' > sub/big")
    )
    outcome = bench.undo("t", force=True)
    assert (bench.cwd / "sub/big").read_text() == "cut"
    assert any(name == "sub/big" for name, _ in outcome.unkept)


_CLOSED = """
import asyncio, sys
from pathlib import Path
from tests.integration.shadow.bench import Bench
async def main():
    bench = Bench(Path(sys.argv[1]))
    bench.shell("mkdir -p shut known; printf 's' > shut/file; printf 'k' > known/file; printf 'o' > open")
    if sys.argv[2] == "known":
        await bench.turn("first", lambda: bench.shell("printf '2' > open"))
    bench.shell("chmod 000 shut known")
    await bench.turn("t", lambda: bench.shell("chmod 755 shut known; printf '3' > open; printf 'n' > new"))
    outcome = bench.undo("t", force=True)
    print(*sorted(str(path.relative_to(bench.cwd)) for path in bench.cwd.rglob("*") if path.is_file()))
    print(*sorted(name for name, _ in outcome.unkept))
asyncio.run(main())
"""


@pytest.mark.parametrize("before", ["new", "known"])
def test_files_behind_a_closed_door_stay_when_it_is_opened(
    tmp_path: Path, before: str
) -> None:
    # Root passes every door; without its privileges it is like anybody else.
    plain = (
        [] if os.geteuid() else ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    )
    command = [*plain, sys.executable, "-c", _CLOSED, str(tmp_path), before]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=60
    )
    files, unkept = done.stdout.splitlines()
    assert files.split() == ["known/file", "open", "shut/file"]
    assert {name.split("/")[0] for name in unkept.split()} == {"known", "shut"}


async def test_what_git_ignores_and_a_command_changed_is_named(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.shell(
        _IGNORED
        + "; mkdir build; printf 'build/\\n' >> .gitignore; printf 'b' > build/out; printf 'f' > file"
    )
    await bench.turn(
        "t",
        lambda: bench.shell(
            "printf 'more' >> data/db.txt; printf 'x' > file; printf 'y' > b.log"
        ),
    )
    outcome = bench.undo("t")
    assert outcome.restored == ("file",)
    assert [name for name, _ in outcome.unkept] == ["b.log", "data"]
    assert "not saved: data (git ignores it" in bench.shadow.diff("t")


async def test_what_git_ignores_and_nobody_touched_is_not_named(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.shell(_IGNORED + "; printf 'f' > file")
    await bench.turn(
        "t",
        lambda: bench.shell(
            "printf 'x' > file; mkdir __pycache__; : > __pycache__/a.pyc"
        ),
    )
    assert bench.undo("t").unkept == ()


async def test_many_ignored_changes_are_counted(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.shell(_IGNORED)
    await bench.turn(
        "t", lambda: bench.shell("for i in 1 2 3 4 5 6 7 8 9; do : > $i.log; done")
    )
    outcome = bench.undo("t")
    assert len(outcome.unkept) == 6
    assert outcome.unkept[-1][1] == "4 more that git ignores are not saved"
