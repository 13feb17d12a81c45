"""The log: one append-only sequence of events per session. Rows that `append` returned are on disk."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import msgspec

from hermes.core.ports import Clock
from hermes.errors import SessionNotFound, StoreError
from hermes.primitives.lazy_pattern import lazy_pattern
from hermes.schema.event_base import Event
from hermes.schema.events import (
    ApprovalRequested,
    QuestionAsked,
    SessionCreated,
    SessionRecovered,
    TurnEnded,
    TurnStarted,
)
from hermes.schema.messages import MESSAGES, AssistantMessage, Message
from hermes.store.answers import CHECKED, require_allowed
from hermes.store.leases import Lease, require
from hermes.store.log_row import (
    MESSAGE_COLUMNS,
    STORED,
    DamagedRow,
    Row,
    checked,
    checked_messages,
    draft,
)
from hermes.store.ports import SqlDatabase
from hermes.store.projection import project
from hermes.store.sql import SqlConnection
from hermes.store.work_queue import OFFER
from hermes.text.translation import translator

t = translator(__name__)


_PAGE_ROWS = 1000
_HEAD = "SELECT head, epoch FROM sessions WHERE id = ?"
PAGE = f"SELECT {STORED} FROM events WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?"  # noqa: S608 - our own names
_PART = f"SELECT {STORED} FROM events WHERE session = ? AND seq > 1 AND seq <= ? ORDER BY seq"  # noqa: S608 - our own names
_LAST_TURN = (
    f"SELECT type FROM events WHERE session = ? AND type IN ('{TurnStarted.topic}', '{TurnEnded.topic}')"  # noqa: S608 - our own names
    " ORDER BY seq DESC LIMIT 1"
)
_LATEST = (
    f"SELECT {STORED} FROM events WHERE session = ? AND type = ?"  # noqa: S608 - our own names
    " ORDER BY seq DESC LIMIT 1"
)
_ASKED_SINCE_REPLY = (
    f"SELECT 1 FROM events WHERE session = ? AND type IN ('{ApprovalRequested.topic}', '{QuestionAsked.topic}')"  # noqa: S608 - our own names
    f" AND seq > coalesce((SELECT seq FROM events WHERE session = ? AND type = '{AssistantMessage.topic}'"
    " ORDER BY seq DESC LIMIT 1), 0) LIMIT 1"
)
_IDS = "SELECT id FROM events WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"
_BETWEEN = f"SELECT {STORED} FROM events WHERE id BETWEEN ? AND ? ORDER BY id"  # noqa: S608 - our own names
_MESSAGES = f"SELECT {MESSAGE_COLUMNS} FROM events WHERE session = ? AND role IS NOT NULL AND seq > ? ORDER BY seq"  # noqa: S608 - our own names

_NAME = lazy_pattern(r"[^\s\x00-\x1f\x7f\ud800-\udfff]{1,200}")

_decoders: dict[str, Callable[[bytes], Any]] = {
    cls.topic: msgspec.json.Decoder(cls).decode for cls in MESSAGES
}


InsertRow = Callable[[SqlConnection, Row, Event | None], int]
"""Inserts a row into the log and returns its id."""


class NewRows(NamedTuple):
    """A page of the rows of all sessions."""

    last: int
    """The `id` up to which was read."""
    rows: list[Row]
    is_full: bool
    """Whether there may be more."""


class SessionLog:
    """Appends to and reads the sessions of one database."""

    def __init__(self, database: SqlDatabase, clock: Clock) -> None:
        self._db = database
        self._clock = clock
        self._mine: set[int] | None = None

    def create(self, session: str, created: SessionCreated) -> Row:
        """Creates a session with its first row. Raises if the name exists."""
        entry = draft(created)
        require_name(session)

        def job(connection: SqlConnection) -> Row:
            self._db.lock(connection, session_lock(session))
            require_free(connection, session)
            now = self._clock.now()
            row = Row(0, session, 1, new_epoch(now), now, *entry[:2], "", entry.data)
            return self._noted(write_row(self._db.insert_row, connection, row, created))

        return self._db.write(job, order=session)

    def append(
        self, session: str, *events: Event, turn: str = "", lease: Lease | None = None
    ) -> tuple[Row, ...]:
        """Writes the events in order, all or none, and returns once they are on disk.

        With a lease, nothing is written unless that lease still holds. An answer is written only if
        it fits a question that is open at that moment, an automatic title only if the user has not
        named the session.
        """
        return self._db.write(
            self._appending(session, events, turn, lease), order=session
        )

    def submit(
        self,
        session: str,
        *events: Event,
        turn: str = "",
        lease: Lease | None = None,
        offer: bool = False,
    ) -> "Future[tuple[Row, ...]]":
        """Does the same as `append`, without waiting: the future resolves once the rows are on disk.

        With `offer`, the session waits for a worker from then on.
        """
        return self._db.submit(
            self._appending(session, events, turn, lease, offer), order=session
        )

    def _appending(
        self,
        session: str,
        events: Sequence[Event],
        turn: str,
        lease: Lease | None,
        offer: bool = False,
    ) -> Callable[[SqlConnection], tuple[Row, ...]]:
        entries = [(draft(event), event) for event in events]
        if any(isinstance(event, SessionCreated) for event in events):
            raise StoreError(
                t.later("not saved: a session is created once, at its beginning")
            )

        def job(connection: SqlConnection) -> tuple[Row, ...]:
            self._db.lock(connection, session_lock(session))
            if lease is not None:
                require(connection, lease)
            head, epoch = head_of(connection, session)
            now = self._clock.now()
            rows: list[Row] = []
            for seq, (entry, event) in enumerate(entries, head + 1):
                if isinstance(event, CHECKED):
                    require_allowed(connection, session, event)
                row = Row(0, session, seq, epoch, now, *entry[:2], turn, entry.data)
                written = write_row(self._db.insert_row, connection, row, event)
                rows.append(self._noted(written))
            if offer:
                connection.execute(OFFER, (now, session))
            return tuple(rows)

        return job

    def _noted(self, row: Row) -> Row:
        if self._mine is not None:
            self._mine.add(row.id)
        return row

    def events(
        self,
        session: str,
        *,
        after: int = 0,
        limit: int = 1000,
        is_known: bool = False,
    ) -> list[Row]:
        """Returns up to `limit` rows after the given seq, in order.

        Raises SessionNotFound if there is no such session; with `is_known` that is not checked.
        """
        rows = self._db.run_on_reader(
            lambda connection: checked(
                connection.execute(PAGE, (session, after, limit))
            )
        )
        if rows or is_known:
            return rows
        if not self._db.select(_HEAD, (session,)):
            raise missing_session(session)
        return rows

    def fetch(
        self, session: str, *, after: int = 0, limit: int = 1000
    ) -> "Future[list[Row]]":
        """Reads as `events` with `is_known` does, without waiting for a server."""
        future: Future[list[Row]] = Future()
        try:
            rows = self.events(session, after=after, limit=limit, is_known=True)
        except Exception as error:  # noqa: BLE001 - whoever awaits the future gets it
            future.set_exception(error)
        else:
            future.set_result(rows)
        return future

    def has_open_turn(self, session: str) -> bool:
        """Returns whether a turn of the session has started but not ended."""
        return self._db.select(_LAST_TURN, (session,)) == [(TurnStarted.topic,)]

    def latest(self, session: str, topic: str) -> Event | None:
        """Returns the newest event with that topic in a session; None if there is none."""
        rows = self._db.run_on_reader(
            lambda connection: checked(connection.execute(_LATEST, (session, topic)))
        )
        return rows[0].event if rows else None

    def asked_since_reply(self, session: str) -> bool:
        """Returns whether a question was asked since the model's last message, which ends all earlier questions."""
        return bool(self._db.select(_ASKED_SINCE_REPLY, (session, session)))

    def remember(self) -> None:
        """Makes `since` leave out rows written through this log, from now on."""
        self._mine = self._mine if self._mine is not None else set()

    def newest(self) -> int:
        """Returns the `id` of the last row of all sessions; 0 if there is none."""
        query = "SELECT coalesce(max(id), 0) FROM events WHERE id <= ?"
        return int(
            self._db.read(
                lambda connection: (
                    connection.execute(query, (self._db.read_limit(connection),)).get
                )
            )
        )

    def since(self, number: int, *, limit: int = 1000) -> "NewRows":
        """Returns rows of any session with a larger `id`, in order of writing, without those of
        `remember`. Reads at most `limit` rows.
        """

        def job(connection: SqlConnection) -> NewRows:
            end = self._db.read_limit(connection)
            ids = [one for (one,) in connection.execute(_IDS, (number, end, limit))]
            mine = self._mine or set()
            others = [one for one in ids if one not in mine]
            mine.difference_update(ids)
            is_full = len(ids) == limit
            if not others:
                return NewRows(ids[-1] if ids else number, [], is_full)
            wanted = set(others)
            found = connection.execute(_BETWEEN, (others[0], others[-1]))
            rows = checked(row for row in found if row[0] in wanted)
            return NewRows(ids[-1], rows, is_full)

        return self._db.read(job)

    def of_topics(
        self, topics: Sequence[str], *, after: int, limit: int
    ) -> tuple[int, list[Row]]:
        """Returns rows of any session with these topics and a larger `id`, in order of writing.

        Also returns the `id` up to which it read. Reads at most `limit` of them.
        """
        places = ", ".join("?" for _ in topics)
        query = f"SELECT {STORED} FROM events WHERE id > ? AND id <= ? AND type IN ({places}) ORDER BY id LIMIT ?"  # noqa: S608 - our own names

        def job(connection: SqlConnection) -> tuple[int, list[Row]]:
            end = self._db.read_limit(connection)
            newest = "SELECT coalesce(max(id), 0) FROM events WHERE id <= ?"
            last = max(after, int(connection.execute(newest, (end,)).get))
            values = (after, last, *topics, limit)
            rows = checked(connection.execute(query, values))
            return (rows[-1].id if len(rows) == limit else last), rows

        return self._db.read(job)

    def every(
        self,
        *,
        session: str = "",
        since: float = 0.0,
        after: int = 0,
        limit: int = 1000,
    ) -> list[Row]:
        """Returns up to `limit` rows of a session, or of all, in order of writing; `after` is a
        row's id.
        """
        query = f"SELECT {STORED} FROM events WHERE id > ?1 AND ts >= ?2"  # noqa: S608 - our own names
        if session:
            query += " AND session = ?3"
        values = (after, since, session) if session else (after, since)

        def job(connection: SqlConnection) -> list[Row]:
            limited = f"{query} ORDER BY id LIMIT {int(limit)}"  # not translated
            return checked(connection.execute(limited, values))

        return self._db.run_on_reader(job)

    def every_event(self, session: str) -> Iterator[Row]:
        """Yields all rows of a session, read in pages, so that memory stays flat."""
        page = self.events(session, limit=_PAGE_ROWS)
        yield from page
        if len(page) == _PAGE_ROWS:
            yield from self.rows_after(session, page[-1].seq)

    def rows_after(self, session: str, after: int) -> Iterator[Row]:
        """Yields the rows after a seq, in pages too; none of a session that is gone."""
        while page := self.events(
            session, after=after, limit=_PAGE_ROWS, is_known=True
        ):
            yield from page
            if len(page) < _PAGE_ROWS:
                return
            after = page[-1].seq

    def messages(self, session: str, *, after: int = 0) -> list[Message]:
        """Returns the messages in order, including those compacted since."""

        def job(connection: SqlConnection) -> list[Message]:
            head_of(connection, session)
            try:
                stored = connection.execute(_MESSAGES, (session, after))
                return [
                    _decoders[kind](data)
                    for kind, data in checked_messages(session, stored)
                ]
            except (KeyError, msgspec.ValidationError) as error:
                raise StoreError(
                    t.later(
                        "session {session} has a message of a newer Hermes: {error}",
                        session=session,
                        error=error,
                    )
                ) from error
            except msgspec.DecodeError as error:
                raise DamagedRow(
                    t.logged("a message that is not valid ({error})", error=error)
                ) from error

        return self._db.read(job)

    def branch(
        self, session: str, new: str, *, at: int | None = None, surface: str = ""
    ) -> Row:
        """Creates `new` with a copy of the rows of `session` up to `at` (default: all). The parent
        is unchanged.
        """

        require_name(new)

        def job(connection: SqlConnection) -> Row:
            self._db.lock(connection, session_lock(new))
            head, _ = head_of(connection, session)
            if at is not None and not 1 <= at <= head:
                raise StoreError(
                    t.later(
                        "session {session} has rows 1 to {head}, not {at}",
                        session=session,
                        head=head,
                        at=at,
                    )
                )
            require_free(connection, new)
            last = _last_row(connection, session, head if at is None else at)
            root, cwd, place = connection.execute(
                "SELECT root, cwd, place FROM sessions WHERE id = ?", (session,)
            ).get
            created = SessionCreated(
                kind="branch",
                parent=session,
                parent_seq=last,
                root=root,
                surface=surface,
                cwd=cwd,
                place=place,
                person=_person(connection, session),
            )
            entry = draft(created)
            now = self._clock.now()
            first = write_row(
                self._db.insert_row,
                connection,
                Row(0, new, 1, new_epoch(now), now, *entry[:2], "", entry.data),
                created,
            )
            _copy_rows(self._db.insert_row, connection, session, first, last)
            connection.execute(
                "UPDATE sessions SET updated = ? WHERE id = ?", (now, new)
            )
            return first

        return self._db.write(job)


