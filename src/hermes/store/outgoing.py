"""Messages to chats that belong to no session: any process writes them, and a gateway delivers them."""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from hermes.store.ports import SqlDatabase
from hermes.store.sql import SqlConnection

SendState: TypeAlias = Literal["waiting", "sending", "sent", "failed"]

_FIELDS = "id, target, body, files, made, until, state, reason"
_OPEN = "state IN ('waiting', 'sending')"


class QueuedFile(msgspec.Struct, frozen=True):
    """A file to send: the path of its copy, and its name."""

    path: str
    name: str


class OutgoingMessage(msgspec.Struct, frozen=True):
    """A message and its state. It expires at the time `until`."""

    id: str
    target: str
    body: str
    files: tuple[QueuedFile, ...]
    made: float
    until: float
    state: SendState = "waiting"
    reason: str = ""

    @property
    def is_over(self) -> bool:
        return self.state in ("sent", "failed")


class OutgoingTable:
    """The messages of one database."""

    def __init__(self, database: SqlDatabase) -> None:
        self._db = database

    def put(self, message: OutgoingMessage) -> None:
        """Saves a message to send. Saving the same message again has no effect."""
        values = msgspec.structs.asdict(message)
        values["files"] = msgspec.json.encode(message.files).decode()
        query = f"INSERT INTO gateway_sends ({_FIELDS}) VALUES (?,?,?,?,?,?,?,?) ON CONFLICT (id) DO NOTHING"  # noqa: S608 - our own names
        self._change(query, *(values[name] for name in _FIELDS.split(", ")))

    def find(self, name: str) -> OutgoingMessage | None:
        """Returns a message by its id."""
        found = self._select("id = ?", name)
        return found[0] if found else None

    def known(self, names: Sequence[str]) -> dict[str, OutgoingMessage]:
        """Returns those of the messages that exist, by their ids."""
        if not names:
            return {}
        places = ", ".join("?" for _ in names)
        return {one.id: one for one in self._select(f"id IN ({places})", *names)}

    def open(self) -> list[OutgoingMessage]:
        """Returns the messages that have not ended, oldest first."""
        return self._select(f"{_OPEN} ORDER BY made, id")  # not translated

    def begin(self, name: str) -> bool:
        """Records that a message is about to be sent. Returns False if it has already ended."""
        query = f"UPDATE gateway_sends SET state = 'sending' WHERE id = ? AND {_OPEN} RETURNING 1"  # noqa: S608 - our own words
        return self._change(query, name)

    def end(self, name: str, state: SendState, reason: str = "") -> bool:
        """Records how a message ended and deletes its text. Returns False if it had already ended."""
        query = f"UPDATE gateway_sends SET state = ?, reason = ?, body = '', files = '[]' WHERE id = ? AND {_OPEN} RETURNING 1"  # noqa: S608 - our own words
        return self._change(query, state, reason, name)

    def withdraw(self, name: str, reason: str) -> bool:
        """Ends a message that no process has begun to send. Returns False if one has."""
        query = """UPDATE gateway_sends SET state = 'failed', reason = ?, body = '', files = '[]'
        WHERE id = ? AND state = 'waiting' RETURNING 1"""
        return self._change(query, reason, name)

    def forget(self, before: float) -> None:
        """Deletes ended messages that were created before a time."""
        query = f"DELETE FROM gateway_sends WHERE made < ? AND NOT {_OPEN} RETURNING 1"  # noqa: S608 - our own words
        self._change(query, before)

    def _change(self, query: str, *values: str | float) -> bool:
        def job(connection: SqlConnection) -> bool:
            return bool(connection.execute(query, values).fetchall())

        return self._db.write(job)

    def _select(self, where: str, *values: str) -> list[OutgoingMessage]:
        query = f"SELECT {_FIELDS} FROM gateway_sends WHERE {where}"  # noqa: S608 - our own words
        return [_message(row) for row in self._db.select(query, values)]


def _message(row: tuple[Any, ...]) -> OutgoingMessage:
    fields = dict(zip(_FIELDS.split(", "), row, strict=True))
    fields["files"] = msgspec.json.decode(fields["files"])
    return msgspec.convert(fields, OutgoingMessage)
