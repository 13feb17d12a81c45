"""Recovers a damaged `state.db`: the file is kept aside untouched, and its readable rows become a
new one.
"""

import time
from collections.abc import Sequence
from contextlib import closing
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import msgspec

from hermes.primitives.files import make_private, sync_folder
from hermes.schema.events import SessionCreated, SessionRecovered
from hermes.store.log_row import COLUMNS, Row
from hermes.store.log_row import draft as draft_of
from hermes.store.session_log import new_epoch, write_row
from hermes.store.sqlite.connection import connect, in_our_words, suspicion
from hermes.store.sqlite.database import insert_row
from hermes.store.sqlite.database_file import (
    DatabaseFinding,
    companions,
    create,
    settle,
)
from hermes.text.translation import translator

t = translator(__name__)

if TYPE_CHECKING:
    from hermes.store.sqlite.lost_rows import SessionHead

_DAMAGED, _REBUILT = ".damaged-", ".rebuilt-"

_SCRATCH = f"CREATE TEMP TABLE salvaged ({COLUMNS}, UNIQUE (session, epoch, seq) ON CONFLICT IGNORE)"
_COLLECT = f"INSERT INTO temp.salvaged VALUES ({', '.join('?' for _ in Row._fields)})"  # noqa: S608 - our own names
# A row's id gives its position among all sessions; its seq gives its position within one, even if the id is damaged.
_IN_ORDER = f"""
SELECT {COLUMNS} FROM temp.salvaged
JOIN (SELECT session AS newest, max(epoch) AS its_epoch FROM temp.salvaged GROUP BY session)
ON session = newest AND epoch = its_epoch
ORDER BY max(id) OVER (PARTITION BY session ORDER BY seq), session, seq
"""  # noqa: S608 - our own names


class _Kept(msgspec.Struct):
    """How many of a session's rows have been restored."""

    epoch: int
    old_epoch: int
    rows: int = 0
    head: int = 0
    used: float = 0.0
    """The time of its last row."""

    @property
    def lost(self) -> int:
        """Rows that must have existed, since later ones do."""
        return self.head - self.rows


class Recovery(msgspec.Struct, frozen=True):
    """The result of a recovery, for a person to read."""

    reason: str
    kept_aside: Path
    sessions: int
    rows: int
    lost: int  # known to be missing
    gone: str = ""  # why the total is unknown
    unread: tuple[str, ...] = ()  # other incomplete tables

    def __str__(self) -> str:
        """In English; `shown_reason` translates it."""
        text = t.logged(
            "The session database was damaged ({reason}); the damaged file is kept as {path}. "
            "What could be read is in a new database (rows: {rows}, sessions: {sessions}); {losses}.",
            reason=self.reason,
            path=self.kept_aside,
            rows=f"{self.rows:,}",
            sessions=f"{self.sessions:,}",
            losses=self._losses(),
        )
        if not self.unread:
            return text
        missing = t.logged(
            "Parts of these tables are missing: {names}.", names=", ".join(self.unread)
        )
        return f"{text} {missing}"

    def _losses(self) -> str:
        if self.gone and self.lost:
            return t.logged(
                "at least {count} row is missing, and how many in all can't be known: {why}",
                "at least {count} rows are missing, and how many in all can't be known: {why}",
                count=self.lost,
                why=self.gone,
            )
        if self.gone:
            return t.logged(
                "how many rows are missing can't be known: {why}", why=self.gone
            )
        if self.lost:
            return t.logged(
                "{count} row is known to be missing",
                "{count} rows are known to be missing",
                count=self.lost,
            )
        return t.logged("no row is known to be missing")


class Incomplete(msgspec.Struct, frozen=True):
    """Why a read-only database lacks some rows, for a person to read."""

    reason: str

    def __str__(self) -> str:
        """In English; `shown_reason` translates it."""
        return t.logged(
            "The session database is incomplete ({reason}). It can't be written here, so it stays as it is.",
            reason=self.reason,
        )


