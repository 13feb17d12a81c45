"""The `hermes` script finds its own `hermes-python`, however it is started, and never one of the current folder."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LAUNCHER = Path(__file__).parents[3] / "src" / "launcher" / "hermes"
TIMEOUT_S = 30.0


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with a space in its name that holds the launcher, beside a project with a file of the same name."""
    folder = tmp_path / "my programs"
    folder.mkdir()
    shutil.copy(LAUNCHER, folder / "hermes")
    trap = tmp_path / "project" / "hermes-python"
    trap.parent.mkdir()
    trap.write_text("#!/bin/sh\necho trapped\n")
    for program in (folder / "hermes", trap):
        program.chmod(0o755)
    return folder


def _start(installed: Path, first_line: str, *command: str) -> str:
    main = installed / "hermes-python"
    main.write_text(f"{first_line}\nimport sys\nprint(sys.argv[1:])\n")
    main.chmod(0o755)
    done = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        cwd=installed.parent / "project",
        env={"PATH": f"{installed}:/usr/bin:/bin"},
    )
    return done.stdout.strip() or done.stderr


def test_a_shell_that_looks_in_path_starts_no_file_of_the_current_folder(
    installed: Path,
) -> None:
    bash = shutil.which("bash") or pytest.skip("there is no bash")
    said = _start(installed, f"#!{sys.executable}", bash, "hermes", "a b")
    assert said == "['a b']"


def test_a_first_line_with_an_option_for_python_works(installed: Path) -> None:
    program = str(installed / "hermes")
    assert _start(installed, f"#!{sys.executable} -s", program, "$x") == "['$x']"
