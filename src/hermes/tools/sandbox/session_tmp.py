"""The temporary folder of one session: on disk, private, and at the same path inside and outside the sandbox."""

import contextlib
import os
import shutil
import weakref
from collections.abc import Callable
from pathlib import Path

_PLACES = (Path("/var/tmp"), Path("/tmp"))  # noqa: S108 - the first is on disk, where the second often is memory


class TemporaryFolder:
    """A folder that is created on first use and deleted at the end.

    Folders left by a killed Hermes are deleted by the next one. With `keeps`, the content may be a person's work, so
    the folder is deleted only if it is empty.
    """

    def __init__(self, place: Path | None = None, *, keeps: bool = False) -> None:
        self._place = place
        self._keeps = keeps
        self._path: Path | None = None
        self._delete: Callable[[], object] = _delete_nothing

    def path(self) -> Path:
        """Returns the folder, creating it if necessary."""
        if self._path is None or not self._path.is_dir():
            places = (self._place,) if self._place else _PLACES
            place = next(
                (place for place in places if os.access(place, os.W_OK | os.X_OK)),
                places[-1],
            ).resolve()
            _tidy(place)
            owner = (
                f"undone-{os.getuid()}"
                if self._keeps
                else f"{os.getuid()}-{os.getpid()}"
            )
            self._path = place / f"hermes-{owner}-{os.urandom(8).hex()}"
            self._path.mkdir(mode=0o700)
            self._delete = weakref.finalize(
                self, _delete, self._path, keeps=self._keeps
            )
        return self._path

    def made(self) -> tuple[Path, ...]:
        """Returns the folder if it exists."""
        return () if self._path is None else (self._path,)

    def close(self) -> None:
        """Deletes the folder."""
        self._delete()
        self._path = None


def _delete(folder: Path, *, keeps: bool) -> None:
    if keeps:
        with contextlib.suppress(OSError):
            folder.rmdir()
    else:
        shutil.rmtree(folder, ignore_errors=True)


def _tidy(place: Path) -> None:
    """Deletes folders of processes that have ended."""
    for folder in place.glob(f"hermes-{os.getuid()}-*-*"):
        pid = folder.name.split("-")[2]
        with contextlib.suppress(OSError):
            if (
                pid.isdigit()
                and folder.lstat().st_uid == os.getuid()
                and not Path("/proc", pid).exists()
            ):
                shutil.rmtree(folder, ignore_errors=True)


def _delete_nothing() -> None:
    """Does nothing, because there is no folder yet."""
