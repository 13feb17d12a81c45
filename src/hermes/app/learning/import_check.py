"""Checks after an import that everything in the journal exists here, by reading it again."""

from collections.abc import Iterator

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
from hermes.app.learning.import_undo import EXTRA_LINES, value_at
from hermes.app.project_notes import IDENTITY_FILE
from hermes.errors import HermesError
from hermes.learning.imports.sources import SkippedItem
from hermes.learning.learning_service import LearningService
from hermes.learning.memory_entries import Notes
from hermes.settings.load import load_secrets, read_config
from hermes.text.translation import translator
from hermes.tools.policy import RuleFile

t = translator(__name__)


class ImportCheck:
    """Compares one import with the home."""

    def __init__(self, app: App, learning: LearningService, past: PastImport) -> None:
        self._app = app
        self._learning = learning
        self._past = past
        self._config, _ = read_config(app.home)
        self._secrets = load_secrets({}, home=app.home)
        self._rules = RuleFile(app.home.root).current()
        jobs = app.store.schedules.jobs() if app.has_log else []
        self._jobs = {(job.prompt, job.schedule) for job in jobs}

    def missing(self) -> Iterator[SkippedItem]:
        """Yields what is missing here or differs from what was imported."""
        for item in self._past.items:
            what, is_here = self._find(item)
            if not is_here:
                yield SkippedItem(what, t.logged("it is not here after the import"))

    def _find(self, item: JournalItem) -> tuple[str, bool]:
        match item:
            case ImportedSession():
                return f"session {item.id}", self._has_session(item)
            case ImportedNote():
                wanted = " ".join(item.text.split())
                notes = Notes(self._learning.memory.read(item.file)).notes
                here = {" ".join(note.text.split()) for note in notes}
                return f"note {wanted[:60]}", wanted in here
            case ImportedIdentity():
                path = self._app.home.root / IDENTITY_FILE
                text = path.read_text("utf-8", "replace") if path.is_file() else ""
                return IDENTITY_FILE, digest(self._past.id, text) == item.digest
            case ImportedSkill():
                record = self._learning.skills.records.get(item.name)
                is_whole = self._learning.skills.is_as_written(item.name)
                return f"skill {item.name}", is_whole and record.hash == item.digest
            case _:
                return self._find_setting(item)

    def _find_setting(self, item: JournalItem) -> tuple[str, bool]:
        match item:
            case ImportedSetting():
                return item.key, value_at(self._config, item.key) == item.value
            case ImportedSecret():
                value = self._secrets.get(item.name) or ""
                return item.name, digest(self._past.id, value) == item.digest
            case ImportedJob():
                is_here = (item.prompt, item.schedule) in self._jobs
                return f"schedule {item.prompt[:40]}", is_here
            case ImportedRule():
                is_here = item.rule in getattr(self._rules, item.list)
                return f"{item.list} {item.rule.describe()}", is_here
            case _:
                raise AssertionError(item)

    def _has_session(self, item: ImportedSession) -> bool:
        """Returns whether a session exists here with every row."""
        try:
            lines = sum(1 for _ in self._app.store.transfer.export(item.id))
        except HermesError:
            return False
        return lines == item.rows + EXTRA_LINES
