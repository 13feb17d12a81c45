"""Functions on `state.db` as a file, for backups and `hermes doctor`. A backup always contains such a file."""

from contextlib import closing
from pathlib import Path

from hermes.store.sqlite.connection import connect
from hermes.store.sqlite.database_file import DatabaseState, inspect
from hermes.store.sqlite.lock import DatabaseLock
from hermes.store.sqlite.redacted_copy import redact_copy
from hermes.store.sqlite.schema import APPLICATION_ID, MIGRATIONS

__all__ = [
    "APPLICATION_ID",
    "MIGRATIONS",
    "DatabaseLock",
    "DatabaseState",
    "inspect",
    "redact_copy",
    "schema_version",
]
_BUSY_TIMEOUT_S = 5.0


def schema_version(path: Path) -> int:
    """Returns the schema version of a session log; 0 if there is none. This process must not have the file open."""
    if not path.is_file():
        return 0
    with closing(
        connect(path, busy_timeout=_BUSY_TIMEOUT_S, change=False, read_only=True)
    ) as connection:
        return int(connection.execute("PRAGMA user_version").get)
