"""Undo, redo and retry of turns, the diff of a turn, and branches.

Everything works on the log and the files alone, so any process can do it, but not while the session runs. These
functions block; a surface with an event loop calls them in a thread.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from hermes.app.app import App
from hermes.app.partial_text import partial_path
from hermes.app.session_journal import OUTCOME_UNKNOWN, crashed, read_history
from hermes.core.history import Beginning, ConversationHistory
from hermes.errors import HermesError, SessionBusy, StoreError, UsageError, os_reason
from hermes.schema.event_base import Event
from hermes.schema.events import SessionRedone, SessionUndone, TurnStarted
from hermes.schema.messages import UserMessage
from hermes.settings.load import environment
from hermes.store.leases import Lease
from hermes.store.log_row import Row
from hermes.text.translation import Later, translator
from hermes.tools.shadow import RestoreOutcome, ShadowFailed, Shadows

if TYPE_CHECKING:
    from hermes.tools.shadow.shadow import Shadow

t = translator(__name__)

MAX_LISTED_TURNS = 200
"""Turns whose files are listed: each takes a few calls of git."""


class UndoReport(msgspec.Struct, frozen=True):
    """The result of an undo, redo or retry."""

    turns: tuple[str, ...]
    """The turns that were undone or redone, newest first."""
    text: str
    """The user's message that began them."""
    files: RestoreOutcome
    note: str = ""
    """Why files are not restored at all; empty if they are."""


class RewindPoint(msgspec.Struct, frozen=True):
    """A turn to which a session can go back."""

    turn: str
    text: str
    """The user's message that began it."""
    turns: int
    """How many turns an undo takes back to be before it."""


class FileHistory(msgspec.Struct, frozen=True):
    """A file that a session changed, and the turns that did, newest first."""

    path: Path
    turns: tuple[RewindPoint, ...]


