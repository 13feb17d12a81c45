"""The shadow of one working directory: saves what a turn is about to change, undoes turns, and reports their changes.

Everything here blocks; callers with an event loop use a thread.
"""

# Names are bytes here, because a file name need not be valid text.
# ruff: noqa: PTH120

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from hermes.text.translation import translator
from hermes.tools.shadow.folder_snapshot import keep_trees
from hermes.tools.shadow.path_state import ABSENT, FOLDER, drop_draft, read_state
from hermes.tools.shadow.repository import ShadowGit, ShadowRepository, blob_id
from hermes.tools.shadow.restore_files import Conflict, carry_out, plan
from hermes.tools.shadow.shadows import RestoreOutcome, Shadows, turn_file
from hermes.tools.shadow.turn_changes import Changes, PathChange, changes_of
from hermes.tools.shadow.turn_diff import display, unified
from hermes.tools.shadow.turn_record import (
    Ended,
    Line,
    Touched,
    Tree,
    TurnHeader,
    TurnRecord,
    Unkept,
    Whole,
    append,
    read,
)

t = translator(__name__)


Helps: TypeAlias = Callable[[str], bool]
"""Whether a session works for another one, so that its changes count as the other's."""


def _nobody(session: str) -> bool:  # noqa: ARG001 - the shape of `Helps`
    return False


