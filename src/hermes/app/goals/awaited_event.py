"""Events that a goal waits for: of other sessions, of boards and of jobs as the store has them, or of the bus.

What the store has also counts if it happened while no process waited. Events that are only published count while one does.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from hermes.app.app import App
from hermes.errors import StoreError, UsageError
from hermes.events.trie import Trie
from hermes.schema.boards import BoardEvent
from hermes.schema.catalogue import CATALOGUE
from hermes.schema.goals import GoalJudged
from hermes.schema.schedules import ScheduleEnded
from hermes.text.translation import translator

t = translator(__name__)

_LOOK_INTERVAL_S = 1.0
_MAX_JOB_ENDS = 200
_MAX_SHOWN_CHARS = 60
_MAX_SHOWN_FIELDS = 6
_PAGE_ROWS = 500
FILE_CHANGED = "file.changed"
"""Not an event of the bus: that a file was made or changed. `path` names it."""
_EXAMPLE = "kanban.card.moved card=t_1a2b3c4d5e after=done"


def event_name(judged: GoalJudged) -> str:
    """Returns what a goal waits for, as people type it."""
    return " ".join([judged.wait_name, *judged.wait_where])


def known_topics(pattern: str) -> list[str]:
    """Returns the topics of Hermes that a pattern matches."""
    trie: Trie[bool] = Trie()
    trie.add(pattern, True)
    return [topic for topic in CATALOGUE if trie.match(topic)]


def require_event(pattern: str, where: Mapping[str, str]) -> None:
    """Raises UsageError for an event that can't happen, so that nobody waits for it in vain."""
    if pattern == FILE_CHANGED and where.keys() == {"path"}:
        return
    hint = t.later("Such as: {example}", example=_EXAMPLE)
    topics = known_topics(pattern)
    if not topics and not pattern.startswith("plugin."):
        raise UsageError(
            t.later("There is no event {name!r}.", name=pattern), hint=hint
        )
    fields = {"session_id"}
    for topic in topics:
        kind = CATALOGUE[topic]
        fields |= set(kind.__struct_fields__) - set(kind.sensitive)
    if topics and (unknown := set(where) - fields):
        raise UsageError(
            t.later(
                "The event {name} has no field {field!r}.",
                name=pattern,
                field=min(unknown),
            ),
            hint=t.later("There are: {names}.", names=", ".join(sorted(fields))),
        )


def await_event(
    app: App, judged: GoalJudged, topic: str, where: Mapping[str, str]
) -> GoalJudged:
    """Returns a verdict that waits for an event from now on."""
    return msgspec.structs.replace(
        judged,
        wait_for="event",
        wait_name=topic,
        wait_where=tuple(f"{name}={value}" for name, value in where.items()),
        wait_row=app.store.log.newest(),
        wait_since=app.clock.now(),
    )


class EventSearch:
    """Looks for the event that a session's goal waits for. Each call goes on where the last one ended."""

    def __init__(self, app: App, session: str, judged: GoalJudged) -> None:
        self._app = app
        self._session = session
        self._judged = judged
        parts = (one.partition("=") for one in judged.wait_where)
        self._where = {name: value for name, _, value in parts}
        self._row = judged.wait_row
        self._entry: int | None = None
        topics = known_topics(judged.wait_name)
        self._of_boards = [
            one for one in topics if issubclass(CATALOGUE[one], BoardEvent)
        ]
        self._of_sessions = [
            one
            for one in topics
            if CATALOGUE[one].durable and one not in self._of_boards
        ]
        self._has_jobs = ScheduleEnded.topic in topics

    def look(self) -> str:
        """Returns what has happened, in words; empty if it has not, as far as the store knows."""
        if self._judged.wait_name == FILE_CHANGED:
            return self._look_at_file()
        return (
            self._look_at_sessions() or self._look_at_boards() or self._look_at_jobs()
        )

    async def wait(self) -> str:
        """Waits until it happens. Returns what has happened, in words."""
        loop, seen = asyncio.get_running_loop(), asyncio.Event()
        found: list[str] = []

        def note(event: Mapping[str, Any]) -> None:
            if words := self._words(str(event["type"]), event, event.get("session_id")):
                found.append(words)
                loop.call_soon_threadsafe(seen.set)

        handle = self._app.bus.subscribe(self._judged.wait_name, note)
        try:
            while not found:
                with contextlib.suppress(StoreError):  # looked at again in a moment
                    if words := await asyncio.to_thread(self.look):
                        return words
                try:
                    async with asyncio.timeout(_LOOK_INTERVAL_S):
                        await seen.wait()
                except TimeoutError:
                    pass
            return found[0]
        finally:
            self._app.bus.unsubscribe(handle)

    def _look_at_file(self) -> str:
        path = self._where.get("path", "")
        try:
            changed = Path(path).stat().st_mtime
        except (OSError, ValueError):
            return ""
        if changed < self._judged.wait_since:
            return ""
        return self._words(FILE_CHANGED, {"path": path})

    def _look_at_sessions(self) -> str:
        if not self._of_sessions:
            return ""
        while True:
            last, rows = self._app.store.log.of_topics(
                self._of_sessions, after=self._row, limit=_PAGE_ROWS
            )
            self._row = last
            for row in rows:
                if words := self._words(row.type, row.envelope(), row.session):
                    return words
            if len(rows) < _PAGE_ROWS:
                return ""

    def _look_at_boards(self) -> str:
        if not self._of_boards or not self._app.store.has_cards:
            return ""
        boards = self._app.store.boards
        since, entry = self._judged.wait_since, self._entry
        if entry is None:
            entry = boards.read(lambda reader: reader.entry_before(since))
        while entries := boards.read(
            lambda reader, after=entry: reader.history_after(after)
        ):
            for one in entries:
                self._entry = entry = one.id
                if one.topic in self._of_boards and (words := self._words(one.topic, one.data)):  # fmt: skip
                    return words
        self._entry = entry
        return ""

    def _look_at_jobs(self) -> str:
        if not self._has_jobs:
            return ""
        for one in self._app.store.schedules.history(limit=_MAX_JOB_ENDS):
            if one.state == "running" or one.ended < self._judged.wait_since:
                continue
            fields = {
                "job": one.job,
                "state": one.state,
                "due": one.due,
                "session": one.session,
            }
            if words := self._words(ScheduleEnded.topic, fields):
                return words
        return ""

    def _words(
        self, topic: str, fields: Mapping[str, Any], session: object = None
    ) -> str:
        """Returns an event in words if it is the one that is waited for. The session's own events never are."""
        if session == self._session:
            return ""
        known = {**fields, "session_id": session} if session else fields
        if any(_text(known.get(name)) != value for name, value in self._where.items()):
            return ""
        kind = CATALOGUE.get(topic)
        hidden = {*(kind.sensitive if kind else ()), "type", "ts", "src", "epoch", "seq", "turn_id"}  # fmt: skip
        is_users = not self._app.person(self._session)  # else it is not theirs to know
        shown = [
            f"{name}={_text(value)}"
            for name, value in known.items()
            if is_users and name not in hidden and _is_short(value)
        ]
        name = " ".join([topic, *shown[:_MAX_SHOWN_FIELDS]])
        return t.logged("The awaited event has happened: {name}.", name=name)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else ""


def _is_short(value: object) -> bool:
    text = _text(value)
    return 0 < len(text) <= _MAX_SHOWN_CHARS and text.isprintable()