class Rewind:
    """Undoes, redoes and branches sessions."""

    def __init__(self, app: App, shadows: Shadows) -> None:
        self._app = app
        self._shadows = shadows

    def undo(
        self, session: str, *, turns: int = 1, force: bool = False, files: bool = True
    ) -> UndoReport:
        """Undoes the last turns: restores the files, and hides the turns from the model.

        Files that were changed after a turn are left alone and reported, unless `force` is set. `redo` reverses it.
        """
        with self._held(session) as lease:
            history = self._closed_history(lease)
            return self._undo(
                history, lease, _last(history, turns), files=files, force=force
            )

    def restore_files(
        self, session: str, *, turns: int = 1, force: bool = False
    ) -> UndoReport:
        """Restores the files of the last turns, and leaves the conversation as it is."""
        with self._held(session) as lease:
            history = self._closed_history(lease)
            wanted = _last(history, turns)
            outcome = self._restore(
                lease.session, _names(wanted), self._app.ids.turn(), force=force
            )
            return UndoReport(_names(wanted), "", outcome, self._note())

    def points(self, session: str) -> list[RewindPoint]:
        """Returns the turns that can be undone, newest first."""
        session = self._app.store.sessions.find(session).id
        history = read_history(self._app.store, session)
        return [
            RewindPoint(turn.turn, _first_message(history, turn), number)
            for number, turn in enumerate(reversed(history.turns), 1)
        ]

    def redo(self, session: str, *, force: bool = False) -> UndoReport:
        """Redoes the last undo, as long as no message came after it."""
        with self._held(session) as lease:
            history = read_history(self._app.store, lease.session)
            row = self._undone_row(lease.session, history.redoable)
            if row is None:
                raise UsageError(
                    t.later("There is nothing to redo."),
                    hint=t.later("Only the last undo can be redone, right after it."),
                )
            outcome = RestoreOutcome()
            if row.kept:
                outcome = self._restore(
                    lease.session, (row.kept,), self._app.ids.turn(), force=force
                )
            self._app.record(
                lease.session, SessionRedone(undone=history.redoable), lease=lease
            )
            history.add(0, SessionRedone(undone=history.redoable))
            first = next(turn for turn in history.turns if turn.seq == row.since)
            return UndoReport(
                row.turns, _first_message(history, first), outcome, self._note()
            )

    def retry(
        self, session: str, *, force: bool = False, files: bool = True, via: str = ""
    ) -> UndoReport:
        """Undoes the last turn and submits the same message again. With `via`, the reply goes to the message that asked for
        the retry."""
        with self._held(session) as lease:
            history = self._closed_history(lease)
            (last,) = _last(history, 1)
            said = [
                msgspec.structs.replace(message, delivery="queue")
                for message in history.messages[last.messages :]
                if isinstance(message, UserMessage) and message.origin == "user"
            ]
            if not said:
                raise UsageError(
                    t.later(
                        "The last turn did not answer a message, so there is nothing to retry."
                    )
                )
            if via:
                said[-1] = msgspec.structs.replace(said[-1], via=via)
            return self._undo(
                history, lease, [last], files=files, force=force, then=said
            )

    def diff(self, session: str, *, turn: str = "") -> str:
        """The unified diff of a turn, by default the last one; empty if it changed nothing."""
        wanted = turn or self.last_turn(session)
        shadow = self._shadow(session)
        if not wanted or shadow is None:
            return ""
        with _explained(t.later("Nothing was changed.")):
            return shadow.diff(wanted, helps=self._helps(session))

    def last_turn(self, session: str) -> str:
        """The last turn that was not undone; empty if there is none."""
        session = self._app.store.sessions.find(session).id
        turns = _names(read_history(self._app.store, session).turns)
        return turns[0] if turns else ""

    def changed(self, session: str, *, turn: str) -> tuple[Path, ...]:
        """The files that a turn of this session changed, as far as they were saved."""
        session = self._app.store.sessions.find(session).id
        turns = _names(read_history(self._app.store, session).turns)
        shadow = self._shadow(session)
        if turn not in turns or shadow is None:
            return ()
        with _explained(t.later("Nothing was changed.")):
            return shadow.changed(turn, helps=self._helps(session))

    def changed_files(self, session: str) -> list[FileHistory]:
        """The files that the last turns of this session changed, as far as they were saved; the newest change first."""
        session = self._app.store.sessions.find(session).id
        shadow = self._shadow(session)
        if shadow is None:
            return []
        helps = self._helps(session)
        found: dict[Path, list[RewindPoint]] = {}
        with _explained(t.later("Nothing was changed.")):
            saved = [one for one in self.points(session) if shadow.has(one.turn)]
            for point in saved[:MAX_LISTED_TURNS]:
                for path in shadow.changed(point.turn, helps=helps):
                    found.setdefault(path, []).append(point)
        return [FileHistory(path, tuple(turns)) for path, turns in found.items()]

    def deletes(
        self, session: str, *, turns: int = 1, force: bool = False
    ) -> tuple[str, ...]:
        """The files that undoing so many turns would delete. Surfaces ask the user first."""
        session = self._app.store.sessions.find(session).id
        shadow = self._shadow(session)
        if shadow is None:
            return ()
        names = _names(_last(read_history(self._app.store, session), turns))
        with _explained(t.later("Nothing was changed.")):
            return shadow.deletes(names, force=force, helps=self._helps(session))

    def branch(
        self, session: str, *, at: int | None = None, back: int = 0, surface: str = ""
    ) -> str:
        """Begins a new session with the messages so far, or up to row `at`, or without the last `back` turns.

        A running turn and waiting messages stay with the old session. Returns the new session's id.
        """
        session = self._app.store.sessions.find(session).id
        last, history = self._up_to(session, at)
        left_out = _last(history, back) if back else []
        row = self._app.store.log.branch(
            session, self._app.ids.session(), at=last, surface=surface
        )
        self._app.writer.publish(row)
        if left_out:
            undone = SessionUndone(since=left_out[0].seq, turns=_names(left_out))
            self._app.record(row.session, undone)
        return row.session

    def _undo(
        self,
        history: ConversationHistory,
        lease: Lease,
        wanted: Sequence[Beginning],
        *,
        files: bool,
        force: bool,
        then: Sequence[Event] = (),
    ) -> UndoReport:
        """Restores the files first, so that after a crash the same undo does the rest."""
        kept, names = self._app.ids.turn(), _names(wanted)
        outcome = (
            self._restore(lease.session, names, kept, force=force)
            if files
            else RestoreOutcome()
        )
        changed = bool(outcome.restored)
        undone = SessionUndone(
            since=wanted[0].seq,
            turns=names,
            kept=kept if changed else "",
            restored=len(outcome.restored),
        )
        self._app.record(lease.session, undone, *then, lease=lease)
        return UndoReport(
            names,
            _first_message(history, wanted[0]),
            outcome,
            self._note() if files else "",
        )

    def _restore(
        self, session: str, turns: tuple[str, ...], kept: str, *, force: bool
    ) -> RestoreOutcome:
        shadow = self._shadow(session)
        if shadow is None:
            return RestoreOutcome()
        with _explained(
            t.later(
                "The conversation was not changed. You can undo it without the files."
            )
        ):
            return shadow.undo(
                turns,
                session=session,
                undo=kept,
                force=force,
                helps=self._helps(session),
            )

    def _shadow(self, session: str) -> "Shadow | None":
        cwd = self._app.store.sessions.find(session).cwd
        return self._shadows.at(Path(cwd)) if cwd else None

    def _helps(self, session: str) -> Callable[[str], bool]:
        """Returns a function that tells whether another session is a child that worked for this one."""
        root = self._app.store.sessions.find(session).root

        def helps(other: str) -> bool:
            try:
                info = self._app.store.sessions.find(other)
            except StoreError:  # deleted since
                return False
            return info.kind == "child" and info.root == root

        return helps

    def _note(self) -> str:
        return (
            ""
            if self._shadows.git
            else t.logged("Files are not saved for undo, because git is not installed.")
        )

    @contextmanager
    def _held(self, session: str) -> Iterator[Lease]:
        """Holds the lease of a session, so that nobody can run it."""
        session = self._app.store.sessions.find(session).id
        try:
            lease = self._app.store.leases.acquire(session)
        except SessionBusy as busy:
            hint = t.later(
                "Nothing was changed. Wait for it or stop it, then try again."
            )
            raise SessionBusy(
                t.later("A turn of session {session} is running.", session=session),
                hint=hint,
            ) from busy
        try:
            yield lease
        finally:
            self._app.store.leases.release(lease)

    def _closed_history(self, lease: Lease) -> ConversationHistory:
        """The history, after a turn that a crash left open was closed."""
        history = read_history(self._app.store, lease.session)
        if not history.open_turn:
            return history
        closing = (
            *history.unfinished(OUTCOME_UNKNOWN),
            *crashed(""),
        )  # its partial reply is undone too
        self._app.record(lease.session, *closing, turn=history.open_turn, lease=lease)
        with suppress(OSError):
            partial_path(self._app.home, lease.session).unlink()
        return read_history(self._app.store, lease.session)

    def _undone_row(self, session: str, seq: int) -> SessionUndone | None:
        rows = (
            self._app.store.log.events(session, after=seq - 1, limit=1) if seq else []
        )
        event = rows[0].event if rows else None
        return event if isinstance(event, SessionUndone) else None

    def _up_to(self, session: str, at: int | None) -> tuple[int, ConversationHistory]:
        """The history up to a row, by default up to the last one before messages that wait."""
        rows = list(self._app.store.log.every_event(session))
        last = at or _quiet(rows)
        history = ConversationHistory()
        for row in rows:
            if row.seq <= last:
                history.add(row.seq, row.event, row.turn)
        return last, history


