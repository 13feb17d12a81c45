"""Who may talk to Hermes in chat apps, and pairing codes: short-lived, few at a time, locked after wrong ones."""

import apsw
import msgspec

from hermes.core.ports import Clock
from hermes.store.database import Database


class KnownPerson(msgspec.Struct, frozen=True):
    """Somebody who was let in, or shut out."""

    platform: str
    id: str
    name: str
    role: str
    since: float


class PairingRequest(msgspec.Struct, frozen=True):
    """Somebody who has a code and waits to be let in."""

    platform: str
    person: str
    name: str
    digest: str
    made: float


class People:
    """The people of one database. All of it is small; reads are one row."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._db = database
        self._clock = clock

    def find(self, platform: str, person: str) -> KnownPerson | None:
        """Somebody who is known."""
        query = "SELECT * FROM gateway_people WHERE platform = ? AND id = ?"
        rows = self._db.select(query, (platform, person))
        return KnownPerson(*rows[0]) if rows else None

    def every(self) -> list[KnownPerson]:
        """Everybody who is known."""
        query = "SELECT * FROM gateway_people ORDER BY platform, since"
        return [KnownPerson(*row) for row in self._db.select(query)]

    def put(self, known: KnownPerson) -> None:
        """Lets somebody in, or changes what they may."""

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
        """Shuts somebody out; False when they were not in."""

        def job(connection: apsw.Connection) -> bool:
            connection.execute(
                "DELETE FROM gateway_people WHERE platform = ? AND id = ?",
                (platform, person),
            )
            return connection.changes() > 0

        return self._db.write(job)

    def requests(self, since: float) -> list[PairingRequest]:
        """Who waits to be let in, and asked no earlier; older ones are dropped."""

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
        """Notes a request; False when this person has one, or `most` of the platform wait already."""

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
        """How many wrong codes were tried since then; with `note`, one more."""
        now = self._clock.now()

        def job(connection: apsw.Connection) -> int:
            connection.execute("DELETE FROM gateway_failures WHERE at < ?", (since,))
            if note:
                connection.execute("INSERT INTO gateway_failures VALUES (?)", (now,))
            return int(connection.execute("SELECT count(*) FROM gateway_failures").get)

        return self._db.write(job)
