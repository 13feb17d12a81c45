"""What happens to a damaged `state.db`: it is kept aside, untouched, and what is readable becomes a new one."""

import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from itertools import chain, count
from pathlib import Path

import apsw
import msgspec

from hermes.schema.events import SessionCreated, SessionRecovered
from hermes.store.database import connect, in_our_words
from hermes.store.file import companions, create, sync_folder
from hermes.store.log import new_epoch, write_row
from hermes.store.row import Row, draft
from hermes.store.salvage import salvage


class Recovery(msgspec.Struct, frozen=True):
    """What a recovery found and kept; for a person to read."""

    reason: str
    kept_aside: Path
    sessions: int
    rows: int
    lost: int

    def __str__(self) -> str:
        lost = f"{self.lost} rows are known to be missing" if self.lost else "no row is known to be missing"
        return (
            f"the session database was damaged ({self.reason}). The damaged file is kept as {self.kept_aside}; "
            f"{self.rows} rows of {self.sessions} sessions were read from it into a new database; {lost}."
        )


def recover(path: Path, migrations: Sequence[str], reason: str, now: float) -> Recovery:
    """Rebuilds from the damaged file, then puts that aside. The caller owns the lock.

    A crash before the end leaves the damaged file where it was; a crash between the two last steps leaves the rebuilt
    file complete, and `finish` puts it in place.
    """
    aside = _free_name(path, now)
    rebuilt = _rebuilt(path)
    for leftover in companions(rebuilt):
        leftover.unlink(missing_ok=True)
    create(rebuilt, migrations)
    sessions: dict[str, list[Row]] = defaultdict(list)
    for row in salvage(path):
        sessions[row.session].append(row)
    with in_our_words(rebuilt), closing(connect(rebuilt, busy_timeout=0)) as connection, connection:
        in_order = sorted(sessions.items(), key=lambda item: min(row.id for row in item[1]))
        lost = sum(_restore(connection, session, rows, aside, now) for session, rows in in_order)
    for source, target in reversed(list(zip(companions(path), companions(aside), strict=True))):
        if source.exists():
            source.rename(target)
    finish(path)
    return Recovery(reason, aside, len(sessions), sum(map(len, sessions.values())), lost)


def finish(path: Path) -> bool:
    """Puts a rebuilt database in place when the damaged one is already aside; True if there was one."""
    if any(part.exists() for part in companions(path)) or not _rebuilt(path).exists():
        return False
    _rebuilt(path).rename(path)
    sync_folder(path.parent)
    return True


def _rebuilt(path: Path) -> Path:
    return path.with_name(f"{path.name}.rebuilt")


def _free_name(path: Path, now: float) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    names = (
        path.with_name(f"{path.name}.damaged-{stamp}{suffix}") for suffix in chain([""], map("-{}".format, count(1)))
    )
    return next(name for name in names if not any(part.exists() for part in companions(name)))


def _restore(connection: apsw.Connection, session: str, rows: list[Row], aside: Path, now: float) -> int:
    """Writes a session's rows under a new epoch, then a row that says what was lost; returns how many those are."""
    newest = max(row.epoch for row in rows)
    rows = sorted((row for row in rows if row.epoch == newest), key=lambda row: row.seq)
    epoch = max(new_epoch(now), newest + 1)
    if rows[0].seq != 1:
        rows.insert(0, _stand_in(session, rows[0]))
    for row in rows:
        write_row(connection, row._replace(epoch=epoch), row.event)
    connection.execute("UPDATE sessions SET epoch = ? WHERE id = ?", (epoch, session))
    head = rows[-1].seq
    lost = head - len(rows) + (1 if rows[0].id == 0 else 0)
    note = SessionRecovered(kept=head - lost, lost=lost, file=str(aside))
    entry = draft(note)
    write_row(connection, Row(0, session, head + 1, epoch, now, entry.type, entry.role, "", entry.data), note)
    return lost


def _stand_in(session: str, first: Row) -> Row:
    """A first row for a session that lost its own."""
    entry = draft(SessionCreated(surface="recovered"))
    return Row(0, session, 1, first.epoch, first.ts, entry.type, entry.role, "", entry.data)
