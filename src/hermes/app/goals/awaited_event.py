"""Events that a goal waits for: of other sessions, of boards and of jobs as the store has them, or of the bus.

What the store has also counts if it happened while no process waited. Events that are only published count while one does.
"""

import asyncio
import contextlib
import shlex
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from hermes.app.app import App
from hermes.errors import SessionNotFound, StoreError, UsageError
from hermes.events.trie import Trie
from hermes.schema.boards import BoardEvent
from hermes.schema.catalogue import CATALOGUE
from hermes.schema.goals import GoalJudged
from hermes.schema.schedules import ScheduleEnded
from hermes.text.translation import translator
from hermes.tools.sensitive import is_within

t = translator(__name__)

_LOOK_INTERVAL_S = 1.0
_MAX_JOB_ENDS = 200
_MAX_SHOWN_CHARS = 60
_MAX_SHOWN_FIELDS = 6
_MAX_HEARD = 10_000
_PAGE_ROWS = 500
FILE_CHANGED = "file.changed"
"""Not an event of the bus: that a file was made or changed. `path` names it."""
_EXAMPLE = "kanban.card.moved card=t_1a2b3c4d5e after=done"  # not translated


def event_name(judged: GoalJudged) -> str:
    """Returns what a goal waits for, as people type it."""
    return " ".join([judged.wait_name, *map(shlex.quote, judged.wait_where)])


def known_topics(pattern: str) -> list[str]:
    """Returns the topics of Hermes that a pattern matches."""
    trie: Trie[bool] = Trie()
    trie.add(pattern, True)
    return [topic for topic in CATALOGUE if trie.match(topic)]


def guest_folder(app: App, session: str) -> Path | None:
    """Returns the folder of a session that works for somebody else; None if it is the user's own. Blocks."""
    if not app.person(session):
        return None
    return app.store.sessions.origin(session).working_directory


def require_event(
    pattern: str, where: Mapping[str, str], guest: Path | None = None
) -> None:
    """Raises UsageError for an event that can't happen, so that nobody waits for it in vain.

    `guest` is the folder of somebody else's session, which learns only of its folder and of sessions of that person.
    """
    is_file = pattern == FILE_CHANGED and where.keys() == {"path"}
    if is_file and (guest is None or _is_inside(where["path"], guest)):
        return
    hint = t.later("Such as: {example}", example=_EXAMPLE)
    topics = known_topics(pattern)
    if guest is not None:
        topics = [one for one in topics if _is_of_sessions(one)]
    is_plugins = pattern.startswith("plugin.") and guest is None
    if not topics and not is_plugins:
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
        self._person: str | None = None
        """Whom the session works for, empty for the user; None until it was read."""
        self._heard: deque[tuple[str, Mapping[str, Any], object]] = deque(maxlen=_MAX_HEARD)  # fmt: skip

    def look(self) -> str:
        """Returns what has happened, in words; empty if it has not, as far as the store and the bus know. Blocks."""
        if self._person is None:
            self._person = self._app.person(self._session)
        while self._heard:
            if words := self._words(*self._heard[0]):
                return words
            self._heard.popleft()
        if self._judged.wait_name == FILE_CHANGED:
            return self._look_at_file()
        return (
            self._look_at_sessions() or self._look_at_boards() or self._look_at_jobs()
        )

    async def wait(self) -> str:
        """Waits until it happens. Returns what has happened, in words."""
        loop, seen = asyncio.get_running_loop(), asyncio.Event()

        def note(event: Mapping[str, Any]) -> None:
            topic, session = str(event["type"]), event.get("session_id")
            if self._is_awaited(topic, event, session):
                self._heard.append((topic, dict(event), session))
                if self._person == "":  # a guest may not be told, so it can wait
                    loop.call_soon_threadsafe(seen.set)

        handle = self._app.bus.subscribe(self._judged.wait_name, note)
        try:
            while True:
                seen.clear()
                with contextlib.suppress(StoreError):  # looked at again in a moment
                    if words := await asyncio.to_thread(self.look):
                        return words
                try:
                    async with asyncio.timeout(_LOOK_INTERVAL_S):
                        await seen.wait()
                except TimeoutError:
                    pass
        finally:
            self._app.bus.unsubscribe(handle)

    def _look_at_file(self) -> str:
        path = self._where.get("path", "")
        guest = guest_folder(self._app, self._session)
        if guest is not None and not _is_inside(path, guest):
            return ""
        try:
            found = Path(path).stat()
        except (OSError, ValueError):
            return ""
        changed = max(found.st_mtime, found.st_ctime)  # a move keeps the first one
        if changed < self._judged.wait_since:
            return ""
        return self._said(FILE_CHANGED, {"path": path})

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
        """Returns an event in words if it is the one that is waited for, and the session may know of it."""
        if not self._is_awaited(topic, fields, session) or not self._may_know(session):
            return ""
        return self._said(topic, {**fields, "session_id": session} if session else fields)  # fmt: skip

    def _is_awaited(
        self, topic: str, fields: Mapping[str, Any], session: object
    ) -> bool:
        """Returns whether an event is the one that is waited for. The session's own events never are.

        Private fields are never compared: to be woken would tell what another session wrote.
        """
        if session == self._session:
            return False
        known = {**fields, "session_id": session} if session else fields
        private = _sensitive(topic)
        return all(
            name not in private and _text(known.get(name)) == value
            for name, value in self._where.items()
        )

    def _may_know(self, session: object) -> bool:
        """Returns whether the goal may learn of an event: a guest's only of events of the guest's own sessions."""
        if not self._person:
            return True
        try:
            return isinstance(session, str) and self._app.person(session) == self._person  # fmt: skip
        except SessionNotFound:
            return False

    def _said(self, topic: str, known: Mapping[str, Any]) -> str:
        hidden = {*_sensitive(topic), "type", "ts", "src", "epoch", "seq", "turn_id"}
        is_users = not self._person  # else it is not theirs to know
        shown = [
            f"{name}={_text(value)}"
            for name, value in known.items()
            if is_users and name not in hidden and _is_short(value)
        ]
        name = " ".join([topic, *shown[:_MAX_SHOWN_FIELDS]])
        return t.logged("The awaited event has happened: {name}.", name=name)


def _sensitive(topic: str) -> tuple[str, ...]:
    kind = CATALOGUE.get(topic)
    return kind.sensitive if kind is not None else ()


def _is_of_sessions(topic: str) -> bool:
    kind = CATALOGUE[topic]
    return not issubclass(kind, BoardEvent) and kind is not ScheduleEnded


def _is_inside(path: str, folder: Path) -> bool:
    """Returns whether a file really lies in a folder. A link may lead out of it."""
    try:
        return is_within(Path(path).resolve(), folder.resolve())
    except (OSError, ValueError, RuntimeError):
        return False


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else ""


def _is_short(value: object) -> bool:
    text = _text(value)
    return 0 < len(text) <= _MAX_SHOWN_CHARS and text.isprintable()
