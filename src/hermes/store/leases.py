"""Leases: at most one process runs a session. A lease ends by release, by expiry, or with the process that held it.

Each new holder gets a larger token; a write that carries an older one is refused, so a process that slept through
its expiry can't write over its successor.
"""

import os
import socket
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import apsw
import msgspec

from hermes.core.ports import Clock
from hermes.errors import LeaseLost, SessionBusy
from hermes.store.database import Database

TTL = 30.0  # seconds a lease lasts without a heartbeat


class Lease(msgspec.Struct, frozen=True):
    """The right to run a session, until `expires` (unix seconds)."""

    session: str
    owner: str
    token: int
    expires: float


class Leases:
    """Hands out leases on the sessions of one database."""

    def __init__(self, database: Database, clock: Clock, *, owner: str = "") -> None:
        self._db = database
        self._clock = clock
        self.owner = owner or this_process()

    def acquire(self, session: str, *, ttl: float = TTL) -> Lease:
        """Takes the session, or says who has it."""
        return self._db.write(self._acquiring(session, ttl))

    def take(self, session: str) -> "Future[Lease]":
        """As `acquire`, without waiting."""
        return self._db.submit(self._acquiring(session, TTL))

    def _acquiring(self, session: str, ttl: float) -> Callable[[apsw.Connection], Lease]:
        def job(connection: apsw.Connection) -> Lease:
            now = self._clock.now()
            held = _find(connection, session)
            if held and is_live(held, now):
                hint = "Wait for it, watch it, or stop that process; it may also be steered from here."
                raise SessionBusy(f"session {session} is being run by {held.owner}", hint=hint)
            lease = Lease(session, self.owner, (held.token if held else 0) + 1, now + ttl)
            columns = (lease.session, lease.owner, lease.token, lease.expires)
            connection.execute("INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?)", columns)
            return lease

        return job

    def renew(self, lease: Lease, *, ttl: float = TTL) -> Lease:
        """The heartbeat: the same lease with a later end."""
        expires = self._clock.now() + ttl

        def job(connection: apsw.Connection) -> Lease:
            require(connection, lease)
            connection.execute("UPDATE leases SET expires = ? WHERE session = ?", (expires, lease.session))
            return msgspec.structs.replace(lease, expires=expires)

        return self._db.write(job)

    def release(self, lease: Lease) -> None:
        """Gives the session back. The token stays, so that the next holder's is larger."""
        self._db.write(self._releasing(lease))

    def give_back(self, lease: Lease) -> "Future[None]":
        """As `release`, without waiting."""
        return self._db.submit(self._releasing(lease))

    def _releasing(self, lease: Lease) -> Callable[[apsw.Connection], None]:
        def job(connection: apsw.Connection) -> None:
            query = "UPDATE leases SET expires = 0, owner = '' WHERE session = ? AND owner = ? AND token = ?"
            connection.execute(query, (lease.session, lease.owner, lease.token))

        return job

    def holder(self, session: str) -> Lease | None:
        """Who runs the session now."""
        held = self._db.read(lambda connection: _find(connection, session))
        return held if held and is_live(held, self._clock.now()) else None

    def held(self) -> list[Lease]:
        """Every session that somebody runs now."""
        now = self._clock.now()
        query = "SELECT * FROM leases WHERE expires > ?"
        rows = self._db.read(lambda connection: connection.execute(query, (now,)).fetchall())
        return [lease for lease in (Lease(*row) for row in rows) if is_live(lease, now)]


def require(connection: apsw.Connection, lease: Lease) -> None:
    """Raises unless this very lease is still the newest one, and was not given back."""
    held = _find(connection, lease.session)
    if held is None or (held.owner, held.token) != (lease.owner, lease.token):
        successor = (held.owner if held else "") or "nobody"
        hint = "Nothing was written. What was saved before is safe; resume the session to go on."
        raise LeaseLost(f"session {lease.session} is now run by {successor}", hint=hint)


def is_live(lease: Lease, now: float) -> bool:
    """Whether somebody still runs the session."""
    return lease.expires > now and not is_gone(lease.owner)


def this_process() -> str:
    """Names this process so that others on the same machine can tell whether it still lives."""
    return f"{socket.gethostname()}:{os.getpid()}:{_birth(os.getpid())}"


def _find(connection: apsw.Connection, session: str) -> Lease | None:
    columns = connection.execute("SELECT * FROM leases WHERE session = ?", (session,)).fetchone()
    return Lease(*columns) if columns else None


def is_gone(owner: str) -> bool:
    """True only when the owner is a process of this machine that has certainly ended."""
    host, pid, birth = ["", "", "", *owner.rsplit(":", 2)][-3:]
    return host == socket.gethostname() and pid.isdigit() and _birth(int(pid)) != birth


def _birth(pid: int) -> str:
    """When a process started, in a form that a reused pid does not repeat; empty when it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return "" if Path("/proc/self/stat").exists() else "unknown"
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else fields[19]  # Z, X: dead, only its parent has not looked yet
