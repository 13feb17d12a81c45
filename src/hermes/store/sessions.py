"""The list of sessions: finding, naming and deleting them, and their cost."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from hermes.core.ports import Clock
from hermes.errors import SessionBusy, SessionNotFound, UsageError
from hermes.schema.events import (
    SessionCreated,
    SessionImported,
    SessionRedone,
    SessionTitled,
    SessionUndone,
)
from hermes.store import shared_text
from hermes.store.leases import find_lease, shown
from hermes.store.ports import SqlDatabase
from hermes.store.session_log import session_lock
from hermes.store.sql import SqlConnection
from hermes.text.translation import translator

t = translator(__name__)


_FIELDS = "id, epoch, head, created, updated, kind, parent, parent_seq, root, surface, cwd, title, model, messages, turns"
_MAX_CACHED_SESSIONS = 2_048  # cached origins
_ORIGIN = (
    "SELECT kind, parent, root, surface, cwd, created, place FROM sessions WHERE id = ?"
)
_OFFERED_ORIGIN = (
    f"{_ORIGIN} AND EXISTS (SELECT 1 FROM work WHERE work.session = sessions.id)"  # noqa: S608 - our own names - not translated
)
_SELECT = f"""
SELECT {_FIELDS},
  (SELECT coalesce(sum(cost_usd), 0.0) FROM usage WHERE session = sessions.id),
  (SELECT CAST(coalesce(sum(input_tokens + output_tokens), 0) AS BIGINT) FROM usage WHERE session = sessions.id),
  coalesce(pinned, 0.0), coalesce(folder, ''), coalesce(archived, 0.0), coalesce(seen, 0)
FROM sessions LEFT JOIN session_marks ON session_marks.session = sessions.id
"""  # noqa: S608 - our own names


# In the order of the log, because the clock may have been set back. What Hermes writes when it ends the turn of a dead
# process does not count.
_USES = (SessionCreated, SessionTitled, SessionImported, SessionUndone, SessionRedone)
_TOPICS = ", ".join(f"'{kind.topic}'" for kind in _USES)
_LAST = f"""
SELECT session FROM events
WHERE (role = 'user' OR type IN ({_TOPICS}))
  AND (SELECT kind != 'child' AND surface != 'batch' FROM sessions WHERE sessions.id = events.session)
ORDER BY events.id DESC LIMIT 1
"""  # noqa: S608 - our own names

_COUNTED = "calls input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens"  # not translated
_TOTALS = ", ".join(f"CAST(sum({name}) AS BIGINT)" for name in _COUNTED.split())

FAMILY = """
WITH RECURSIVE family (id) AS (
  SELECT CAST(?2 AS TEXT)
  UNION SELECT sessions.id FROM sessions, family WHERE sessions.parent = family.id AND sessions.kind = 'child'
) SELECT id FROM family
"""
"""Selects session ?2 and its child sessions."""


def families(count: int) -> str:
    """Does the same as `FAMILY` for several sessions at once, each a value of the query."""
    seeds = ", ".join("(CAST(? AS TEXT))" for _ in range(count))
    return f"""
WITH RECURSIVE family (id) AS (
  SELECT * FROM (VALUES {seeds}) AS seeds
  UNION SELECT sessions.id FROM sessions, family WHERE sessions.parent = family.id AND sessions.kind = 'child'
) SELECT id FROM family
"""  # noqa: S608 - places of values


def family_costs(count: int) -> str:
    """Selects the id and the cost in dollars of several sessions, including their child sessions."""
    seeds = ", ".join("(CAST(? AS TEXT))" for _ in range(count))
    return f"""
