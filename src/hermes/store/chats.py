"""The gateway's tables: the session of each chat, received messages and sent messages.

Writes return futures that resolve once the rows are on disk.
"""

from collections.abc import Sequence
from concurrent.futures import Future

import msgspec

from hermes.core.ports import Clock
from hermes.store.ports import SqlDatabase
from hermes.store.sql import SqlConnection

_BINDING = "key, session, chat, person, seq, busy, model"
_HANDLED = "UPDATE gateway_inbox SET data = '' WHERE platform = ? AND id = ?"
_PIECE = "id, session, seq, part, state, message"
_SENT = "INSERT INTO gateway_outbox (chat, session, seq, part, state, message, ts)"


class Binding(msgspec.Struct, frozen=True):
    """A chat and its session. Everything up to row `seq` was delivered."""

    key: str
    session: str
    chat: str
    person: str = ""
    seq: int = 0
    busy: bool = False
    model: str = ""


class PendingMessage(msgspec.Struct, frozen=True):
    """A message that was received and not handled yet."""

    platform: str
    id: str
    data: str


class DeliveredMessage(msgspec.Struct, frozen=True):
    """A message sent to a platform, or an attempt.

    `seq` is 0 while its text is being written; `id` is 0 for a message that need not be recorded
    before it is sent.
    """

    id: int
    session: str
    seq: int
    part: int
    state: str = "sending"
    message: str = ""


