"""Shows the end of a resumed conversation. It loads little code, so that the conversation appears before the live
screen is loaded."""

import sys
from collections.abc import Sequence
from typing import NamedTuple

from hermes.app import App
from hermes.core.history import UndoneRows
from hermes.schema.events import TurnEnded, TurnStarted
from hermes.schema.messages import UserMessage
from hermes.store.log_row import Row
from hermes.surfaces.terminal.style import stdout_style, terminal_width
from hermes.surfaces.terminal.tool_line import marks_for
from hermes.surfaces.tui.replay import PastScreen, replay
from hermes.surfaces.tui.session_view import ChatView

_ROWS_PER_READ = 200
_SHOWN_TURNS = 6
_MAX_ROWS = 2_000


class ShownPast(NamedTuple):
    """What was shown of a conversation."""

    view: ChatView
    """The view that showed it; the chat's own goes on from it."""
    open_rows: Sequence[Row]
    """What is not over: an open turn, or an unanswered message. It is not shown yet."""
    head: int
    """The last row of the session then."""


class EarlyScreen:
    """A terminal on which the live screen is about to begin."""

    animates = True

    def __init__(self) -> None:
        self.style = stdout_style()
        self.marks = marks_for(sys.stdout.encoding)
        self.columns = max(20, terminal_width())

    def line(self, text: str = "") -> None:
        """Prints whole lines."""
        print(text)


def show_past(
    app: App, session: str, screen: PastScreen, *, quiet: bool = False
) -> ShownPast:
    """Shows the end of the conversation, up to what is unfinished."""
    head = app.store.sessions.find(session).head
    rows, is_whole = _last_rows(app, session, head)
    settled, open_rows = _split_at_last_end(rows)
    if not is_whole:
        note = f"{screen.marks.runs} earlier messages: /history 50"
        screen.line(screen.style.dim(note))
    events = [app.envelope(row) for row in settled]
    return ShownPast(replay(events, session, screen, quiet=quiet), open_rows, head)


def _last_rows(app: App, session: str, head: int) -> tuple[list[Row], bool]:
    """Returns the last rows without undone turns, enough for some screens, and whether that is all of them."""
    taken_back = UndoneRows()
    rows: list[Row] = []
    end = head
    while end > 0 and not _is_enough(rows):
        start = max(0, end - _ROWS_PER_READ)
        page = app.store.log.events(session, after=start, limit=end - start)
        rows = [
            row
            for row in reversed(page)
            if not taken_back.covers(row.seq, row.event, row.turn)
        ][::-1] + rows
        end = start
    if end == 0:
        return rows, True
    first = next(
        (
            index
            for index, row in enumerate(rows)
            if isinstance(row.event, UserMessage) and row.event.origin == "user"
        ),
        0,
    )
    return rows[first:], False


def _is_enough(rows: Sequence[Row]) -> bool:
    """Returns whether rows fill some screens: several turns, or very many rows."""
    turns = sum(isinstance(row.event, TurnEnded) for row in rows)
    return turns >= _SHOWN_TURNS or len(rows) >= _MAX_ROWS


def _split_at_last_end(rows: Sequence[Row]) -> tuple[Sequence[Row], Sequence[Row]]:
    """Splits rows into finished ones and those after the last turn's end that still need an answer."""
    ends = [index for index, row in enumerate(rows) if isinstance(row.event, TurnEnded)]
    start = ends[-1] + 1 if ends else 0
    wants = any(
        isinstance(row.event, TurnStarted | UserMessage) for row in rows[start:]
    )
    if wants:
        return (rows[:start], rows[start:])
    return (rows, ())