WITH RECURSIVE family (root, id) AS (
  SELECT column1, column1 FROM (VALUES {seeds}) AS seeds
  UNION SELECT family.root, sessions.id FROM sessions, family
  WHERE sessions.parent = family.id AND sessions.kind = 'child'
) SELECT family.root, sum(usage.cost_usd) FROM family JOIN usage ON usage.session = family.id GROUP BY family.root
"""  # noqa: S608 - places of values


class SessionInfo(msgspec.Struct, frozen=True):
    """A session in a list."""

    id: str
    epoch: int
    head: int
    created: float
    updated: float
    kind: str
    parent: str
    parent_seq: int
    root: str
    surface: str
    cwd: str
    title: str
    model: str
    messages: int
    turns: int
    cost_usd: float
    tokens: int
    pinned: float = 0.0
    """When the session was pinned; 0 if it is not."""
    folder: str = ""
    archived: float = 0.0
    """When the session was archived; 0 if it is not."""
    seen: int = 0
    """How many messages it had when the user last viewed it on the page."""

    @property
    def top(self) -> str:
        """The session that a subagent works for; empty for a session of its own."""
        return self.root if self.kind == "child" else ""


class FiledAs(NamedTuple):
    """Which sessions to list: those in a folder, the pinned or the archived ones; otherwise all but the archived."""

    folder: str | None = None
    pinned: bool = False
    archived: bool = False

    def condition(self) -> tuple[str, tuple[Any, ...]]:
        """Returns the condition in SQL, and its values."""
        archived = ">" if self.archived else "="
        text = f" AND coalesce(archived, 0) {archived} 0"
        if self.pinned:
            text += " AND pinned > 0"
        if self.folder is None:
            return text, ()
        return f"{text} AND coalesce(folder, '') = ?", (self.folder,)


class SessionOrigin(msgspec.Struct, frozen=True):
    """How a session started. This never changes."""

    kind: str
    parent: str
    root: str
    surface: str
    cwd: str
    created: float
    place: str = ""

    @property
    def working_directory(self) -> Path:
        """Where the session's tools work; the current folder if none was recorded."""
        return Path(self.cwd or ".")

    @property
    def top(self) -> str:
        """The session that a subagent works for; empty for a session of its own."""
        return self.root if self.kind == "child" else ""


class UsageRow(msgspec.Struct, frozen=True):
    """The usage of one model on one day, over the selected sessions."""

    day: str
    provider: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    cost_usd: float
    unpriced_calls: int


class SurfaceUsage(msgspec.Struct, frozen=True):
    """The usage of the sessions that were started on one surface; those of children count for their parent's."""

    surface: str
    calls: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    cost_usd: float
    unpriced_calls: int


_LISTED = "kind != 'child' AND surface != 'batch'"


