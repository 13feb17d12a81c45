"""The copies of Hermes on this machine: the running one, the link that starts it, and the folder for new ones."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from hermes import __version__
from hermes.errors import HermesError, Refused
from hermes.primitives.file_lock import FileLock
from hermes.primitives.files import PRIVATE_FILE, make_private_folder, replace_file
from hermes.text.translation import to_translate, translator

t = translator(__name__)


_KEPT_VERSIONS = 2  # besides the current one
_NO_LINK = to_translate(
    "Make a link first: make install in its folder, or: ln -s {program} ~/.local/bin/hermes\n"
    "If pip, pipx or uv installed Hermes, you can also use that program."
)


class UpdateRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The last update: the version it replaced, and the backups it made."""

    version: str
    program: str
    previous_version: str
    previous_program: str
    backups: dict[str, str] = {}
    """By home folder."""
    schemas: dict[str, int] = {}
    """The version of each home's session log before the update."""
    at: float = 0.0


class InstalledCopies:
    """The copies of one user, and the link that selects one of them."""

    def __init__(self, environment: Mapping[str, str], user_home: Path) -> None:
        data = environment.get("XDG_DATA_HOME") or str(user_home / ".local/share")
        self.root = Path(data) / "hermes"
        self._environment = environment
        self._user_home = user_home
        self.program = Path(sys.prefix) / "bin" / "hermes"
        """The program of the running copy."""
        self.version = __version__

    @property
    def versions(self) -> Path:
        """The folder for environments that updates create."""
        return self.root / "versions"

    @property
    def backups(self) -> Path:
        """The folder for backups of whole homes that updates make."""
        return self.root / "backups"

    def link(self) -> Path:
        """Returns the link that starts this copy. Raises Refused if it is started in another way."""
        folders = filter(None, self._environment.get("PATH", "").split(os.pathsep))
        candidates = [Path(folder, "hermes") for folder in folders]
        for one in (*candidates, self._user_home / ".local/bin/hermes"):
            if one.is_symlink() and one.resolve() == self.program.resolve():
                return one
        raise Refused(
            t.later(
                "This copy of Hermes is not started through a link, so it can't be switched or removed."
            ),
            hint=t.marked_later(_NO_LINK, program=self.program),
        )

    def lock(self) -> FileLock:
        """Returns the held lock for updates. Raises Refused if another process holds it."""
        lock = FileLock(make_private_folder(self.root) / "update.lock")
        if not lock.try_acquire():
            lock.close()
            raise Refused(t.later("Another process is updating Hermes."))
        return lock

    def switch(self, link: Path, program: Path) -> None:
        """Makes the link start another copy, atomically."""
        draft = link.with_name(f".{link.name}.{os.getpid()}.new")
        draft.unlink(missing_ok=True)
        try:
            draft.symlink_to(program)
            draft.replace(link)
        finally:
            draft.unlink(missing_ok=True)

    def new_folder(self, version: str) -> Path:
        """Returns an unused folder for an environment."""
        make_private_folder(self.versions)
        for number in range(1, 1000):
            folder = self.versions / (version if number == 1 else f"{version}.{number}")
            if not folder.exists():
                return folder
        raise HermesError(
            t.later(
                "There are too many copies of {version} in {versions}.",
                version=version,
                versions=self.versions,
            )
        )

    def backup_folder(self, stamp: str) -> Path:
        """Returns the folder for the backups of an update."""
        return make_private_folder(self.backups / stamp)

    def record(self) -> UpdateRecord | None:
        """Returns the last update; None if there was none."""
        try:
            return msgspec.json.decode(self._record.read_bytes(), type=UpdateRecord)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as error:
            raise HermesError(
                t.later(
                    "{record} is damaged: {error}.", record=self._record, error=error
                )
            ) from error

    def write_record(self, record: UpdateRecord | None) -> None:
        """Records the last update; None deletes the record."""
        if record is None:
            self._record.unlink(missing_ok=True)
            return
        content = msgspec.json.format(msgspec.json.encode(record), indent=2)
        replace_file(self._record, content, mode=PRIVATE_FILE)

    def clear_up(self, record: UpdateRecord) -> list[Path]:
        """Removes old environments and backups, except those of the last update. Returns what was removed."""
        kept = {Path(record.program).parents[1], Path(record.previous_program).parents[1]}  # fmt: skip
        kept |= {Path(one).parent for one in record.backups.values()}
        removed: list[Path] = []
        for parent in (self.versions, self.backups):
            found = list(parent.iterdir()) if parent.is_dir() else []
            found.sort(key=lambda one: one.stat().st_mtime, reverse=True)
            old = [one for one in found if one not in kept][_KEPT_VERSIONS - 1 :]
            for one in old:
                shutil.rmtree(one, ignore_errors=True)
            removed += old
        return removed

    @property
    def _record(self) -> Path:
        return self.root / "update.json"
