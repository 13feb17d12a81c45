"""Whatever git starts in a folder that commands can write to, it starts in the sandbox."""

import os
import subprocess
from pathlib import Path

import pytest

from hermes.app.confined_git import run_confined_git


def test_what_a_repository_names_cannot_write_outside_it(tmp_path: Path) -> None:
    folder, outside = tmp_path / "tree", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LC_ALL": "C"}
    subprocess.run(["git", "init", "-q", str(folder)], env=environ, check=True)
    (folder / ".gitattributes").write_text("* filter=x\n")
    (folder / "file").write_text("words")
    clean = f"sh -c 'touch {outside}/ran; touch {folder}/inside; cat'"
    subprocess.run(
        ["git", "-C", str(folder), "config", "filter.x.clean", clean],
        env=environ,
        check=True,
    )
    done = run_confined_git(
        ["git", "-C", str(folder), "add", "-A"], folder, environ, 60.0
    )
    if done is None:
        pytest.skip("there is no bubblewrap here")
    assert done.returncode == 0, done.stderr
    assert (folder / "inside").exists(), "the filter ran"
    assert not (outside / "ran").exists()
