"""The plan of an import and its report: what would be imported, what was, what was not, and why."""

from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from hermes.app.schedules.jobs import JobDraft
from hermes.learning.change import MemoryEdit
from hermes.learning.imports.sources import Kind, SkippedItem
from hermes.learning.skill_install import InstallPlan
from hermes.text.translation import to_translate, translator
from hermes.tools.policy.rules import List, PolicyRule

t = translator(__name__)


Part: TypeAlias = Literal[
    "sessions",
    "memories",
    "skills",
    "settings",
    "secrets",
    "schedules",
    "permissions",
]
PARTS: tuple[Part, ...] = (
    "sessions",
    "memories",
    "skills",
    "settings",
    "secrets",
    "schedules",
    "permissions",
)


_IN_WORDS: dict[List, str] = {
    "forbid": to_translate("never"),
    "ask": to_translate("always ask before"),
    "allow": to_translate("without asking"),
    "network": to_translate("without asking, from the network"),
}


class PlannedRule(msgspec.Struct, frozen=True):
    """A permission of another agent as a rule of `policy.yaml`, and in the other agent's words."""

    list: List
    rule: PolicyRule
    original: str

    def describe(self) -> str:
        """Returns the rule in words."""
        return f"{t.marked(_IN_WORDS[self.list])}: {self.rule.describe()}"


class ImportPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What would be imported, and what would not."""

    source: Path
    kind: Kind
    sessions: tuple[Path, ...] = ()
    """The files with conversations; for a home with a database, that file."""
    new_sessions: int = 0
    messages: int = 0
    identity: str = ""
    """The text for SOUL.md."""
    notes: tuple[MemoryEdit, ...] = ()
    skills: tuple[InstallPlan, ...] = ()
    settings: dict[str, object] = {}
    secrets: dict[str, str] = {}
    schedules: tuple[JobDraft, ...] = ()
    rules: tuple[PlannedRule, ...] = ()
    left: tuple[SkippedItem, ...] = ()
    in_source: dict[Part, int] = {}
    """How many of each the source has, for the report."""

    @property
    def planned(self) -> dict[Part, int]:
        """How many of each would be imported."""
        return {
            "sessions": self.new_sessions,
            "memories": len(self.notes) + bool(self.identity),
            "skills": len(self.skills),
            "settings": len(self.settings),
            "secrets": len(self.secrets),
            "schedules": len(self.schedules),
            "permissions": len(self.rules),
        }

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return not any(self.planned.values())

    def __repr__(self) -> str:
        return f"ImportPlan({str(self.source)!r}, {self.kind!r}, {self.planned})"


class ImportReport(msgspec.Struct):
    """What was imported, and what failed."""

    id: str = ""
    """The name of this import, for `hermes import undo`."""
    sessions: int = 0
    notes: int = 0
    skills: int = 0
    settings: int = 0
    secrets: int = 0
    schedules: int = 0
    rules: int = 0
    problems: list[SkippedItem] = []
    missing: list[SkippedItem] = []
    """What should exist here after the import but does not."""

    @property
    def imported(self) -> dict[Part, int]:
        """How many of each were imported."""
        return {
            "sessions": self.sessions,
            "memories": self.notes,
            "skills": self.skills,
            "settings": self.settings,
            "secrets": self.secrets,
            "schedules": self.schedules,
            "permissions": self.rules,
        }
