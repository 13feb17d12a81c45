"""Memory and skills of several machines over a git remote: a bare repository in a folder."""

import logging
import subprocess
from pathlib import Path

import pytest

from hermes.learning.change import (
    LearningError,
    MemoryChange,
    MemoryEdit,
    Provenance,
    SkillChange,
    SkillFileChange,
)
from hermes.learning.learning_service import LearningService, open_learning
from hermes.settings import Home
from hermes.settings.load import environment
from hermes.settings.sections import LearningSettings

SKILL = "---\nname: tea\ndescription: Makes tea.\n---\n\n{}\n"


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    folder = tmp_path / "remote.git"
    git("init", "-q", "--bare", str(folder))
    return folder


def git(*words: str, cwd: Path | None = None) -> str:
    done = subprocess.run(
        ["git", *words], check=True, capture_output=True, text=True, cwd=cwd
    )
    return done.stdout


def machine(tmp_path: Path, name: str, remote: Path | str) -> LearningService:
    home = Home(tmp_path / name).ensure()
    return open_learning(home, LearningSettings(remote=str(remote)), environment())


def note(learning: LearningService, text: str) -> None:
    change = MemoryChange((MemoryEdit(action="add", text=text),))
    learning.apply(change, Provenance("user"))


def write_skill(learning: LearningService, text: str) -> None:
    path = learning.home.skills / "tea" / "SKILL.md"
    before = path.read_text() if path.exists() else None
    file = SkillFileChange("SKILL.md", before, SKILL.format(text))
    learning.apply(SkillChange("tea", (file,)), Provenance("user"))


def test_two_machines_know_what_either_has_learned(
    tmp_path: Path, remote: Path
) -> None:
    one, two = machine(tmp_path, "one", remote), machine(tmp_path, "two", remote)
    note(one, "The user likes tea.")
    note(two, "The user lives in Bonn.")
    write_skill(two, "Boil water.")
    one.sync()
    for learning in (one, two):
        memory = learning.memory.read("memory")
        assert "tea" in memory
        assert "Bonn" in memory
        assert "Boil" in (learning.home.skills / "tea" / "SKILL.md").read_text()
    change = MemoryChange((MemoryEdit(action="remove", old="Bonn"),))
    one.apply(change, Provenance("user"))
    two.sync()
    assert "Bonn" not in two.memory.read("memory")
    assert one.sync() == two.sync()


def test_histories_that_began_apart_are_joined(tmp_path: Path, remote: Path) -> None:
    alone = machine(tmp_path, "two", "")
    note(alone, "Written before there was a remote.")
    note(machine(tmp_path, "one", remote), "Written on another machine.")
    later = machine(tmp_path, "two", remote)
    later.sync()
    memory = later.memory.read("memory")
    assert "before there was" in memory
    assert "another machine" in memory


def test_a_conflict_becomes_a_proposal_and_loses_nothing(
    tmp_path: Path, remote: Path
) -> None:
    one, two = machine(tmp_path, "one", remote), machine(tmp_path, "two", remote)
    write_skill(one, "Boil water.")
    two.sync()
    write_skill(one, "Boil fresh water.")
    away = machine(tmp_path, "two", "")  # without a network
    write_skill(away, "Boil little water.")
    report = two.sync()
    assert [one.path for one in report.conflicts] == ["skills/tea/SKILL.md"]
    path = two.home.skills / "tea" / "SKILL.md"
    assert "fresh" in path.read_text()
    (proposal,) = two.proposals.pending()
    assert "+Boil little water." in proposal.diff
    assert "another machine" in proposal.why
    two.approve(proposal.id)
    one.sync()
    assert "little" in (one.home.skills / "tea" / "SKILL.md").read_text()
    assert two.sync().conflicts == ()


def test_a_remote_that_is_away_is_named_once_and_gets_everything_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "hermes.waiting")
    folder = tmp_path / "remote.git"
    one = machine(tmp_path, "one", folder)
    note(one, "First.")
    note(machine(tmp_path, "one", folder), "Second.")
    assert caplog.text.count("can't be reached") == 1
    assert "kept here" in caplog.text
    git("init", "-q", "--bare", str(folder))
    note(one, "Third.")
    two = machine(tmp_path, "two", folder)
    two.sync()
    memory = two.memory.read("memory")
    assert all(word in memory for word in ("First", "Second", "Third"))
    assert caplog.text.count("can't be reached") == 1


