"""What an editor is shown of a session that it loads: the conversation as the log has it, without undone turns."""

from collections.abc import Iterator
from pathlib import Path

from hermes.app import App
from hermes.schema.events import SessionRedone, SessionUndone, TurnStarted
from hermes.store.log_row import Row
from hermes.surfaces.acp.updates import Update, UpdateStream


def past_updates(app: App, session: str) -> Iterator[Update]:
    """The updates that show a session's conversation. Reads the log."""
    rows = list(app.store.log.every_event(session))
    undone = _undone(rows)
    hidden = {
        seq
        for row in rows
        if row.turn in undone and isinstance(row.event, TurnStarted)
        for seq in row.event.inputs
    }
    stream = UpdateStream(Path(app.store.sessions.origin(session).cwd or "."))
    for row in rows:
        if row.turn not in undone and row.seq not in hidden:
            yield from stream.past(app.envelope(row))


def _undone(rows: list[Row]) -> set[str]:
    """The turns that are undone now."""
    undone: dict[int, tuple[str, ...]] = {}
    for row in rows:
        if isinstance(row.event, SessionUndone):
            undone[row.seq] = row.event.turns
        elif isinstance(row.event, SessionRedone):
            undone.pop(row.event.undone, None)
    return {turn for turns in undone.values() for turn in turns}
