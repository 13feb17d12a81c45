"""A new version that fails at a step: the old one goes on, and nothing is left behind.

The new version is a script around this Hermes that fails where a test says so; real wheels are in
tests/e2e/test_update_command.py.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes import __version__
from hermes.app.updates.copies import InstalledCopies
from hermes.app.updates.environment import EnvironmentBuilder
from hermes.app.updates.gateways import kept_restart_requests
from hermes.app.updates.new_version import NewVersion, find_version, version_key
from hermes.app.updates.updater import Updater
from hermes.errors import HermesError, NotFound, Refused, UsageError
from hermes.schema.events import SessionCreated
from hermes.settings import Home
from hermes.store import open_store
from hermes.store.state_file import MIGRATIONS
from hermes.testing.installed import executable

NEW = NewVersion(version="9.0.0", source=Path("/nowhere"), is_wheel=True)
_SCRIPT = """\
#!/bin/sh
case "$*" in
--version) echo hermes 9.0.0; exit 0 ;;
doctor*) [ "{breaks}" = doctor ] && {{ echo '{findings}'; exit 1; }} ;;
-z*) [ "{breaks}" = turn ] && exit 1 ;;
"store status") ls "$HERMES_HOME" "$HERMES_HOME/gateway" > "{seen}"; [ "{breaks}" = "first start" ] && exit 1
    [ "{breaks}" = migration ] && {python} -c '{migrate}' "$HERMES_HOME/state.db" && exit 1 ;;
"gateway restart") if [ "{breaks}" = gateway ]; then
    {program} "$@" && echo '{dies}' > "$HERMES_HOME/gateway/restart.json"
    exit
