"""What is not kept is said; what is kept does not grow without end; a kill in the middle loses nothing."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.integration.shadow.bench import Bench, everything

from hermes.tools.shadow.folder_snapshot import SnapshotLimits
from hermes.tools.shadow.path_state import MAX_FILE_BYTES
from hermes.tools.shadow.prune import MAX_AGE_DAYS, sweep


async def test_a_file_that_is_too_large_is_named_when_it_changed(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    for name in ("big", "still"):
        (bench.cwd / name).write_bytes(b"0" * (MAX_FILE_BYTES + 1))
    (bench.cwd / "grows").write_bytes(b"small")
    work = "printf '1' >> big; head -c 11000000 /dev/zero > grows; printf 'x' > small"
    await bench.turn("t", lambda: bench.shell(work))
    assert "big (larger than 10 MB)" in bench.shown[0]
    assert "not shown: grows" in bench.shadow.diff("t")
    outcome = bench.undo("t")
    assert outcome.unkept == (("big", "larger than 10 MB"),)
    assert set(outcome.restored) == {"grows", "small"}
    assert (bench.cwd / "grows").read_bytes() == b"small"


async def test_a_large_file_that_a_tool_names_is_not_kept_and_that_is_said(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    big = bench.cwd / "big"
    big.write_bytes(b"0" * (MAX_FILE_BYTES + 1))
    await bench.turn("t", lambda: big.write_bytes(b"changed"), big)
    assert "undo can't restore it: big (" in bench.shown[0]
    outcome = bench.undo("t")
    assert [name for name, _ in outcome.unkept] == ["big"]
    assert big.read_bytes() == b"changed"


@pytest.mark.parametrize("limits", [SnapshotLimits(files=3), SnapshotLimits(size=10)])
async def test_a_folder_that_is_too_large_is_not_kept_but_named_files_are(
    tmp_path: Path, limits: SnapshotLimits
) -> None:
    bench = Bench(tmp_path, limits=limits)
    for number in range(5):
        (bench.cwd / f"f{number}").write_text("0" * 10)
    file = bench.cwd / "f0"
    await bench.keeper.keep(bench.context("t"), ())
    await bench.keeper.keep(bench.context("t"), (file,))
    bench.shell("printf '1' > f0; printf '1' > f1")
    await bench.end("t")
    outcome = bench.undo("t")
    assert outcome.restored == ("f0",)
    assert "more than" in outcome.unkept[0][1]
    assert any("undo can't restore it: this folder (" in line for line in bench.shown)


@pytest.mark.parametrize("workspace", ["user", "."])
async def test_a_home_folder_is_not_kept_as_a_whole(
    tmp_path: Path, workspace: str
) -> None:
    bench = Bench(tmp_path, workspace=workspace)
    file = bench.cwd / "file"
    file.write_text("0")
    await bench.keeper.keep(bench.context("t"), ())
    await bench.turn("t", lambda: file.write_text("1"), file)
    outcome = bench.undo("t")
    assert outcome.restored == ("file",)
    assert "home" in outcome.unkept[0][1]


async def test_our_own_folder_inside_the_workspace_is_left_out(tmp_path: Path) -> None:
    bench = Bench(tmp_path, home="work/h [x]* ?")
    (bench.cwd / "file").write_text("0")
    await bench.turn("t", lambda: (bench.cwd / "file").write_text("1"))
    assert "h [x]" not in bench.shadow.diff("t")
    assert bench.undo("t").restored == ("file",)


async def test_without_git_the_call_runs_and_the_user_is_told_once(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, path=str(tmp_path))
    file = bench.cwd / "file"
    for turn in ("one", "two"):
        await bench.turn(turn, lambda: file.write_text("1"), file)
    told = "Not saved, so undo can't restore it: this folder (git is not installed).\n"
    assert bench.shown == [told]
    assert bench.undo("one").restored == ()


async def test_old_turns_are_dropped_and_counted_and_newer_ones_still_work(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    (bench.cwd / "file").write_text("0")
    await bench.turn("old", lambda: (bench.cwd / "file").write_text("1" * 1000))
    record = next(bench.shadows.folder.glob("*/turns/*"))
    bench.clock.advance((MAX_AGE_DAYS + 1) * 86_400.0)
    await bench.turn("new", lambda: bench.shell("printf '2' > file; printf 'n' > new"))
    for file in bench.shadows.folder.glob(
        "*/turns/*"
    ):  # the files' own times come from the real clock
        age = 1_000_000.0 if file == record else bench.clock.now()
        os.utime(file, (age, age))
    assert sweep(bench.shadows, always=True).startswith(
        "1 turn can no longer be undone"
    )
    assert sweep(bench.shadows) == ""
    await bench.turn("last", lambda: (bench.cwd / "file").write_text("3"))
    bench.undo("last", "new")
    assert (bench.cwd / "file").read_text() == "1" * 1000
    assert not (bench.cwd / "new").exists()
    assert bench.undo("old").restored == ()


async def test_a_file_that_only_dropped_turns_had_is_kept_anew(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    (bench.cwd / "stable").write_text("the same all the time")
    await bench.turn("old", lambda: bench.shell(": > other"))
    for file in bench.shadows.folder.glob("*/turns/*"):
        os.utime(file, (0, 0))
    bench.clock.advance((MAX_AGE_DAYS + 1) * 86_400.0)
    assert sweep(bench.shadows, always=True)
    await bench.turn("new", lambda: bench.shell("rm stable"))
    assert bench.undo("new").restored == ("stable",)
    assert (bench.cwd / "stable").read_text() == "the same all the time"


async def test_the_oldest_turns_go_when_there_is_too_much(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    for number in range(8):
        await bench.turn(
            f"t{number}", lambda: (bench.cwd / "noise").write_bytes(os.urandom(100_000))
        )
        newest = max(
            bench.shadows.folder.glob("*/turns/*"),
            key=lambda file: file.stat().st_mtime_ns,
        )
        os.utime(newest, (bench.clock.now(), bench.clock.now()))
    assert sweep(bench.shadows, most_bytes=400_000, always=True)
    size = sum(
        file.stat().st_size
        for file in bench.shadows.folder.rglob("*")
        if file.is_file()
    )
    assert size <= 400_000
    assert bench.undo("t7").restored == ("noise",)
    assert bench.undo("t0").restored == ()


_KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from tests.integration.shadow.bench import Bench
folder, what, path, event, count = sys.argv[1:]
bench = Bench(Path(folder), path=path)
left = [int(count)]
def kill(name, arguments):
    if name == event:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(kill)
if what == "keep":
    asyncio.run(bench.keeper.keep(bench.context("t"), ()))
else:
    bench.undo("t")
"""


