"""The journal of each import, in `imports/` of the home.

An item is recorded before it is created, so that an interrupted import can be undone too. Secrets are only named, with
a salted hash.
"""

import hashlib
import itertools
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from hermes.errors import NotFound
from hermes.learning.change import MemoryName
from hermes.learning.imports.json_fields import Objects
from hermes.primitives.files import make_private_folder, open_private, sync_folder
from hermes.text.translation import translator
from hermes.tools.policy.rules import List, PolicyRule

t = translator(__name__)


FOLDER = "imports"
_UNDONE = ".undone"


class StartedImport(msgspec.Struct, frozen=True, tag="import", tag_field="item"):
    """The first line: the source of the import."""

    source: str
    kind: str
    when: float


class ImportedSession(msgspec.Struct, frozen=True, tag="session", tag_field="item"):
    """A session, and its number of rows."""

    id: str
    rows: int


class ImportedNote(msgspec.Struct, frozen=True, tag="note", tag_field="item"):
    """A note of a memory file."""

    file: MemoryName
    text: str


class ImportedIdentity(msgspec.Struct, frozen=True, tag="identity", tag_field="item"):
    """SOUL.md, with the hash of its text."""

    digest: str


class ImportedSkill(msgspec.Struct, frozen=True, tag="skill", tag_field="item"):
    """A skill, with the hash of its files."""

    name: str
    digest: str


class ImportedSetting(msgspec.Struct, frozen=True, tag="setting", tag_field="item"):
    """A key of config.yaml and its value."""

    key: str
    value: Any


class ImportedSecret(msgspec.Struct, frozen=True, tag="secret", tag_field="item"):
    """A secret's name, with a hash of its value."""

    name: str
    digest: str


class ImportedJob(msgspec.Struct, frozen=True, tag="schedule", tag_field="item"):
    """A scheduled job."""

    prompt: str
    schedule: str


class ImportedRule(msgspec.Struct, frozen=True, tag="rule", tag_field="item"):
    """A rule of policy.yaml."""

    list: List
    rule: PolicyRule


JournalItem = (
    ImportedSession
    | ImportedNote
    | ImportedIdentity
    | ImportedSkill
    | ImportedSetting
    | ImportedSecret
    | ImportedJob
    | ImportedRule
)


def digest(import_id: str, value: str) -> str:
    """Returns a hash that later shows whether a value is still the imported one."""
    return hashlib.sha256(f"{import_id}\0{value}".encode(errors="replace")).hexdigest()


class ImportJournal:
    """Writes the journal of one import."""

    def __init__(self, home: Path, started: StartedImport, import_id: str) -> None:
        self.id = import_id
        folder = make_private_folder(home / FOLDER)
        self.path = folder / f"{import_id}.jsonl"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        self._file = os.fdopen(open_private(self.path, flags), "ab")
        self._write(started)
        sync_folder(folder)

    def add(self, *items: JournalItem) -> None:
        """Records items durably. The caller creates them afterwards."""
        for item in items:
            self._write(item, sync=item is items[-1])

    def close(self) -> None:
        self._file.close()

    def _write(self, item: StartedImport | JournalItem, *, sync: bool = True) -> None:
        self._file.write(msgspec.json.encode(item) + b"\n")
        if sync:
            self._file.flush()
            os.fsync(self._file.fileno())


def new_journal(home: Path, started: StartedImport) -> ImportJournal:
    """Starts the journal of an import, named after the current time."""
    stamp = datetime.fromtimestamp(started.when, UTC).strftime("%Y%m%d-%H%M%S")
    for number in itertools.count(1):
        name = stamp if number == 1 else f"{stamp}-{number}"
        if not (home / FOLDER / f"{name}.jsonl").exists():
            return ImportJournal(home, started, name)
    raise AssertionError("unreachable")


class PastImport(msgspec.Struct, frozen=True):
    """An earlier import: its journal, read again."""

    id: str
    path: Path
    started: StartedImport
    items: tuple[JournalItem, ...]

    def close(self) -> None:
        """Marks the import as undone, so that it is not offered again."""
        self.path.replace(self.path.with_name(self.path.name + _UNDONE))
        sync_folder(self.path.parent)


def past_import(home: Path, import_id: str = "") -> PastImport:
    """Returns one import, or the last one that was not undone. Raises NotFound."""
    known = sorted((home / FOLDER).glob("*.jsonl"))
    found = [path for path in known if not import_id or path.stem == import_id]
    if not found:
        what = t.later("There is no import to undo.")
        if import_id:
            what = t.later("There is no import {name!r} to undo.", name=import_id)
        names = ", ".join(path.stem for path in known) or "none"
        raise NotFound(
            what,
            hint=t.later("Imports of this home: {names}", names=names),
        )
    path = found[-1]
    lines = list(Objects(path))
    if not lines:
        raise NotFound(
            t.later("{path} is empty.", path=path),
            hint=t.later("That import changed nothing."),
        )
    return PastImport(
        id=path.stem,
        path=path,
        started=msgspec.convert(lines[0], StartedImport),
        items=tuple(msgspec.convert(line, JournalItem) for line in lines[1:]),
    )
