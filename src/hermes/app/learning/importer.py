"""`hermes import`: imports the data of another agent. A plan comes first and lists everything.

The source is only read. What exists here stays as it is, and nothing is imported twice.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from hermes.app.app import App
from hermes.app.schedules.import_jobs import RESTING, fitting, read_jobs
from hermes.app.schedules.jobs import JobBook, JobDraft
from hermes.errors import HermesError, SessionNotFound, SettingsError
from hermes.learning.change import LearningError, MemoryChange, MemoryEdit, Provenance
from hermes.learning.imports.conversation import session_lines
from hermes.learning.imports.hermes_agent_config import (
    ImportedConfig,
    read_configuration,
)
from hermes.learning.imports.sources import Kind, SkippedItem, find, read
from hermes.learning.learning_service import LearningService
from hermes.learning.memory import FILES
from hermes.learning.memory_entries import Notes
from hermes.learning.skill import MAIN, read_files
from hermes.learning.skill_install import InstallPlan, plan
from hermes.learning.skill_source import SkillSource
from hermes.providers.routing import route_to
from hermes.settings import Secrets
from hermes.settings.edit import set_secret, set_value
from hermes.settings.load import load_secrets, read_config
from hermes.settings.sections import Settings
from hermes.text.plurals import count

Part: TypeAlias = Literal[
    "sessions", "memories", "skills", "settings", "secrets", "schedules"
]
PARTS: tuple[Part, ...] = (
    "sessions",
    "memories",
    "skills",
    "settings",
    "secrets",
    "schedules",
)


class ImportPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What would be imported, and what would not."""

    source: Path
    kind: Kind
    sessions: tuple[Path, ...] = ()
    """The files of conversations; for a Hermes home, its database."""
    new_sessions: int = 0
    messages: int = 0
    notes: tuple[MemoryEdit, ...] = ()
    skills: tuple[InstallPlan, ...] = ()
    settings: dict[str, object] = {}
    secrets: dict[str, str] = {}
    schedules: tuple[JobDraft, ...] = ()
    left: tuple[SkippedItem, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        things = (
            self.new_sessions,
            self.notes,
            self.skills,
            self.settings,
            self.secrets,
            self.schedules,
        )
        return not any(things)


class ImportReport(msgspec.Struct):
    """What was imported, and what failed."""

    sessions: int = 0
    notes: int = 0
    skills: int = 0
    settings: int = 0
    secrets: int = 0
    schedules: int = 0
    problems: list[SkippedItem] = []


class Importer:
    """Imports into one home."""

    def __init__(self, app: App, learning: LearningService) -> None:
        self._app = app
        self._learning = learning

    def plan(self, source: Path, parts: tuple[Part, ...] = PARTS) -> ImportPlan:
        """Plans an import. Writes nothing."""
        kind, files = find(source)
        if kind == "hermes" and source.resolve() == self._app.home.root.resolve():
            raise LearningError(
                "That is the home in use.", hint="Name the home of another agent."
            )
        left: list[SkippedItem] = []
        new, messages = (
            self._count(kind, files, left) if "sessions" in parts else (0, 0)
        )
        made = ImportPlan(
            source=source,
            kind=kind,
            sessions=files,
            new_sessions=new,
            messages=messages,
        )
        if kind == "hermes":
            made = self._plan_home(made, parts, left)
        return msgspec.structs.replace(made, left=tuple(left))

    def carry_out(
        self, made: ImportPlan, *, said: Callable[[str], None]
    ) -> ImportReport:
        """Runs the import. A failure does not stop the rest."""
        done = ImportReport()
        self._app.home.ensure()
        self._bring_notes(made, done)
        self._bring_skills(made, done)
        self._bring_settings(made, done)
        self._bring_schedules(made, done)
        if made.new_sessions:
            self._bring_sessions(made, done, said)
        return done

    def _count(
        self, kind: Kind, files: tuple[Path, ...], left: list[SkippedItem]
    ) -> tuple[int, int]:
        messages = known = 0
        new: set[str] = set()
        for conversation in read(kind, files, left):
            if self._has(conversation.name):
                known += 1
            elif conversation.name in new:
                left.append(
                    SkippedItem(
                        f"session {conversation.id}",
                        "another file has a session with that id",
                    )
                )
            else:
                new.add(conversation.name)
                messages += len(conversation.messages)
        if known:
            left.append(SkippedItem(count(known, "session"), "already here"))
        return len(new), messages

    def _plan_home(
        self, made: ImportPlan, parts: tuple[Part, ...], left: list[SkippedItem]
    ) -> ImportPlan:
        source = made.source
        carried = (
            read_configuration(source)
            if {"settings", "secrets"} & set(parts)
            else ImportedConfig()
        )
        left += [
            SkippedItem(what, "there is no such setting here") for what in carried.left
        ]
        return msgspec.structs.replace(
            made,
            notes=self._plan_notes(source, left) if "memories" in parts else (),
            skills=self._plan_skills(source, left) if "skills" in parts else (),
            settings=self._plan_settings(carried, left) if "settings" in parts else {},
            secrets=self._plan_secrets(carried, left) if "secrets" in parts else {},
            schedules=self._plan_schedules(source, left)
            if "schedules" in parts
            else (),
        )

    def _plan_notes(
        self, source: Path, left: list[SkippedItem]
    ) -> tuple[MemoryEdit, ...]:
        """The notes that fit. Each is tried after those before it."""
        edits: tuple[MemoryEdit, ...] = ()
        for name, file in FILES.items():
            path = source / "memories" / file
            text = path.read_text("utf-8", "replace") if path.is_file() else ""
            for note in Notes(text.replace("\r\n", "\n")).notes:
                wanted = (*edits, MemoryEdit("add", note.text, file=name))
                try:
                    self._learning.preview(MemoryChange(wanted))
                except LearningError as error:
                    left.append(
                        SkippedItem(
                            f"{file}: {' '.join(note.text.split())[:60]}", error.message
                        )
                    )
                else:
                    edits = wanted
        return edits

    def _plan_skills(
        self, source: Path, left: list[SkippedItem]
    ) -> tuple[InstallPlan, ...]:
        found: list[InstallPlan] = []
        came_along = _came_along(source)
        own = {
            skill.name
            for skill in self._learning.skills.all()
            if skill.origin != "bundled"
        }
        for path in sorted((source / "skills").glob("**/" + MAIN)):
            folder = path.parent
            if folder.name in came_along or any(
                part.startswith(".") for part in folder.relative_to(source).parts
            ):
                continue
            try:
                chosen = plan(
                    self._learning.skills, SkillSource(read_files(folder), str(folder))
                )
            except LearningError as error:
                left.append(SkippedItem(f"skill {folder.name}", error.message))
                continue
            if chosen.name in own:
                left.append(
                    SkippedItem(
                        f"skill {chosen.name}",
                        "a skill with that name already exists here",
                    )
                )
            elif chosen.dangers:
                left.append(SkippedItem(f"skill {chosen.name}", str(chosen.dangers[0])))
            else:
                found.append(chosen)
        if came_along:
            left.append(
                SkippedItem(
                    count(len(came_along), "skill"), "bundled with the other agent"
                )
            )
        return tuple(found)

    def _plan_settings(
        self, carried: ImportedConfig, left: list[SkippedItem]
    ) -> dict[str, object]:
        here, problems = read_config(self._app.home)
        if problems:
            left.append(
                SkippedItem(
                    "settings",
                    "config.yaml here can't be used; see: hermes config check",
                )
            )
            return {}
        wanted: dict[str, object] = {}
        for key, value in carried.settings.items():
            if _at(here, key) is not None:
                left.append(SkippedItem(key, "it is already set here"))
            elif not _fits(key, value):
                left.append(SkippedItem(key, "its value does not fit here"))
            elif key == "model.provider" and not _known(
                str(value), str(carried.settings.get("model.base_url", ""))
            ):
                left.append(SkippedItem(key, f"there is no provider {value} here"))
            else:
                wanted[key] = value
        return wanted

    def _plan_secrets(
        self, carried: ImportedConfig, left: list[SkippedItem]
    ) -> dict[str, str]:
        here = load_secrets({}, home=self._app.home)
        known = [name for name in carried.secrets if here.get(name)]
        left += [SkippedItem(name, "it is already set here") for name in known]
        return {
            name: value for name, value in carried.secrets.items() if name not in known
        }

    def _plan_schedules(
        self, source: Path, left: list[SkippedItem]
    ) -> tuple[JobDraft, ...]:
        path = source / "cron" / "jobs.json"
        if not path.is_file() or path.stat().st_size > 10_000_000:
            return ()
        drafts = read_jobs(path.read_text("utf-8", "replace"), left)
        return fitting(JobBook(self._app), drafts, self._app.has_log, left)

    def _bring_schedules(self, made: ImportPlan, done: ImportReport) -> None:
        for draft in made.schedules:
            try:
                JobBook(self._app).add(draft, paused=RESTING)
                done.schedules += 1
            except HermesError as error:
                done.problems.append(
                    SkippedItem(
                        f"schedule {draft.name or draft.prompt[:40]}", error.message
                    )
                )

    def _bring_notes(self, made: ImportPlan, done: ImportReport) -> None:
        if not made.notes:
            return
        try:
            self._learning.apply(MemoryChange(made.notes), Provenance("import"))
            done.notes = len(made.notes)
        except HermesError as error:
            done.problems.append(SkippedItem("memories", error.message))

    def _bring_skills(self, made: ImportPlan, done: ImportReport) -> None:
        for chosen in made.skills:
            try:
                self._learning.skills.install(chosen.name, chosen.files, chosen.source)
                done.skills += 1
            except HermesError as error:
                done.problems.append(SkippedItem(f"skill {chosen.name}", error.message))

    def _bring_settings(self, made: ImportPlan, done: ImportReport) -> None:
        for key, value in made.settings.items():
            try:
                set_value(self._app.home.config, key, value)
                done.settings += 1
            except SettingsError as error:
                done.problems.append(SkippedItem(key, error.message))
        for name, secret in made.secrets.items():
            try:
                set_secret(self._app.home.env_file, name, secret)
                done.secrets += 1
            except SettingsError as error:
                done.problems.append(SkippedItem(name, error.message))

    def _bring_sessions(
        self, made: ImportPlan, done: ImportReport, said: Callable[[str], None]
    ) -> None:
        unread: list[SkippedItem] = []
        for conversation in read(made.kind, made.sessions, unread):
            if self._has(conversation.name):
                continue
            try:
                self._app.store.transfer.import_lines(
                    session_lines(conversation), fresh_id=self._app.ids.session()
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
        ]  # the rest was in the report

    def _has(self, session: str) -> bool:
        if not self._app.has_log:
            return False
        try:
            return self._app.store.sessions.find(session).id == session
        except SessionNotFound:
            return False


def _came_along(source: Path) -> set[str]:
    """The skills that came with the other agent, according to its own list."""
    path = source / "skills" / ".bundled_manifest"
    lines = path.read_text("utf-8", "replace").splitlines() if path.is_file() else []
    return {line.partition(":")[0].strip() for line in lines if line.strip()}


def _known(provider: str, address: str) -> bool:
    try:
        route_to(Settings(), Secrets({}, {}), provider, "", address)
    except SettingsError:
        return provider == "auto"
    return True


def _at(data: dict[str, object], key: str) -> object:
    value: object = data
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _fits(key: str, value: object) -> bool:
    nested: object = value
    for part in reversed(key.split(".")):
        nested = {part: nested}
    try:
        msgspec.convert(nested, Settings)
    except msgspec.ValidationError:
        return False
    return True
