"""Opens `state.db`: creates, migrates or rebuilds it as needed, or reports why it can't."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

import apsw

from hermes.core.ports import Clock, SystemClock
from hermes.errors import StoreBusy, StoreDamaged, StoreError
from hermes.primitives.files import make_private
from hermes.store.leases import Lease
from hermes.store.session_log import SessionLog
from hermes.store.sqlite.connection import has_wal, log, suspect, suspicion
from hermes.store.sqlite.database import Database
from hermes.store.sqlite.database_file import (
    DatabaseFinding,
    DatabaseState,
    companions,
    copy_whole,
    create,
    inspect,
    migrate,
)
from hermes.store.sqlite.integrity_check import check
from hermes.store.sqlite.lock import DatabaseLock, noted_sound
from hermes.store.sqlite.message_search import MessageSearch, index_step
from hermes.store.sqlite.recovery import (
    Incomplete,
    Recovery,
    finish,
    recover,
    unfinished,
)
from hermes.store.sqlite.schema import MIGRATIONS
from hermes.store.store import IntegrityReport, Store
from hermes.text.translation import translator

t = translator(__name__)


_EXCLUSIVE_LOCK_TIMEOUT_S = 10.0  # for other processes to close the database
_MAX_OPEN_ATTEMPTS = 5
_CLOCK_STEP_S = 1.0  # for this long a file counts as just changed: its clock is coarse


def needs_copy(path: Path) -> bool:
    """Returns whether SQLite can't read this database in place, although all its bytes can be read."""
    return has_wal(path) and not companions(path)[2].exists()


class ReadableCopy:
    """A temporary copy, for reading a database whose folder is read-only.

    SQLite needs an index beside a write-ahead log. If a crash left the log without one, and none can be created, both
    files are copied to a temporary folder and read there.
    """

    def __init__(self, path: Path) -> None:
        import shutil  # imported here, because hardly any database is read like this
        import tempfile

        try:
            self._folder = tempfile.TemporaryDirectory(prefix="hermes-")
            self.path = Path(self._folder.name) / path.name
            for source, target in zip(
                companions(path)[:2], companions(self.path), strict=False
            ):
                shutil.copyfile(source, target)
        except OSError as error:
            hint = t.later(
                "Nothing was changed. Copy the folder to a place you can write to, and set HERMES_HOME to "
                "it."
            )
            reason = t.later(
                "its folder is read-only, and no readable copy could be made ({strerror})",
                strerror=error.strerror,
            )
            raise StoreError(
                t.later("cannot open {path}: {reason}", path=path, reason=reason),
                hint=hint,
            ) from error

    def close(self) -> None:
        """Removes the copy."""
        self._folder.cleanup()


class FileWatch:
    """Detects from the files of `state.db` whether another process may have written, mostly by times and sizes."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._stamp: tuple[int, ...] = ()

    async def wait(self, timeout_s: float) -> None:
        """Waits for the whole time, because files give no notification."""
        import asyncio  # a command that only reads the log never needs it

        await asyncio.sleep(timeout_s)

    def changed(self) -> bool:
        """Returns whether somebody may have written since the last call."""
        stamp, newest = _stamp(self._state)
        changed = stamp != self._stamp or time.time() - newest < _CLOCK_STEP_S
        self._stamp = stamp
        return changed

    def forget(self) -> None:
        """Makes the next check report a change, because the change was not read."""
        self._stamp = ()

    def close(self) -> None:
        """Does nothing: there is nothing to close."""


def _stamp(state: Path) -> tuple[tuple[int, ...], float]:
    """Returns the times and sizes of the database's files, and the newest of the times."""
    stamp: list[int] = []
    newest = 0.0
    for path in (state, state.with_name(state.name + "-wal")):
        try:
            info = path.stat()
        except FileNotFoundError:  # there is no write-ahead log while nobody writes
            continue
        stamp += [info.st_mtime_ns, info.st_size]
        newest = max(newest, info.st_mtime)
    return tuple(stamp), newest


