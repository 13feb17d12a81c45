"""What a change is: edits of memory or of one skill, whose doing it was, and what goes wrong with it."""

import difflib
from typing import Literal, TypeAlias

import msgspec

from hermes.errors import HermesError

By: TypeAlias = Literal["user", "model", "review", "hermes", "import"]
MemoryName: TypeAlias = Literal["memory", "user"]


class LearningError(HermesError):
    """A change that was not made; what was there is as it was."""


class Provenance(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whose doing a change is, and in which turn of which session."""

    by: By = "user"
    session: str = ""
    turn: str = ""

    def __str__(self) -> str:
        place = f" in session {self.session}" if self.session else ""
        return f"{self.by}{place}" + (f", turn {self.turn}" if self.turn else "")


class MemoryEdit(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """One edit."""

    action: Literal["add", "replace", "remove"]
    text: str = ""
    old: str = ""
    """A piece of the one note that is meant."""
    file: MemoryName = "memory"


class MemoryChange(msgspec.Struct, frozen=True, tag="memory"):
    """Edits that are made together or not at all."""

    edits: tuple[MemoryEdit, ...]

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        kinds = ", ".join(
            dict.fromkeys(f"{edit.action} {edit.file}" for edit in self.edits)
        )
        return f"memory: {kinds}"


class SkillFileChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file of a skill before and after; None where there is none."""

    path: str
    before: str | None = None
    after: str | None = None


class SkillChange(msgspec.Struct, frozen=True, tag="skill"):
    """Files of one skill that change together; `retire` puts the whole skill into the archive."""

    name: str
    files: tuple[SkillFileChange, ...] = ()
    retire: bool = False

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        if self.retire:
            return f"skill {self.name}: retire"
        new = any(
            file.path == "SKILL.md" and file.before is None for file in self.files
        )
        return f"skill {self.name}: {'new' if new else 'change'}"


Change: TypeAlias = MemoryChange | SkillChange


class AppliedChange(msgspec.Struct, frozen=True):
    """A change that was made: its name in the history (empty without git), and the difference."""

    hash: str
    diff: str


def text_diff(path: str, before: str, after: str) -> str:
    """The difference of two texts as a unified diff; empty when there is none."""
    lines = difflib.unified_diff(
        before.splitlines(),
        after.splitlines(),
        f"a/{path}",
        f"b/{path}",
        lineterm="",
        n=2,
    )
    return "\n".join(lines)
