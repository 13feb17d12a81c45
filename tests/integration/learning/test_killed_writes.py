"""Processes that are killed while they write leave whole files, files in step, and a sound history."""

import os
import subprocess
import sys
from pathlib import Path

from hermes.learning.change import MemoryChange, MemoryEdit, Provenance
from hermes.learning.learning_service import open_learning
from hermes.settings import Home
from hermes.settings.sections import LearningSettings

ROOT = Path(__file__).parents[3]
SETTINGS = LearningSettings(memory_limit=50_000, user_limit=50_000)


def _kill_while_writing(home: Path, number: int, said: int) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.integration.learning.writing",
        str(home),
        str(number),
    ]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout
        for _ in range(said):
            assert process.stdout.readline()
        process.kill()


def test_nothing_is_torn_and_the_next_one_goes_on(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").ensure()
    for number in range(6):
        _kill_while_writing(home.root, number, 1 + number % 3)
        learning = open_learning(home, SETTINGS, os.environ)
        learning.apply(
            MemoryChange((MemoryEdit("add", f"after {number}"),)), Provenance("user")
        )
        memory = [
            line
            for line in learning.memory.read("memory").splitlines()
            if line.startswith("- n")
        ]
        user = [
            line
            for line in learning.memory.read("user").splitlines()
            if line.startswith("- n")
        ]
        assert memory == user
        for skill in learning.skills.all():
            if skill.origin == "agent":
                assert learning.skills.view(skill.name, "notes.md") == "whole\n"
    checked = subprocess.run(
        ["git", "--git-dir", home.root / "learning" / "history.git", "fsck", "--full", "--no-dangling"],
        capture_output=True, check=False,
    )  # fmt: skip
    assert (checked.returncode, checked.stdout) == (0, b"")