def test_nothing_of_the_remote_runs_and_only_memory_and_skills_come(
    tmp_path: Path, remote: Path
) -> None:
    one = machine(tmp_path, "one", remote)
    note(one, "Harmless.")
    ran = tmp_path / "ran"
    clone = tmp_path / "clone"
    git("clone", "-q", "-b", "hermes", str(remote), str(clone))
    (clone / "skills").mkdir()
    for path in (".gitattributes", "config.yaml", "skills/.gitattributes"):
        (clone / path).write_text(f"* filter=x\n# touch {ran}\n")
    (clone / "skills" / "link.md").symlink_to("/etc/passwd")
    (clone / "skills" / "tea").mkdir()
    (clone / "skills" / "tea" / "SKILL.md").write_text(SKILL.format("Boil water."))
    who = ("-c", "user.name=x", "-c", "user.email=x@y")
    git("add", "-A", "-f", cwd=clone)
    git(*who, "commit", "-qm", "x", cwd=clone)
    git("push", "-q", "origin", "HEAD:hermes", cwd=clone)
    for name in ("pre-receive", "update", "post-receive", "post-update"):
        hook = remote / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
        hook.chmod(0o755)
    git("config", "filter.x.smudge", f"touch {ran}", cwd=remote)
    one.sync()
    note(one, "Pushed past the hooks.")
    root = one.home.root
    assert (root / "skills" / "tea" / "SKILL.md").is_file()
    assert not ran.exists()
    assert not (root / "config.yaml").exists()
    assert not (root / "skills" / ".gitattributes").exists()
    assert not (root / "skills" / "link.md").is_symlink()
    assert "Pushed past" in git("show", "hermes:memories/MEMORY.md", cwd=remote)


@pytest.mark.parametrize(
    "url",
    [
        "ext::sh -c 'touch /tmp/x'",
        "--upload-pack=touch",
        "https://me:hunter2@git.example/x",
        "https://hunter2@git.example/x",
    ],
)
def test_an_address_that_runs_something_or_holds_a_password_is_refused(
    tmp_path: Path, url: str
) -> None:
    with pytest.raises(LearningError, match=r"learning\.remote") as refused:
        machine(tmp_path, "one", url).sync()
    assert "hunter2" not in f"{refused.value} {refused.value.hint}"


def test_secret_files_of_a_skill_never_reach_the_remote(
    tmp_path: Path, remote: Path
) -> None:
    one = machine(tmp_path, "one", remote)
    write_skill(one, "Boil water.")
    (one.home.skills / "tea" / ".env").write_text("KEY=secret\n")
    (one.home.skills / "tea" / ".env.example").write_text("KEY=\n")
    note(one, "The user likes tea.")
    pushed = git("ls-tree", "-r", "--name-only", "hermes", cwd=remote)
    assert "skills/tea/SKILL.md" in pushed
    assert "skills/tea/.env.example" in pushed
    assert "skills/tea/.env\n" not in pushed


def test_a_history_that_held_a_secret_file_is_not_pushed(
    tmp_path: Path, remote: Path
) -> None:
    alone = machine(tmp_path, "one", "")
    write_skill(alone, "Boil water.")
    (alone.home.skills / "tea" / ".env").write_text("KEY=secret\n")
    folder = alone.home.root / "learning" / "history.git"
    words = (f"--git-dir={folder}", f"--work-tree={alone.home.root}")
    author = ("-c", "user.name=n", "-c", "user.email=e")
    git(*words, "add", "-f", "skills/tea/.env")
    git(*words, *author, "commit", "-qm", "earlier")
    note(alone, "The file is no longer followed.")
    assert ".env" not in git(*words, "ls-files")
    with pytest.raises(LearningError, match=r"holds skills/tea/\.env"):
        machine(tmp_path, "one", remote).sync()
    assert git("for-each-ref", cwd=remote) == ""


@pytest.mark.parametrize(
    "text",
    [
        "The key of the shop is sk-proj-AbCdEfGhIjKlMnOp0123456789.",
        "The database is at postgres://shop:hunter2-hunter2@db.example/shop",
        "The router's password: Xk29fA81bQ",
    ],
)
def test_a_note_with_a_secret_is_never_pushed(
    tmp_path: Path, remote: Path, text: str
) -> None:
    alone = machine(tmp_path, "one", "")
    note(alone, text)
    with pytest.raises(LearningError, match=r"MEMORY\.md holds") as refused:
        machine(tmp_path, "one", remote).sync()
    assert text not in f"{refused.value} {refused.value.hint}"
    assert git("for-each-ref", cwd=remote) == ""


def test_a_secret_that_was_removed_from_a_note_is_not_pushed_with_its_history(
    tmp_path: Path, remote: Path
) -> None:
    alone = machine(tmp_path, "one", "")
    note(alone, "The key is ghp_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789.")
    (alone.home.root / "memories" / "MEMORY.md").write_text("Nothing here.\n")
    note(alone, "The user likes tea.")
    with pytest.raises(LearningError, match="holds, or held"):
        machine(tmp_path, "one", remote).sync()
    assert git("for-each-ref", cwd=remote) == ""


def test_a_skill_with_a_key_is_not_pushed_but_one_that_explains_is(
    tmp_path: Path, remote: Path
) -> None:
    one = machine(tmp_path, "one", remote)
    write_skill(one, "Call `tea --password=example1 --token $TOKEN`.")
    note(one, "The user likes tea.")
    assert "skills/tea/SKILL.md" in git(
        "ls-tree", "-r", "--name-only", "hermes", cwd=remote
    )
    alone = machine(tmp_path, "two", "")
    write_skill(alone, "The key is ghp_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789.")
    note(alone, "The user likes coffee.")
    with pytest.raises(LearningError, match=r"skills/tea/SKILL\.md holds"):
        machine(tmp_path, "two", remote).sync()
