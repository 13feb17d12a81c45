"""Claims: what running calls may still use, so that concurrent processes do not exceed a cap
together.

A claim is made before a call and released when its actual usage is in the log. A claim does not
count if its process has ended or if it is older than any call can be.
"""

from collections.abc import Sequence

from hermes.core.ports import Clock
from hermes.schema.messages import Usage
from hermes.store.leases import this_process
from hermes.store.ports import SqlDatabase
from hermes.store.sessions import FAMILY, families
from hermes.store.sql import MAX_QUERY_VALUES, SqlConnection

MAX_CALL_S = 3_600.0  # no call takes longer

_PUT = """
INSERT INTO claims (session, owner, day, tokens, cost_usd, expires) VALUES (?,?,?,?,?,?)
ON CONFLICT (session, owner) DO UPDATE
SET day = excluded.day, tokens = excluded.tokens, cost_usd = excluded.cost_usd, expires = excluded.expires
"""


class BudgetClaims:
    """The claims on the caps of one database."""

    def __init__(self, database: SqlDatabase, clock: Clock, *, owner: str = "") -> None:
        self._db = database
        self._clock = clock
        self._owner = owner or this_process()

    def make(self, session: str, day: str, usage: Usage) -> None:
        """Claims an amount for a session's next call, replacing its earlier claim."""
        values = (
            *(
                session,
                self._owner,
                day,
                usage.input_tokens + usage.output_tokens,
                usage.cost_usd or 0.0,
            ),
            self._clock.now() + MAX_CALL_S,
        )
        self._db.write(
            lambda connection: _exhaust(connection, _PUT, values),
            order=f"claims {session}",
        )

    def release(self, session: str) -> None:
        """Releases a session's claim, without waiting for the write."""
        values = (session, self._owner)
        self._db.submit(
            lambda connection: _exhaust(
                connection, "DELETE FROM claims WHERE session = ? AND owner = ?", values
            ),
            order=f"claims {session}",
        )

    def of_others(
        self, session: str, day: str, *, family: str = ""
    ) -> tuple[int, float]:
        """Returns the tokens and dollars claimed by others than this session in this process:
        today, or in a family of sessions.
        """
        where = f"session IN ({FAMILY})" if family else "day = ?2"
        query = f"SELECT session, owner, tokens, cost_usd FROM claims WHERE expires > ?1 AND {where}"  # noqa: S608
        values = (self._clock.now(), family or day)
        return self._sum(session, query, values)

    def of_families(
        self, session: str, families_of: Sequence[str]
    ) -> tuple[int, float]:
        """Does the same as `of_others`, for the families of several sessions."""
        found = (0, 0.0)
        for first in range(0, len(families_of), MAX_QUERY_VALUES):
            some = families_of[first : first + MAX_QUERY_VALUES]
            query = f"""SELECT session, owner, tokens, cost_usd FROM claims
            WHERE expires > ? AND session IN ({families(len(some))})"""  # noqa: S608 - places of values
            tokens, cost = self._sum(session, query, (self._clock.now(), *some))
            found = (found[0] + tokens, found[1] + cost)
        return found

    def _sum(
        self, session: str, query: str, values: tuple[str | float, ...]
    ) -> tuple[int, float]:
        """Adds up claims, except those of this session in this process and those of processes that have ended."""
        rows = self._db.run_on_reader(
            lambda connection: connection.execute(query, values).fetchall()
        )
        others = [
            row
            for row in rows
            if (row[0], row[1]) != (session, self._owner)
            and not self._db.is_gone(row[1])
        ]
        return sum(row[2] for row in others), sum(row[3] for row in others)


def _exhaust(
    connection: SqlConnection, query: str, values: tuple[str | float, ...]
) -> None:
    connection.execute(query, values).fetchall()
