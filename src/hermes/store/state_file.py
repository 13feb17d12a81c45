"""What backups and `hermes doctor` need of `state.db` as a file. A backup always holds such a file."""

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
]
