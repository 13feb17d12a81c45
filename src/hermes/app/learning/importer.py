"""`hermes import`: imports the data of another agent. A plan comes first and lists everything.

The source is only read. Existing data stays as it is, and nothing is imported twice.
"""

from collections.abc import Callable
from pathlib import Path

from hermes.app.app import App
from hermes.app.learning.import_check import ImportCheck
from hermes.app.learning.import_journal import (
    ImportedIdentity,
    ImportedJob,
    ImportedNote,
    ImportedRule,
    ImportedSecret,
    ImportedSession,
    ImportedSetting,
    ImportedSkill,
    ImportJournal,
    StartedImport,
    digest,
    new_journal,
    past_import,
)
from hermes.app.learning.import_plan import PARTS, ImportPlan, ImportReport, Part
from hermes.app.learning.import_planner import ImportPlanner, has_session
from hermes.app.project_notes import IDENTITY_FILE
from hermes.app.schedules.import_jobs import RESTING
from hermes.app.schedules.jobs import JobBook
from hermes.errors import HermesError, SettingsError
from hermes.learning.change import MemoryChange, Provenance
from hermes.learning.imports.conversation import session_lines
from hermes.learning.imports.sources import SkippedItem, read
from hermes.learning.learning_service import LearningService
from hermes.learning.skill import tree_hash
from hermes.primitives.files import PRIVATE_FILE, replace_file
from hermes.settings.edit import set_secret, set_value
from hermes.text.formats import count
from hermes.tools.policy import RuleFile


class Importer:
    """Imports into one home."""

    def __init__(self, app: App, learning: LearningService) -> None:
        self._app = app
        self._learning = learning

    def plan(
        self,
        source: Path,
        parts: tuple[Part, ...] = PARTS,
        *,
        agent: str = "",
        secrets: bool = False,
    ) -> ImportPlan:
        """Plans an import; see `ImportPlanner.plan`."""
        planner = ImportPlanner(self._app, self._learning)
        return planner.plan(source, parts, agent=agent, secrets=secrets)

    def carry_out(
        self, made: ImportPlan, *, said: Callable[[str], None]
    ) -> ImportReport:
        """Runs the import, then checks that everything exists here. A failure does not stop the rest."""
        now = self._app.clock.now()
        started = StartedImport(str(made.source), made.kind, now)
        self._app.home.ensure()
        journal = new_journal(self._app.home.root, started)
        done = ImportReport(id=journal.id)
        try:
            self._bring_notes(made, done, journal)
            self._bring_identity(made, done, journal)
            self._bring_skills(made, done, journal)
            self._bring_settings(made, done, journal)
            self._bring_schedules(made, done, journal)
            self._bring_rules(made, done, journal)
            if made.new_sessions:
                self._bring_sessions(made, done, journal, said)
        finally:
            journal.close()
        past = past_import(self._app.home.root, journal.id)
        done.missing = list(ImportCheck(self._app, self._learning, past).missing())
        return done

    def _bring_schedules(
        self, made: ImportPlan, done: ImportReport, journal: ImportJournal
    ) -> None:
        book = JobBook(self._app)
        for draft in made.schedules:
            try:
                job = book.preview(draft)
                journal.add(ImportedJob(job.prompt, job.schedule))
                book.add(draft, paused=RESTING)
                done.schedules += 1
            except HermesError as error:
                what = f"schedule {draft.name or draft.prompt[:40]}"
                done.problems.append(SkippedItem(what, error.message))

    def _bring_notes(
        self, made: ImportPlan, done: ImportReport, journal: ImportJournal
    ) -> None:
        if not made.notes:
            return
        journal.add(*(ImportedNote(edit.file, edit.text) for edit in made.notes))
        try:
            self._learning.apply(MemoryChange(made.notes), Provenance("import"))
            done.notes += len(made.notes)
        except HermesError as error:
            done.problems.append(SkippedItem("memories", error.message))

    def _bring_identity(
        self, made: ImportPlan, done: ImportReport, journal: ImportJournal
    ) -> None:
        path = self._app.home.root / IDENTITY_FILE
        if not made.identity or path.exists():
            return
        text = f"{made.identity}\n"
        journal.add(ImportedIdentity(digest(journal.id, text)))
        try:
            replace_file(path, text.encode(), mode=PRIVATE_FILE)
            done.notes += 1
        except OSError as error:
            done.problems.append(SkippedItem(IDENTITY_FILE, str(error)))

    def _bring_skills(
        self, made: ImportPlan, done: ImportReport, journal: ImportJournal
    ) -> None:
        for chosen in made.skills:
            journal.add(ImportedSkill(chosen.name, tree_hash(chosen.files)))
            try:
                self._learning.skills.install(chosen.name, chosen.files, chosen.source)
                done.skills += 1
            except HermesError as error:
                done.problems.append(SkippedItem(f"skill {chosen.name}", error.message))

    def _bring_settings(
        self, made: ImportPlan, done: ImportReport, journal: ImportJournal
    ) -> None:
        for name, secret in made.secrets.items():
            journal.add(ImportedSecret(name, digest(journal.id, secret)))
            try:
                set_secret(self._app.home.env_file, name, secret)
                done.secrets += 1
            except SettingsError as error:
                done.problems.append(SkippedItem(name, error.message))
        for key, value in made.settings.items():
            journal.add(ImportedSetting(key, value))
            try:
                set_value(self._app.home.config, key, value)
                done.settings += 1
            except SettingsError as error:
                done.problems.append(SkippedItem(key, error.message))

    def _bring_rules(
        self, made: ImportPlan, done: ImportReport, journal: ImportJournal
    ) -> None:
        file = RuleFile(self._app.home.root)
        for one in made.rules:
            journal.add(ImportedRule(one.list, one.rule))
            try:
                file.add_rule(one.list, one.rule)
                done.rules += 1
            except SettingsError as error:
                done.problems.append(SkippedItem(one.original, error.message))

    def _bring_sessions(
        self,
        made: ImportPlan,
        done: ImportReport,
        journal: ImportJournal,
        said: Callable[[str], None],
    ) -> None:
        unread: list[SkippedItem] = []
        for conversation in read(made.kind, made.sessions, unread):
            if has_session(self._app, conversation.name):
                continue
            lines = list(session_lines(conversation))
            journal.add(ImportedSession(conversation.name, len(lines) - 1))
            try:
                self._app.store.transfer.import_lines(
                    lines, fresh_id=self._app.ids.session()
                )
                done.sessions += 1
            except HermesError as error:
                done.problems.append(
                    SkippedItem(f"session {conversation.id}", error.message)
                )
            if done.sessions % 50 == 0:
                said(f"{done.sessions:,} of {count(made.new_sessions, 'session')}")
        done.problems += [
            entry for entry in unread if entry not in made.left
        ]  # the rest is in the report
