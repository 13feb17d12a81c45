"""Project notes (AGENTS.md and the like) that git carries from one checkout to another.

A command may have committed such notes without ever writing the file. So a note that git brings counts as written by
a command, unless the source checkout has the same note and a person wrote or accepted it there.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes.core.prompt import NOTE_FILES
from hermes.tools.sandbox.command_markers import CommandMarker, CommandStart
from hermes.tools.sandbox.protected_paths import watched
from hermes.tools.sandbox.written_notes import (
    digest_of,
    is_written,
    record_digests,
    stamps,
)

NOTE_PATTERNS = tuple(f":(glob)**/{name}" for name in NOTE_FILES)
"""The notes of a repository, for git."""


@contextmanager
def carried_notes(
    hermes_home: Path, origin: Path, target: Path, tracked: Callable[[], Iterable[str]]
) -> Iterator[None]:
    """Remembers which notes are not a person's, of those that git brings into `target` meanwhile.

    `tracked` lists the notes that git has there, by their relative paths. If this process is killed meanwhile, all notes
    that changed count as written by a command.
    """
    if not hermes_home.is_dir():
        yield  # no session reads notes for it
        return
    before = {name: digest_of(str(target / name)) for name in tracked()}
    own = (f"{target}/{name}" for name in NOTE_FILES)
    there = (note for note in own if os.path.lexists(note))
    notes = stamps((*watched(target).notes, *there))
    began_ns = time.time_ns()
    start = CommandStart(workspace=str(target), began_ns=began_ns, notes=notes)
    marker = CommandMarker(hermes_home, start)
    try:
        yield
    finally:
        after = {name: digest_of(str(target / name)) for name in tracked()}
        written = {
            str(target / name): digest
            for name, digest in after.items()
            if before.get(name) != digest
            and not _is_known(hermes_home, origin / name, digest)
        }
        if written:
            record_digests(hermes_home, written)
        marker.remove()


def _is_known(hermes_home: Path, note: Path, digest: str) -> bool:
    """Whether a checkout has this note with this content, and a person wrote or accepted it."""
    return digest_of(str(note)) == digest and not is_written(hermes_home, note)
