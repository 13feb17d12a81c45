"""Leases in PostgreSQL: taking, renewing and releasing one is one round trip each.

Renewals that wait for a connection at the same time are sent together, so that a process with many sessions and little
processor time keeps its leases.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

import asyncpg
import msgspec

from hermes.core.ports import Clock
from hermes.store.leases import LEASE_TTL_S, Lease, Leases, busy, lost_to
from hermes.store.postgres.database import PostgresDatabase

_TAKE = "SELECT * FROM take_lease($1, $2, $3, $4, $5, $6)"
_RENEW = """
UPDATE leases SET expires = extract(epoch FROM clock_timestamp())::float8 + due.ttl
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::float8[]) AS due (session, owner, token, ttl)
WHERE leases.session = due.session AND leases.owner = due.owner AND leases.token = due.token
RETURNING leases.session, leases.token, leases.expires
"""
_HOLDER = "SELECT owner FROM leases WHERE session = $1"
_RELEASE = "UPDATE leases SET expires = 0, owner = '' WHERE session = $1 AND owner = $2 AND token = $3"
_SETTLE_AND_RELEASE = f"""
WITH released AS ({_RELEASE} RETURNING session)
DELETE FROM work USING released WHERE work.session = released.session AND seq <= $4
"""  # noqa: S608 - our own names


class _Ended(NamedTuple):
    """A lease that has not expired, but whose holder is gone."""

    owner: str | None = None
    token: int | None = None


class _Renewals:
    """Leases that are renewed by one statement."""

    def __init__(self) -> None:
        self.due: list[tuple[str, str, int, float]] = []  # the last is the ttl
        self.sending: asyncio.Task[dict[tuple[str, int], float]] | None = None


class PostgresLeases(Leases):
    """The leases on the sessions of one database."""

    def __init__(
        self, database: PostgresDatabase, clock: Clock, *, owner: str = ""
    ) -> None:
        super().__init__(database, clock, owner=owner)
        self._database = database
        self._renewals: _Renewals | None = None  # that wait for a connection

    # pyrefly: ignore[missing-override-decorator]
    def acquire(self, session: str, *, ttl: float = LEASE_TTL_S) -> Lease:
        return self._database.result(self._taking(session, ttl))

    # pyrefly: ignore[missing-override-decorator]
    def take(self, session: str) -> "Future[Lease]":
        return self._taking(session, LEASE_TTL_S)

    # pyrefly: ignore[missing-override-decorator]
    def renew(self, lease: Lease, *, ttl: float = LEASE_TTL_S) -> Lease:
        return self._database.result(self._extending(lease, ttl))

    # pyrefly: ignore[missing-override-decorator]
    def extend(self, lease: Lease) -> "Future[Lease]":
        return self._extending(lease, LEASE_TTL_S)

    def _extending(self, lease: Lease, ttl: float) -> "Future[Lease]":
        future = self._database.start(lambda: self._renewed(lease, ttl))
        future.add_done_callback(self._count_renewal)
        return future

    async def _renewed(self, lease: Lease, ttl: float) -> Lease:
        renewals = self._renewals
        if renewals is None:
            renewals = self._renewals = _Renewals()
        renewals.due.append((lease.session, lease.owner, lease.token, ttl))
        if renewals.sending is None:
            renewals.sending = asyncio.create_task(self._send(renewals))
        expires = await asyncio.shield(renewals.sending)
        if (lease.session, lease.token) in expires:
            ends = expires[lease.session, lease.token]
            return msgspec.structs.replace(lease, expires=ends)
        holder = await self._request(
            lambda connection: connection.fetchval(_HOLDER, lease.session)
        )
        raise lost_to(lease.session, holder or "")

    async def _send(self, renewals: _Renewals) -> dict[tuple[str, int], float]:
        """Returns the new ends by session and token; leases that were lost are missing."""

        async def send(connection: "asyncpg.Connection") -> Any:
            self._close(renewals)
            columns = map(list, zip(*renewals.due, strict=True))
            return await connection.fetch(_RENEW, *columns)

        try:
            renewed = await self._request(send)
        finally:
            self._close(renewals)
        return {(session, token): expires for session, token, expires in renewed}

    def _close(self, renewals: _Renewals) -> None:
        """Leaves later leases to the next statement."""
        if self._renewals is renewals:
            self._renewals = None

    def _taking(self, session: str, ttl: float) -> "Future[Lease]":
        mark = uuid.uuid4()  # identifies what this call took if the reply was lost

        async def attempt() -> Lease:
            ended = _Ended()
            while True:
                values = (session, self.owner, ttl, mark, *ended)
                reply = await self._request(
                    lambda connection, values=values: connection.fetchrow(
                        _TAKE, *values
                    )
                )
                held = Lease(session, reply["holder"], reply["token"], reply["expires"])
                if reply["is_taken"]:
                    return held
                if self._is_live(held, float("-inf")):
                    raise busy(held)
                ended = _Ended(held.owner, held.token)

        return self._database.start(attempt, session)

    # pyrefly: ignore[missing-override-decorator]
    def _write_release(self, lease: Lease) -> None:
        self._database.result(self._submit_release(lease))

    # pyrefly: ignore[missing-override-decorator]
    def _submit_release(self, lease: Lease, answered: int = 0) -> "Future[None]":
        values: list[Any] = [lease.session, lease.owner, lease.token]
        query = _SETTLE_AND_RELEASE if answered else _RELEASE
        if answered:
            values.append(answered)

        async def attempt() -> None:
            await self._request(lambda connection: connection.execute(query, *values))

        return self._database.start(attempt, lease.session)

    async def _request(
        self, work: Callable[["asyncpg.Connection"], Awaitable[Any]]
    ) -> Any:
        return await self._database.server.request(work)
