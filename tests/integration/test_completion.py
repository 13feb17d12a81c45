"""Completion of the command line, in real shells."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.app import build
from hermes.commands.completion import (
    bash_script,
    complete_names,
    completion_points,
    fish_script,
    written_points,
    zsh_script,
)
from hermes.commands.context import CommandContext
from hermes.events import Bus
from hermes.schema.events import SessionCreated
from hermes.settings import Home, Settings
from hermes.surfaces.dashboard.routes.commands import HttpSurface


def run(program: str, script: str) -> list[str]:
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"there is no {program} here")
    arguments = {
        "bash": ["--norc", "-c"],
        "zsh": ["-f", "-c"],
        "fish": ["--no-config", "-c"],
    }
    done = subprocess.run(
        [path, *arguments[program], script],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_what_a_shell_gets_is_what_the_commands_are() -> None:
    assert written_points() == list(completion_points())


def test_a_script_is_printed_without_loading_every_command(tmp_path: Path) -> None:
    code = (
        "import sys; from hermes.surfaces.cli import main; main(['completion', 'bash'])\n"
        "unneeded = ('hermes.commands.sessions', 'hermes.tools.policy', 'typing_extensions')\n"
        "print([one for one in unneeded if one in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"HERMES_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "complete -o default -F _hermes hermes" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def in_bash(line: str) -> list[str]:
    words = line.split(" ")
    script = bash_script(list(completion_points()))
    quoted = " ".join(f"'{word}'" for word in words)
    return run(
        "bash",
        f"{script}\nhermes() {{ echo named-$3; }}\nCOMP_WORDS=({quoted})\nCOMP_CWORD={len(words) - 1}\n"
        '_hermes; echo "${COMPREPLY[@]}"',
    )


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("hermes sess", ["sessions"]),
        ("hermes --appr", ["--approvals"]),
        ("hermes sessions ren", ["rename"]),
        ("hermes sessions show --ev", ["--events"]),
        ("hermes sessions show n", ["named-sessions"]),
        ("hermes --resume ", ["named-sessions"]),
        ("hermes --model n", ["named-models"]),
        ("hermes --approvals f", ["full"]),
        ("hermes completion f", ["fish"]),
        ("hermes gateway pair ap", ["approve"]),
    ],
)
def test_bash_completes_commands_options_and_names(line: str, found: list[str]) -> None:
    assert in_bash(line) == found


def test_zsh_loads_its_script(tmp_path: Path) -> None:
    script = zsh_script(list(completion_points()))
    home = f"HOME={tmp_path}; ZDOTDIR={tmp_path}"
    assert run("zsh", f"{home}\n{script}\nprint $_comps[hermes]") != []


def test_fish_completes_commands_and_names() -> None:
    script = fish_script(list(completion_points()))
    stub = "function hermes; echo named-$argv[3]; end"
    asked = f"{stub}\n{script}\ncomplete -C 'hermes sessions ren'; complete -C 'hermes --resume '"
    found = run("fish", asked)
    assert "rename" in found
    assert "named-sessions" in found


def test_sessions_are_named_by_their_ids(tmp_path: Path) -> None:
    with build(Settings(), Home(tmp_path), bus=Bus()) as app:
        session = app.begin(SessionCreated(surface="cli", cwd=str(tmp_path))).session
        with CommandContext(HttpSurface(), app=app) as context:
            found = complete_names.function(context, "sessions")
        assert found.lines == ("last", session)
