"""How the user files sessions: pins, folders, the archive, and how far they were looked at."""

from collections.abc import Sequence
from typing import Any

from hermes.core.ports import Clock
from hermes.store.ports import SqlDatabase
from hermes.store.sql import SqlConnection


class SessionMarks:
    """The marks of one database. A session without a row has none."""

    def __init__(self, database: SqlDatabase, clock: Clock) -> None:
        self._db = database
        self._clock = clock

    def pin(self, sessions: Sequence[str], *, pinned: bool) -> None:
        self._set("pinned", sessions, self._clock.now() if pinned else 0.0)

    def archive(self, sessions: Sequence[str], *, archived: bool) -> None:
        self._set("archived", sessions, self._clock.now() if archived else 0.0)

    def move(self, sessions: Sequence[str], folder: str) -> None:
        """Puts sessions into a folder; an empty name takes them out of theirs."""
        self._set("folder", sessions, folder)

    def see(self, session: str, messages: int) -> None:
        """Writes that somebody looked at a session when it had that many messages."""
        self._set("seen", (session,), messages)

    def folders(self) -> list[str]:
        """Returns the names of all folders that hold a session."""
        query = "SELECT DISTINCT folder FROM session_marks WHERE folder != '' ORDER BY folder"
        return [name for (name,) in self._db.select(query)]

    def _set(self, column: str, sessions: Sequence[str], value: Any) -> None:
        statement = f"""
        INSERT INTO session_marks (session, {column}) VALUES (?, ?)
        ON CONFLICT (session) DO UPDATE SET {column} = excluded.{column}
        """  # noqa: S608 - one of our own names

        def job(connection: SqlConnection) -> None:
            for session in sessions:
                connection.execute(statement, (session, value))

        self._db.write(job)
