"""Undo never touches what is not its own: the user's repository, their later changes, other sessions' work."""

import asyncio
import os
from pathlib import Path

from tests.integration.shadow.bench import PATH, Bench, everything

from hermes.tools.shadow.prune import sweep
from hermes.tools.shadow.turn_record import TurnHeader, append

_GIT = "git -c user.name=n -c user.email=e -c init.defaultBranch=main"
_REPOSITORY = f"""
{_GIT} init -q; printf 'build/\\n*.log\\n' > .gitignore; mkdir sub build; printf 'a\\n' > a; printf 's\\n' > sub/s
printf 'made' > build/out; printf 'l' > x.log; {_GIT} add -A; {_GIT} commit -qm first; printf 'staged\\n' > a; git add a
printf 'touch ran-a-hook\\n' > .git/hooks/post-commit; cp .git/hooks/post-commit .git/hooks/pre-commit
cp .git/hooks/post-commit .git/hooks/post-index-change; chmod +x .git/hooks/*; printf 'private\\n' > .git/info/exclude
printf 'p' > private
"""


async def test_the_users_repository_stays_as_it_is_to_the_byte(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.shell(_REPOSITORY)
    before, repository = everything(bench.cwd), everything(bench.cwd / ".git")
    await bench.turn(
        "t", lambda: bench.shell("printf 'b' > a; rm sub/s; printf 'n' > sub/n")
    )
    bench.shadow.diff("t")
    bench.undo("t")
    bench.undo("undo-1")
    bench.undo("undo-2")
    assert everything(bench.cwd / ".git") == repository
    assert everything(bench.cwd) == before
    assert not (bench.cwd / "ran-a-hook").exists()


async def test_hostile_settings_of_the_environment_and_the_repository_do_not_reach_ours(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    bench.shell(_REPOSITORY)
    bench.shell(
        f"git config core.fsmonitor 'touch {tmp_path}/ran'; git config core.hooksPath .git/hooks"
    )
    bench.shell(
        "printf '* filter=evil diff=evil text=auto\\n' > .gitattributes; git config filter.evil.clean 'touch ran'"
    )
    (bench.cwd / "crlf").write_bytes(b"a\r\nb\n")
    before = everything(bench.cwd)
    await bench.turn("t", lambda: (bench.cwd / "crlf").write_bytes(b"changed"))
    bench.shadow.diff("t")
    bench.undo("t")
    assert everything(bench.cwd) == before
    assert not (tmp_path / "ran").exists()


async def test_what_the_project_ignores_is_not_kept(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.shell(_REPOSITORY)
    await bench.turn(
        "t",
        lambda: bench.shell(
            "printf 'x' > build/out; printf 'x' > x.log; printf 'x' > private"
        ),
    )
    assert bench.undo("t").restored == ()


async def test_a_folder_below_the_top_follows_the_rules_of_the_whole_project(
    tmp_path: Path,
) -> None:
    top = Bench(tmp_path)
    top.shell(_REPOSITORY)
    top.shell(
        "mkdir -p sub/build sub/src; printf 'o' > sub/build/out; printf '/sub/anchored\\n' >> .gitignore"
    )
    below = Bench(tmp_path, workspace="work/sub")
    before = everything(below.cwd)
    work = "printf 'x' > s; printf 'x' > src/new; printf 'x' > build/out; printf 'x' > anchored; printf 'x' > ../a"
    await below.turn("t", lambda: below.shell(work))
    assert set(below.undo("t").restored) == {"s", "src/new"}
    changed = {"build/out", "anchored"}
    after = everything(below.cwd)
    assert {name for name in after if after[name] != before.get(name)} == changed
    assert "s" in before


async def test_an_ignored_folder_that_is_worked_in_is_kept(tmp_path: Path) -> None:
    Bench(tmp_path).shell(_REPOSITORY)
    inside = Bench(tmp_path, workspace="work/build")
    await inside.turn("t", lambda: inside.shell("printf 'x' > out"))
    assert inside.undo("t").restored == ("out",)
    assert (inside.cwd / "out").read_text() == "made"


async def test_repositories_inside_are_kept_and_not_broken(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.shell(_REPOSITORY)
    inner = f"{_GIT} init -q inner; cd inner; printf 'i' > file; {_GIT} add -A; {_GIT} commit -qm inner; cd .."
    bench.shell(f"{inner}; {_GIT} init -q unborn; printf 'u' > unborn/file")
    bench.shell(
        f"{_GIT} -c protocol.file.allow=always submodule --quiet add ./inner module"
    )
    before = everything(bench.cwd)
    await bench.turn(
        "t",
        lambda: bench.shell(
            "for f in inner unborn module; do printf 'x' > $f/file; : > $f/new; done"
        ),
    )
    outcome = bench.undo("t")
    assert len(outcome.restored) == 6
    assert everything(bench.cwd) == before
    bench.shell(
        "cd inner; git diff --quiet; git fsck --strict; cd ../module; git diff --quiet"
    )


async def test_a_repository_that_a_turn_made_or_removed(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.shell(
        f"mkdir plain; printf 'p' > plain/file; {_GIT} init -q old; printf 'o' > old/file"
    )
    before = {name for name in everything(bench.cwd) if ".git" not in name}
    work = f"{_GIT} init -q plain; printf 'x' > plain/file; printf 'n' > plain/new; {_GIT} init -q fresh; : > fresh/f"
    await bench.turn(
        "t", lambda: bench.shell(f"{work}; rm -rf old/.git; printf 'x' > old/file")
    )
    bench.undo("t")
    after = {name for name in everything(bench.cwd) if ".git" not in name}
    assert (
        after - {"fresh"} == before
    )  # the repository that was made there is not ours to remove
    assert (bench.cwd / "plain/file").read_text() == "p"
    assert (bench.cwd / "old/file").read_text() == "o"


async def test_a_file_changed_after_the_turn_is_left_alone_unless_forced(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    bench.shell("printf '0' > mine; printf '0' > its; printf '0' > gone")
    work = "printf '1' > mine; printf '1' > its; rm gone; : > made; : > kept"
    await bench.turn("t", lambda: bench.shell(work))
    bench.shell("printf 'by hand' > mine; printf 'again' > gone; printf 'used' > kept")
    outcome = bench.undo("t")
    assert set(outcome.restored) == {"its", "made"}
    assert {name for name, _ in outcome.conflicts} == {"mine", "gone", "kept"}
    assert (bench.cwd / "mine").read_text() == "by hand"
    assert (bench.cwd / "kept").read_text() == "used"
    forced = bench.undo("t", force=True)
    assert set(forced.restored) == {"mine", "gone", "kept"}
    assert (bench.cwd / "mine").read_text() == "0"
    assert not (bench.cwd / "kept").exists()
    bench.undo("undo-2")
    assert (bench.cwd / "mine").read_text() == "by hand"


async def test_a_folder_that_became_a_link_does_not_lead_undo_elsewhere(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "file").write_text("theirs")
    bench.shell("mkdir folder; printf '0' > folder/file")
    await bench.turn("t", lambda: bench.shell("printf '1' > folder/file"))
    bench.shell(f"rm -r folder; ln -s {victim} folder")
    for force in (False, True):
        outcome = bench.undo("t", force=force)
        assert outcome.conflicts == (
            ("folder/file", "a folder on the way to it is a link now"),
        )
    assert (victim / "file").read_text() == "theirs"


async def test_two_sessions_in_one_folder_undo_their_own_work(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.shell("printf '0' > one; printf '0' > two")
    await bench.keeper.keep(bench.context("a", "first"), ())
    await bench.keeper.keep(bench.context("b", "second"), (bench.cwd / "two",))
    bench.shell("printf '1' > one; printf '1' > two")
    await asyncio.gather(bench.end("a"), bench.end("b"))
    outcome = bench.undo("a")
    assert outcome.restored == ("one",)
    assert outcome.conflicts == (
        ("two", "another session changed it at the same time"),
    )
    assert bench.undo("b").restored == ("two",)


async def test_many_calls_at_once_keep_every_file_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    files = [bench.cwd / f"f{number}" for number in range(40)]
    for file in files:
        file.write_text("0")
    other = Bench(tmp_path)

    async def edit(desk: Bench, turn: str, file: Path) -> None:
        await desk.keeper.keep(
            desk.context(turn, turn), (file,) if file.name[-1] != "7" else ()
        )
        await asyncio.to_thread(file.write_text, "1")

    halves = ((bench, "a", files[:20]), (other, "b", files[20:]))
    await asyncio.gather(
        *(edit(desk, turn, file) for desk, turn, half in halves for file in half)
    )
    await bench.end("a")
    await other.end("b")
    bench.undo("a", "b", force=True)
    assert {file.read_text() for file in files} == {"0"}


def _plant_git(folder: Path) -> Path:
    """A git that a model wrote; it leaves a mark when it runs."""
    folder.mkdir(parents=True)
    (folder / "git").write_text(
        f'#!/bin/sh\ntouch {folder}/ran\nPATH={PATH} exec git "$@"\n'
    )
    (folder / "git").chmod(0o755)
    return folder / "ran"


async def test_git_is_not_taken_from_the_folder_though_no_turn_ran_there_in_this_process(
    tmp_path: Path,
) -> None:
    ran = _plant_git(tmp_path / "work" / "tools")
    bench = Bench(tmp_path, path=f"{tmp_path}/work/tools:{PATH}")
    await bench.turn("t", lambda: (bench.cwd / "a").write_text("x"))
    assert bench.undo("t").restored == ("a",)
    assert not ran.exists()


def test_git_is_not_taken_from_the_folder_of_a_turn_that_is_dropped(
    tmp_path: Path,
) -> None:
    ran = _plant_git(tmp_path / "other" / "tools")
    bench = Bench(tmp_path, path=f"{tmp_path}/other/tools:{PATH}")
    record = bench.shadows.folder / "other" / "turns" / "old.jsonl"
    record.parent.mkdir(parents=True)
    (record.parents[1] / "indexes").mkdir()
    append(record, TurnHeader("s", "old", os.fsencode(tmp_path / "other"), 0.0))
    os.utime(record, (-1e7, -1e7))
    assert sweep(bench.shadows, always=True)
    assert not ran.exists()