def _killed_at(
    folder: Path, what: str, event: str, count: int, path: str = os.environ["PATH"]
) -> None:
    """Keeps or restores in a process of its own, which is killed just before it does something for the nth time."""
    command = [
        sys.executable,
        "-c",
        _KILLED,
        str(folder),
        what,
        path,
        event,
        str(count),
    ]
    assert (
        subprocess.run(command, check=False, timeout=60).returncode == -signal.SIGKILL
    )


def _many_files(bench: Bench) -> None:
    for number in range(100):
        (bench.cwd / f"f{number}").write_text(f"{number}" * 100)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_kill_while_keeping_leaves_nothing_locked(tmp_path: Path, count: int) -> None:
    bench = Bench(tmp_path)
    _many_files(bench)
    before = everything(bench.cwd)
    _killed_at(tmp_path, "keep", "subprocess.Popen", count)
    asyncio.run(bench.turn("next", lambda: bench.shell("rm f1*; printf 'x' > f2")))
    assert not bench.undo("next").conflicts
    assert everything(bench.cwd) == before


def test_a_git_that_outlives_its_hermes_is_waited_for(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    _many_files(bench)
    before = everything(bench.cwd)
    real, gate = shutil.which("git"), tmp_path / "gate"
    assert real is not None
    os.mkfifo(gate)
    wrapper = tmp_path / "bin" / "git"
    wrapper.parent.mkdir()
    last_words = f"case \"$*\" in *--add*) kill -9 $PPID; read _ < '{gate}';; esac"
    wrapper.write_text(f"#!/bin/sh\n{last_words}\nexec '{real}' \"$@\"\n")
    wrapper.chmod(0o755)
    _killed_at(tmp_path, "keep", "never", 1, path=str(wrapper.parent))
    with ThreadPoolExecutor(1) as pool:
        turn = pool.submit(
            lambda: asyncio.run(
                bench.turn("next", lambda: bench.shell("rm f1*; printf 'x' > f2"))
            )
        )
        gate.write_text("go\n")  # opens only when the orphan has come to its gate
        turn.result(60)
    assert not bench.undo("next").conflicts
    assert everything(bench.cwd) == before


@pytest.mark.parametrize(
    ("event", "count"),
    [("os.rename", 1), ("os.rename", 40), ("os.remove", 3), ("os.rmdir", 1)],
)
def test_a_kill_while_restoring_can_be_gone_on_with_or_taken_back(
    tmp_path: Path, event: str, count: int
) -> None:
    bench = Bench(tmp_path)
    _many_files(bench)
    before = everything(bench.cwd)
    work = "rm f1*; for f in f*; do printf 'x' > $f; done; mkdir n; for f in 1 2 3 4; do : > n/$f; done"
    asyncio.run(bench.turn("t", lambda: bench.shell(work)))
    after = everything(bench.cwd)
    _killed_at(tmp_path, "restore", event, count)
    back = Bench(tmp_path)
    assert not back.shadow.undo(["undo-1"], session="s", undo="back").conflicts
    assert everything(bench.cwd) == after
    outcome = back.shadow.undo(["t"], session="s", undo="again")
    assert not outcome.conflicts
    assert everything(bench.cwd) == before


def test_a_leftover_lock_of_git_is_removed(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    (bench.cwd / "file").write_text("0")
    asyncio.run(bench.turn("one", lambda: (bench.cwd / "file").write_text("1")))
    (index,) = (
        file for file in bench.shadows.folder.glob("*/indexes/*") if not file.suffix
    )
    index.with_name(index.name + ".lock").write_bytes(b"")
    asyncio.run(bench.turn("two", lambda: (bench.cwd / "file").write_text("2")))
    assert bench.undo("two").restored == ("file",)


def test_a_torn_line_of_a_record_is_one_that_never_counted(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    file = bench.cwd / "file"
    file.write_text("0")
    asyncio.run(bench.keeper.keep(bench.context("t"), (file,)))
    (record,) = bench.shadows.folder.glob("*/turns/*")
    record.write_bytes(record.read_bytes() + b'{"type":"Touched","pa')
    asyncio.run(bench.turn("t", lambda: file.write_text("1"), bench.cwd / "other"))
    assert bench.undo("t").restored == ("file",)
