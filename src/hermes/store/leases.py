"""Leases: at most one process runs a session. A lease ends by release or with the process that held it.

Where possible, the kernel reports whether that process is alive, so that sleep or a clock change ends no lease.
Elsewhere a lease also ends if it was not renewed in time. Each new holder gets a larger token; a write with an older
one is refused, so a process that lost its lease can't overwrite its successor's work.
"""

import os
import re
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

import msgspec

from hermes.core.ports import Clock
from hermes.errors import LeaseLost, SessionBusy, StoreDamaged, StoreError
from hermes.store.ports import SqlDatabase
from hermes.store.sql import SqlConnection
from hermes.store.work_queue import SETTLE
from hermes.text.translation import translator

t = translator(__name__)

LEASE_TTL_S = 30.0  # seconds a lease lasts without a heartbeat, where the kernel can't tell whether its holder is alive
RETRY_THREAD = "hermes-lease-release"
_RETRY_S = 2.0  # after a failed write of a release
_UNKNOWN = "unknown"  # start time where the kernel does not report it
_MAX_CLOCK_LEAD_S = (
    10 * LEASE_TTL_S
)  # seconds; a lease that ends later than this comes from a clock that was ahead


_FIELDS = "session, owner, token, expires"
_PUT = f"""
INSERT INTO leases ({_FIELDS}) VALUES (?, ?, ?, ?) ON CONFLICT (session) DO UPDATE
SET owner = excluded.owner, token = excluded.token, expires = excluded.expires
"""  # noqa: S608 - our own names


class Lease(msgspec.Struct, frozen=True):
    """The right to run a session, until `expires` (unix seconds)."""

    session: str
    owner: str
    token: int
    expires: float


