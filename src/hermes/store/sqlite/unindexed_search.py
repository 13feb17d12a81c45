"""Searches messages that are not in the index yet, so that nobody waits until a large import is
indexed.

Possible matches go through a small index in memory, newest first, until enough are found. The
result equals that of the real index.
"""

import time
from contextlib import closing
from itertools import islice

import apsw

from hermes.store.log_row import STORED, Row, checked
from hermes.store.search import searchable
from hermes.store.sqlite.connection import log
from hermes.store.sqlite.schema import SEARCH_OPTIONS
from hermes.store.tokenizer import FOLDED, required_part, split

UNINDEXED_TIMEOUT_S = 10.0
_MESSAGES_PER_CHUNK = 200  # between two checks whether enough were found
_STEPS_BETWEEN_LOOKS = 1_000  # steps of SQLite between two checks of the clock
_CANDIDATES = f"""
SELECT {STORED} FROM events
WHERE role IS NOT NULL AND id > (SELECT indexed FROM search_progress) AND (:session = '' OR session = :session)
AND (data LIKE :part OR (length(data) != octet_length(data) AND data GLOB :folded))
ORDER BY id DESC
"""  # noqa: S608 - our own names
_MATCHES = "SELECT rowid FROM found WHERE found MATCH ? ORDER BY rowid DESC"


def find_unindexed(
    connection: apsw.Connection,
    query: str,
    expressions: tuple[str, ...],
    session: str,
    limit: int,
    *,
    timeout_s: float = UNINDEXED_TIMEOUT_S,
) -> list[list[Row]]:
    """Returns, for each FTS5 expression of a query, the newest matching messages that are not
    indexed yet.

    Returns what it has found when the time is up. The connection must not be used by anybody else
    meanwhile.
    """
    values = {
        "session": session,
        "part": f"%{required_part(query)}%",
        "folded": f"*[{FOLDED}]*",
    }
    found: list[list[Row]] = [[] for _ in expressions]
    deadline = time.monotonic() + timeout_s
    # For a word without candidates, this is the only chance to check the time.
    connection.set_progress_handler(
        lambda: time.monotonic() > deadline, _STEPS_BETWEEN_LOOKS
    )
    try:
        _find_candidates(connection, values, expressions, limit, found)
    except apsw.InterruptError:
        log.warning(
            "the search index is still being built; of other messages only the newest were searched"
        )
    finally:
        connection.set_progress_handler(None)
    return found


def _find_candidates(
    connection: apsw.Connection,
    values: dict[str, str],
    expressions: tuple[str, ...],
    limit: int,
    found: list[list[Row]],
) -> None:
    """Adds to `found` the rows that match each expression, until the first has enough."""
    with closing(apsw.Connection(":memory:")) as memory:
        memory.execute(f"CREATE VIRTUAL TABLE found USING fts5 ({SEARCH_OPTIONS})")
        candidates = connection.execute(_CANDIDATES, values)
        while len(found[0]) < limit and (
            rows := checked(islice(candidates, _MESSAGES_PER_CHUNK))
        ):
            _index(memory, rows)
            for matching, expression in zip(found, expressions, strict=True):
                numbers = {
                    number for (number,) in memory.execute(_MATCHES, (expression,))
                }
                matching.extend(
                    [row for row in rows if row.id in numbers][: limit - len(matching)]
                )


def _index(memory: apsw.Connection, rows: list[Row]) -> None:
    memory.execute("INSERT INTO found (found) VALUES ('delete-all')")
    for row in rows:
        words, names = split(searchable(row.data))
        values = (row.id, " ".join(words), " ".join(names))
        memory.execute(
            "INSERT INTO found (rowid, words, names) VALUES (?, ?, ?)", values
        )
