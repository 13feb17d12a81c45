"""Shows where a resumed session stopped: its last messages, and a turn that still runs or was cut off."""

import asyncio
from collections.abc import Sequence

from hermes.app import App
from hermes.app.attachments import typed_part
from hermes.app.feed import SessionCursor
from hermes.app.log_follower import LOG_POLL_INTERVAL_S
from hermes.core.history import UndoneRows
from hermes.schema.events import (
    ApprovalRequested,
    QuestionAsked,
    TurnEnded,
    TurnStarted,
)
from hermes.schema.messages import AssistantMessage, UserMessage
from hermes.store.log_row import Row
from hermes.surfaces.terminal.interrupts import is_elsewhere
from hermes.surfaces.terminal.text import clean, wrap
from hermes.surfaces.tui.plain_screen import ChatScreen
from hermes.surfaces.tui.session_view import ChatView, end_sentence
from hermes.surfaces.tui.styled_text import painted

_SUMMARY_ROWS_PER_READ = 200
_SHOWN_MESSAGES = 2
_LINES_PER_MESSAGE = 6


async def follow_elsewhere(app: App, session: str, last: int) -> None:
    """Publishes the rows that another process writes to the session, until that process is done or gone."""
    while True:
        runs = is_elsewhere(app, session)
        for row in await asyncio.to_thread(app.store.log.events, session, after=last):
            app.writer.publish(row, foreign=True)
            last = row.seq
        if not runs:
            return
        await asyncio.sleep(LOG_POLL_INTERVAL_S)


def cursor_at_end(app: App, session: str) -> SessionCursor:
    """Returns a cursor behind the last row of a session."""
    return SessionCursor(app, session, seq=app.store.sessions.find(session).head)


def show_summary(app: App, view: ChatView, screen: ChatScreen) -> bool:
    """Shows the summary. Returns whether something is unfinished: an open turn, or an unanswered
    message.
    """
    settled, open_rows = _split_at_last_end(_last_rows(app, view.session))
    _show_last_words(settled, screen)
    used = [
        row.event.usage
        for row in settled
        if isinstance(row.event, AssistantMessage) and row.event.usage
    ]
    if used:
        view.status.context = used[-1].input_tokens + used[-1].output_tokens
    runs = is_elsewhere(app, view.session)
    for row in open_rows:
        if runs or not isinstance(
            row.event, ApprovalRequested | QuestionAsked
        ):  # it is asked again
            view.on_event(app.envelope(row))
    return bool(open_rows)


def _last_rows(app: App, session: str) -> list[Row]:
    """Returns the last rows without undone turns: enough for the last messages of both sides."""
    end = app.store.sessions.find(session).head
    taken_back = UndoneRows()
    rows: list[Row] = []
    while end > 0 and len(_messages(rows)) < _SHOWN_MESSAGES:
        start = max(0, end - _SUMMARY_ROWS_PER_READ)
        page = app.store.log.events(session, after=start, limit=end - start)
        rows = [
            row
            for row in reversed(page)
            if not taken_back.covers(row.seq, row.event, row.turn)
        ][::-1] + rows
        end = start
    return rows


def _messages(rows: Sequence[Row]) -> list[UserMessage | AssistantMessage]:
    """Returns the messages of the person and the model, without those Hermes sends to the model."""
    messages = [
        row.event
        for row in rows
        if isinstance(row.event, UserMessage | AssistantMessage)
    ]
    return [
        one
        for one in messages
        if one.text and not (isinstance(one, UserMessage) and one.origin != "user")
    ]


def _split_at_last_end(rows: Sequence[Row]) -> tuple[Sequence[Row], Sequence[Row]]:
    """Splits rows into finished ones and those after the last turn's end that still need an answer."""
    ends = [index for index, row in enumerate(rows) if isinstance(row.event, TurnEnded)]
    start = ends[-1] + 1 if ends else 0
    wants = any(
        isinstance(row.event, TurnStarted | UserMessage) for row in rows[start:]
    )
    return (rows[:start], rows[start:]) if wants else (rows, ())


def _show_last_words(rows: Sequence[Row], screen: ChatScreen) -> None:
    for message in _messages(rows)[-_SHOWN_MESSAGES:]:
        mark = screen.marks.prompt if isinstance(message, UserMessage) else ""
        is_drawn = isinstance(message, AssistantMessage) and screen.animates
        plain = wrap(clean(mark + typed_part(message.text).strip()), screen.columns - 1)
        lines = (
            _drawn(message.text, screen)
            if is_drawn
            else list(map(screen.style.dim, plain))
        )
        if len(lines) > _LINES_PER_MESSAGE:
            screen.line(screen.style.dim(screen.marks.runs))
        for line in lines[-_LINES_PER_MESSAGE:]:
            screen.line(line)
    ends = [row.event for row in rows if isinstance(row.event, TurnEnded)]
    if ends and ends[-1].reason != "done":
        for line in wrap(
            clean(end_sentence(ends[-1].reason, ends[-1].detail)), screen.columns - 1
        ):
            screen.line(screen.style.dim(line))
    screen.line()


def _drawn(text: str, screen: ChatScreen) -> list[str]:
    """Renders a reply as it looked when it was written."""
    from hermes.surfaces.tui.markdown.render import Markdown

    markdown = Markdown(
        colours=screen.style.enabled, ascii_only=screen.marks.bar == "|"
    )
    rows = [
        *markdown.feed(text.strip(), screen.columns - 1),
        *markdown.end(screen.columns - 1),
    ]
    return [painted(row, screen.style) for row in rows]