class Leases:
    """The leases on the sessions of one database."""

    def __init__(self, database: SqlDatabase, clock: Clock, *, owner: str = "") -> None:
        self._db = database
        self._clock = clock
        self._given_back: set[tuple[str, int]] = (
            set()
        )  # session and token, until the release is on disk
        self.owner = owner or this_process()
        self.renewals = 0
        """How many leases this process has renewed."""

    def acquire(self, session: str, *, ttl: float = LEASE_TTL_S) -> Lease:
        """Acquires the session. Raises an error that names the holder if there is one."""
        return self._db.write(self._acquiring(session, ttl), order=session)

    def take(self, session: str) -> "Future[Lease]":
        """Does the same as `acquire`, without waiting."""
        return self._db.submit(self._acquiring(session, LEASE_TTL_S), order=session)

    def _acquiring(self, session: str, ttl: float) -> Callable[[SqlConnection], Lease]:
        def job(connection: SqlConnection) -> Lease:
            self._db.lock(connection, f"session {session}")
            now = self._db.lease_time(connection, self._clock)
            held = find_lease(connection, session)
            if held and self._is_live(held, now):
                raise busy(held)
            lease = Lease(
                session, self.owner, (held.token if held else 0) + 1, now + ttl
            )
            columns = (lease.session, lease.owner, lease.token, lease.expires)
            connection.execute(_PUT, columns)
            return lease

        return job

    def _is_live(self, lease: Lease, now: float) -> bool:
        mine = lease.owner == self.owner
        return self._db.holds(lease.owner, lease.expires, now) and not (
            mine and (lease.session, lease.token) in self._given_back
        )

    def renew(self, lease: Lease, *, ttl: float = LEASE_TTL_S) -> Lease:
        """Extends a lease (the heartbeat)."""
        renewed = self._db.write(self._renewing(lease, ttl), order=lease.session)
        self.renewals += 1
        return renewed

    def extend(self, lease: Lease) -> "Future[Lease]":
        """Does the same as `renew`, without waiting."""
        job = self._renewing(lease, LEASE_TTL_S)
        future = self._db.submit(job, order=lease.session)
        future.add_done_callback(self._count_renewal)
        return future

    def _renewing(self, lease: Lease, ttl: float) -> Callable[[SqlConnection], Lease]:
        def job(connection: SqlConnection) -> Lease:
            self._db.lock(connection, f"session {lease.session}")
            require(connection, lease)
            expires = self._db.lease_time(connection, self._clock) + ttl
            connection.execute(
                "UPDATE leases SET expires = ? WHERE session = ?",
                (expires, lease.session),
            )
            return msgspec.structs.replace(lease, expires=expires)

        return job

    def _count_renewal(self, future: "Future[Lease]") -> None:
        if not future.cancelled() and future.exception() is None:
            self.renewals += 1

    def release(self, lease: Lease) -> None:
        """Releases the session. The token stays, so that the next holder's is larger.

        A failed write is retried: otherwise this process would block the session as long as it lives.
        """
        self._given_back.add((lease.session, lease.token))
        try:
            self._write_release(lease)
        except Exception as error:
            self._retry_later(lease, error)
            raise
        self._given_back.discard((lease.session, lease.token))

    def give_back(self, lease: Lease, *, answered: int = 0) -> "Future[None]":
        """Does the same as `release`, without waiting. Messages up to row `answered` no longer wait for a worker."""
        self._given_back.add((lease.session, lease.token))
        future = self._submit_release(lease, answered)
        future.add_done_callback(partial(self._after_release, lease))
        return future

    def _write_release(self, lease: Lease) -> None:
        self._db.write(_releasing(lease), order=lease.session)

    def _submit_release(self, lease: Lease, answered: int = 0) -> "Future[None]":
        return self._db.submit(_releasing(lease, answered), order=lease.session)

    def _after_release(self, lease: Lease, future: "Future[None]") -> None:
        if not future.cancelled() and (error := future.exception()):
            self._retry_later(lease, error)
        else:
            self._given_back.discard((lease.session, lease.token))

    def _retry_later(self, lease: Lease, error: BaseException) -> None:
        if self._db.closed or isinstance(error, StoreDamaged):
            return
        retry = threading.Timer(_RETRY_S, self._retry, [lease])
        retry.name, retry.daemon = RETRY_THREAD, True
        retry.start()

    def _retry(self, lease: Lease) -> None:
        with suppress(StoreError):  # `release` schedules the next attempt itself
            self.release(lease)

    def holder(self, session: str) -> Lease | None:
        """Returns the process that runs the session now."""

        def job(connection: SqlConnection) -> Lease | None:
            held = find_lease(connection, session)
            if held is None or not held.owner:
                return None
            now = self._db.lease_time(connection, self._clock)
            return held if self._is_live(held, now) else None

        return self._db.run_on_reader(job)

    def held(self) -> list[Lease]:
        """Returns every session that a process runs now."""

        def job(connection: SqlConnection) -> list[Lease]:
            now = self._db.lease_time(connection, self._clock)
            found = find_leases(connection)
            return [lease for lease in found if self._is_live(lease, now)]

        return self._db.run_on_reader(job)


def require(connection: SqlConnection, lease: Lease) -> None:
    """Raises unless this lease is still the newest one and not released."""
    held = find_lease(connection, lease.session)
    if held is None or (held.owner, held.token) != (lease.owner, lease.token):
        raise lost_to(lease.session, held.owner if held else "")


def busy(held: Lease) -> SessionBusy:
    """Returns the error for a session that another process holds."""
    hint = t.later(
        "Wait for that process, watch it, or stop it. You can also steer it from here."
    )
    text = t.later(
        "session {session} is being run by {owner}",
        session=held.session,
        owner=shown(held.owner),
    )
    return SessionBusy(text, hint=hint)


def lost_to(session: str, successor: str) -> LeaseLost:
    """Returns the error of a process that no longer holds a session's lease."""
    hint = t.later(
        "Nothing was written. What was saved before is safe; resume the session to continue."
    )
    who = shown(successor) if successor else t.later("nobody")
    text = t.later("session {session} is now run by {who}", session=session, who=who)
    return LeaseLost(text, hint=hint)


