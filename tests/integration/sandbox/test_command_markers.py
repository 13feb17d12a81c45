"""Markers of running commands: what they say about project notes, also when Hermes was killed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.app.project_notes import has_accepted_notes, read_project_files
from hermes.tools.sandbox import repositories
from hermes.tools.sandbox.command_markers import FOLDER
from hermes.tools.sandbox.restore import Protection
from hermes.tools.sandbox.written_notes import accept, record_cut

KILLED = """
import os, sys
from pathlib import Path
from hermes.tools.sandbox.restore import Protection
protection = Protection(Path(sys.argv[1]), held=True)
protection.mark(Path(sys.argv[2]))
Path(sys.argv[1], "docs/AGENTS.md").write_text("Obey.")
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def work(tmp_path: Path) -> Path:
    for name in ("docs", "mine"):
        (tmp_path / "work" / name).mkdir(parents=True)
    (tmp_path / "work/mine/AGENTS.md").write_text("A person's.")
    return tmp_path / "work"


def text(folder: Path, home: Path) -> str:
    (found,) = read_project_files(folder, home)
    return found.text


def test_what_a_killed_hermes_left_is_read_once_accepted(
    home: Path, work: Path, caplog: pytest.LogCaptureFixture
) -> None:
    subprocess.run([sys.executable, "-c", KILLED, work, home], check=False, timeout=60)
    assert len(list((home / FOLDER).iterdir())) == 1
    assert text(work / "docs", home) == ""
    assert text(work / "mine", home) == "A person's."

    Protection(work, held=True).mark(home)  # the next command
    assert "docs/AGENTS.md" in caplog.text
    assert text(work / "docs", home) == ""
    (work / "mine/AGENTS.md").write_text("Edited.")
    assert accept(home, work / "docs/AGENTS.md")
    assert text(work / "docs", home) == "Obey."


def test_a_killed_command_does_not_block_for_ever(home: Path, work: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, work, home], check=False, timeout=60)
    protection = Protection(work, held=True)
    protection.mark(home)
    protection.unmark()
    assert not list((home / FOLDER).iterdir())
    (work / "docs/AGENTS.md").write_text("Mine now.")
    assert text(work / "docs", home) == "Mine now."


def test_what_was_changed_with_approval_is_read(home: Path, work: Path) -> None:
    protection = Protection(work, held=True)
    protection.mark(home)
    (work / "AGENTS.md").write_text("Approved.")
    assert text(work, home) == ""
    protection.accept(work / "AGENTS.md")
    assert text(work, home) == "Approved."
    (work / "AGENTS.md").write_text("Obey.")
    assert text(work, home) == ""
    protection.unmark()


def test_names_that_are_not_text_do_not_keep_others_from_being_recorded(
    home: Path, work: Path
) -> None:
    odd = Path(os.fsdecode(os.fsencode(work) + b"/\xff"))
    protection = Protection(work, held=True)
    protection.mark(home)
    odd.mkdir()
    for folder in (odd, work / "docs"):
        (folder / "AGENTS.md").write_text("Obey.")
    protection.changed()
    assert len(protection.record_notes(home)) == 2
    protection.unmark()
    assert [text(folder, home) for folder in (odd, work / "docs")] == ["", ""]


def test_codex_does_not_read_overrides_that_a_command_wrote(
    home: Path, work: Path
) -> None:
    assert has_accepted_notes(home, work / "docs")
    protection = Protection(work, held=True)
    (work / "docs/AGENTS.override.md").write_text("Obey.")
    protection.changed()
    protection.record_notes(home)
    assert not has_accepted_notes(home, work / "docs")
    assert accept(home, work / "docs/AGENTS.override.md")
    assert has_accepted_notes(home, work / "docs")


def test_too_many_build_folders_concern_only_what_is_in_them(
    home: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repositories, "MAX_FOLDERS_WITH_PRODUCTS", 5)
    for number in range(5):
        (work / f"build/{number}").mkdir(parents=True)
    protection = Protection(work, held=True)
    for folder in work.glob("build/*"):
        (folder / "AGENTS.md").write_text("Obey.")
    protection.changed()
    protection.record_notes(home)
    assert {text(folder, home) for folder in work.glob("build/*")} == {""}
    (work / "mine/AGENTS.md").write_text("Edited.")
    assert text(work / "mine", home) == "Edited."


def test_a_search_that_was_cut_is_remembered_for_build_folders_too(
    home: Path, work: Path
) -> None:
    record_cut(home, work, 0, only_products=True)
    record_cut(home, work, 0)
    assert text(work / "mine", home) == ""
