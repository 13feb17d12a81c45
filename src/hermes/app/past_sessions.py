"""Past sessions, for the tool `session_search`: reads the log and its index."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from hermes.store.log_row import Row
from hermes.store.store import Store
from hermes.tools.session_search import FoundMessage

_ROWS = 64
"""How many rows are read at once to find messages around a position."""


class _Call(msgspec.Struct):
    name: str = ""
    arguments: str = ""


class _Text(msgspec.Struct):
    """The text of a message."""

    text: str = ""
    tool_calls: list[_Call] = []


class StoreRecall:
    """Implements `Recall` on the store, which is opened on first use."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._open = store

    @property
    def _store(self) -> Store:
        return self._open()

    def find(self, query: str, *, session: str, limit: int) -> Sequence[FoundMessage]:
        """Messages with all these words, newest first."""
        name = self._store.sessions.find(session).id if session else ""
        hits = self._store.search.find(query, session=name, limit=limit)
        return [
            FoundMessage(hit.session, hit.seq, hit.ts, hit.role, hit.snippet, hit.title)
            for hit in hits
        ]

    def around(
        self, session: str, seq: int, *, before: int, after: int
    ) -> Sequence[FoundMessage]:
        """The message at a position or next before it, with some before and after it, in order."""
        name = self._store.sessions.find(session).id
        back = self._backwards(name, seq)
        earlier = [said for _, said in zip(range(before + 1), back, strict=False)]
        later: list[FoundMessage] = []
        place = seq
        while len(later) < after and (
            rows := self._store.log.events(name, after=place, limit=_ROWS)
        ):
            later += [_found_message(row) for row in rows if row.role]
            place = rows[-1].seq
        return [*reversed(earlier), *later[:after]]

    def _backwards(self, session: str, seq: int) -> Iterator[FoundMessage]:
        """Messages from a position backwards."""
        last = seq
        while last > 0:
            first = max(0, last - _ROWS)
            rows = self._store.log.events(session, after=first, limit=last - first)
            yield from (
                _found_message(row)
                for row in reversed(rows)
                if row.role and row.seq <= last
            )
            last = first


def _found_message(row: Row) -> FoundMessage:
    message = msgspec.json.decode(row.data, type=_Text)
    calls = [f"[{call.name} {call.arguments}]" for call in message.tool_calls]
    return FoundMessage(
        row.session,
        row.seq,
        row.ts,
        row.role or "",
        "\n".join([message.text, *calls]).strip(),
    )
