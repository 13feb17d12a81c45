"""Boards, cards, links, runs and their history.

Every change is one transaction, `BoardTransaction`, that also records what happened in the history. Only one process
changes boards at a time, so that the history's numbers are in order and a card is claimed once.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from hermes.core.ports import Clock
from hermes.schema.boards import (
    Board,
    BoardEvent,
    BoardHistoryEntry,
    Card,
    CardAttachment,
    CardNotice,
    CardRun,
    CardStatus,
)
from hermes.store.leases import this_process
from hermes.store.ports import SqlDatabase
from hermes.store.sessions import families, family_costs
from hermes.store.sql import MAX_QUERY_VALUES, SqlConnection

T = TypeVar("T")

UNDELIVERED = "waiting"
"""The delivery state of a notice that has not reached its chat yet."""
LEFT_WORKSPACE = "workspace"
"""The target of a notice for Hermes itself: the workspace of a card that is over must be cleared."""

_RUN_FIELDS = ", ".join(CardRun.__struct_fields__)
_RUN_PLACES = ", ".join("?" for _ in CardRun.__struct_fields__)
_RUN_CHANGES = ", ".join(f"{name} = ?" for name in CardRun.__struct_fields__[1:])
_UPDATE_RUN = f"UPDATE card_runs SET {_RUN_CHANGES} WHERE id = ?"  # noqa: S608 - our own names
_ATTACHMENT_FIELDS = "id, card, name, size, who, added"
_NOTICE_FIELDS = "id, card, target, text, made, delivery"
_CARD_COLUMNS = (
    "board, status, priority, assignee, reviewer, due, created, unique_key, data"
)
_INSERT_CARD = (
    f"INSERT INTO cards (id, {_CARD_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - our own names
)
_CARD_CHANGES = ", ".join(f"{name} = ?" for name in _CARD_COLUMNS.split(", "))
_UPDATE_CARD = f"UPDATE cards SET {_CARD_CHANGES} WHERE id = ?"  # noqa: S608
_INSERT_EVENT = "INSERT INTO card_events (board, card, ts, topic, data) VALUES (?, ?, ?, ?, ?) RETURNING id"
_OPEN_PARENTS = """SELECT cards.data FROM card_links JOIN cards ON cards.id = card_links.parent
WHERE card_links.child = ? AND cards.status NOT IN ('done', 'archived')"""
_FITTING_ROWS = 200  # rows per query when `fits` selects
_QUEUE_ORDER = "ORDER BY priority DESC, created, id"


class CardPlacement(msgspec.Struct):
    """Where a card works: the part of its data that can be read much faster than the whole."""

    board: str
    workspace: str = ""
    place: str = ""


class _CardLabels(msgspec.Struct):
    """The labels in the data of a card."""

    labels: tuple[str, ...] = ()


_read_card = msgspec.json.Decoder(Card).decode
_read_placement = msgspec.json.Decoder(CardPlacement).decode
_read_labels = msgspec.json.Decoder(_CardLabels).decode
_read_board = msgspec.json.Decoder(Board).decode


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _parts(values: Sequence[str]) -> Iterable[Sequence[str]]:
    """Splits values into groups that fit one query."""
    for first in range(0, len(values), MAX_QUERY_VALUES):
        yield values[first : first + MAX_QUERY_VALUES]


def _places(values: Sequence[str]) -> str:
    return ", ".join("?" for _ in values)


def _columns(card: Card) -> tuple[Any, ...]:
    return (
        card.board,
        card.status,
        card.priority,
        card.assignee,
        card.reviewer,
        card.due,
        card.created,
        card.key,
        _json(card),
    )


class BoardReader:
    """Reads from one consistent state."""

    def __init__(self, connection: SqlConnection) -> None:
        self._connection = connection

    def _rows(self, query: str, *values: Any) -> list[Any]:
        return self._connection.execute(query, values).fetchall()

    def boards(self) -> list[Board]:
        """Returns the boards that were not removed, oldest first."""
        found = [_read_board(data) for (data,) in self._rows("SELECT data FROM boards")]
        return sorted(
            (board for board in found if not board.removed),
            key=lambda board: (board.created, board.slug),
        )

    def _removed_boards(self) -> list[str]:
        found = (_read_board(data) for (data,) in self._rows("SELECT data FROM boards"))
        return [board.slug for board in found if board.removed]

    def board(self, slug: str) -> Board | None:
        """Returns the board of that name, even a removed one."""
        data = self._connection.execute(
            "SELECT data FROM boards WHERE slug = ?", (slug,)
        ).get
        return None if data is None else _read_board(data)

    def card(self, name: str) -> Card | None:
        """Returns the card with that id."""
        data = self._connection.execute(
            "SELECT data FROM cards WHERE id = ?", (name,)
        ).get
        return None if data is None else _read_card(data)

    def cards_like(self, beginning: str, limit: int = 6) -> list[Card]:
        """Returns the cards whose id begins with a prefix."""
        query = "SELECT data FROM cards WHERE substr(id, 1, ?) = ? ORDER BY id LIMIT ?"
        found = self._rows(query, len(beginning), beginning, limit)
        return [_read_card(data) for (data,) in found]

    def card_by_key(self, board: str, key: str) -> Card | None:
        """Returns the card that was created with a key."""
        query = "SELECT data FROM cards WHERE board = ? AND unique_key = ?"
        data = self._connection.execute(query, (board, key)).get
        return None if data is None else _read_card(data)

    def cards(
        self,
        board: str = "",
        statuses: Sequence[CardStatus] = (),
        limit: int = 0,
        offset: int = 0,
    ) -> list[Card]:
        """Returns the cards of a board, or of all boards, in the order in which they run."""
        where, values = ["1 = 1"], list[Any]()
        if board:
            where.append("board = ?")
            values.append(board)
        if statuses:
            where.append(f"status IN ({', '.join('?' for _ in statuses)})")
            values += statuses
        end = f" LIMIT {int(limit)} OFFSET {int(offset)}" if limit else ""
        query = (
            f"SELECT data FROM cards WHERE {' AND '.join(where)} {_QUEUE_ORDER}{end}"  # noqa: S608
        )
        return [_read_card(data) for (data,) in self._rows(query, *values)]

    def ready(
        self,
        now: float,
        *,
        without: tuple[Sequence[str], Sequence[str]],
        limit: int,
        fits: Callable[[CardPlacement], bool] | None = None,
    ) -> list[Card]:
        """Returns cards that can start, the most important first.

        `without` names agents and boards that may not start any; `fits` decides by where a card works. Cards of a
        removed board never start.
        """
        agents, boards = without
        without = (agents, (*boards, *self._removed_boards()))
        found = [
            *self._startable("status = 'ready'", "assignee", now, without, limit, fits),
            *self._startable(
                "status = 'review' AND reviewer != ''",
                "reviewer",
                now,
                without,
                limit,
                fits,
            ),
        ]
        found.sort(key=lambda card: (-card.priority, card.created, card.id))
        return found[:limit]

    def _startable(
        self,
        where: str,
        who: str,
        now: float,
        without: tuple[Sequence[str], Sequence[str]],
        limit: int,
        fits: Callable[[CardPlacement], bool] | None,
    ) -> list[Card]:
        where += " AND due <= ?"
        for column, names in zip((who, "board"), without, strict=True):
            if names:
                where += f" AND {column} NOT IN ({', '.join('?' for _ in names)})"
        query = f"SELECT data FROM cards WHERE {where} {_QUEUE_ORDER} LIMIT ? OFFSET ?"  # noqa: S608
        values = (now, *without[0], *without[1])
        page, offset, found = max(limit, _FITTING_ROWS if fits else 0), 0, list[Card]()
        while rows := self._rows(query, *values, page, offset):
            found += [
                _read_card(data)
                for (data,) in rows
                if fits is None or fits(_read_placement(data))
            ]
            offset += page
            if len(found) >= limit or len(rows) < page:
                break
        return found[:limit]

    def counts(self) -> list[tuple[str, str, str, int]]:
        """Returns the number of cards by board, status and assignee."""
        query = "SELECT board, status, assignee, count(*) FROM cards GROUP BY board, status, assignee"
        return [tuple(row) for row in self._rows(query)]

    def labels(self, board: str) -> list[str]:
        """Returns the labels that cards of a board have."""
        query = "SELECT data FROM cards WHERE board = ? AND data LIKE '%\"labels\":%'"
        found = (_read_labels(data).labels for (data,) in self._rows(query, board))
        return sorted({label for labels in found for label in labels})

    def parents(self, child: str) -> list[str]:
        """Returns the cards that a card waits for."""
        query = "SELECT parent FROM card_links WHERE child = ? ORDER BY parent"
        return [name for (name,) in self._rows(query, child)]

    def children(self, parent: str) -> list[str]:
        """Returns the cards that wait for a card."""
        query = "SELECT child FROM card_links WHERE parent = ? ORDER BY child"
        return [name for (name,) in self._rows(query, parent)]

    def links(self, cards: Sequence[str]) -> list[tuple[str, str, CardStatus]]:
        """Returns the links from and to these cards: parent, child, and the parent's status."""
        found = dict[tuple[str, str], CardStatus]()
        for some in _parts(cards):
            for end in ("parent", "child"):
                query = f"""SELECT card_links.parent, card_links.child, cards.status
                FROM card_links JOIN cards ON cards.id = card_links.parent
                WHERE card_links.{end} IN ({_places(some)})"""  # noqa: S608 - our own names
                for parent, child, status in self._rows(query, *some):
                    found[parent, child] = status
        return [(*link, found[link]) for link in sorted(found)]

    def open_parents(self, child: str) -> list[Card]:
        """Returns the parents that are not done yet."""
        return [_read_card(data) for (data,) in self._rows(_OPEN_PARENTS, child)]

    def run(self, name: str) -> CardRun | None:
        """Returns the run with that id."""
        found = self._runs("WHERE id = ?", name)
        return found[0] if found else None

    def runs(self, card: str, limit: int = 50) -> list[CardRun]:
        """Returns the runs of a card, newest first."""
        return self._runs("WHERE card = ? ORDER BY number DESC LIMIT ?", card, limit)

    def last_numbers(self, cards: Sequence[str]) -> dict[str, int]:
        """Returns the number of the newest run of each card, without cards that have none."""
        query = f"SELECT card, max(number) FROM card_runs WHERE card IN ({_places(cards)}) GROUP BY card"  # noqa: S608
        return {card: int(number) for card, number in self._rows(query, *cards)}

    def open_runs(self, board: str = "") -> list[CardRun]:
        """Returns the runs that have not ended, in any process."""
        return self._runs(
            "WHERE outcome = 'running' AND (?1 = '' OR board = ?1) ORDER BY started",
            board,
        )

    def run_of_session(self, session: str) -> CardRun | None:
        """Returns the run that a session works for."""
        found = self._runs(
            "WHERE session = ? AND session != '' ORDER BY started DESC LIMIT 1", session
        )
        return found[0] if found else None

    def _runs(self, rest: str, *values: Any) -> list[CardRun]:
        query = f"SELECT {_RUN_FIELDS} FROM card_runs {rest}"  # noqa: S608 - our own names
        return [CardRun(*row) for row in self._rows(query, *values)]

    def outcomes(self, since: float) -> list[tuple[str, int]]:
        """Returns how many runs ended with each outcome since a time."""
        query = "SELECT outcome, count(*) FROM card_runs WHERE started >= ? GROUP BY outcome ORDER BY outcome"
        return [(outcome, number) for outcome, number in self._rows(query, since)]

    def history(
        self,
        card: str = "",
        board: str = "",
        *,
        after: int = 0,
        limit: int = 100,
        topic: str = "",
    ) -> list[BoardHistoryEntry]:
        """Returns the newest rows of the history after a number, oldest first."""
        where, values = ["id > ?"], list[Any]([after])
        for column, value in (("card", card), ("board", board), ("topic", topic)):
            if value:
                where.append(f"{column} = ?")
                values.append(value)
        query = f"""SELECT id, ts, topic, data FROM card_events WHERE {" AND ".join(where)}
        ORDER BY id DESC LIMIT ?"""  # noqa: S608
        return self._entries(query, *values, limit)[::-1]

    def history_after(self, after: int, limit: int = 1_000) -> list[BoardHistoryEntry]:
        """Returns the next rows of the history after a number."""
        query = "SELECT id, ts, topic, data FROM card_events WHERE id > ? ORDER BY id LIMIT ?"
        return self._entries(query, after, limit)

    def _entries(self, query: str, *values: Any) -> list[BoardHistoryEntry]:
        return [
            BoardHistoryEntry(
                id=number,
                ts=at,
                topic=topic,
                data=msgspec.json.decode(data, type=dict[str, Any]),
            )
            for number, at, topic, data in self._rows(query, *values)
        ]

    def entry_before(self, ts: float) -> int:
        """Returns the number of the newest row of the history that is older than a time; 0 if there is none."""
        query = "SELECT id FROM card_events WHERE ts < ? ORDER BY id DESC LIMIT 1"
        return int(self._connection.execute(query, (ts,)).get or 0)

    def last_entry(self) -> int:
        """Returns the number of the newest row of the history."""
        query = "SELECT coalesce(max(id), 0) FROM card_events"
        return int(self._connection.execute(query).get)

    def attachments(self, card: str) -> list[CardAttachment]:
        """Returns the files of a card, oldest first."""
        query = f"SELECT {_ATTACHMENT_FIELDS} FROM card_attachments WHERE card = ? ORDER BY added, id"  # noqa: S608
        return [CardAttachment(*row) for row in self._rows(query, card)]

    def attachment(self, name: str) -> CardAttachment | None:
        """Returns the file with that id."""
        query = f"SELECT {_ATTACHMENT_FIELDS} FROM card_attachments WHERE id = ?"  # noqa: S608
        found = self._rows(query, name)
        return CardAttachment(*found[0]) if found else None

    def attachment_data(self, name: str) -> bytes | None:
        """Returns the content of a file."""
        query = "SELECT data FROM card_attachments WHERE id = ?"
        found = self._connection.execute(query, (name,)).get
        return None if found is None else bytes(found)

    def extras(self, cards: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Returns how many comments and attachments each card has; cards with neither are left out."""
        comments, files = dict[str, int](), dict[str, int]()
        for some in _parts(cards):
            places = _places(some)
            comments |= self._rows(
                f"""SELECT card, count(*) FROM card_events
                WHERE card IN ({places}) AND topic = 'kanban.card.commented' GROUP BY card""",  # noqa: S608
                *some,
            )
            files |= self._rows(
                f"SELECT card, count(*) FROM card_attachments WHERE card IN ({places}) GROUP BY card",  # noqa: S608
                *some,
            )
        return {
            card: (comments.get(card, 0), files.get(card, 0))
            for card in (*comments, *files)
        }

    def spent(self, sessions: Iterable[str]) -> tuple[float, int]:
        """Returns the cost in dollars and the tokens of sessions and their children."""
        cost, tokens = 0.0, 0
        for some in _parts(list(sessions)):
            query = f"""SELECT coalesce(sum(cost_usd), 0), coalesce(sum(input_tokens + output_tokens), 0) FROM usage
            WHERE session IN ({families(len(some))})"""  # noqa: S608 - places of values
            (row,) = self._rows(query, *some)
            cost, tokens = cost + float(row[0]), tokens + int(row[1])
        return cost, tokens

    def costs(self, sessions: Sequence[str]) -> dict[str, float]:
        """Returns the cost of each session in dollars, including its children; sessions without a cost are left out."""
        found = dict[str, float]()
        for some in _parts(sessions):
            query = family_costs(len(some))
            found |= {root: float(cost) for root, cost in self._rows(query, *some)}
        return found

    def sessions_since(self, board: str, since: float) -> list[str]:
        """Returns the sessions of a board's runs that started after a time."""
        query = "SELECT session FROM card_runs WHERE board = ? AND started >= ? AND session != ''"
        return [name for (name,) in self._rows(query, board, since)]

    def notices(self, limit: int = 500) -> list[CardNotice]:
        """Returns the notices that have not reached their chat."""
        return self._waiting_notices("target != ?", LEFT_WORKSPACE, limit)

    def left_workspaces(self, limit: int = 1_000) -> list[CardNotice]:
        """Returns a notice for each card that is over and whose workspace was not cleared yet."""
        return self._waiting_notices("target = ?", LEFT_WORKSPACE, limit)

    def _waiting_notices(self, where: str, target: str, limit: int) -> list[CardNotice]:
        query = f"SELECT {_NOTICE_FIELDS} FROM card_notices WHERE delivery = '{UNDELIVERED}' AND {where} ORDER BY made LIMIT ?"  # noqa: S608 - our own words
        return [CardNotice(*row) for row in self._rows(query, target, limit)]


class BoardTransaction(BoardReader):
    """One change, made completely or not at all."""

    def __init__(
        self, connection: SqlConnection, now: float, lease_time: float
    ) -> None:
        super().__init__(connection)
        self.now = now
        self.lease_time = lease_time
        """The current time for judging claims."""
        self.written: list[BoardHistoryEntry] = []
        """The rows written to the history."""

    def _do(self, query: str, *values: Any) -> None:
        self._connection.execute(query, values).fetchall()

    def put_board(self, board: Board) -> None:
        """Saves a board."""
        self._do(
            "INSERT INTO boards (slug, data) VALUES (?, ?) ON CONFLICT (slug) DO UPDATE SET data = excluded.data",
            board.slug,
            _json(board),
        )

    def insert(self, card: Card) -> None:
        """Saves a new card."""
        self._do(_INSERT_CARD, card.id, *_columns(card))

    def put(self, card: Card) -> Card:
        """Saves the current state of a card. Returns the card."""
        card = msgspec.structs.replace(card, updated=self.now)
        self._do(_UPDATE_CARD, *_columns(card), card.id)
        return card

    def link(self, parent: str, child: str) -> None:
        """Makes a card wait for another one."""
        self._do(
            "INSERT INTO card_links (parent, child) VALUES (?, ?) ON CONFLICT DO NOTHING",
            parent,
            child,
        )

    def unlink(self, parent: str, child: str) -> bool:
        """Removes a link. Returns whether there was one."""
        query = "DELETE FROM card_links WHERE parent = ? AND child = ? RETURNING 1"
        return self._connection.execute(query, (parent, child)).get is not None

    def insert_run(self, run: CardRun) -> None:
        """Saves a new run."""
        self._do(
            f"INSERT INTO card_runs ({_RUN_FIELDS}) VALUES ({_RUN_PLACES})",  # noqa: S608
            *msgspec.structs.astuple(run),
        )

    def put_run(self, run: CardRun) -> None:
        """Saves the current state of a run."""
        values = msgspec.structs.astuple(run)
        self._do(_UPDATE_RUN, *values[1:], run.id)

    def attach(self, attachment: CardAttachment, data: bytes) -> None:
        """Saves a file."""
        values = msgspec.structs.astuple(attachment)
        self._do(
            f"INSERT INTO card_attachments ({_ATTACHMENT_FIELDS}, data) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
            *values,
            data,
        )

    def notify(self, notice: CardNotice) -> None:
        """Saves a notice for a chat."""
        self._do(
            f"INSERT INTO card_notices ({_NOTICE_FIELDS}) VALUES (?, ?, ?, ?, ?, ?)",  # noqa: S608
            *msgspec.structs.astuple(notice),
        )

    def end_notice(self, notice: CardNotice, delivery: str) -> bool:
        """Records what became of a notice. Returns False if another process was faster."""
        query = "UPDATE card_notices SET delivery = ? WHERE id = ? AND delivery = ? RETURNING 1"
        values = (delivery, notice.id, UNDELIVERED)
        return self._connection.execute(query, values).get is not None

    def note(self, event: BoardEvent) -> None:
        """Writes an event to the history. It is published once the transaction is on disk."""
        card = str(getattr(event, "card", ""))
        data = msgspec.to_builtins(event)
        data.pop("id", None)
        query = self._connection.execute(
            _INSERT_EVENT, (event.board, card, self.now, event.topic, _json(data))
        )
        number = int(query.get)
        entry = BoardHistoryEntry(id=number, ts=self.now, topic=event.topic, data=data)
        self.written.append(entry)


class BoardStore:
    """The boards of one database."""

    def __init__(self, database: SqlDatabase, clock: Clock, *, owner: str = "") -> None:
        self._db = database
        self._clock = clock
        self.owner = owner or this_process()
        self.active: set[str] = set()
        """The runs that this process is working on, or about to."""

    def change(
        self, job: Callable[[BoardTransaction], T]
    ) -> tuple[T, list[BoardHistoryEntry]]:
        """Runs a change. Returns its result and the rows written to the history."""

        def run(connection: SqlConnection) -> tuple[T, list[BoardHistoryEntry]]:
            self._db.lock(connection, "kanban")
            lease_time = self._db.lease_time(connection, self._clock)
            transaction = BoardTransaction(connection, self._clock.now(), lease_time)
            return job(transaction), transaction.written

        return self._db.write(run)

    def read(self, job: Callable[[BoardReader], T]) -> T:
        """Runs reads on one consistent state."""
        return self._db.read(lambda connection: job(BoardReader(connection)))

    def is_gone(self, runs: Iterable[CardRun], lease_time: float) -> list[CardRun]:
        """Returns the runs whose process has ended or did not renew its claim."""
        alive: dict[tuple[str, float], bool] = {}
        for run in runs:
            key = (run.owner, run.expires)
            if key not in alive:
                alive[key] = self._db.holds(run.owner, run.expires, lease_time)
        return [run for run in runs if not alive[run.owner, run.expires]]

    def lease_time(self) -> float:
        """Returns the current time for judging claims."""
        return self._db.read(
            lambda connection: self._db.lease_time(connection, self._clock)
        )

    def renew(self, ttl_s: float) -> None:
        """Extends the claims of this process on all its runs."""

        def job(connection: SqlConnection) -> None:
            expires = self._db.lease_time(connection, self._clock) + ttl_s
            query = "UPDATE card_runs SET expires = ? WHERE outcome = 'running' AND owner = ?"
            connection.execute(query, (expires, self.owner)).fetchall()

        self._db.write(job)
