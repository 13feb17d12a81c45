"""`hermes config edit` where something is missing or somebody else edits too."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERMES = Path(sys.executable).with_name("hermes")


def edit(home: Path, *arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("HERMES_")
    }
    environ = {
        name: value for name, value in kept.items() if name not in {"VISUAL", "EDITOR"}
    }
    return subprocess.run(
        [HERMES, "config", "edit", *arguments], env={**environ, "HERMES_HOME": str(home), **extra}, input="",
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("extra", [{}, {"EDITOR": "  "}, {"VISUAL": " ", "EDITOR": ""}])
def test_without_an_editor_and_a_terminal_it_refuses_and_leaves_nothing(
    tmp_path: Path, extra: dict[str, str]
) -> None:
    done = edit(tmp_path / "home", **extra)
    assert done.returncode == 1
    assert "no terminal to edit in" in done.stderr
    assert not (tmp_path / "home").exists()


def test_going_on_needs_a_draft(tmp_path: Path) -> None:
    done = edit(tmp_path, "--continue", EDITOR="true")
    assert done.returncode == 2
    assert "no draft" in done.stderr


@pytest.mark.parametrize("arguments", [[], ["--discard"]])
def test_the_draft_of_another_window_is_left_alone(
    tmp_path: Path, arguments: list[str]
) -> None:
    theirs = tmp_path / f"config.draft-e3b0c442-{os.getpid()}.yaml"
    theirs.write_text("# theirs\n")
    assert edit(tmp_path, *arguments, EDITOR="true").returncode == 0
    assert theirs.read_text() == "# theirs\n"
    assert edit(tmp_path, "--continue", EDITOR="true").returncode == 2
