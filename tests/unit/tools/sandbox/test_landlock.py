"""Granting reads around what is hidden. (That the kernel holds to it is tested with real commands.)"""

import os
from pathlib import Path

from hermes.tools.sandbox.landlock import around


def test_a_folder_without_secrets_is_granted_whole() -> None:
    listed: list[Path] = []
    assert list(around(Path("/a/b"), [Path("/a/c")], listed)) == [Path("/a/b")]
    assert listed == []


def test_a_secret_itself_is_not_granted() -> None:
    assert list(around(Path("/a"), [Path("/a")], [])) == []


def test_a_folder_with_a_secret_is_granted_by_its_other_parts() -> None:
    here = Path(os.path.realpath(__file__))
    listed: list[Path] = []
    granted = list(around(here.parent, [here], listed))
    assert here not in granted
    assert here.parent not in granted
    assert listed == [here.parent]
    assert here.with_name("test_seccomp.py") in granted
