"""Changes of memory and skills: their edits, their author, and the error when one fails."""

from typing import Literal, TypeAlias

import msgspec

from hermes.errors import HermesError, NotFound

By: TypeAlias = Literal["user", "model", "review", "hermes", "import"]
MemoryName: TypeAlias = Literal["memory", "user"]


class LearningError(HermesError):
    """A change that was not made. The files are as before."""


class LearningNotFound(LearningError, NotFound):
    """There is no skill, file or change of that name."""


class Provenance(msgspec.Struct, frozen=True, omit_defaults=True):
    """The author of a change, and the session and turn it came from."""

    by: By = "user"
    session: str = ""
    turn: str = ""

    def __str__(self) -> str:
        place = f" in session {self.session}" if self.session else ""
        return f"{self.by}{place}" + (f", turn {self.turn}" if self.turn else "")


class MemoryEdit(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """One edit of a memory file."""

    action: Literal["add", "replace", "remove"]
    text: str = ""
    old: str = ""
    """A part of the note to edit."""
    file: MemoryName = "memory"


class MemoryChange(msgspec.Struct, frozen=True, tag="memory"):
    """Edits that are made together or not at all."""

    edits: tuple[MemoryEdit, ...]

    @property
    def title(self) -> str:
        """A short description."""
        kinds = ", ".join(
            dict.fromkeys(f"{edit.action} {edit.file}" for edit in self.edits)
        )
        return f"memory: {kinds}"


class SkillFileChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file of a skill before and after; None where it does not exist."""

    path: str
    before: str | None = None
    after: str | None = None


class SkillChange(msgspec.Struct, frozen=True, tag="skill"):
    """Files of one skill that change together. `retire` archives the whole skill."""

    name: str
    files: tuple[SkillFileChange, ...] = ()
    retire: bool = False

    @property
    def title(self) -> str:
        """A short description."""
        if self.retire:
            return f"skill {self.name}: retire"
        new = any(
            file.path == "SKILL.md" and file.before is None for file in self.files
        )
        return f"skill {self.name}: {'new' if new else 'change'}"


Change: TypeAlias = MemoryChange | SkillChange


class AppliedChange(msgspec.Struct, frozen=True):
    """A change that was made: its hash in the history (empty without git) and its diff."""

    hash: str
    diff: str


def text_diff(path: str, before: str, after: str) -> str:
    """Returns the unified diff of two texts; empty if they are equal."""
    import difflib

    lines = difflib.unified_diff(
        before.splitlines(),
        after.splitlines(),
        f"a/{path}",
        f"b/{path}",
        lineterm="",
        n=2,
    )
    return "\n".join(lines)
