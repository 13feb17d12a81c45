"""`hermes update` with two real versions, each installed from a wheel: there, back again, and gone."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.fakes.hermes_wheels import as_version, built_wheel

from hermes.app.updates.environment import EnvironmentBuilder
from hermes.app.updates.new_version import find_version
from hermes.schema.events import SessionCreated
from hermes.schema.messages import UserMessage
from hermes.store import open_store

_TIMEOUT_S = 240.0
_QUICK = {"PIP_NO_COMPILE": "1"}  # for the tests' time
_MIGRATES = 'MIGRATIONS = (*MIGRATIONS, "CREATE TABLE of_the_future (id INTEGER);")\n'


class Machine:
    """A user who starts Hermes by a link."""

    def __init__(self, folder: Path, program: Path) -> None:
        self.folder = folder
        self.link = folder / ".local/bin/hermes"
        self.link.parent.mkdir(parents=True)
        self.link.symlink_to(program)
        self.home = folder / ".hermes"
        self.home.mkdir()
        with open_store(self.home / "state.db") as store:
            store.log.create("kept", SessionCreated(surface="cli"))
            store.log.append("kept", UserMessage(text="remember me"))

    def run(self, *arguments: str, code: int = 0) -> str:
        """Runs Hermes; returns everything that it printed."""
        environment = {
            "PATH": f"{self.link.parent}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            **_QUICK,
        }
        done = subprocess.run(
            [str(self.link), *arguments],
            env=environment, cwd=self.folder, capture_output=True, text=True,
            timeout=_TIMEOUT_S, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return " ".join((done.stdout + done.stderr).split())


@pytest.mark.timeout(600)
def test_an_update_says_what_changes_switches_and_can_be_undone(tmp_path: Path) -> None:
    wheel = built_wheel(tmp_path)
    (tmp_path / "old").mkdir()
    first = find_version(as_version(wheel, "0.1.0", tmp_path / "old"))
    builder = EnvironmentBuilder({**os.environ, **_QUICK})
    machine = Machine(tmp_path / "user", builder.build(first, tmp_path / "copy"))
    changed = {"hermes/store/sqlite/schema.py": _MIGRATES}
    new = str(as_version(wheel, "0.2.0", tmp_path, changed))
    data = machine.folder / ".local/share/hermes"

    assert "did not come from a package index" in machine.run("update", code=2)
    assert "new in 0.2.0" in machine.run("update", "--check", "--from", new)
    machine.run("update", "--from", new, code=3)  # nobody can be asked
    assert not (data / "versions").exists()

    told = machine.run("update", "--from", new, "--yes")
    assert "will be migrated from version" in told
    assert machine.run("--version") == "hermes 0.2.0"
    assert "remember me" in machine.run("sessions", "show", "kept")
    (backup,) = (data / "backups").rglob("*.tar.gz")
    assert backup.stat().st_mode & 0o077 == 0

    assert "--restore-backup" in machine.run("update", "--undo", code=3)
    machine.run("update", "--undo", "--restore-backup")
    assert machine.run("--version") == "hermes 0.1.0"
    assert "remember me" in machine.run("sessions", "show", "kept")
    assert list(machine.folder.glob(".hermes.before-*")), "what came since is kept"
    assert "no update to undo" in machine.run("update", "--undo", code=3)

    program = machine.link.resolve()
    kept = machine.run("uninstall", "--yes")
    assert f"Your data is still in {machine.home}." in kept
    assert f"Your data is still in {data / 'backups'}." in kept
    assert not machine.link.is_symlink()
    assert (machine.home / "state.db").exists()

    machine.link.symlink_to(program)
    machine.run("uninstall", "--with-home", "--yes")
    assert not machine.home.exists()
    assert not data.exists(), "backups hold the same data and keys"
