"""The contents of a source besides conversations, in one form for every kind of agent. Only reads."""

from pathlib import Path
from typing import Any

import msgspec

from hermes.app.learning.import_plan import Part
from hermes.app.learning.import_rules import ForeignRule, claude_rules, codex_rules
from hermes.app.schedules.import_jobs import read_jobs, read_openclaw_jobs
from hermes.app.schedules.jobs import JobDraft
from hermes.learning.change import LearningError, MemoryName
from hermes.learning.imports import openclaw
from hermes.learning.imports.hermes_agent_config import (
    ImportedConfig,
    read_configuration,
)
from hermes.learning.imports.json_fields import Object
from hermes.learning.imports.openclaw_config import (
    read_openclaw_configuration,
    secret_names,
)
from hermes.learning.imports.sources import Kind, SkippedItem
from hermes.learning.memory import FILES
from hermes.learning.skill import MAIN
from hermes.learning.skill_source import SkillSource
from hermes.mcp.config_import import find_servers
from hermes.text.formats import count
from hermes.text.translation import translator

t = translator(__name__)


_ON_REQUEST = t.logged("secrets are only imported with --secrets")


class MemoryText(msgspec.Struct, frozen=True):
    """A memory file of a source: where its notes go, its name, and its text."""

    file: MemoryName
    label: str
    text: str


class ImportContents(msgspec.Struct, kw_only=True):
    """Everything that can be imported from a source, before the comparison with what exists here."""

    memories: list[MemoryText] = []
    identity: str = ""
    skill_folders: list[Path] = []
    made_skills: list[SkillSource] = []
    """Skills made from files of the source that are not skills there."""
    config: ImportedConfig = ImportedConfig()
    jobs: tuple[JobDraft, ...] = ()
    rules: list[ForeignRule] = []
    unusable_jobs: int = 0
    """How many jobs of the source can't be jobs here. They are only named."""
    unusable_rules: int = 0


