"""The long-running processes that use a store, on all machines: each says now and then that it lives."""

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
    """A process with what it does, and when it was last heard of, by the store's clock."""

    process: str
    role: str
    version: str
    started: float
    seen: float

    @property
    def host(self) -> str:
        """The name of its machine."""
        return host_of(self.process)


class ClusterState(msgspec.Struct, frozen=True):
    """The processes, the leases that are held, and the store's time."""

    processes: list[HostProcess]
    leases: list[Lease]
    now: float


def host_of(process: str) -> str:
    """The machine's name in the name of a process."""
    return process.rsplit(":", 2)[0]


class HostTable:
    """The processes of one store."""

    def __init__(self, database: SqlDatabase, clock: Clock) -> None:
        self._db = database
        self._clock = clock

    def beat(self, process: str, role: str, version: str) -> None:
        """Writes that a process lives. Forgets those that have not been heard of for a day."""

        def job(connection: SqlConnection) -> None:
            now = self._db.lease_time(connection, self._clock)
            connection.execute(_PUT, (process, role, version, now, now))
            old = "DELETE FROM hosts WHERE seen < ?"
            connection.execute(old, (now - _FORGET_AFTER_S,))

        self._db.write(job)

    def leave(self, process: str) -> "Future[None]":
        """Removes a process that ends, without waiting."""
        query = "DELETE FROM hosts WHERE process = ?"

        def job(connection: SqlConnection) -> None:
            connection.execute(query, (process,))

        return self._db.submit(job)

    def state(self) -> ClusterState:
        """Everything at one moment. A process of this machine that has ended is left out."""

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
