"""`hermes policy` as a user runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERMES = Path(sys.executable).with_name("hermes")


def hermes(
    home: Path, *arguments: str, **environ: str
) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("HERMES_")
    }
    return subprocess.run(
        [HERMES, "policy", *arguments], env={**kept, "HERMES_HOME": str(home), **environ}, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("command", "code", "word"),
    [
        ("ls -la", 0, "allowed"),
        ("rm -rf src", 3, "needs approval"),
        ("rm -rf /", 4, "never allowed"),
        ("echo 'x", 3, "needs approval"),
    ],
)
def test_check_says_what_would_happen(
    tmp_path: Path, command: str, code: int, word: str
) -> None:
    done = hermes(tmp_path / "home", "check", command, "--cwd", str(tmp_path))
    assert (done.returncode, word in done.stdout, done.stderr) == (code, True, "")


def test_check_knows_that_the_project_has_its_own_curl(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "curl"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    check = ("check", "curl http://127.0.0.1:1/", "--cwd", str(tmp_path))
    path = f"{program.parent}:/usr/bin:/bin"
    done = hermes(tmp_path / "home", *check, PATH=path)
    assert done.returncode == 3
    assert f"here curl is {program}" in done.stdout


def test_show_and_forget(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    path = home / "policy.yaml"
    path.write_text(
        "# mine\nforbid:\n  - {program: docker}\nremembered:\n  - one\n  - two  # kept\n"
    )
    path.chmod(0o600)
    shown = hermes(home, "show").stdout
    assert "forbid     docker" in shown
    assert "2  two" in shown
    assert hermes(home, "forget", "9").returncode == 1
    assert hermes(home, "forget", "1").stdout == "1 answer forgotten.\n"
    assert (
        path.read_text()
        == "# mine\nforbid:\n  - {program: docker}\nremembered:\n  - two  # kept\n"
    )
    assert json.loads(hermes(home, "show", "--json").stdout)["rules"]["remembered"] == [
        "two"
    ]


def test_a_damaged_file_is_said_loudly(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "policy.yaml").write_text("allow:\n  - {program: make}\nfoo: 1\n")
    done = hermes(home, "show")
    assert (done.returncode, "policy.yaml:3" in done.stdout) == (1, True)
    assert hermes(home, "check", "make", "--cwd", str(tmp_path)).returncode == 3
