"""Plans an import: compares the contents of a source with what exists here. Writes nothing."""

import os
from pathlib import Path
from typing import Any

import msgspec

from hermes.app.app import App
from hermes.app.learning.import_contents import ContentReader, ImportContents
from hermes.app.learning.import_plan import PARTS, ImportPlan, Part
from hermes.app.learning.import_rules import judge
from hermes.app.learning.import_undo import TABLES, value_at
from hermes.app.project_notes import IDENTITY_FILE, MAX_PROJECT_CHARS
from hermes.app.schedules.import_jobs import fitting
from hermes.app.schedules.jobs import JobBook
from hermes.errors import SessionNotFound, SettingsError
from hermes.learning.change import LearningError, MemoryChange, MemoryEdit
from hermes.learning.imports import openclaw
from hermes.learning.imports.hermes_agent_config import ImportedConfig
from hermes.learning.imports.sources import Kind, SkippedItem, find, read
from hermes.learning.learning_service import LearningService
from hermes.learning.memory_entries import Notes
from hermes.learning.scan import scan
from hermes.learning.skill import MAIN, read_files
from hermes.learning.skill_install import InstallPlan, plan
from hermes.learning.skill_source import SkillSource
from hermes.providers.routing import route_to
from hermes.settings import Secrets
from hermes.settings.load import load_secrets, read_config
from hermes.settings.sections import Settings
from hermes.text.formats import count
from hermes.text.translation import translator

t = translator(__name__)

_MAX_NOTES = 500  # of one file