class ContentReader:
    """Reads the parts of one source. Unreadable parts are added to `left`."""

    def __init__(
        self,
        source: Path,
        parts: tuple[Part, ...],
        left: list[SkippedItem],
        *,
        agent: str = "",
        secrets: bool = False,
    ) -> None:
        self._source = source
        self._parts = parts
        self._left = left
        self._agent = agent
        self._secrets = secrets and "secrets" in parts

    def read(self, kind: Kind) -> ImportContents:
        """Reads a source of the given kind."""
        match kind:
            case "hermes":
                return self._hermes()
            case "openclaw":
                return self._openclaw()
            case "claude-code":
                return self._claude_code()
            case "codex":
                return self._codex()
            case _:
                return ImportContents()

    def _wants(self, *parts: Part) -> bool:
        return bool(set(parts) & set(self._parts))

    def _hermes(self) -> ImportContents:
        source = self._source
        found = ImportContents(skill_folders=[source / "skills"])
        for name, file in FILES.items():
            found.memories.append(
                MemoryText(name, file, openclaw.read_small(source / "memories" / file))
            )
        if self._wants("settings", "secrets"):
            found.config = read_configuration(source)
        path = source / "cron" / "jobs.json"
        if self._wants("schedules") and (content := openclaw.read_small(path)):
            named = len(self._left)
            found.jobs = read_jobs(content, self._left)
            found.unusable_jobs = len(self._left) - named
        return found

    def _openclaw(self) -> ImportContents:
        found = ImportContents(skill_folders=[self._source / "skills"])
        try:
            config = openclaw.read_config(self._source)
        except LearningError as error:
            self._left.append(SkippedItem("settings", error.message))
            config = Object()
        else:
            self._openclaw_config(found)
        everyone = openclaw.agents(self._source, config)
        default = everyone[0].id
        chosen = [one for one in everyone if self._agent in ("", one.id)]
        for one in chosen:
            self._openclaw_agent(found, one)
        if self._wants("schedules"):
            named = len(self._left)
            found.jobs = self._openclaw_jobs(default, {one.id for one in chosen})
            found.unusable_jobs = len(self._left) - named
        return found

    def _openclaw_config(self, found: ImportContents) -> None:
        if not self._wants("settings", "secrets"):
            return
        try:
            found.config = read_openclaw_configuration(
                self._source, secrets=self._secrets
            )
            if not self._secrets:
                names = secret_names(self._source)
                self._left += [SkippedItem(name, _ON_REQUEST) for name in names]
        except LearningError as error:
            self._left.append(SkippedItem("settings", error.message))
        for name in openclaw.CONFIG_NAMES:
            self._add_servers(found, "OpenClaw", self._source / name)

    def _openclaw_agent(
        self, found: ImportContents, one: openclaw.OpenClawAgent
    ) -> None:
        found.skill_folders.append(one.workspace / "skills")
        for name, file in FILES.items():
            label = f"{file} of agent {one.id}"
            found.memories.append(MemoryText(name, label, one.file(file)))
        soul, instructions = one.file("SOUL.md"), one.file("AGENTS.md")
        if one.is_default or self._agent:
            found.identity, soul = soul.strip(), ""
        if made := _instructions_skill(one, instructions, soul):
            found.made_skills.append(made)
        diaries = sum(1 for _ in one.workspace.glob("memory/*.md"))
        if diaries and self._wants("memories"):
            what = f"{count(diaries, 'diary page')} of agent {one.id}"
            self._left.append(
                SkippedItem(what, t.logged("Hermes searches its sessions instead"))
            )

    def _openclaw_jobs(self, default: str, agents: set[str]) -> tuple[JobDraft, ...]:
        try:
            jobs = openclaw.jobs(self._source)
        except LearningError as error:
            self._left.append(SkippedItem("schedules", error.message))
            return ()
        chosen = [job for job in jobs if (job.get("agentId") or default) in agents]
        return read_openclaw_jobs(chosen, default, self._left)

    def _claude_code(self) -> ImportContents:
        found, source = ImportContents(), self._source
        if self._wants("permissions"):
            named = len(self._left)
            found.rules = claude_rules(source, self._left)
            found.unusable_rules = len(self._left) - named
        if self._wants("settings") and source.is_dir():
            self._add_servers(found, "Claude Code", source.parent / ".claude.json")
            self._add_servers(found, "Claude Code", source.parent / ".mcp.json")
        return found

    def _codex(self) -> ImportContents:
        found, source = ImportContents(), self._source
        if self._wants("permissions"):
            named = len(self._left)
            found.rules = codex_rules(source, self._left)
            found.unusable_rules = len(self._left) - named
        if self._wants("settings") and source.is_dir():
            self._add_servers(found, "codex", source / "config.toml")
        return found

    def _add_servers(self, found: ImportContents, program: str, file: Path) -> None:
        """Adds the MCP servers of a file to the settings. Their secrets are only named there."""
        try:
            servers = find_servers(program, file, file.parent)
        except OSError:
            return
        except ValueError as error:
            self._left.append(SkippedItem(str(file), str(error)[:100]))
            return
        settings: dict[str, Any] = {}
        secrets: dict[str, str] = {}
        for one in servers:
            if one.problem:
                self._left.append(SkippedItem(f"MCP server {one.name}", one.problem))
                continue
            chosen = one.values.get("tools", {})
            values = one.values | {f"tools.{key}": chosen[key] for key in chosen}
            values.pop("tools", None)  # a section, not a setting
            for key, value in values.items():
                settings[f"mcp_servers.{one.name}.{key}"] = value
            if self._secrets:
                secrets |= one.secrets
            else:
                self._left += [SkippedItem(name, _ON_REQUEST) for name in one.secrets]
        config = found.config
        found.config = ImportedConfig(
            {**config.settings, **settings}, {**config.secrets, **secrets}, config.left
        )


def _instructions_skill(
    agent: openclaw.OpenClawAgent, instructions: str, soul: str
) -> SkillSource | None:
    """Returns an agent's instructions as a skill, because they are long, and few of them apply to every session."""
    if not instructions.strip() and not soul.strip():
        return None
    name = f"openclaw-{agent.id.lower().replace('_', '-')}"[:60].rstrip("-")
    head = (
        f"---\nname: {name}\ndescription: How OpenClaw's agent {agent.id} worked (its AGENTS.md). "
        "Use it when the user refers to that agent or its rules.\n---\n"  # not translated
    )
    files = {f"{name}/{MAIN}": f"{head}{instructions.strip() or 'See SOUL.md.'}\n"}
    if soul.strip():
        files[f"{name}/SOUL.md"] = soul
    encoded = {path: content.encode() for path, content in files.items()}
    return SkillSource(encoded, t.logged("AGENTS.md of agent {id}", id=agent.id))
