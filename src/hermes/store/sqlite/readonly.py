"""Reads a database whose folder is read-only.

SQLite needs an index beside a write-ahead log. If a crash left the log without one, and none can be
created, both files are copied to a temporary folder and read there.
"""

from pathlib import Path

from hermes.errors import StoreError
from hermes.store.sqlite.connection import has_wal
from hermes.store.sqlite.database_file import companions
from hermes.text.translation import translator

t = translator(__name__)


def needs_copy(path: Path) -> bool:
    """Returns whether SQLite can't read this database in place, although all its bytes can be read."""
    return has_wal(path) and not companions(path)[2].exists()


class ReadableCopy:
    """A temporary copy for reading."""

    def __init__(self, path: Path) -> None:
        import shutil  # here, because hardly any database is read like this
        import tempfile

        try:
            self._folder = tempfile.TemporaryDirectory(prefix="hermes-")
            self.path = Path(self._folder.name) / path.name
            for source, target in zip(
                companions(path)[:2], companions(self.path), strict=False
            ):
                shutil.copyfile(source, target)
        except OSError as error:
            hint = "Nothing was changed. Copy the folder to a place you can write to, and set HERMES_HOME to it."
            reason = f"its folder is read-only, and no readable copy could be made ({error.strerror})"
            raise StoreError(
                t.later("cannot open {path}: {reason}", path=path, reason=reason),
                hint=hint,
            ) from error

    def close(self) -> None:
        """Removes the copy."""
        self._folder.cleanup()
