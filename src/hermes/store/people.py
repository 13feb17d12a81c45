"""People who may use Hermes in chat apps, and pairing codes: short-lived, few at a time, locked after wrong ones."""

import msgspec

from hermes.core.ports import Clock
from hermes.store.ports import SqlDatabase
from hermes.store.sql import SqlConnection

_PERSON = "platform, id, name, role, since"
_REQUEST = "platform, person, name, digest, made"
_PUT = f"""
INSERT INTO gateway_people ({_PERSON}) VALUES (?,?,?,?,?) ON CONFLICT (platform, id) DO UPDATE
SET name = excluded.name, role = excluded.role, since = excluded.since
"""  # noqa: S608 - our own names


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

    def __init__(self, database: SqlDatabase, clock: Clock) -> None:
        self._db = database
        self._clock = clock

    def find(self, platform: str, person: str) -> KnownPerson | None:
        """Returns a known person."""
        query = f"SELECT {_PERSON} FROM gateway_people WHERE platform = ? AND id = ?"  # noqa: S608 - our own names
        rows = self._db.select(query, (platform, person))
        return KnownPerson(*rows[0]) if rows else None

    def every(self) -> list[KnownPerson]:
        """Returns every known person."""
        query = f"SELECT {_PERSON} FROM gateway_people ORDER BY platform, since"  # noqa: S608 - our own names
        return [KnownPerson(*row) for row in self._db.select(query)]

    def put(self, known: KnownPerson) -> None:
        """Admits a person, or changes their permissions."""

        def job(connection: SqlConnection) -> None:
            values = msgspec.structs.astuple(known)
            connection.execute(_PUT, values)
            connection.execute(
                "DELETE FROM gateway_codes WHERE platform = ? AND person = ?",
                (known.platform, known.id),
            )

        self._db.write(job)

    def remove(self, platform: str, person: str) -> bool:
        """Removes a person. Returns False if they were not known."""

        def job(connection: SqlConnection) -> bool:
            removed = connection.execute(
                "DELETE FROM gateway_people WHERE platform = ? AND id = ? RETURNING 1",
                (platform, person),
            )
            return removed.get is not None

        return self._db.write(job)

    def requests(self, since: float) -> list[PairingRequest]:
        """Returns the pending requests since a time; older ones are deleted."""

        def job(connection: SqlConnection) -> list[PairingRequest]:
            connection.execute("DELETE FROM gateway_codes WHERE made < ?", (since,))
            return [
                PairingRequest(*row)
                for row in connection.execute(
                    f"SELECT {_REQUEST} FROM gateway_codes ORDER BY made"  # noqa: S608 - our own names
                )
            ]

        return self._db.write(job)

    def ask(self, request: PairingRequest, *, most: int, since: float) -> bool:
        """Records a request. Returns False if the person already has one, or `most` are pending on the platform."""

        def job(connection: SqlConnection) -> bool:
            self._db.lock(connection, "people")
            connection.execute("DELETE FROM gateway_codes WHERE made < ?", (since,))
            waiting = connection.execute(
                "SELECT person FROM gateway_codes WHERE platform = ?",
                (request.platform,),
            ).fetchall()
            if len(waiting) >= most or (request.person,) in waiting:
                return False
            values = msgspec.structs.astuple(request)
            connection.execute(
                f"INSERT INTO gateway_codes ({_REQUEST}) VALUES (?,?,?,?,?)",  # noqa: S608 - our own names
                values,
            )
            return True

        return self._db.write(job)

    def failed(self, since: float, *, note: bool) -> int:
        """Returns how many wrong codes were tried since a time; with `note`, counts another one."""
        now = self._clock.now()

        def job(connection: SqlConnection) -> int:
            connection.execute("DELETE FROM gateway_failures WHERE at < ?", (since,))
            if note:
                connection.execute(
                    "INSERT INTO gateway_failures (at) VALUES (?)", (now,)
                )
            return int(connection.execute("SELECT count(*) FROM gateway_failures").get)

        return self._db.write(job)