class SessionTable:
    """The sessions of one database."""

    def __init__(self, database: SqlDatabase, clock: Clock) -> None:
        self._db = database
        self._clock = clock
        self._origins: dict[str, SessionOrigin] = {}

    def recent(
        self,
        *,
        limit: int = 50,
        updated_before: float | None = None,
        filed: "FiledAs | None" = None,
    ) -> list[SessionInfo]:
        """Returns sessions, most recently used first, without child sessions and the rows of batches.

        Archived ones are left out unless `filed` is None or asks for them.
        """
        bound = updated_before if updated_before is not None else float("inf")
        conditions, values = filed.condition() if filed else ("", ())
        where = (
            f"WHERE updated < ? AND {_LISTED}{conditions} "
            "ORDER BY updated DESC, id DESC LIMIT ?"
        )
        return self._select(where, (bound, *values, limit))

    def page(
        self,
        *,
        limit: int,
        updated_before: float | None = None,
        filed: "FiledAs | None" = None,
    ) -> tuple[list[SessionInfo], bool]:
        """Returns a page of `recent`, and whether there are more.

        The next page has the sessions updated before the last one of this page. A page never ends between sessions with
        the same time, because the next page would skip some; so it may be longer.
        """
        found = self.recent(limit=limit + 1, updated_before=updated_before, filed=filed)
        if len(found) <= limit:
            return found, False
        last, after = found[limit - 1 :]
        if after.updated < last.updated:
            return found[:limit], True
        conditions, values = filed.condition() if filed else ("", ())
        same = self._select(
            f"WHERE updated = ? AND id < ? AND {_LISTED}{conditions} ORDER BY id DESC",
            (last.updated, last.id, *values),
        )
        older = self.recent(limit=1, updated_before=last.updated, filed=filed)
        return found[:limit] + same, bool(older)

    def titled(self, words: str, *, limit: int) -> list[SessionInfo]:
        """Returns sessions whose title or folder contains all words, most recently used first."""
        wanted = words.casefold().split()
        query = "SELECT id, title, cwd FROM sessions WHERE kind != 'child' AND surface != 'batch' ORDER BY updated DESC"
        found: list[str] = []
        for session, title, cwd in self._db.select(query):
            text = f"{title} {cwd}".casefold()
            if len(found) < limit and all(word in text for word in wanted):
                found.append(session)
        if not found:
            return []
        places = ", ".join("?" for _ in found)
        return self._select(
            f"WHERE id IN ({places}) ORDER BY updated DESC, id DESC", tuple(found)
        )

    def children(self, session: str) -> list[SessionInfo]:
        """Returns the child sessions of a session, oldest first."""
        return self._select(
            "WHERE parent = ? AND kind = 'child' ORDER BY created, id", (session,)
        )

    def find(self, name: str) -> SessionInfo:
        """Returns the session with that id, start of an id, or exact title; `last` is the newest."""
        if not name.strip():
            hint = t.later("Give its id, the beginning of one, its title, or `last`.")
            raise UsageError(t.later("which session? The name is empty"), hint=hint)
        if name == "last":
            found = self._select(f"WHERE id = ({_LAST})", ())
        else:
            found = self._select("WHERE id = ?", (name,)) or self._select(
                "WHERE substr(id, 1, length(?1)) = ?1 OR title = ?1 ORDER BY updated DESC LIMIT 9",
                (name,),
            )
        if len(found) == 1:
            return found[0]
        if not found:
            raise _unknown(name)
        names = ", ".join(info.id for info in found)
        raise SessionNotFound(
            t.later(
                "{name!r} matches several sessions: {names}", name=name, names=names
            ),
            hint=t.later("Give more of the id."),
        )

    def origin(self, session: str) -> SessionOrigin:
        """Returns how a session started; cached."""
        known = self._origins.get(session) or self._read_origin(_ORIGIN, session)
        if known is None:
            raise _unknown(session)
        return known

    def known_origin(self, session: str) -> SessionOrigin | None:
        """Returns how a session started if that is cached; never queries the database."""
        return self._origins.get(session)

    def offered_origin(self, session: str) -> SessionOrigin | None:
        """Returns how a session started that waits for a worker or is being answered by one; None for any other."""
        return self._read_origin(_OFFERED_ORIGIN, session)

    def _read_origin(self, query: str, session: str) -> SessionOrigin | None:
        row = self._db.run_on_reader(
            lambda connection: connection.execute(query, (session,)).fetchone()
        )
        if row is None:
            return None
        if len(self._origins) >= _MAX_CACHED_SESSIONS:
            self._origins.clear()
        self._origins[session] = origin = SessionOrigin(*row)
        return origin

    def missing(self, sessions: Collection[str]) -> set[str]:
        """Returns those of the given ids that do not exist."""
        places = ", ".join("?" for _ in sessions)
        query = f"SELECT id FROM sessions WHERE id IN ({places})"  # noqa: S608 - placeholders
        return set(sessions) - {
            one for (one,) in self._db.select(query, tuple(sessions))
        }

    def title(self, session: str) -> str:
        """Returns a session's title; empty if it has none yet."""
        query = "SELECT title FROM sessions WHERE id = ?"
        row = self._db.run_on_reader(
            lambda connection: connection.execute(query, (session,)).fetchone()
        )
        if row is None:
            raise _unknown(session)
        return str(row[0])

    def delete(self, session: str) -> int:
        """Deletes a session and all its rows, unless it or a child of it is running. Returns the number of rows."""

        def job(connection: SqlConnection) -> int:
            self._db.lock(connection, session_lock(session))
            self._require_idle(connection, session)
            self._db.forget_messages(connection, session)
            rows = connection.execute(
                "SELECT count(*) FROM events WHERE session = ?", (session,)
            ).get
            for table in (
                "events",
                "usage",
                "leases",
                "claims",
                "work",
                "session_marks",
            ):
                connection.execute(f"DELETE FROM {table} WHERE session = ?", (session,))  # noqa: S608 - our own names
            connection.execute("DELETE FROM sessions WHERE id = ?", (session,))
            connection.execute(shared_text.FORGET)
            return int(rows)

        rows = self._db.write_indexed(job)
        self._origins.pop(session, None)
        return rows

    def _require_idle(self, connection: SqlConnection, session: str) -> None:
        """Raises SessionBusy while a session, or one that works for it, is running."""
        now = self._db.lease_time(connection, self._clock)
        family = [one for (one,) in connection.execute(families(1), (session,))]
        for one in family:
            held = find_lease(connection, one)
            if held is None or not self._db.holds(held.owner, held.expires, now):
                continue
            if one == session:
                what = t.later("session {session}", session=session)
                hint = t.later("Nothing was deleted. Stop its turn first.")
            else:
                what = t.later(
                    "session {one}, which works for session {session} in the background,",
                    one=one,
                    session=session,
                )
                hint = t.later(
                    "Nothing was deleted. Stop it first: hermes agents stop {one}",
                    one=one,
                )
            raise SessionBusy(
                t.later(
                    "{what} is being run by {owner}", what=what, owner=shown(held.owner)
                ),
                hint=hint,
            )

    def usage(self, *, session: str = "", since_day: str = "") -> list[UsageRow]:
        """Returns tokens and cost by day and model; of a session, including its children."""
        where: str = "day >= ?1"
        values: tuple[str, ...] = (since_day,)
        if session:
            where, values = f"day >= ?1 AND session IN ({FAMILY})", (since_day, session)
        query = f"""
        SELECT day, provider, model, {_TOTALS}, sum(cost_usd), CAST(sum(unpriced_calls) AS BIGINT)
        FROM usage WHERE {where} GROUP BY day, provider, model
        """  # noqa: S608 - one of two texts of our own
        rows = self._db.run_on_reader(
            lambda connection: connection.execute(query, values).fetchall()
        )
        return [UsageRow(*row) for row in sorted(rows)]

    def usage_by_surface(self, *, since_day: str = "") -> list[SurfaceUsage]:
        """Returns tokens and cost by the surface on which sessions were started, the costliest first."""
        query = f"""
        SELECT coalesce(roots.surface, sessions.surface), {_TOTALS}, sum(usage.cost_usd),
          CAST(sum(unpriced_calls) AS BIGINT)
        FROM usage JOIN sessions ON sessions.id = usage.session
          LEFT JOIN sessions AS roots ON roots.id = sessions.root
        WHERE day >= ?1 GROUP BY 1
        """  # noqa: S608 - our own names
        found = [SurfaceUsage(*row) for row in self._db.select(query, (since_day,))]
        return sorted(found, key=lambda one: (-one.cost_usd, -one.calls, one.surface))

    def _select(self, rest: str, values: tuple[Any, ...]) -> list[SessionInfo]:
        rows = self._db.run_on_reader(
            lambda connection: connection.execute(_SELECT + rest, values).fetchall()
        )
        return [SessionInfo(*row) for row in rows]


def _unknown(name: str) -> SessionNotFound:
    if name == "last":
        return SessionNotFound(
            t.later("There are no sessions yet."), hint=t.later("Begin one: hermes")
        )
    return SessionNotFound(
        t.later("there is no session {name!r}", name=name),
        hint=t.later("`hermes sessions list`, or /sessions in a chat, lists them."),
    )


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
        """Records that the user viewed a session when it had that many messages."""
        self._set("seen", (session,), messages)

    def folders(self) -> list[str]:
        """Returns the names of all folders that contain a session."""
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