def recover(
    path: Path, migrations: Sequence[str], found: DatabaseFinding, now: float
) -> Recovery:
    """Rebuilds the database from the damaged file, then moves that aside. The caller owns the lock.

    A crash before the new file is complete leaves the damaged one in place. After that, `finish`,
    now or at the next open, completes the recovery.
    """
    from hermes.store.sqlite.carried_tables import take_over
    from hermes.store.sqlite.lost_rows import known_heads, unknown_loss_reason

    aside = _free_name(path, now)
    draft = path.with_name(f"{path.name}.rebuilding")
    for leftover in companions(draft):
        leftover.unlink(missing_ok=True)
    gone, heads = unknown_loss_reason(path), known_heads(path)
    create(draft, migrations)
    with in_our_words(draft), closing(connect(draft, busy_timeout=0)) as connection:
        with connection:
            sessions = _refill(connection, path, now)
            for session, kept in sessions.items():
                _note_recovery(connection, session, kept, aside)
            unread = take_over(connection, path)
        settle(connection)
    draft.rename(_counterpart(aside, _DAMAGED, _REBUILT))
    sync_folder(path.parent)
    finish(path)
    rows = sum(kept.rows for kept in sessions.values())
    lost = max(found.lost_rows, _lost(sessions, heads))
    return Recovery(found.detail, aside, len(sessions), rows, lost, gone, unread)


def _lost(sessions: dict[str, _Kept], heads: "dict[str, SessionHead]") -> int:
    """Returns the number of rows that must have existed: later ones do, or the list of sessions
    counted them.
    """
    lost = sum(kept.lost for kept in sessions.values())
    for session, head in heads.items():
        kept = sessions.get(session)
        if kept is None:
            lost += head.seq
        elif kept.old_epoch == head.epoch:
            lost += max(0, head.seq - kept.head)
    return lost


def unfinished(path: Path) -> list[Path]:
    """Returns rebuilt databases that are not in place yet."""
    return sorted(path.parent.glob(f"{path.name}{_REBUILT}*"))


def finish(path: Path) -> bool:
    """Moves damaged files aside and the rebuilt one in place. Returns whether there was one. The
    caller owns the lock.
    """
    waiting = unfinished(path)
    for rebuilt in waiting:
        aside = _counterpart(rebuilt, _REBUILT, _DAMAGED)
        for source, target in zip(companions(path), companions(aside), strict=True):
            if source.exists():
                source.rename(target)
        make_private(*companions(aside))
        rebuilt.rename(path)
        suspicion(path).unlink(missing_ok=True)
        sync_folder(path.parent)
    return bool(waiting)


def _counterpart(path: Path, old: str, new: str) -> Path:
    """Converts the damaged file's name to the rebuilt one's and back, so that a crash loses neither file."""
    return path.with_name(new.join(path.name.rsplit(old, 1)))


def _free_name(path: Path, now: float) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    names = (
        path.with_name(f"{path.name}{_DAMAGED}{stamp}{suffix}")
        for suffix in chain([""], map("-{}".format, count(1)))
    )
    return next(
        name for name in names if not any(part.exists() for part in companions(name))
    )


def _refill(connection: apsw.Connection, damaged: Path, now: float) -> dict[str, _Kept]:
    """Writes every readable row in its old order, each session under a new epoch.

    They are sorted in a temporary table: a large database does not fit into memory.
    """
    from hermes.store.sqlite.salvage import salvage

    connection.execute(_SCRATCH)
    for row in salvage(damaged):
        connection.execute(_COLLECT, row)
    sessions: dict[str, _Kept] = {}
    for columns in connection.execute(_IN_ORDER):
        row = Row(*columns)
        kept = sessions.get(row.session)
        if kept is None:
            kept = sessions[row.session] = _Kept(
                max(new_epoch(now), row.epoch + 1), row.epoch
            )
            if row.seq != 1:
                _stand_in(connection, row, kept.epoch)
        write_row(insert_row, connection, row._replace(epoch=kept.epoch), row.event)
        kept.rows += 1
        kept.head, kept.used = row.seq, row.ts
    connection.execute("DROP TABLE temp.salvaged")
    return sessions


def _stand_in(connection: apsw.Connection, first: Row, epoch: int) -> None:
    """Returns a first row for a session that lost its own."""
    created = SessionCreated(surface="recovered")
    entry = draft_of(created)
    row = Row(
        0, first.session, 1, epoch, first.ts, entry.type, entry.role, "", entry.data
    )
    write_row(insert_row, connection, row, created)


def _note_recovery(
    connection: apsw.Connection, session: str, kept: _Kept, aside: Path
) -> None:
    """Records what was kept, at the time of the session's last row, because it has not been used since."""
    note = SessionRecovered(kept=kept.rows, lost=kept.lost, file=str(aside))
    entry = draft_of(note)
    row = Row(
        0,
        session,
        kept.head + 1,
        kept.epoch,
        kept.used,
        entry.type,
        entry.role,
        "",
        entry.data,
    )
    write_row(insert_row, connection, row, note)