class Shadow:
    """The saved states of one working directory."""

    def __init__(
        self, shadows: Shadows, workspace: Path, repository: ShadowRepository
    ) -> None:
        self._shadows = shadows
        self._root = os.fsencode(workspace)
        self._repository = repository
        self.workspace = workspace

    def has(self, turn: str) -> bool:
        """Whether something was saved for a turn."""
        return self._file(turn).exists()

    def keep_files(
        self, session: str, turn: str, paths: Iterable[bytes], *, late: bool
    ) -> list[Unkept]:
        """Saves these files as they are now. Returns what could not be saved."""
        with self._repository.locked() as git:
            touched = [
                Touched(path, read_state(path, git.write_blob), late, _missing(path))
                for path in paths
            ]
            self._append(session, turn, *touched)
        return [
            Unkept(one.path, t.logged("too large, not readable, or not a file"))
            for one in touched
            if one.state.kind == "unkept"
        ]

    def keep_whole(self, session: str, turn: str) -> list[Unkept]:
        """Saves the working directory as it is now. Returns what could not be saved."""
        if why := self._shadows.too_wide(self.workspace):
            note = Unkept(self._root, why)
            with self._repository.locked():
                self._append(session, turn, note)
            return [note]
        with self._repository.locked() as git:
            trees = self._trees(git)
            self._append(session, turn, Whole(trees))
        return [note for tree in trees for note in tree.unkept]

    def note_failure(self, session: str, turn: str, why: str) -> None:
        """Records that saving failed, so that undo can report it."""
        with self._repository.locked():
            self._append(session, turn, Unkept(self._root, why))

    def end(self, turn: str) -> None:
        """Saves the state at the end of a turn."""
        if not self.has(turn):
            return
        with self._repository.locked() as git:
            record = read(self._file(turn))
            if record and not record.ended:
                append(self._file(turn), self._ending(git, record))

    def undo(
        self,
        turns: Sequence[str],
        *,
        session: str,
        undo: str,
        force: bool = False,
        helps: Helps = _nobody,
    ) -> RestoreOutcome:
        """Undoes turns, newest first. Saves what it changes as a turn named `undo`, so that this can be undone too.

        Changes that other sessions made at the same time are left alone, unless they worked for this one.
        """
        restored: dict[bytes, None] = {}
        conflicts: dict[bytes, Conflict] = {}
        unkept: dict[bytes, Unkept] = {}
        if not any(map(self.has, turns)):
            return RestoreOutcome()
        with self._repository.locked() as git:
            for turn in turns:
                record = read(self._file(turn))
                if record is None:
                    continue
                for path in record.touched:
                    drop_draft(path)
                found = self._sealed(git, record, helps)
                planned = plan(found, force=force)
                paths = [change.path for change in planned.wanted]
                kept = [
                    Touched(
                        path, read_state(path, git.write_blob), False, _missing(path)
                    )
                    for path in paths
                ]
                self._append(
                    session, undo, *kept
                )  # before anything is written, so that this undo can be undone too
                done, failed = carry_out(git, planned.wanted, found.removable)
                restored |= dict.fromkeys(done)
                conflicts |= {
                    conflict.path: conflict
                    for conflict in (*planned.conflicts, *failed)
                }
                unkept |= {note.path: note for note in found.unkept}
            record = read(self._file(undo))
            if record:
                append(self._file(undo), self._ending(git, record))
        return RestoreOutcome(
            tuple(self._name(path) for path in restored),
            tuple(
                (self._name(conflict.path), conflict.why)
                for conflict in conflicts.values()
            ),
            tuple((self._name(note.path), note.why) for note in unkept.values()),
        )

    def deletes(
        self, turns: Sequence[str], *, force: bool = False, helps: Helps = _nobody
    ) -> tuple[str, ...]:
        """Returns the files that undoing these turns, newest first, would delete, because the turns created them."""
        newest: dict[bytes, PathChange] = {}
        oldest: dict[bytes, PathChange] = {}
        if not any(map(self.has, turns)):
            return ()
        with self._repository.locked() as git:
            for turn in turns:
                record = read(self._file(turn))
                if record is not None:
                    for change in self._changes(git, record, helps).changes:
                        newest.setdefault(change.path, change)
                        oldest[change.path] = change
        made = [path for path, change in oldest.items() if change.before == ABSENT]
        states = {path: read_state(path, blob_id) for path in made}
        return tuple(
            self._name(path)
            for path, state in sorted(states.items())
            if state not in (ABSENT, FOLDER) and (force or state == newest[path].after)
        )

    def diff(self, turn: str, *, helps: Helps = _nobody) -> str:
        """Returns what a turn changed so far as a unified diff, and names what was not saved."""
        if not self.has(turn):
            return ""
        with self._repository.locked() as git:
            record = read(self._file(turn))
            if record is None:
                return ""
            found = self._changes(git, record, helps)
            text = unified(git, found.changes, self._root)
        notes = [
            f"not saved: {self._name(note.path)} ({note.why})\n"
            for note in found.unkept
        ]
        return text + "".join(notes)

    def changed(self, turn: str, *, helps: Helps = _nobody) -> tuple[Path, ...]:
        """Returns the files that a turn changed so far, as far as they were saved."""
        if not self.has(turn):
            return ()
        with self._repository.locked() as git:
            record = read(self._file(turn))
            if record is None:
                return ()
            found = self._changes(git, record, helps).changes
        return tuple(Path(os.fsdecode(change.path)) for change in found)

    def _changes(self, git: ShadowGit, record: TurnRecord, helps: Helps) -> Changes:
        """Returns what a turn changed so far."""
        return changes_of(
            git,
            record,
            record.ended or self._ending(git, record),
            self._others(record, helps),
        )

    def _sealed(self, git: ShadowGit, record: TurnRecord, helps: Helps) -> Changes:
        """Returns what a turn changed. A turn that never ended ends now, because later changes can't be told apart."""
        ended = record.ended
        if ended is None:
            ended = self._ending(git, record)
            append(self._file(record.begun.turn), ended)
            record.add(ended)
        return changes_of(git, record, ended, self._others(record, helps))

    def _ending(self, git: ShadowGit, record: TurnRecord) -> Ended:
        states = tuple(
            (path, read_state(path, git.write_blob)) for path in record.touched
        )
        trees = self._trees(git) if record.whole else ()
        return Ended(self._shadows.clock.now(), states, trees)

    def _others(self, record: TurnRecord, helps: Helps) -> list[TurnRecord]:
        """Returns turns of other sessions that ran at the same time."""
        end = record.ended.at if record.ended else self._shadows.clock.now()
        others = (read(file) for file in self._file("").parent.glob("*.jsonl"))
        return [
            other
            for other in others
            if other
            and other.begun.session != record.begun.session
            and other.begun.at <= end
            and (other.ended is None or other.ended.at >= record.begun.at)
            and not helps(other.begun.session)
        ]

    def _trees(self, git: ShadowGit) -> tuple[Tree, ...]:
        return keep_trees(
            git, self._root, self._shadows.own_folders, self._shadows.limits
        )

    def _append(self, session: str, turn: str, *lines: Line) -> None:
        file = self._file(turn)
        begun = (
            []
            if file.exists()
            else [TurnHeader(session, turn, self._root, self._shadows.clock.now())]
        )
        append(file, *begun, *lines)

    def _file(self, turn: str) -> Path:
        return turn_file(self._repository.folder, turn)

    def _name(self, path: bytes) -> str:
        return display(path, self.workspace)


def _missing(path: bytes) -> tuple[bytes, ...]:
    """Returns the missing folders above a path."""
    folders: list[bytes] = []
    while not os.path.lexists(path := os.path.dirname(path)):
        folders.append(path)
    return tuple(folders)