class ImportPlanner:
    """Plans imports into one home."""

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
        """Plans an import. Writes nothing.

        `agent` is the only agent of the source to import. Secrets of agents other than Hermes Agent are imported only
        with `secrets`.
        """
        source = Path(os.path.abspath(source))  # noqa: PTH100 - a link stays one
        kind, files = find(source)
        if kind == "hermes" and source.resolve() == self._app.home.root.resolve():
            raise LearningError(
                t.later("That is the home in use."),
                hint=t.later("Name the home of another agent."),
            )
        if agent:
            files = _files_of(kind, source, files, agent)
        left: list[SkippedItem] = []
        in_source: dict[Part, int] = {}
        new = messages = 0
        if "sessions" in parts:
            in_source["sessions"], new, messages = self._count(kind, files, left)
        reader = ContentReader(
            source, parts, left, agent=agent, secrets=secrets or kind == "hermes"
        )
        made = ImportPlan(
            source=source,
            kind=kind,
            sessions=files,
            new_sessions=new,
            messages=messages,
            in_source=in_source,
        )
        made = self._plan_contents(made, reader.read(kind), parts, left)
        return msgspec.structs.replace(made, left=tuple(left))

    def _count(
        self, kind: Kind, files: tuple[Path, ...], left: list[SkippedItem]
    ) -> tuple[int, int, int]:
        """Counts the conversations of the source, the new ones, and their messages."""
        messages = known = total = 0
        new: set[str] = set()
        for conversation in read(kind, files, left):
            total += 1
            if has_session(self._app, conversation.name):
                known += 1
            elif conversation.name in new:
                left.append(
                    SkippedItem(
                        f"session {conversation.id}",
                        t.logged("another file has a session with that id"),
                    )
                )
            else:
                new.add(conversation.name)
                messages += len(conversation.messages)
        if known:
            left.append(SkippedItem(count(known, "session"), "already here"))
        return total, len(new), messages

    def _plan_contents(
        self,
        made: ImportPlan,
        contents: ImportContents,
        parts: tuple[Part, ...],
        left: list[SkippedItem],
    ) -> ImportPlan:
        in_source, config = dict(made.in_source), contents.config
        if {"settings", "secrets"} & set(parts):
            left += [
                SkippedItem(what, t.logged("there is no such setting here"))
                for what in config.left
            ]
        plan: dict[str, Any] = {}
        if "memories" in parts:
            plan["notes"], in_source["memories"] = self._plan_notes(contents, left)
            plan["identity"] = self._plan_identity(contents.identity, left)
            in_source["memories"] += bool(contents.identity)
        if "skills" in parts:
            plan["skills"], in_source["skills"] = self._plan_skills(contents, left)
        if "settings" in parts:
            plan["settings"] = self._plan_settings(config, left)
            in_source["settings"] = len(config.settings)
        if "secrets" in parts:
            plan["secrets"] = self._plan_secrets(config, left)
            in_source["secrets"] = len(config.secrets)
        if "schedules" in parts:
            book = JobBook(self._app)
            in_source["schedules"] = len(contents.jobs) + contents.unusable_jobs
            plan["schedules"] = fitting(book, contents.jobs, self._app.has_log, left)
        if "permissions" in parts:
            in_source["permissions"] = len(contents.rules) + contents.unusable_rules
            plan["rules"] = judge(contents.rules, self._app.home.root, left)
        return msgspec.structs.replace(made, in_source=in_source, **plan)

    def _plan_notes(
        self, contents: ImportContents, left: list[SkippedItem]
    ) -> tuple[tuple[MemoryEdit, ...], int]:
        """Returns the notes that fit, and how many there are. Each is tried after the earlier ones."""
        edits: tuple[MemoryEdit, ...] = ()
        total = 0
        for memory in contents.memories:
            notes = Notes(memory.text.replace("\r\n", "\n")).notes
            total += len(notes)
            if len(notes) > _MAX_NOTES:
                what = f"{memory.label}: {count(len(notes) - _MAX_NOTES, 'note')}"
                left.append(SkippedItem(what, t.logged("the file has too many")))
            for note in notes[:_MAX_NOTES]:
                wanted = (*edits, MemoryEdit("add", note.text, file=memory.file))
                try:
                    self._learning.preview(MemoryChange(wanted))
                except LearningError as error:
                    what = f"{memory.label}: {' '.join(note.text.split())[:60]}"
                    left.append(SkippedItem(what, error.message))
                else:
                    edits = wanted
        return edits, total

    def _plan_identity(self, identity: str, left: list[SkippedItem]) -> str:
        """Returns the text for SOUL.md, unless one exists here or the text looks injected."""
        if not identity:
            return ""
        path = self._app.home.root / IDENTITY_FILE
        if path.exists():
            same = path.read_text("utf-8", "replace").strip() == identity
            why = "already here" if same else t.logged("there is one here; yours stays")
        elif len(identity) > MAX_PROJECT_CHARS:
            why = t.logged(
                "it is longer than {limit:,} characters", limit=MAX_PROJECT_CHARS
            )
        elif reason := scan(identity):
            why = t.logged(
                "it seems to contain injected instructions ({reason})", reason=reason
            )
        else:
            return identity
        left.append(SkippedItem(IDENTITY_FILE, why))
        return ""

    def _plan_skills(
        self, contents: ImportContents, left: list[SkippedItem]
    ) -> tuple[tuple[InstallPlan, ...], int]:
        """Returns the skills that can be installed, and how many the source itself has."""
        found: dict[str, InstallPlan] = {}
        own = {
            skill.name
            for skill in self._learning.skills.all()
            if skill.origin != "bundled"
        }
        offered = [*_skill_folders(contents, left), *contents.made_skills]
        for one in offered:
            name = one.name if isinstance(one, Path) else one.source
            try:
                source = (
                    SkillSource(read_files(one), str(one))
                    if isinstance(one, Path)
                    else one
                )
                chosen = plan(self._learning.skills, source)
            except LearningError as error:
                left.append(SkippedItem(f"skill {name}", error.message))
                continue
            if chosen.name in own:
                why = t.logged("a skill with that name already exists here")
            elif chosen.name in found:
                why = t.logged("another skill of the source has that name")
            elif chosen.dangers:
                why = str(chosen.dangers[0])
            else:
                found[chosen.name] = chosen
                continue
            left.append(SkippedItem(f"skill {chosen.name}", why))
        return tuple(found.values()), len(offered)

    def _plan_settings(
        self, carried: ImportedConfig, left: list[SkippedItem]
    ) -> dict[str, object]:
        here, problems = read_config(self._app.home)
        if problems:
            left.append(
                SkippedItem(
                    "settings",
                    t.logged(
                        "config.yaml here can't be used; see: hermes config check"
                    ),
                )
            )
            return {}
        wanted: dict[str, object] = {}
        for key, value in carried.settings.items():
            if _is_taken(here, key):
                left.append(SkippedItem(key, t.logged("it is already set here")))
            elif not _fits(key, value):
                left.append(SkippedItem(key, t.logged("its value does not fit here")))
            elif key == "model.provider" and not _known(str(value), carried):
                left.append(
                    SkippedItem(
                        key, t.logged("there is no provider {value} here", value=value)
                    )
                )
            else:
                wanted[key] = value
        return wanted

    def _plan_secrets(
        self, carried: ImportedConfig, left: list[SkippedItem]
    ) -> dict[str, str]:
        here = load_secrets({}, home=self._app.home)
        known = [name for name in carried.secrets if here.get(name)]
        left += [
            SkippedItem(name, t.logged("it is already set here")) for name in known
        ]
        return {
            name: value for name, value in carried.secrets.items() if name not in known
        }


