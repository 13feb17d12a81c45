"""`session_search`: finds earlier messages of any session, with the messages around them. No model is called."""

import time
from collections.abc import Sequence
from typing import Annotated, Protocol

import msgspec
from msgspec import Meta

from hermes.core.ports import ToolContext
from hermes.errors import HermesError, ToolFailed
from hermes.schema.tool_spec import ToolResult
from hermes.tools.escapes import clean
from hermes.tools.tool import tool

_MAX_SEARCHED_HITS = 200
"""How many messages are examined, in order to find those in other sessions too."""
_EXCERPT_CHARACTERS = 160
_MAX_FOUND_MESSAGE_CHARACTERS = 2_000
_MAX_SEARCH_RESULT_CHARACTERS = 24_000


class FoundMessage(msgspec.Struct, frozen=True):
    """One message of a session, with its position. For a search result, `text` is the part around the words."""

    session: str
    seq: int
    when: float
    role: str
    text: str
    title: str = ""


class Recall(Protocol):
    """Past sessions; implemented by `app`. Raises HermesError for a session that does not exist."""

    def find(self, query: str, *, session: str, limit: int) -> Sequence[FoundMessage]:
        """Messages with all these words, newest first; with `session`, only of that one."""
        ...

    def around(
        self, session: str, seq: int, *, before: int, after: int
    ) -> Sequence[FoundMessage]:
        """The message at a position, or the next one, with some messages before and after it, in order."""
        ...


class SessionSearchTool:
    """`session_search` over past sessions."""

    def __init__(self, recall: Recall) -> None:
        self._recall = recall

    @tool("session_search", effect="read")
    def session_search(
        self,
        context: ToolContext,
        query: Annotated[
            str, Meta(max_length=500, description="Words of one message.")
        ] = "",
        session: Annotated[
            str, Meta(description="Only this one: an id, or `this`.")
        ] = "",
        around: Annotated[int, Meta(ge=0, description="Number of a message.")] = 0,
        limit: Annotated[int, Meta(ge=1, le=20)] = 6,
    ) -> ToolResult:
        """Searches past conversations with this user, and what this one no longer shows. With session and around it
        reads on from a result."""
        session = context.session if session == "this" else session
        reads_on = bool(session and around)
        if not reads_on and not query.strip():
            raise ToolFailed(
                "There is nothing to search for.",
                hint="Give query, or session and around.",
            )
        try:
            return (
                self._page(session, around, limit)
                if reads_on
                else self._hits(context, query, session, limit)
            )
        except HermesError as error:
            raise ToolFailed(
                f"{error.message[:1].upper()}{error.message[1:]}.", hint=error.hint
            ) from error

    def _hits(
        self, context: ToolContext, query: str, session: str, limit: int
    ) -> ToolResult:
        # The model sees the end of this session, and the words are in the very calls that search for them.
        found = self._recall.find(query, session=session, limit=_MAX_SEARCHED_HITS)
        own = [
            said
            for said in found
            if said.session == context.session and not _searches(said)
        ]
        hits = [*(said for said in found if said.session != context.session), *own]
        if not hits:
            return ToolResult(
                text="Nothing was found. Try fewer or other words; all must occur in one message."
            )
        parts: list[str] = []
        shown: set[tuple[str, int]] = set()
        for hit in hits:
            if (
                len(parts) == limit
                or sum(map(len, parts)) > _MAX_SEARCH_RESULT_CHARACTERS
            ):
                break
            if (hit.session, hit.seq) not in shown:
                near = self._recall.around(hit.session, hit.seq, before=1, after=1)
                shown |= {(said.session, said.seq) for said in near}
                parts.append(_hit(hit, near))
        more = len(hits) - len(parts)
        count = f"{more}{'+' if len(found) == _MAX_SEARCHED_HITS else ''}"
        note = (
            f"\n\n[{count} more; narrow the words, or raise limit]" if more > 0 else ""
        )
        return ToolResult(text="\n\n".join(parts) + note, source="past sessions")

    def _page(self, session: str, seq: int, limit: int) -> ToolResult:
        said = self._recall.around(session, seq, before=limit, after=limit)
        if not said:
            return ToolResult(
                text=f"There is nothing in session {session} around message {seq}."
            )
        lines: dict[int, str] = {}
        for one in sorted(
            said, key=lambda one: abs(one.seq - seq)
        ):  # the nearest ones first, until they no longer fit
            line = _line(one, _MAX_FOUND_MESSAGE_CHARACTERS)
            if (
                lines
                and sum(map(len, lines.values())) + len(line)
                > _MAX_SEARCH_RESULT_CHARACTERS
            ):
                break
            lines[one.seq] = line
        edges = f"[earlier: around={min(lines)}; later: around={max(lines)}]"
        return ToolResult(
            text="\n".join([lines[place] for place in sorted(lines)] + [edges]),
            source="past sessions",
        )


def _searches(said: FoundMessage) -> bool:
    """Whether a message is a search of this kind."""
    return said.role == "assistant" and "session_search" in said.text


def _hit(hit: FoundMessage, near: Sequence[FoundMessage]) -> str:
    title = f" {clean(hit.title)!r}" if hit.title else ""
    head = f"session {hit.session}{title}, {_day(hit.when)}, message {hit.seq}"
    lines = [
        _line(hit, 2 * _EXCERPT_CHARACTERS, mark="> ")
        if said.seq == hit.seq
        else _line(said, _EXCERPT_CHARACTERS)
        for said in near
    ]
    return "\n".join([head, *lines])


def _line(said: FoundMessage, width: int, mark: str = "") -> str:
    text = clean(said.text).strip()
    short = text if width >= _MAX_FOUND_MESSAGE_CHARACTERS else " ".join(text.split())
    if len(short) > width:
        short = f"{short[:width]}... ({len(text):,} characters)"
    return f"{mark}{said.seq} {said.role}: {short}"


def _day(when: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(when))