def _person(connection: SqlConnection, session: str) -> str:
    """Returns whose memory a session uses, from its first row."""
    rows = checked(connection.execute(PAGE, (session, 0, 1)))
    created = rows[0].event if rows else None
    return created.person if isinstance(created, SessionCreated) else ""


def require_name(session: str) -> None:
    """Raises for a name that could not be typed or shown."""
    if not _NAME.fullmatch(session):
        hint = t.later("Use 1 to 200 characters without spaces.")
        raise StoreError(
            t.later("{session!r} can't be the id of a session", session=session[:200]),
            hint=hint,
        )


def require_free(connection: SqlConnection, session: str) -> None:
    """Raises for a name that is taken."""
    if _head(connection, session) is not None:
        raise StoreError(t.later("session {session} exists already", session=session))


def new_epoch(now: float) -> int:
    """Returns an epoch that no earlier incarnation of the session had: its start in milliseconds."""
    return int(now * 1000)


def head_of(connection: SqlConnection, session: str) -> tuple[int, int]:
    """Returns the last seq and the epoch of a session that must exist."""
    found = _head(connection, session)
    if found is None:
        raise missing_session(session)
    return found


def session_lock(session: str) -> str:
    """Returns the name of the lock under which a session's rows and lease are written."""
    return f"session {session}"