fi ;;
esac
exec {program} "$@"
"""


_MIGRATE = 'import apsw, sys; apsw.Connection(sys.argv[1]).pragma("user_version", 1000)'
_DIES = '{"command": ["/bin/false"], "at": 9e9}'
_FINDINGS = '{"findings": [{"check": "new", "status": "fail", "message": "bad"}]}'


class Bench:
    """A home, a link to this Hermes, and an update to a script."""

    def __init__(self, folder: Path, breaks: str) -> None:
        self._breaks = breaks
        self.environment = {
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "HOME": str(folder),
            "XDG_DATA_HOME": str(folder / "data"),
        }
        self.home = Home(folder / "home")
        self.home.root.mkdir()
        with open_store(self.home.state) as store:
            store.log.create("kept", SessionCreated(surface="cli"))
        (self.home.root / "active_profile").write_text("gone\n")  # of no importance
        self.link = folder / "bin" / "hermes"
        self.link.parent.mkdir()
        self.link.symlink_to(executable())
        self.copies = InstalledCopies(self.environment, folder)
        self.told: list[str] = []
        self.seen = folder / "seen"
        """The files of the home at the first start of the new version."""
        self.updater = Updater(
            self.home, self.copies, self.environment, self.told.append, build=self.build
        )

    def build(self, _new: NewVersion, folder: Path) -> Path:
        (folder / "bin").mkdir(parents=True)
        program = folder / "bin" / "hermes"
        text = _SCRIPT.format(
            breaks=self._breaks,
            program=executable(),
            findings=_FINDINGS,
            dies=_DIES,
            python=sys.executable,
            migrate=_MIGRATE,
            seen=self.seen,
        )
        program.write_text(text)
        program.chmod(0o755)
        return program

    def update(self) -> None:
        assert self.copies.link() == self.link
        self.updater.update(NEW, self.link, "stamp", 1.0)


@pytest.mark.parametrize(
    ("breaks", "words"),
    [
        ("doctor", "new problems: new: bad"),
        ("turn", "A turn with it fails"),
        ("first start", "the old version was put back"),
    ],
)
def test_a_version_that_fails_at_a_step_changes_nothing(
    tmp_path: Path, breaks: str, words: str
) -> None:
    bench = Bench(tmp_path, breaks)
    with pytest.raises(HermesError, match=words):
        bench.update()
    assert bench.link.resolve() == executable().resolve()
    assert bench.copies.record() is None
    assert list(bench.copies.versions.iterdir()) == []
    assert list(bench.copies.root.rglob("*.tar.gz")), "the backup is kept"


def test_a_rollback_that_is_killed_leaves_a_record_that_an_undo_finishes(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, "first start")
    record, seen = bench.copies.root / "update.json", tmp_path / "seen.json"
    before = tmp_path / "before" / "bin" / "hermes"
    before.parent.mkdir(parents=True)
    before.write_text(
        f'#!/bin/sh\n[ "$*" = "gateway restart" ] && cp {record} {seen}\nexec {executable()} "$@"\n'
    )
    before.chmod(0o755)
    bench.link.unlink()
    bench.link.symlink_to(before)
    with pytest.raises(HermesError, match="the old version was put back"):
        bench.updater.update(NEW, bench.link, "stamp", 1.0)
    assert bench.copies.record() is None
    shutil.copy(seen, record)  # as a kill in the middle of the rollback leaves it
    assert bench.updater.undo(bench.link, restore_backup=False).version == "9.0.0"
    assert bench.link.resolve() == before
    assert bench.copies.record() is None


def test_a_gateway_that_waits_goes_on_although_the_backup_could_not_be_restored(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path).ensure(tmp_path / "gateway")
    wish = tmp_path / "gateway" / "restart.json"
    wish.write_text("{}")

    def restore() -> None:
        with kept_restart_requests(home):
            wish.unlink()
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        restore()
    assert wish.read_text() == "{}"


@contextlib.contextmanager
def running_gateway(bench: Bench) -> Iterator[subprocess.Popen[str]]:
    """A gateway that serves the API for the home of an update."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {**bench.environment, **bench.home.variables}
    command = [str(executable()), "gateway", "run"]
    for arguments in (
        ("api", "key", "add", "one"),
        ("config", "set", "api.port", str(port)),
    ):
        subprocess.run([command[0], *arguments], env=environment, check=True, capture_output=True, timeout=60)  # fmt: skip
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        reaper = threading.Thread(target=process.wait)
        reaper.start()
        try:
            assert process.stdout
            assert "is running" in process.stdout.readline()
            yield process
        finally:
            process.terminate()
            reaper.join(timeout=60)


@pytest.mark.parametrize("breaks", ["first start", "migration"])
def test_gateways_wait_during_the_first_start_and_go_on_as_the_old_version_if_it_fails(
    tmp_path: Path, breaks: str
) -> None:
    bench = Bench(tmp_path, breaks)
    with running_gateway(bench) as process:
        with pytest.raises(HermesError, match="the old version was put back"):
            bench.update()
        assert "restart.json" in bench.seen.read_text().split()
        assert "status.json" not in bench.seen.read_text().split()
        said = iter(process.stdout or ())
        assert any("The gateway starts again." in line for line in said)
        assert any("The gateway is running." in line for line in said)
        assert process.poll() is None
    with open_store(bench.home.state) as store:
        assert store.log.events("kept")


def test_a_gateway_that_does_not_start_again_brings_the_old_version_back(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, "gateway")
    with (
        running_gateway(bench),
        pytest.raises(HermesError, match="gateway did not start again"),
    ):
        bench.update()
    assert bench.link.resolve() == executable().resolve()
    assert bench.copies.record() is None
    assert "Start it with: hermes gateway run" in bench.told[-1]


