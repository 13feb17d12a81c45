"""Sessions whose messages wait for a worker.

A message and its entry here are written in one transaction. The entry is deleted when the lease under which everything
was answered is released, so no crash loses one.
"""

import msgspec

from hermes.core.ports import Clock
from hermes.store.ports import SqlDatabase
from hermes.store.sql import SqlConnection

OFFERED = "*work"
"""The key that watches new entries, in place of a session."""

OFFER = """
INSERT INTO work (session, place, seq, offered) SELECT id, place, head, ? FROM sessions WHERE id = ?
ON CONFLICT (session) DO UPDATE SET seq = excluded.seq
"""
SETTLE = """
DELETE FROM work WHERE session = ?1 AND seq <= ?2
AND EXISTS (SELECT 1 FROM leases WHERE leases.session = ?1 AND leases.owner = ?3 AND leases.token = ?4)
"""
_FREE = """
SELECT work.session, work.place, work.offered
FROM work LEFT JOIN leases ON leases.session = work.session
WHERE (work.place = ?1 OR work.place = '') AND (coalesce(leases.owner, '') = '' OR leases.expires <= ?2)
  AND work.offered <= ?4
ORDER BY work.offered, work.session LIMIT ?3
"""
_UNTAKEN = """
SELECT work.session, work.place, work.offered
FROM work LEFT JOIN leases ON leases.session = work.session
WHERE (coalesce(leases.owner, '') = '' OR leases.expires <= ?1) ORDER BY work.offered, work.session LIMIT ?2
"""


class OfferedSession(msgspec.Struct, frozen=True):
    """A session that waits for a worker, since `offered` (unix seconds)."""

    session: str
    place: str
    offered: float


class WorkQueue:
    """The sessions of one database that wait for a worker."""

    def __init__(self, database: SqlDatabase, clock: Clock) -> None:
        self._db = database
        self._clock = clock

    def free(
        self, place: str, *, limit: int, min_age_s: float = 0.0
    ) -> list[OfferedSession]:
        """Returns idle sessions of a place, and of no place, that have waited at least `min_age_s`; oldest first."""

        def job(connection: SqlConnection) -> list[OfferedSession]:
            now = self._db.lease_time(connection, self._clock)
            rows = connection.execute(
                _FREE, (place, now, limit, self._clock.now() - min_age_s)
            )
            return [OfferedSession(*row) for row in rows]

        return self._db.read(job)

    def untaken(self, *, limit: int) -> list[OfferedSession]:
        """Returns the idle sessions of any place that have waited longest."""

        def job(connection: SqlConnection) -> list[OfferedSession]:
            now = self._db.lease_time(connection, self._clock)
            rows = connection.execute(_UNTAKEN, (now, limit))
            return [OfferedSession(*row) for row in rows]

        return self._db.read(job)

    def depth(self) -> int:
        """Returns how many sessions are in the queue, including those being answered."""
        ((number,),) = self._db.select("SELECT count(*) FROM work")
        return int(number)