def shadows_of(app: App) -> Shadows:
    """The shadow repositories of this home, in which files are saved before a turn changes them."""
    return Shadows(
        app.home.root, environment=environment(), user_home=Path.home(), clock=app.clock
    )


def _quiet(rows: Sequence[Row]) -> int:
    history = ConversationHistory()
    answering: set[int] = set()
    for row in rows:
        history.add(row.seq, row.event, row.turn)
        if isinstance(row.event, TurnStarted):
            answering = {row.seq, *row.event.inputs}
        elif not history.open_turn:
            answering = set()
    return max(1, min({rows[-1].seq + 1, *answering, *history.waiting}) - 1)


def _last(history: ConversationHistory, turns: int) -> list[Beginning]:
    if turns < 1:
        raise UsageError(
            t.later("Undo at least one turn."),
            hint=t.later("Give a number, such as 2."),
        )
    if not history.turns:
        raise UsageError(
            t.later("There is no turn to undo."), hint=t.later("Nothing was changed.")
        )
    if turns > len(history.turns):
        raise UsageError(
            t.later(
                "There is only {count} turn to undo.",
                "There are only {count} turns to undo.",
                count=len(history.turns),
            ),
            hint=t.later("Nothing was changed."),
        )
    return history.turns[-turns:]


def _names(turns: Sequence[Beginning]) -> tuple[str, ...]:
    return tuple(
        name for turn in reversed(turns) for name in reversed((turn.turn, *turn.then))
    )


def _first_message(history: ConversationHistory, first: Beginning) -> str:
    """The user's message that began a turn."""
    said = (
        message
        for message in history.messages[first.messages :]
        if isinstance(message, UserMessage)
    )
    return next((message.text for message in said if message.origin == "user"), "")


@contextmanager
def _explained(hint: Later) -> Iterator[None]:
    """Turns errors with files into messages for a person."""
    try:
        yield
    except ShadowFailed as error:
        raise HermesError(
            t.later("The saved files can't be used: {error}.", error=error), hint=hint
        ) from error
    except OSError as error:
        raise HermesError(
            t.later("The saved files can't be used: {error}.", error=os_reason(error)),
            hint=hint,
        ) from error
