"""Roles of processes: a lease by name, such as the connection to a chat platform, or the presence of a worker.

As with sessions, each new holder gets a larger token, and the database's clock decides about expiry.
"""

from concurrent.futures import Future
from typing import Any

import msgspec

from hermes.core.ports import Clock
from hermes.store.leases import LEASE_TTL_S, this_process
from hermes.store.ports import SqlDatabase
from hermes.store.sql import SqlConnection

_FIELDS = "name, owner, token, since, expires, data"
_PUT = f"""
INSERT INTO roles ({_FIELDS}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE
SET owner = excluded.owner, token = excluded.token, since = excluded.since, expires = excluded.expires, data = excluded.data
"""  # noqa: S608 - our own names
_RENEW = "UPDATE roles SET expires = ?, data = ? WHERE name = ? AND owner = ? AND token = ? RETURNING 1"
_RELEASE = "UPDATE roles SET owner = '', expires = 0 WHERE name = ? AND owner = ? AND token = ?"
_HAND_BACK = "UPDATE roles SET owner = '', expires = 0, data = ? WHERE name = ? AND owner = ? AND token = ?"
_FORGET = "DELETE FROM roles WHERE name = ? AND owner = ? AND token = ?"


class HeldRole(msgspec.Struct, frozen=True):
    """A role that a process holds until `expires` (unix seconds of the database)."""

    name: str
    owner: str
    token: int
    since: float
    expires: float
    data: str
    """Data for other processes, as JSON."""

    @property
    def facts(self) -> dict[str, Any]:
        """The data as a dictionary; empty if it is not one."""
        try:
            return msgspec.json.decode(self.data or "{}", type=dict[str, Any])
        except msgspec.MsgspecError:
            return {}


class RoleLeases:
    """The roles of the processes that share one database."""

    def __init__(self, database: SqlDatabase, clock: Clock, *, owner: str = "") -> None:
        self._db = database
        self._clock = clock
        self.owner = owner or this_process()

    def take(
        self, name: str, facts: Any = None, *, ttl: float = LEASE_TTL_S
    ) -> HeldRole | None:
        """Takes a role. Returns None while another process holds it."""
        data = msgspec.json.encode(facts or {}).decode()

        def job(connection: SqlConnection) -> HeldRole | None:
            self._db.lock(connection, f"role {name}")
            now = self._db.lease_time(connection, self._clock)
            held = _find(connection, name)
            if held and held.owner and self._db.holds(held.owner, held.expires, now):
                return None
            token = (held.token if held else 0) + 1
            role = HeldRole(name, self.owner, token, now, now + ttl, data)
            connection.execute(_PUT, msgspec.structs.astuple(role))
            return role

        return self._db.write(job)

    def renew(
        self, role: HeldRole, facts: Any = None, *, ttl: float = LEASE_TTL_S
    ) -> bool:
        """Extends a role (the heartbeat). Returns False if another process has it now."""
        data = role.data if facts is None else msgspec.json.encode(facts).decode()

        def job(connection: SqlConnection) -> bool:
            expires = self._db.lease_time(connection, self._clock) + ttl
            values = (expires, data, role.name, role.owner, role.token)
            return connection.execute(_RENEW, values).get is not None

        return self._db.write(job)

    def release(self, role: HeldRole, *, forget: bool = False) -> None:
        """Releases a role. Its token stays, unless `forget` is set for a role that only this process uses."""
        values = (role.name, role.owner, role.token)
        query = _FORGET if forget else _RELEASE
        self._db.write(lambda connection: connection.execute(query, values).fetchall())

    def hand_back(self, role: HeldRole, facts: Any) -> "Future[None]":
        """Releases a role without waiting, and leaves data about its last holder for other processes."""
        data = msgspec.json.encode(facts).decode()
        values = (data, role.name, role.owner, role.token)

        def job(connection: SqlConnection) -> None:
            connection.execute(_HAND_BACK, values)

        return self._db.submit(job)

    def held(self, prefix: str = "") -> list[HeldRole]:
        """Returns the roles with a prefix that a process holds now."""
        return [role for role, is_held in self.known(prefix) if is_held]

    def abandoned(self, prefix: str) -> list[HeldRole]:
        """Returns the roles with a prefix that no process holds any more."""
        return [role for role, is_held in self.known(prefix) if not is_held]

    def known(self, prefix: str) -> list[tuple[HeldRole, bool]]:
        """Returns the roles with a prefix, and whether a process holds each of them now."""

        def job(connection: SqlConnection) -> list[tuple[HeldRole, bool]]:
            now = self._db.lease_time(connection, self._clock)
            query = f"SELECT {_FIELDS} FROM roles WHERE substr(name, 1, length(?1)) = ?1 ORDER BY name"  # noqa: S608
            found = [HeldRole(*row) for row in connection.execute(query, (prefix,))]
            return [
                (one, bool(one.owner) and self._db.holds(one.owner, one.expires, now))
                for one in found
            ]

        return self._db.read(job)

    def own(self, name: str) -> HeldRole | None:
        """Returns a role if this process holds it."""
        found = self._db.read(lambda connection: _find(connection, name))
        return found if found is not None and found.owner == self.owner else None

    def forget(self, name: str) -> None:
        """Deletes a role that this process holds, or that no process holds."""

        def job(connection: SqlConnection) -> None:
            self._db.lock(connection, f"role {name}")
            now = self._db.lease_time(connection, self._clock)
            held = _find(connection, name)
            if held is None or (
                held.owner not in ("", self.owner)
                and self._db.holds(held.owner, held.expires, now)
            ):
                return
            values = (held.name, held.owner, held.token)
            connection.execute(_FORGET, values).fetchall()

        self._db.write(job)


def _find(connection: SqlConnection, name: str) -> HeldRole | None:
    query = f"SELECT {_FIELDS} FROM roles WHERE name = ?"  # noqa: S608 - our own names
    found = connection.execute(query, (name,)).fetchone()
    return HeldRole(*found) if found else None
