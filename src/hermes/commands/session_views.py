"""What the commands about sessions return: listings, transcripts, search results, the check of the log."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from hermes.commands.views import Block, Column, Line, Span, TableRow, line, table
from hermes.schema.messages import AssistantMessage, UserMessage
from hermes.store.search import MessageHit
from hermes.store.sessions import SessionInfo
from hermes.text.formats import ago, first_line, money
from hermes.text.translation import shown_reason, translator

t = translator(__name__)


def no_sessions_yet() -> tuple[str, str]:
    """What to say where there are no sessions yet."""
    return (
        t("No sessions yet. Each conversation with Hermes becomes one."),
        t("Import one with: hermes sessions import FILE"),
    )


class SessionListing(msgspec.Struct, frozen=True, kw_only=True):
    """Sessions, the most recently used first."""

    sessions: tuple[SessionInfo, ...]
    labels: tuple[str, ...] = ()
    has_more: bool = False
    current: str = ""
    """The session of the chat that asks."""

    def document(self) -> Any:
        return {"sessions": list(map(session_fields, self.sessions))}

    def view(self, now: float) -> Iterable[Block]:
        if not self.sessions:
            yield from (line(text, fit="wrap") for text in no_sessions_yet())
            return
        rows = [
            TableRow(
                (
                    info.id,
                    ago(info.updated, now),
                    f"{info.messages:,}",
                    money(info.cost_usd),
                    label,
                ),
                "bold" if info.id == self.current else "",
            )
            for info, label in zip(self.sessions, self.labels, strict=True)
        ]
        columns = (
            Column(t("ID"), widest=28),
            Column(t("USED")),
            Column(t("MESSAGES"), right=True),
            Column(t("COST"), right=True),
            Column(t("TITLE")),
        )
        yield table(columns, rows, narrow=((0, 1), (4,)))
        if self.current:
            yield line(t("Continue one with: /resume ID"), "dim")
        elif self.has_more:
            yield line(t("\nThere are more: hermes sessions list --all"), "dim")


class SessionTranscript(msgspec.Struct, frozen=True, kw_only=True):
    """A session's rows, one after the other."""

    as_lines: ClassVar[bool] = True

    session: SessionInfo
    rows: Any
    """An iterator of rows: a session can be long."""
    envelope: Any
    as_events: bool = False
    after: int = 0
    with_heading: bool = True

    def document(self) -> Iterator[Mapping[str, Any]]:
        return map(self.envelope, self.rows)

    def view(self, _now: float) -> Iterable[Block]:
        for row in self.rows:
            if isinstance(row.event, UserMessage | AssistantMessage):
                who = "You" if isinstance(row.event, UserMessage) else "Hermes"
                yield line(f"{who}: {row.event.text}")


class SearchResults(msgspec.Struct, frozen=True, kw_only=True):
    """Messages that a search found, newest first."""

    hits: tuple[MessageHit, ...]
    query: str = ""
    no_sessions: bool = False

    def document(self) -> Any:
        return {"hits": list(map(_hit_document, self.hits))}

    def view(self, now: float) -> Iterable[Block]:
        if self.no_sessions:
            yield from (line(text, fit="wrap") for text in no_sessions_yet())
        elif not self.hits:
            yield line(
                t(
                    "Nothing was found. All words must be in one message; fewer or shorter words find more."
                )
            )
        for hit in self.hits:
            title = first_line(hit.title) or hit.session
            yield line(f"{title}, {ago(hit.ts, now)}", "bold")
            yield line(first_line(hit.snippet))


class LogCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The result of checking the whole session log."""

    sessions: int
    rows: int
    problems: tuple[str, ...]
    recovered: bool = False

    @property
    def exit_code(self) -> int:
        return int(bool(self.problems) or self.recovered)

    def view(self, _now: float) -> Iterable[Block]:
        for problem in self.problems:
            yield Line((Span("fail ", "bad"), Span(shown_reason(problem))))
        checked = t(
            "Checked {sessions} and {rows}",
            sessions=t("{count:,} session", "{count:,} sessions", count=self.sessions),
            rows=t("{count:,} row", "{count:,} rows", count=self.rows),
        )
        if self.problems:
            yield line(
                t(
                    "\n{checked}; {count:,} problem.",
                    "\n{checked}; {count:,} problems.",
                    count=len(self.problems),
                    checked=checked,
                )
            )
        else:
            yield Line(
                (
                    Span("ok   ", "good"),
                    Span(t("{checked}; no problems.", checked=checked)),
                )
            )


def session_fields(info: SessionInfo) -> dict[str, Any]:
    """A session for a program, with the names that events have."""
    names = {"id": "session_id", "root": "root_session_id", "head": "seq"}
    fields = msgspec.structs.asdict(info)
    return {names.get(name, name): value for name, value in fields.items()}


def _hit_document(hit: MessageHit) -> dict[str, Any]:
    fields = msgspec.structs.asdict(hit)
    return {"session_id": fields.pop("session"), **fields}