def holds(owner: str, expires: float, now: float) -> bool:
    """Returns whether an owner still holds a lease that expires then. A live owner does, even after it expired."""
    lives = _lives(owner)
    return 0 < expires - now < _MAX_CLOCK_LEAD_S if lives is None else lives


def is_gone(owner: str) -> bool:
    """Returns True only if the owner is a process of this machine that has certainly ended."""
    return _lives(owner) is False


def ended_here(owner: str) -> bool:
    """Returns True only if the owner is a process of this boot of this machine that has ended.

    Unlike `is_gone`, this is never wrong about another machine with the same name.
    """
    boot = [*owner.rpartition(":")[2].split("."), "", ""][1]
    return bool(boot) and boot == _boot() and _lives(owner) is False


def this_process() -> str:
    """Returns a name for this process from which others on the same machine can tell whether it is alive."""
    return f"{socket.gethostname()}:{os.getpid()}:{_birth(os.getpid())}.{_boot()}.{_pid_namespace()}"


def shown(owner: str) -> str:
    """Describes a process for a person."""
    host, pid, _ = ["", "", "", *owner.rsplit(":", 2)][-3:]
    return f"process {pid} on {host}" if pid else owner


def _releasing(lease: Lease, answered: int = 0) -> Callable[[SqlConnection], None]:
    def job(connection: SqlConnection) -> None:
        if answered:
            values = (lease.session, answered, lease.owner, lease.token)
            connection.execute(SETTLE, values)
        query = "UPDATE leases SET expires = 0, owner = '' WHERE session = ? AND owner = ? AND token = ?"
        connection.execute(query, (lease.session, lease.owner, lease.token))

    return job


def find_lease(connection: SqlConnection, session: str) -> Lease | None:
    """Returns the last lease of a session, even if it has ended."""
    columns = connection.execute(
        f"SELECT {_FIELDS} FROM leases WHERE session = ?",  # noqa: S608 - our own names
        (session,),
    ).fetchone()
    return Lease(*columns) if columns else None


def find_leases(connection: SqlConnection) -> list[Lease]:
    """Returns every lease that was not released, including those that have ended."""
    query = f"SELECT {_FIELDS} FROM leases WHERE owner != ''"  # noqa: S608 - our own names
    return [Lease(*row) for row in connection.execute(query)]


def _lives(owner: str) -> bool | None:
    """Returns whether a process is alive; None if unknown, as on another machine or in another
    container.
    """
    host, pid, birth = ["", "", "", *owner.rsplit(":", 2)][-3:]
    started, boot, namespace = [*birth.split("."), "", ""][:3]
    if (
        host != socket.gethostname()
        or not pid.isdigit()
        or _birth(os.getpid()) == _UNKNOWN
    ):
        return None
    if boot and boot != _boot():
        return False
    if namespace and namespace != _pid_namespace():
        return None
    return _birth(int(pid)) == started


def _birth(pid: int) -> str:
    """Returns when a process started, in a form that a reused pid does not repeat; empty if it has
    ended.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return "" if Path("/proc/self/stat").exists() else _UNKNOWN
    fields = stat.rpartition(")")[2].split()
    return (
        "" if fields[0] in "ZX" else fields[19]
    )  # Z, X: dead, but not yet reaped by its parent


@cache
def _boot() -> str:
    """Returns the id of this boot of the machine: pids and start times can repeat after a reboot."""
    with suppress(OSError):
        return (
            Path("/proc/sys/kernel/random/boot_id")
            .read_text(encoding="ascii")
            .strip()
            .replace("-", "")[:12]
        )
    return ""


@cache
def _pid_namespace() -> str:
    """Returns the container in which a pid is valid."""
    with suppress(OSError):
        return re.sub(r"\D", "", str(Path("/proc/self/ns/pid").readlink()))
    return ""