def write_row(
    insert: InsertRow, connection: SqlConnection, row: Row, event: Event | None
) -> Row:
    """Inserts a row and applies it to the projections. Returns the row with its id."""
    number = insert(connection, row, event)
    project(connection, row, event)
    return row._replace(id=number)


def _last_row(connection: SqlConnection, session: str, at: int) -> int:
    """Returns the last row up to `at`: a recovered session may lack row `at` itself."""
    return int(
        connection.execute(
            "SELECT max(seq) FROM events WHERE session = ? AND seq <= ?", (session, at)
        ).get
    )


def _copy_rows(
    insert: InsertRow, connection: SqlConnection, source: str, first: Row, last: int
) -> None:
    """Copies rows 2 to `last` of `source` after `first`, keeping their seq and time."""
    rows = checked(connection.execute(_PART, (source, last)))
    if len(rows) < last - 1:
        rows += _note_of_loss(connection, source, last)
    for row in rows:
        write_row(
            insert,
            connection,
            row._replace(session=first.session, epoch=first.epoch),
            row.event,
        )


def _note_of_loss(connection: SqlConnection, source: str, last: int) -> list[Row]:
    """Returns the row in which a recovery reported losses, as the next one, if it is not among
    those up to `last`.
    """
    query = f"SELECT {STORED} FROM events WHERE session = ? AND type = ? ORDER BY seq LIMIT 1"  # noqa: S608 - our own names
    notes = checked(connection.execute(query, (source, SessionRecovered.topic)))
    return [note._replace(seq=last + 1) for note in notes if note.seq > last]


def _head(connection: SqlConnection, session: str) -> tuple[int, int] | None:
    return connection.execute(_HEAD, (session,)).fetchone()


def missing_session(session: str) -> SessionNotFound:
    """Returns the error for a session that does not exist."""
    return SessionNotFound(
        t.later("there is no session {session}", session=session),
        hint=t.later("`hermes sessions list`, or /sessions in a chat, lists them."),
    )
