"""The long-running processes that use a store, on all machines. Each regularly reports that it is alive."""

from concurrent.futures import Future

import msgspec

from hermes.core.ports import Clock
from hermes.store.leases import Lease, find_leases
from hermes.store.ports import SqlDatabase
from hermes.store.sql import SqlConnection

HEARTBEAT_INTERVAL_S = 10.0
GONE_AFTER_S = 3 * HEARTBEAT_INTERVAL_S
_FORGET_AFTER_S = 24 * 3600.0
_FIELDS = "process, role, version, started, seen"
_PUT = f"""
INSERT INTO hosts ({_FIELDS}) VALUES (?, ?, ?, ?, ?) ON CONFLICT (process) DO UPDATE
SET role = excluded.role, version = excluded.version, seen = excluded.seen
"""  # noqa: S608 - our own names


class HostProcess(msgspec.Struct, frozen=True):
    """A process, its task, and when it last reported, by the store's clock."""

    process: str
    role: str
    version: str
    started: float
    seen: float

    @property
    def host(self) -> str:
        """The name of the process's machine."""
        return host_of(self.process)


class ClusterState(msgspec.Struct, frozen=True):
    """The processes, the held leases, and the store's time."""

    processes: list[HostProcess]
    leases: list[Lease]
    now: float


def host_of(process: str) -> str:
    """Returns the machine's name from the name of a process."""
    return process.rsplit(":", 2)[0]


class HostTable:
    """The processes of one store."""

    def __init__(self, database: SqlDatabase, clock: Clock) -> None:
        self._db = database
        self._clock = clock

    def beat(self, process: str, role: str, version: str) -> None:
        """Records that a process is alive. Deletes those that have not reported for a day."""

        def job(connection: SqlConnection) -> None:
            now = self._db.lease_time(connection, self._clock)
            connection.execute(_PUT, (process, role, version, now, now))
            old = "DELETE FROM hosts WHERE seen < ?"
            connection.execute(old, (now - _FORGET_AFTER_S,))

        self._db.write(job)

    def leave(self, process: str) -> "Future[None]":
        """Removes a process that is ending, without waiting."""
        query = "DELETE FROM hosts WHERE process = ?"

        def job(connection: SqlConnection) -> None:
            connection.execute(query, (process,))

        return self._db.submit(job)

    def state(self) -> ClusterState:
        """Returns everything as of one moment, without processes of this machine that have ended."""

        def job(connection: SqlConnection) -> ClusterState:
            now = self._db.lease_time(connection, self._clock)
            query = f"SELECT {_FIELDS} FROM hosts ORDER BY process"  # noqa: S608 - our own names
            found = [HostProcess(*row) for row in connection.execute(query)]
            live = [one for one in found if not self._db.is_gone(one.process)]
            held = [
                lease
                for lease in find_leases(connection)
                if self._db.holds(lease.owner, lease.expires, now)
            ]
            return ClusterState(live, held, now)

        return self._db.read(job)
