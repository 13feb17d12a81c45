"""Worktrees, with the git of this machine."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.app.project_notes import has_accepted_notes, read_project_files
from hermes.app.worktrees import Worktrees, WorktreeState, worktrees_folder
from hermes.errors import HermesError, NotFound, Refused, UsageError
from hermes.tools.sandbox.written_notes import accept, record, stamps


def git(folder: Path, *arguments: str) -> str:
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    who = ("-c", "user.name=A", "-c", "user.email=a@localhost")
    command = ["git", "-C", str(folder), *who, *arguments]
    done = subprocess.run(
        command, env=environ, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return make_checkout(tmp_path)


def make_checkout(parent: Path) -> Path:
    folder = parent / "project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "one.txt").write_text("one\n")
    (folder / ".gitignore").write_text("*.log\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


@pytest.fixture
def trees(tmp_path: Path) -> Worktrees:
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    return Worktrees(worktrees_folder(environ, tmp_path), environ)


def test_a_worktree_is_a_copy_outside_the_checkout_on_its_own_branch(
    checkout: Path, trees: Worktrees
) -> None:
    tree = trees.make(checkout, "fix")

    folder = Path(tree.folder)
    assert (folder / "one.txt").read_text() == "one\n"
    assert not folder.is_relative_to(checkout)
    assert (folder / ".git").is_dir()
    assert git(folder, "branch", "--show-current") == "hermes/fix"
    assert git(checkout, "status", "--porcelain") == ""
    assert trees.state(tree).is_clean


def test_the_repository_of_a_worktree_has_no_hook_of_the_checkout(
    checkout: Path, trees: Worktrees
) -> None:
    hook = checkout / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {checkout}/ran\n")
    hook.chmod(0o755)

    tree = trees.make(checkout, "fix")

    assert not (Path(tree.folder) / ".git/hooks").exists()
    assert not (checkout / "ran").exists()


def test_a_worktree_without_a_name_gets_the_next_free_one(
    checkout: Path, trees: Worktrees
) -> None:
    names = [trees.open(checkout).name for _ in range(2)]

    assert names == ["work-1", "work-2"]
    assert [one.name for one in trees.all(checkout)] == names


def test_opening_a_known_worktree_makes_no_second_one(
    checkout: Path, trees: Worktrees
) -> None:
    assert trees.open(checkout, "fix") == trees.open(checkout / ".", "fix")
    with pytest.raises(UsageError, match="already there"):
        trees.make(checkout, "fix")


def test_a_worktree_is_found_from_inside_it(checkout: Path, trees: Worktrees) -> None:
    tree = trees.make(checkout, "fix")

    assert trees.at(Path(tree.folder) / ".git") == tree
    assert trees.find(Path(tree.folder), "fix") == tree


def commit_note(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", name)


def as_command(home: Path, folder: Path, name: str, text: str) -> None:
    """Commits a note as a sandboxed command of Hermes does."""
    before = stamps([str(folder / name)])
    commit_note(folder, name, text)
    record(home, before, stamps([str(folder / name)]))


def notes(folder: Path, home: Path) -> dict[str, str]:
    """The texts of the notes that a session in a folder reads."""
    return {one.name: one.text for one in read_project_files(folder, home)}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".hermes").mkdir()
    return tmp_path / ".hermes"


def test_notes_that_a_command_committed_do_not_reach_a_prompt_through_a_worktree(
    checkout: Path, trees: Worktrees, home: Path
) -> None:
    commit_note(checkout, "CLAUDE.md", "A person's.")
    commit_note(checkout, "docs/AGENTS.md", "A person's.")
    as_command(home, checkout, "AGENTS.md", "Obey.")
    as_command(home, checkout, "lib/AGENTS.md", "Obey.")
    git(checkout, "rm", "-q", "--cached", "lib/AGENTS.md")
    git(checkout, "commit", "-q", "-m", "not tracked")
    tree = trees.make(checkout, "fix")

    folder = Path(tree.folder)
    assert notes(folder, home) == {"AGENTS.md": "", "CLAUDE.md": "A person's."}
    assert notes(folder / "docs", home) == {"AGENTS.md": "A person's."}
    assert not has_accepted_notes(home, folder)

    assert accept(home, checkout / "AGENTS.md")
    again = Path(trees.make(checkout, "again").folder)
    assert notes(again, home)["AGENTS.md"] == "Obey."


def test_notes_that_only_git_has_are_not_a_persons(
    checkout: Path, trees: Worktrees, home: Path
) -> None:
    commit_note(checkout, "AGENTS.md", "Obey.")
    (checkout / "AGENTS.md").write_text("A person's.")

    tree = trees.make(checkout, "fix")

    assert notes(Path(tree.folder), home) == {"AGENTS.md": ""}
    assert notes(checkout, home) == {"AGENTS.md": "A person's."}


def test_notes_that_a_command_wrote_in_a_worktree_are_not_read_after_a_merge(
    checkout: Path, trees: Worktrees, home: Path
) -> None:
    commit_note(checkout, "CLAUDE.md", "A person's.")
    tree = trees.make(checkout, "fix")
    folder = Path(tree.folder)
    as_command(home, folder, "AGENTS.md", "Obey.")
    commit_note(folder, ".hermes.md", "A person's, in the worktree.")
    (checkout / "docs").mkdir()
    (checkout / "docs" / "CLAUDE.md").write_text("Not in git.")

    trees.merge(tree)

    assert notes(checkout, home) == {
        "AGENTS.md": "",
        "CLAUDE.md": "A person's.",
        ".hermes.md": "A person's, in the worktree.",
    }
    assert notes(checkout / "docs", home) == {"CLAUDE.md": "Not in git."}
    assert (checkout / "AGENTS.md").read_text() == "Obey."
    assert not list((home / "run/commands").iterdir())


def test_merging_brings_committed_and_uncommitted_work(
    checkout: Path, trees: Worktrees
) -> None:
    tree = trees.make(checkout, "fix")
    folder = Path(tree.folder)
    (folder / "two.txt").write_text("two\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "second")
    (folder / "three.txt").write_text("three\n")
    (folder / "debug.log").write_text("noise")
    assert trees.state(tree) == WorktreeState(commits=1, uncommitted=1)

    merged = trees.merge(tree)

    assert (merged.commits, merged.into) == (2, "main")
    assert (checkout / "two.txt").read_text() == "two\n"
    assert (checkout / "three.txt").read_text() == "three\n"
    assert not (checkout / "debug.log").exists()
    assert trees.state(tree).is_clean


def test_a_conflict_leaves_the_checkout_as_it_was_and_names_the_branch(
    checkout: Path, trees: Worktrees
) -> None:
    tree = trees.make(checkout, "fix")
    (Path(tree.folder) / "one.txt").write_text("theirs\n")
    (checkout / "one.txt").write_text("ours\n")
    git(checkout, "commit", "-qam", "ours")

    with pytest.raises(Refused, match=r"1 file conflict: one\.txt") as refused:
        trees.merge(tree)

    assert "git merge hermes/fix" in refused.value.hint
    assert (checkout / "one.txt").read_text() == "ours\n"
    assert git(checkout, "status", "--porcelain") == ""
    assert git(checkout, "show", "hermes/fix:one.txt") == "theirs"


def test_uncommitted_changes_of_the_checkout_are_not_overwritten(
    checkout: Path, trees: Worktrees
) -> None:
    tree = trees.make(checkout, "fix")
    (Path(tree.folder) / "one.txt").write_text("theirs\n")
    (checkout / "one.txt").write_text("mine, not committed\n")

    with pytest.raises(Refused, match="was not merged"):
        trees.merge(tree)

    assert (checkout / "one.txt").read_text() == "mine, not committed\n"


def test_dropping_work_needs_force_and_keeps_it_under_a_ref(
    checkout: Path, trees: Worktrees
) -> None:
    tree = trees.make(checkout, "fix")
    (Path(tree.folder) / "two.txt").write_text("two\n")

    with pytest.raises(Refused, match="1 uncommitted file"):
        trees.drop(tree)
    kept = trees.drop(tree, force=True)

    assert git(checkout, "show", f"{kept}:two.txt") == "two"
    assert not Path(tree.folder).exists()
    assert trees.all() == []


def test_dropping_a_clean_worktree_leaves_nothing_behind(
    checkout: Path, trees: Worktrees
) -> None:
    tree = trees.make(checkout, "fix")

    assert trees.drop(tree) == ""

    assert not Path(tree.folder).exists()
    assert git(checkout, "for-each-ref", "refs/hermes") == ""
    with pytest.raises(NotFound):
        trees.find(checkout, "fix")


def test_git_is_not_run_where_settings_were_changed(
    checkout: Path, trees: Worktrees
) -> None:
    tree = trees.make(checkout, "fix")
    git(Path(tree.folder), "config", "core.sshCommand", "touch owned")

    assert "settings" in trees.state(tree).problem
    assert not trees.state(tree).is_clean


def test_a_folder_without_a_repository_is_refused(
    tmp_path: Path, trees: Worktrees
) -> None:
    with pytest.raises(UsageError, match="not in a git repository"):
        trees.make(tmp_path)


def test_a_name_that_leaves_the_folder_is_refused(
    checkout: Path, trees: Worktrees
) -> None:
    with pytest.raises(UsageError, match="can't be the name"):
        trees.make(checkout, "../up")


def test_git_does_not_run_what_a_repository_inside_a_worktree_names(
    checkout: Path, trees: Worktrees, tmp_path: Path
) -> None:
    tree = trees.make(checkout, "nested")
    inner, ran = Path(tree.folder) / "inner", tmp_path / "ran"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "x").write_text("x")
    git(inner, "add", "-A")
    git(inner, "commit", "-q", "-m", "x")
    git(Path(tree.folder), "add", "-A")
    git(inner, "config", "filter.f.clean", f"touch {ran}; cat")
    (inner / ".git" / "info" / "attributes").write_text("* filter=f\n")
    (inner / "x").write_text("y")  # as long as before, so that git has to read it
    assert "settings" in trees.state(tree).problem
    with pytest.raises(HermesError, match="settings"):
        trees.merge(tree)
    assert not ran.exists()


@pytest.fixture
def visible_checkout() -> Iterator[Path]:
    """A repository where commands in the sandbox can read it: its worktrees borrow its objects (`git clone --shared`)."""
    with tempfile.TemporaryDirectory(prefix="hermes-test-", dir=Path.home()) as folder:
        yield make_checkout(Path(folder))


def test_a_worktree_that_borrows_objects_survives_what_the_checkout_forgets(
    visible_checkout: Path, trees: Worktrees
) -> None:
    tree = trees.make(visible_checkout, "fix")
    folder = Path(tree.folder)
    assert (folder / ".git/objects/info/alternates").exists(), "nothing was copied"
    (folder / "two.txt").write_text("two\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "second")

    git(visible_checkout, "commit", "-q", "--amend", "-m", "another first")
    git(visible_checkout, "reflog", "expire", "--expire=now", "--all")
    git(visible_checkout, "gc", "-q", "--prune=now")

    assert git(folder, "fsck", "--no-dangling") == ""
    assert git(folder, "log", "--format=%s") == "second\nfirst"
    assert not trees.state(tree).is_clean
    kept = trees.drop(tree, force=True)
    assert "two.txt" in git(visible_checkout, "ls-tree", "--name-only", kept)
    assert not folder.exists()


def test_a_worktree_that_borrows_objects_is_merged(
    visible_checkout: Path, trees: Worktrees
) -> None:
    tree = trees.make(visible_checkout, "fix")
    (Path(tree.folder) / "two.txt").write_text("two\n")

    trees.merge(tree)
    trees.drop(tree)

    git(visible_checkout, "gc", "-q", "--prune=now")
    assert (visible_checkout / "two.txt").read_text() == "two\n"
    assert git(visible_checkout, "fsck", "--no-dangling") == ""
    assert git(visible_checkout, "for-each-ref", "refs/hermes/worktrees") == ""
