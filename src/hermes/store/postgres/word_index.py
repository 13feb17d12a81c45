"""Full-text search in PostgreSQL: words cut by our own tokenizer, in a `tsvector` with a GIN index.

The index finds the messages that contain every word. Whether the words of a phrase are adjacent is then checked in the
message itself, because a `tsvector` drops positions in long texts. The results equal those of SQLite's index.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes.store.log_row import STORED, Row, checked
from hermes.store.search import MessageHit, require_searchable, searchable, snippet
from hermes.store.tokenizer import QueryTerm, matches, query_terms, split

if TYPE_CHECKING:
    from hermes.store.postgres.database import PostgresDatabase

_NAME = "="  # prefix of a whole identifier; no word begins with it
_MAX_LEXEME_CHARS = 200  # a lexeme can have 2,046 bytes
_PAGE_ROWS = 200
_FIND = f"SELECT {STORED} FROM events WHERE words @@ ?1::text::tsquery AND id < ?2 AND (?3::text = '' OR session = ?3::text) ORDER BY id DESC LIMIT ?4"  # noqa: S608, E501 - our own names
_NEWEST = 2**63 - 1


def lexemes(data: str) -> str:
    """Returns the words of a message for the index, separated by spaces."""
    words, names = split(searchable(data))
    found = {word[:_MAX_LEXEME_CHARS] for word in words}
    found |= {_NAME + name[:_MAX_LEXEME_CHARS] for name in names}
    return " ".join(found)


class WordIndex:
    """Searches the messages of all sessions of one database."""

    def __init__(self, database: "PostgresDatabase") -> None:
        self._db = database

    def find(
        self, query: str, *, session: str = "", limit: int = 20
    ) -> list[MessageHit]:
        """Returns messages with all the words, then those with words that begin with them, each newest first."""
        require_searchable(query)
        found: dict[Row, None] = {}
        for prefix in (False, True):
            for row in self._matching(query_terms(query, prefix=prefix), session):
                if len(found) >= limit:
                    break
                found[row] = None
        titles = self._titles({row.session for row in found})
        return [_hit(row, query, titles.get(row.session, "")) for row in found]

    def catch_up(self, timeout_s: float = float("inf")) -> bool:  # noqa: ARG002 - a port
        """Returns True: words are written together with their message."""
        return True

    def _matching(self, terms: list[QueryTerm], session: str) -> Iterator[Row]:
        """Yields the rows that match, newest first."""
        wanted = " & ".join(_expression(term) for term in terms if not term.is_excluded)
        is_exact = all(_is_in_index(term) for term in terms)
        below = _NEWEST
        while True:
            values = (wanted, below, session, _PAGE_ROWS)
            rows = checked(self._db.select(_FIND, values))
            for row in rows:
                if is_exact or matches(terms, split(searchable(row.data))):
                    yield row
            if len(rows) < _PAGE_ROWS:
                return
            below = rows[-1].id

    def _titles(self, sessions: set[str]) -> dict[str, str]:
        places = ", ".join("?" for _ in sessions) or "NULL"
        query = f"SELECT id, title FROM sessions WHERE id IN ({places})"  # noqa: S608 - placeholders
        return dict(self._db.select(query, tuple(sessions)))


def _hit(row: Row, query: str, title: str) -> MessageHit:
    text = snippet(searchable(row.data), query)
    return MessageHit(row.session, row.seq, row.ts, row.role or "", title, text)


def _is_in_index(term: QueryTerm) -> bool:
    """Returns whether the index alone can answer a term: one wanted word, stored in full."""
    is_whole = len(term.words) == 1 and len(term.words[0]) <= _MAX_LEXEME_CHARS
    return is_whole and not term.is_excluded


def _expression(term: QueryTerm) -> str:
    """Returns the part of a query that the index can answer. Words contain only letters and digits."""
    words = [f"'{word[:_MAX_LEXEME_CHARS]}'" for word in term.words]
    if term.is_prefix or len(term.words[-1]) > _MAX_LEXEME_CHARS:
        words[-1] += ":*"
    every = " & ".join(words)
    if not term.name:
        return f"({every})"
    return f"(({every}) | '{_NAME}{term.name[:_MAX_LEXEME_CHARS]}'{':*' if term.is_prefix else ''})"