class Chats:
    """The gateway's tables of one database."""

    def __init__(self, database: SqlDatabase, clock: Clock) -> None:
        self._db = database
        self._clock = clock

    # --- which session

    def find(self, key: str) -> Binding | None:
        """Returns the binding of a chat."""
        return self._one("key = ?", key)

    def of_session(self, session: str) -> Binding | None:
        """Returns the chat of a session."""
        return self._one("session = ?", session)

    def busy(self) -> list[Binding]:
        """Returns the chats that were busy when last recorded."""
        return self._every("busy = 1", ())

    def behind(self) -> list[Binding]:
        """Returns the chats whose session has undelivered rows."""
        query = f"""
        SELECT {", ".join(f"gateway_chats.{name}" for name in _BINDING.split(", "))}
        FROM gateway_chats JOIN sessions ON sessions.id = session WHERE sessions.head > gateway_chats.seq
        """  # noqa: S608 - our own names
        rows = self._db.run_on_reader(
            lambda connection: connection.execute(query).fetchall()
        )
        return [_binding(row) for row in rows]

    def recent(self, limit: int = 100) -> list[Binding]:
        """Returns chats, most recently used first."""
        return self._every(
            "1 = 1 ORDER BY updated DESC LIMIT ?", (limit,)
        )  # not translated

    def of_person(self, platform: str, person: str) -> list[Binding]:
        """Returns the chats a person started, most recently used first."""
        place = f"{platform}/"
        return self._every(
            "person = ? AND substr(key, 1, ?) = ? ORDER BY updated DESC",  # not translated
            (person, len(place), place),
        )

    def shown(self, key: str, limit: int = 50) -> list[str]:
        """Returns sessions recently sent to a chat, latest first."""
        query = (
            "SELECT session FROM gateway_outbox WHERE chat = ? ORDER BY id DESC LIMIT ?"
        )
        rows = self._db.run_on_reader(
            lambda connection: connection.execute(query, (key, limit)).fetchall()
        )
        return list(dict.fromkeys(row[0] for row in rows))

    def bind(self, binding: Binding) -> "Future[None]":
        """Binds a chat to a session; another chat bound to it loses it."""
        values = (*msgspec.structs.astuple(binding), self._clock.now())

        def job(connection: SqlConnection) -> None:
            self._db.lock(connection, "chats")
            connection.execute(
                "DELETE FROM gateway_chats WHERE session = ? OR key = ?",
                (binding.session, binding.key),
            )
            connection.execute(
                f"INSERT INTO gateway_chats ({_BINDING}, updated) VALUES (?,?,?,?,?,?,?,?)",  # noqa: S608 - our own names
                values,
            )

        return self._db.submit(job, order="chats")

    def set_model(self, key: str, model: str) -> "Future[None]":
        """Sets the model of a chat."""
        return self._do(
            "UPDATE gateway_chats SET model = ? WHERE key = ?", (model, key)
        )

    # --- what came in

    def accept(self, platform: str, name: str, data: str, key: str) -> "Future[bool]":
        """Records a received message and marks its chat busy. Returns False if it was received before."""
        now = self._clock.now()

        def job(connection: SqlConnection) -> bool:
            is_new = connection.execute(
                "INSERT INTO gateway_inbox (platform, id, received, data) VALUES (?,?,?,?) ON CONFLICT DO NOTHING RETURNING 1",
                (platform, name, now, data),
            ).get
            if is_new is None:
                return False
            connection.execute(
                "UPDATE gateway_chats SET busy = 1 WHERE key = ? AND busy = 0", (key,)
            )
            return True

        return self._db.submit(job, order="chats")

    def handled(self, platform: str, name: str) -> "Future[None]":
        """Marks a message as handled; its id is kept."""
        return self._do(_HANDLED, (platform, name))

    def waiting(self) -> list[PendingMessage]:
        """Returns the messages not handled yet, oldest first."""
        query = "SELECT platform, id, data FROM gateway_inbox WHERE data != '' ORDER BY received"
        return [
            PendingMessage(*row)
            for row in self._db.run_on_reader(
                lambda connection: connection.execute(query).fetchall()
            )
        ]

    def last_received(self, platform: str) -> float:
        """Returns when a platform's last message was received; 0 for never."""
        query = "SELECT max(received) FROM gateway_inbox WHERE platform = ?"
        row = self._db.run_on_reader(
            lambda connection: connection.execute(query, (platform,)).fetchone()
        )
        return float(row[0] or 0.0) if row else 0.0

    def forget(self, before: float) -> "Future[None]":
        """Deletes older records: ids of messages no platform sends again, and how replies were sent."""

        def job(connection: SqlConnection) -> None:
            connection.execute(
                "DELETE FROM gateway_inbox WHERE received < ? AND data = ''", (before,)
            )
            connection.execute(
                "DELETE FROM gateway_outbox WHERE ts < ? AND state != 'sending'",
                (before,),
            )

        return self._db.submit(job, order="chats")

    # --- what was sent

    def sending(
        self, key: str, session: str, seq: int, part: int
    ) -> "Future[DeliveredMessage]":
        """Records a message before it is sent."""
        values = (key, session, seq, part, self._clock.now())

        def job(connection: SqlConnection) -> DeliveredMessage:
            number = connection.execute(
                f"{_SENT} VALUES (?,?,?,?,'sending','',?) RETURNING id", values
            ).get
            return DeliveredMessage(number, session, seq, part)

        return self._db.submit(job, order="chats")

    def sent(self, key: str, piece: DeliveredMessage) -> "Future[None]":
        """Records that a message has arrived, with its id and row."""
        if not piece.id:
            row = (
                key,
                piece.session,
                piece.seq,
                piece.part,
                piece.state,
                piece.message,
                self._clock.now(),
            )
            return self._do(f"{_SENT} VALUES (?,?,?,?,?,?,?)", row)
        values = (piece.seq, piece.part, piece.state, piece.message, piece.id)
        return self._do(
            "UPDATE gateway_outbox SET seq = ?, part = ?, state = ?, message = ? WHERE id = ?",
            values,
        )

    def rest(
        self, key: str, session: str, seq: int, handled: Sequence[str] = ()
    ) -> "Future[None]":
        """Records that everything up to a row was delivered and that the chat is idle."""
        now, platform = self._clock.now(), key.partition("/")[0]

        def job(connection: SqlConnection) -> None:
            query = """UPDATE gateway_chats SET seq = CASE WHEN seq > ?1 THEN seq ELSE ?1 END, busy = 0, updated = ?2
            WHERE key = ?3 AND session = ?4"""
            connection.execute(query, (seq, now, key, session))
            for name in handled:
                connection.execute(_HANDLED, (platform, name))

        return self._db.submit(job, order="chats")

    def everywhere(self, session: str, seq: int) -> list[tuple[str, DeliveredMessage]]:
        """Returns the messages of one row in all chats that received it, with their keys."""
        query = f"""
        SELECT chat, {_PIECE} FROM gateway_outbox WHERE session = ? AND seq = ? AND message != '' ORDER BY id
        """  # noqa: S608 - our own names
        rows = self._db.run_on_reader(
            lambda connection: connection.execute(query, (session, seq)).fetchall()
        )
        return [(row[0], DeliveredMessage(*row[1:])) for row in rows]

    def piece(self, number: int) -> tuple[str, DeliveredMessage] | None:
        """Returns a message by its number, with the key of its chat."""
        query = f"SELECT chat, {_PIECE} FROM gateway_outbox WHERE id = ?"  # noqa: S608 - our own names
        row = self._db.run_on_reader(
            lambda connection: connection.execute(query, (number,)).fetchone()
        )
        if row:
            return (row[0], DeliveredMessage(*row[1:]))
        return None

    def pieces(self, key: str, session: str, seq: int) -> list[DeliveredMessage]:
        """Returns what was sent of one row, or of the row being written (0), in order."""
        query = f"""
        SELECT {_PIECE} FROM gateway_outbox WHERE chat = ? AND session = ? AND seq = ? ORDER BY part, id
        """  # noqa: S608 - our own names
        return [
            DeliveredMessage(*row)
            for row in self._db.select(query, (key, session, seq))
        ]

    def _one(self, where: str, value: str) -> Binding | None:
        found = self._every(where, (value,))
        return found[0] if found else None

    def _every(self, where: str, values: tuple[str | int, ...]) -> list[Binding]:
        query = f"SELECT {_BINDING} FROM gateway_chats WHERE {where}"  # noqa: S608 - our own words
        return [_binding(row) for row in self._db.select(query, values)]

    def _do(self, query: str, values: tuple[str | int | float, ...]) -> "Future[None]":
        def job(connection: SqlConnection) -> None:
            connection.execute(query, values).fetchall()

        return self._db.submit(job, order="chats")


def _binding(row: tuple[str | int, ...]) -> Binding:
    return msgspec.convert(
        dict(zip(_BINDING.split(", "), row, strict=True)), Binding, strict=False
    )
