"""The temporary folder of one session: on disk, private, the same path inside the sandbox and outside."""

import contextlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path

_PLACES = (Path("/var/tmp"),)  # noqa: S108 - on disk, where /tmp often is memory


class TemporaryFolder:
    """Made on first use, deleted at the end; one that a killed Hermes left is deleted by the next."""

    def __init__(self, place: Path | None = None) -> None:
        self._place = place
        self._path: Path | None = None
        self._delete: Callable[[], object] = lambda: None

    def path(self) -> Path:
        """The folder."""
        if self._path is None or not self._path.is_dir():
            place = self._place or next((place for place in _PLACES if os.access(place, os.W_OK | os.X_OK)), None)
            place = (place or Path(tempfile.gettempdir())).resolve()
            _tidy(place)
            self._path = Path(tempfile.mkdtemp(prefix=f"hermes-{os.getuid()}-{os.getpid()}-", dir=place))
            self._delete = weakref.finalize(self, shutil.rmtree, self._path, ignore_errors=True)
        return self._path

    def close(self) -> None:
        """Deletes it."""
        self._delete()
        self._path = None


def _tidy(place: Path) -> None:
    """Deletes folders whose process is gone."""
    for folder in place.glob(f"hermes-{os.getuid()}-*-*"):
        pid = folder.name.split("-")[2]
        with contextlib.suppress(OSError):
            if pid.isdigit() and folder.lstat().st_uid == os.getuid() and not Path("/proc", pid).exists():
                shutil.rmtree(folder, ignore_errors=True)
