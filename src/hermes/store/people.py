"""Who may use Hermes in chat apps, and pairing codes: short-lived, few at a time, locked after
wrong ones.
"""

import apsw
import msgspec

from hermes.core.ports import Clock
from hermes.store.database import Database


class KnownPerson(msgspec.Struct, frozen=True):
    """A person who was admitted or blocked."""

    platform: str
    id: str
    name: str
    role: str
    since: float


class PairingRequest(msgspec.Struct, frozen=True):
    """A person with a pairing code who waits for admission."""

    platform: str
    person: str
    name: str
    digest: str
    made: float


class People:
    """The people of one database. The tables are small; reads are one row."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._db = database
        self._clock = clock

    def find(self, platform: str, person: str) -> KnownPerson | None:
        """Returns a known person."""
        query = "SELECT * FROM gateway_people WHERE platform = ? AND id = ?"
        rows = self._db.select(query, (platform, person))
        return KnownPerson(*rows[0]) if rows else None

    def every(self) -> list[KnownPerson]:
        """Returns every known person."""
        query = "SELECT * FROM gateway_people ORDER BY platform, since"
        return [KnownPerson(*row) for row in self._db.select(query)]

    def put(self, known: KnownPerson) -> None:
        """Admits a person, or changes their permissions."""

        def job(connection: apsw.Connection) -> None:
            values = msgspec.structs.astuple(known)
            connection.execute(
                "INSERT OR REPLACE INTO gateway_people VALUES (?,?,?,?,?)", values
            )
            connection.execute(
                "DELETE FROM gateway_codes WHERE platform = ? AND person = ?",
                (known.platform, known.id),
            )

        self._db.write(job)

    def remove(self, platform: str, person: str) -> bool:
        """Removes a person. Returns False if they were not known."""

        def job(connection: apsw.Connection) -> bool:
            connection.execute(
                "DELETE FROM gateway_people WHERE platform = ? AND id = ?",
                (platform, person),
            )
            return connection.changes() > 0

        return self._db.write(job)

    def requests(self, since: float) -> list[PairingRequest]:
        """Returns the pending requests since a time; older ones are deleted."""

        def job(connection: apsw.Connection) -> list[PairingRequest]:
            connection.execute("DELETE FROM gateway_codes WHERE made < ?", (since,))
            return [
                PairingRequest(*row)
                for row in connection.execute(
                    "SELECT * FROM gateway_codes ORDER BY made"
                )
            ]

        return self._db.write(job)

    def ask(self, request: PairingRequest, *, most: int, since: float) -> bool:
        """Records a request. Returns False if this person has one, or `most` of the platform are
        pending.
        """

        def job(connection: apsw.Connection) -> bool:
            connection.execute("DELETE FROM gateway_codes WHERE made < ?", (since,))
            waiting = connection.execute(
                "SELECT person FROM gateway_codes WHERE platform = ?",
                (request.platform,),
            ).fetchall()
            if len(waiting) >= most or (request.person,) in waiting:
                return False
            values = msgspec.structs.astuple(request)
            connection.execute("INSERT INTO gateway_codes VALUES (?,?,?,?,?)", values)
            return True

        return self._db.write(job)

    def failed(self, since: float, *, note: bool) -> int:
        """Returns how many wrong codes were tried since a time; with `note`, counts one more."""
        now = self._clock.now()

        def job(connection: apsw.Connection) -> int:
            connection.execute("DELETE FROM gateway_failures WHERE at < ?", (since,))
            if note:
                connection.execute("INSERT INTO gateway_failures VALUES (?)", (now,))
            return int(connection.execute("SELECT count(*) FROM gateway_failures").get)

        return self._db.write(job)