def has_session(app: App, session: str) -> bool:
    """Returns whether a session exists here."""
    if not app.has_log:
        return False
    try:
        return app.store.sessions.find(session).id == session
    except SessionNotFound:
        return False


def _files_of(
    kind: Kind, source: Path, files: tuple[Path, ...], agent: str
) -> tuple[Path, ...]:
    """Returns the files of one agent. Raises LearningError if there is no such agent."""
    if kind != "openclaw":
        raise LearningError(
            t.later("Only a home of OpenClaw has several agents."),
            hint=t.later("Leave out --agent."),
        )
    known = [one.id for one in openclaw.agents(source, openclaw.read_config(source))]
    if agent not in known:
        raise LearningError(
            t.later(
                "There is no agent {agent!r} in {source}.", agent=agent, source=source
            ),
            hint=t.later("There are: {known}", known=", ".join(known)),
        )
    return tuple(path for path in files if openclaw.agent_of(path) == agent)


def _skill_folders(contents: ImportContents, left: list[SkippedItem]) -> list[Path]:
    """Returns the folders of skills, except hidden ones and those bundled with the other agent."""
    found: list[Path] = []
    for top in contents.skill_folders:
        bundled = _bundled_skills(top)
        for path in sorted(top.glob("**/" + MAIN)):
            hidden = any(
                part.startswith(".") for part in path.parent.relative_to(top).parts
            )
            if not hidden and path.parent.name not in bundled:
                found.append(path.parent)
        if bundled:
            what = count(len(bundled), "skill")
            left.append(SkippedItem(what, t.logged("bundled with the other agent")))
    return found


def _bundled_skills(folder: Path) -> set[str]:
    """Returns the skills bundled with the other agent, according to its own list."""
    path = folder / ".bundled_manifest"
    lines = path.read_text("utf-8", "replace").splitlines() if path.is_file() else []
    return {line.partition(":")[0].strip() for line in lines if line.strip()}


def _known(provider: str, carried: ImportedConfig) -> bool:
    """Returns whether a provider exists here, or is imported with the settings."""
    if f"custom_providers.{provider}.base_url" in carried.settings:
        return True
    address = str(carried.settings.get("model.base_url", ""))
    try:
        route_to(Settings(), Secrets({}, {}), provider, "", address)
    except SettingsError:
        return provider == "auto"
    return True


def _is_taken(here: dict[str, object], key: str) -> bool:
    """Returns whether a setting has a value here. An entry of a table, such as an MCP server, counts as a whole."""
    table, _, rest = key.partition(".")
    if table in TABLES:
        return value_at(here, f"{table}.{rest.partition('.')[0]}") is not None
    return value_at(here, key) is not None


def _fits(key: str, value: object) -> bool:
    nested: object = value
    for part in reversed(key.split(".")):
        nested = {part: nested}
    try:
        msgspec.convert(nested, Settings)
    except msgspec.ValidationError:
        return False
    return True
