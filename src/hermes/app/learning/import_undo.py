"""`hermes import undo`: removes what one import added. Items that were changed or used since stay, and are named."""

from collections.abc import Callable

import msgspec

from hermes.app.app import App
from hermes.app.learning.import_journal import (
    ImportedIdentity,
    ImportedJob,
    ImportedNote,
    ImportedRule,
    ImportedSecret,
    ImportedSession,
    ImportedSetting,
    ImportedSkill,
    JournalItem,
    PastImport,
    digest,
)
from hermes.app.project_notes import IDENTITY_FILE
from hermes.app.schedules.jobs import JobBook
from hermes.errors import HermesError, SessionNotFound
from hermes.learning.change import (
    MemoryChange,
    MemoryEdit,
    Provenance,
    SkillChange,
)
from hermes.learning.imports.sources import SkippedItem
from hermes.learning.learning_service import LearningService
from hermes.learning.memory_entries import Notes
from hermes.primitives.untyped import object_of
from hermes.settings.edit import remove_entry, set_secret, unset_value
from hermes.settings.load import load_secrets, read_config
from hermes.text.translation import translator
from hermes.tools.policy import RuleFile

t = translator(__name__)


TABLES = ("mcp_servers", "custom_providers")
"""Settings whose entries are removed as a whole."""
EXTRA_LINES = 2  # of an exported session: its header, and the note that it was imported
_CHANGED = t.logged("it was changed since")


class UndoReport(msgspec.Struct):
    """What was removed, and what stays and why."""

    removed: int = 0
    kept: list[SkippedItem] = []


class ImportUndo:
    """Undoes one import."""

    def __init__(self, app: App, learning: LearningService, past: PastImport) -> None:
        self._app = app
        self._learning = learning
        self._past = past
        self._report = UndoReport()

    def run(self) -> UndoReport:
        """Removes everything that is unchanged since the import. Can be repeated after an interruption."""
        entries: dict[tuple[str, ...], dict[str, object]] = {}
        notes: list[ImportedNote] = []
        for item in self._past.items:
            match item:
                case ImportedSetting():
                    keys = tuple(item.key.split("."))
                    place = keys[:2] if keys[0] in TABLES else keys
                    entries.setdefault(place, {})[item.key] = item.value
                case ImportedNote():
                    notes.append(item)
                case _:
                    self._try(item)
        for place, values in entries.items():
            self._guarded(
                ".".join(place), lambda p=place, v=values: self._setting(p, v)
            )
        self._guarded("notes", lambda: self._notes(notes))
        self._past.close()
        return self._report

    def _try(self, item: JournalItem) -> None:
        match item:
            case ImportedSession():
                self._guarded(f"session {item.id}", lambda: self._session(item))
            case ImportedIdentity():
                self._guarded(IDENTITY_FILE, lambda: self._identity(item))
            case ImportedSkill():
                self._guarded(f"skill {item.name}", lambda: self._skill(item))
            case ImportedSecret():
                self._guarded(item.name, lambda: self._secret(item))
            case ImportedJob():
                self._guarded(f"schedule {item.prompt[:40]}", lambda: self._job(item))
            case ImportedRule():
                self._guarded(item.rule.describe(), lambda: self._rule(item))
            case _:
                return

    def _guarded(self, what: str, undo: Callable[[], str]) -> None:
        """Runs one step, which returns why something stays. An error does not stop the other steps."""
        try:
            why = undo()
        except (HermesError, OSError) as error:
            why = error.message if isinstance(error, HermesError) else str(error)
        if why:
            self._report.kept.append(SkippedItem(what, why))

    def _session(self, item: ImportedSession) -> str:
        if not self._app.has_log:
            return ""
        store = self._app.store
        try:
            if store.sessions.find(item.id).id != item.id:
                return ""
        except SessionNotFound:
            return ""
        lines = sum(1 for _ in store.transfer.export(item.id))
        if lines != item.rows + EXTRA_LINES:
            return t.logged("it was used since")
        store.sessions.delete(item.id)
        self._report.removed += 1
        return ""

    def _identity(self, item: ImportedIdentity) -> str:
        path = self._app.home.root / IDENTITY_FILE
        if not path.is_file():
            return ""
        if digest(self._past.id, path.read_text("utf-8", "replace")) != item.digest:
            return _CHANGED
        path.unlink()
        self._report.removed += 1
        return ""

    def _skill(self, item: ImportedSkill) -> str:
        skills = self._learning.skills
        if skills.records.get(item.name).hash != item.digest:
            return ""  # it was never created, or another one has its name
        if not any(skill.name == item.name for skill in skills.all()):
            return ""
        if not skills.is_as_written(item.name):
            return _CHANGED
        self._learning.apply(SkillChange(item.name, retire=True), Provenance("user"))
        self._report.removed += 1
        return ""

    def _secret(self, item: ImportedSecret) -> str:
        value = load_secrets({}, home=self._app.home).get(item.name)
        if value is None:
            return ""
        if digest(self._past.id, value) != item.digest:
            return _CHANGED
        set_secret(self._app.home.env_file, item.name, None)
        self._report.removed += 1
        return ""

    def _job(self, item: ImportedJob) -> str:
        if not self._app.has_log:
            return ""
        book = JobBook(self._app)
        for job in book.store.jobs():
            if (job.prompt, job.schedule, job.by) == (
                item.prompt,
                item.schedule,
                "import",
            ):
                if not job.paused:
                    return t.logged("you have resumed it")
                book.remove(job.id)
                self._report.removed += 1
        return ""

    def _rule(self, item: ImportedRule) -> str:
        removed = RuleFile(self._app.home.root).remove_rule(item.list, item.rule)
        self._report.removed += removed
        return ""

    def _setting(self, place: tuple[str, ...], values: dict[str, object]) -> str:
        config = self._app.home.config
        here, _ = read_config(self._app.home)
        if value_at(here, ".".join(place)) is None:
            return ""
        if any(value_at(here, key) != value for key, value in values.items()):
            return _CHANGED
        if place[0] in TABLES:
            remove_entry(config, *place)
        else:
            unset_value(config, ".".join(place))
        self._report.removed += len(values)
        return ""

    def _notes(self, notes: list[ImportedNote]) -> str:
        edits = tuple(
            MemoryEdit("remove", old=note.text, file=note.file)
            for note in notes
            if self._has_note(note)
        )
        if edits:
            self._learning.apply(MemoryChange(edits), Provenance("user"))
        self._report.removed += len(edits)
        gone = len(notes) - len(edits)
        if not gone:
            return ""
        return t.logged(
            "{count} note changed or gone", "{count} notes changed or gone", count=gone
        )

    def _has_note(self, note: ImportedNote) -> bool:
        wanted = " ".join(note.text.split())
        here = Notes(self._learning.memory.read(note.file)).notes
        return any(" ".join(one.text.split()) == wanted for one in here)


def value_at(data: object, key: str) -> object:
    """Returns the value of a key in a configuration; None if it is not set."""
    value = data
    for part in key.split("."):
        value = object_of(value).get(part)
    return value