def test_two_updates_at_once_are_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "")
    with bench.copies.lock(), pytest.raises(Refused, match="Another process"):
        bench.update()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB where updates put their data."""
    folder = tmp_path / "data"
    folder.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    command = [mount, "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("this machine mounts nothing")
    yield folder
    subprocess.run([shutil.which("umount") or "umount", str(folder)], check=True)


@pytest.mark.usefixtures("small_disk")
def test_a_disk_that_fills_up_leaves_the_old_version_and_no_half_of_a_new_one(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, "")
    updater = Updater(
        bench.home, bench.copies, bench.environment, bench.told.append, min_free_bytes=0
    )
    with pytest.raises(HermesError, match=r"[Nn]o space left") as failed:
        updater.update(NEW, bench.link, "stamp", 1.0)
    assert "Nothing was changed" in failed.value.hint
    assert bench.link.resolve() == executable().resolve()
    assert list(bench.copies.versions.iterdir()) == []
    with pytest.raises(Refused, match="an update needs"):
        bench.update()


def test_a_write_that_finds_the_disk_full_changes_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "")

    def build(_new: NewVersion, folder: Path) -> Path:
        with Path("/dev/full").open("w") as file:  # as on a full disk
            file.write("x" * 100_000)
        return folder

    updater = Updater(
        bench.home, bench.copies, bench.environment, bench.told.append, build=build
    )
    with pytest.raises(HermesError, match="no space left"):
        updater.update(NEW, bench.link, "stamp", 1.0)
    assert bench.link.resolve() == executable().resolve()


def test_a_damaged_wheel_leaves_no_environment(tmp_path: Path) -> None:
    wheel = tmp_path / "hermes_companion-9.0.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(
            "hermes_companion-9.0.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: hermes-companion\nVersion: 9.0.0\n",
        )
    new = find_version(wheel)
    with pytest.raises(HermesError, match="installation failed"):
        EnvironmentBuilder(dict(os.environ)).build(new, tmp_path / "env")
    assert not (tmp_path / "env").exists()


def test_only_our_own_distribution_is_taken(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "hermes-agent"\n')
    with pytest.raises(UsageError, match="not 'hermes-companion'"):
        find_version(tmp_path)
    with pytest.raises(NotFound):
        find_version(tmp_path / "gone")


@pytest.mark.parametrize("version", ["../../out", "/out", "9\x1b[2J", ""])
def test_a_version_that_is_no_folder_name_is_refused(
    tmp_path: Path, version: str
) -> None:
    wheel = tmp_path / "hermes_companion-9.0.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(
            "hermes_companion-9.0.0.dist-info/METADATA",
            f"Metadata-Version: 2.1\nName: hermes-companion\nVersion: {version}\n",
        )
    with pytest.raises(HermesError, match="a version that is none"):
        find_version(wheel)


def test_this_checkout_is_a_version_with_a_changelog() -> None:
    found = find_version(Path(__file__).parents[2])
    assert (found.version, found.is_wheel) == (__version__, False)
    assert "0.1.0" in found.changes_since("0.0.9")
    assert found.schema == len(MIGRATIONS)


def test_the_changelog_is_shown_up_to_the_installed_version() -> None:
    text = "# Changelog\n\n## 0.3.0\n\n- c\n\n## 0.2.0\n\n- b\n\n## 0.1.0\n\n- a\n"
    new = NewVersion(version="0.3.0", source=Path(), is_wheel=True, changelog=text)
    assert new.changes_since("0.1.0") == "## 0.3.0\n\n- c\n\n## 0.2.0\n\n- b"
    assert new.changes_since("0.3.0") == ""


def test_versions_are_compared_by_their_numbers() -> None:
    ordered = ["0.9.9", "0.10.0rc1", "0.10.0", "0.10.1", "1.0a1", "1.0", "1.0.1"]
    assert sorted(ordered, key=version_key) == ordered
    assert version_key("1.0") == version_key("1.0.0")


def test_a_copy_without_a_link_is_left_alone(tmp_path: Path) -> None:
    copies = InstalledCopies({"PATH": str(tmp_path)}, tmp_path)
    assert copies.program.parent == Path(sys.prefix) / "bin"
    with pytest.raises(Refused, match="is not started through a link"):
        copies.link()