class SqliteStore(Store):
    """The store in `state.db`."""

    engine = "SQLite"

    def __init__(
        self,
        database: Database,
        held: DatabaseLock | ReadableCopy | None,
        clock: Clock,
        recovery: Recovery | None = None,
        incomplete: Incomplete | None = None,
    ) -> None:
        super().__init__(
            database, SessionLog(database, clock), MessageSearch(database), clock
        )
        self._database = database
        self._held = held
        self.recovery = recovery
        self.incomplete = incomplete

    # pyrefly: ignore[missing-override-decorator]
    def share(self) -> None:
        self._database.share()

    def watch(
        self,
        session: str = "",  # noqa: ARG002 - a port
        lease: Lease | None = None,  # noqa: ARG002
        *,
        is_read_next: bool = False,  # noqa: ARG002
    ) -> FileWatch:
        return FileWatch(self._database.path)

    def describe(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        size = sum(
            part.stat().st_size
            for part in companions(self._database.path)[:2]
            if part.exists()
        )
        details = (
            ("version", apsw.sqlite_lib_version()),
            ("schema", str(len(MIGRATIONS))),
            ("size", f"{size / 1024**2:,.1f} MiB"),
        )
        return str(self._database.path), details

    def check(self) -> IntegrityReport:
        """Checks every page and row. After a problem the next open rebuilds the database."""
        report = self._database.read(check)
        if report.problems:
            suspect(self._database.path)
        return report

    def copy(self, target: Path) -> None:
        copy_whole(self._database.path, target)

    def close(self) -> None:
        is_as_opened = self._is_as_opened()
        self._database.close()
        if isinstance(self._held, DatabaseLock) and is_as_opened:
            self._held.note_sound()  # only this process has written to it, on closing
        if self._held is not None:
            self._held.close()

    def _is_as_opened(self) -> bool:
        """Returns whether the file is still the one found sound on opening: nothing was moved into it."""
        path = self._database.path
        return noted_sound(path) and not suspicion(path).exists()


def exists(path: Path) -> bool:
    """Returns whether there is a database, or remains of one. Creates nothing."""
    return any(part.exists() for part in companions(path)[:2]) or bool(unfinished(path))


def open_store(
    path: Path,
    *,
    clock: Clock | None = None,
    busy_timeout: float = 30.0,
    migrations: Sequence[str] = MIGRATIONS,
) -> SqliteStore:
    """Opens the database at `path`, in a folder that exists. `Store.recovery` is set if it had to
    be rebuilt.

    If it can be read but not written, every write is refused; `Store.incomplete` is set if its last
    rows are missing.
    """
    clock = clock or SystemClock()
    if path.is_file() and not (
        os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    ):
        return _open_to_read(path, clock, busy_timeout, migrations)
    try:
        lock = DatabaseLock(path)
    except OSError as error:
        if path.is_file():
            return _open_to_read(path, clock, busy_timeout, migrations)
        hint = t.later("Check that the folder exists and that you may write to it.")
        raise StoreError(
            t.later(
                "cannot open {path}: {strerror}", path=path, strerror=error.strerror
            ),
            hint=hint,
        ) from error
    try:
        return _Opening(path, lock, clock, busy_timeout, migrations).open()
    except BaseException:
        lock.close()
        raise


def _open_to_read(
    path: Path, clock: Clock, busy_timeout: float, migrations: Sequence[str]
) -> SqliteStore:
    """Opens a sound, current file that can't be written. It needs no lock: nothing here changes the
    file.
    """
    if not os.access(path, os.R_OK):
        hint = t.later("Check the permissions of the file and its folder.")
        raise StoreError(
            t.later("cannot open {path}: you may not read it", path=path), hint=hint
        )
    copied = ReadableCopy(path) if needs_copy(path) else None
    source = copied.path if copied else path
    try:
        found = inspect(
            source, version=len(migrations), busy_timeout=busy_timeout, read_only=True
        )
        incomplete = _require_readable(found, path, len(migrations))
        database = Database(
            source, busy_timeout=busy_timeout, read_only=True, shown=path
        )
    except BaseException:
        if copied is not None:
            copied.close()
        raise
    return SqliteStore(database, copied, clock, incomplete=incomplete)


def _require_readable(
    found: DatabaseFinding, path: Path, version: int
) -> Incomplete | None:
    """Raises if the file needs a repair or migration before use; reports missing last rows."""
    if found.state is DatabaseState.CURRENT:
        return None
    if found.lost_rows and found.version == version:
        return Incomplete(found.detail)
    what = t.later("was written by an older Hermes")
    if found.state is DatabaseState.DAMAGED:
        what = t.later("is damaged ({detail})", detail=found.detail)
    hint = t.later(
        "Nothing was changed. Copy the home to a place you can write to, and set HERMES_HOME to it."
    )
    raise StoreError(
        t.later(
            "{path} {what}, and Hermes can't write here to fix it", path=path, what=what
        ),
        hint=hint,
    )


class _Opening:
    """Opens a file for writing. Any damage, whenever it is found, leads to the same repair."""

    def __init__(
        self,
        path: Path,
        lock: DatabaseLock,
        clock: Clock,
        busy_timeout: float,
        migrations: Sequence[str],
    ) -> None:
        self._path = path
        self._lock = lock
        self._clock = clock
        self._busy_timeout = busy_timeout
        self._migrations = migrations

    def open(self) -> SqliteStore:
        """Returns the open store, with the lock shared.

        Everything is checked again once the lock is shared: other processes may have come in
        between.
        """
        recovery = None
        for _ in range(_MAX_OPEN_ATTEMPTS):
            self._lock.share(timeout=self._busy_timeout)
            if not unfinished(self._path) and (database := self._opened()):
                suspicion(self._path).unlink(missing_ok=True)
                make_private(*companions(self._path))
                self._lock.note_sound()
                if recovery is not None:
                    log.warning("%s", recovery)
                return SqliteStore(database, self._lock, self._clock, recovery)
            self._lock.own(timeout=min(self._busy_timeout, _EXCLUSIVE_LOCK_TIMEOUT_S))
            recovery = self._repaired() or recovery
        raise StoreBusy(
            t.later("{path} is being changed by other processes", path=self._path),
            hint=t.later("Nothing was changed. Try again."),
        )

    def _opened(self) -> Database | None:
        """Returns the database, if the file is sound and current."""
        try:
            return (
                self._database()
                if self._inspected().state is DatabaseState.CURRENT
                else None
            )
        except StoreDamaged:
            return None

    def _repaired(self) -> Recovery | None:
        """Makes a missing, old or damaged file usable. The caller owns the lock."""
        if unfinished(self._path):
            self._lock.forget_last_row()
            finish(self._path)
        try:
            found = self._inspected()
            if found.state is DatabaseState.OLD:
                migrate(
                    self._path,
                    self._migrations,
                    found.version,
                    busy_timeout=self._busy_timeout,
                )
            elif (
                found.state is DatabaseState.CURRENT
            ):  # finds the damage, unless another process has repaired it meanwhile
                self._database().close()
        except StoreDamaged as damaged:
            found = DatabaseFinding(
                DatabaseState.DAMAGED, detail=str(damaged.__cause__)
            )
        if found.state is DatabaseState.MISSING:
            self._lock.forget_last_row()
            create(self._path, self._migrations)
        elif found.state is DatabaseState.DAMAGED:
            self._lock.forget_last_row()
            return recover(self._path, self._migrations, found, self._clock.now())
        return None

    def _inspected(self) -> DatabaseFinding:
        return inspect(
            self._path, version=len(self._migrations), busy_timeout=self._busy_timeout
        )

    def _database(self) -> Database:
        return Database(
            self._path,
            busy_timeout=self._busy_timeout,
            on_idle=index_step,
            on_commit=self._lock.note_last_row,
        )
