"""The memory, skills, proposals and history of one home, and the rules on who may change what."""

import contextlib
import hashlib
import logging
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, assert_never

import msgspec

from hermes.core.ports import Clock, SystemClock
from hermes.learning.change import (
    AppliedChange,
    Change,
    LearningError,
    MemoryChange,
    Provenance,
    SkillChange,
)
from hermes.learning.external_memory import MemoryProvider, external_memory
from hermes.learning.history import LearningHistory, RevertReport
from hermes.learning.history_repository import HistoryRepository
from hermes.learning.memory import MemoryFiles, MemoryLimits
from hermes.learning.proposals import Proposal, Proposals
from hermes.learning.skill_library import BUNDLED, SkillLibrary
from hermes.learning.skill_records import SkillRecords, SkillUse
from hermes.primitives.files import make_private_folder
from hermes.settings import Home
from hermes.settings.sections import LearningSettings
from hermes.text.translation import translator

if TYPE_CHECKING:
    from hermes.learning.remote import LearningConflict, LearningRemote, SyncReport

t = translator(__name__)

waiting = logging.getLogger("hermes.waiting")

ExclusiveRemote: TypeAlias = Callable[[], AbstractContextManager[None]]
"""Locks the remote against other processes while the context is active. Raises LearningError after a timeout."""

PREFIX = "skill:"
_UNREACHABLE = ".remote-unreachable"  # exists once the user was informed
_DAY_S = 86_400.0


class SkillCommand(msgspec.Struct, frozen=True):
    """A skill as a slash command. `name` is what follows the slash."""

    name: str
    description: str


class LearningService:
    """Everything learned in one home. Creating it reads no file."""

    def __init__(
        self,
        home: Home,
        clock: Clock,
        history: LearningHistory,
        memory: MemoryFiles,
        skills: SkillLibrary,
        proposals: Path,
    ) -> None:
        self.home = home
        self.remote: Callable[[], LearningRemote] | None = None
        """The remote from which other machines get memory and skills."""
        self.exclusive_remote: ExclusiveRemote = contextlib.nullcontext
        self._clock = clock
        self.history = history
        self.memory = memory
        self.skills = skills
        self.proposals = Proposals(proposals, clock)

    def now(self) -> float:
        """Returns the current time, used to date changes."""
        return self._clock.now()

    def prompt(self) -> str:
        """Returns the part of a new session's prompt with the memory and the list of skills."""
        return "\n\n".join(
            part for part in (self.memory.snapshot(), self.skills.index()) if part
        )

    def commands(self, reserved: Collection[str] = ()) -> list[SkillCommand]:
        """Returns each enabled skill as a slash command.

        A skill with the name of a built-in command is called with the prefix `skill:`, which works
        for every skill.
        """
        offered = [skill for skill in self.skills.all() if skill.offered]
        return [
            SkillCommand(
                f"{PREFIX}{skill.name}" if skill.name in reserved else skill.name,
                skill.description,
            )
            for skill in offered
        ]

    def called(self, line: str, reserved: Collection[str] = ()) -> str | None:
        """Returns the message for `/name text`: the line and the skill's content. None if it names
        no skill.

        Counts as a use. Raises LearningError for a skill that cannot be read.
        """
        first = line.split(None, 1)[0] if line.startswith("/") else ""
        name = first[1:].removeprefix(PREFIX)
        known = {command.name.removeprefix(PREFIX) for command in self.commands()}
        if (
            not name
            or name not in known
            or (name in reserved and not first.startswith(f"/{PREFIX}"))
        ):
            return None
        text = self.skills.view(name).replace("</skill", "<\\/skill")
        self.skills.records.used(name, "command", self.now())
        head = f'<skill name="{name}">\nThe user called this skill. Follow it.'  # not translated
        return f"{line.rstrip()}\n\n{head}\n\n{text}\n</skill>"

    def preview(self, change: Change) -> str:
        """Returns the diff that a change would make. Raises LearningError if it cannot be made."""
        match change:
            case MemoryChange():
                return self.memory.preview(change)
            case SkillChange():
                return self.skills.preview(change)
            case _:
                assert_never(change)

    def apply(self, change: Change, origin: Provenance) -> AppliedChange:
        """Makes a change. With a remote, pulls the changes of others before it and pushes it afterwards."""
        self.try_sync()
        match change:
            case MemoryChange():
                applied = self.memory.apply(change, origin)
            case SkillChange():
                applied = self.skills.apply(change, origin)
            case _:
                assert_never(change)
        self.try_sync()
        return applied

    def try_sync(self) -> None:
        """Exchanges memory and skills with the remote, if there is one. If it can't be reached, reports that only once."""
        if self.remote is None:
            return
        said = self.home.root / "learning" / _UNREACHABLE
        try:
            self.sync()
        except LearningError as error:
            if not said.exists():
                waiting.warning("%s %s", error.message, error.hint)
                make_private_folder(said.parent)
                said.touch()
        else:
            said.unlink(missing_ok=True)

    def sync(self) -> "SyncReport":
        """Exchanges memory and skills with the remote. Conflicts become proposals. Raises LearningError."""
        if self.remote is None:
            raise LearningError(
                t.later("Memory and skills have no remote."),
                hint=t.later("Name one: hermes config set learning.remote URL"),
            )
        with self.exclusive_remote(), self.memory.locked(), self.skills.locked():
            report = self.remote().sync()
        for conflict in report.conflicts:
            self._keep(conflict)
        return report

    def _keep(self, conflict: "LearningConflict") -> None:
        """Proposes this machine's version after a conflict. Writes it to a file if it can't be proposed."""
        from hermes.learning.remote import keep_aside

        why = t.logged(
            "{path} was changed here and on another machine at once. This was the change here.",
            path=conflict.path,
        )
        try:
            change = self.skills.change_between(
                conflict.path, _text(conflict.theirs), _text(conflict.ours)
            )
            if change is not None:
                self.propose(change, Provenance("hermes"), why)
                return
            reason = t.logged("It is not a file of a skill.")
        except LearningError as error:
            reason = error.message
        except UnicodeDecodeError:
            reason = t.logged("It is not text.")
        aside = keep_aside(self.home.root / "learning" / "conflicts", conflict)
        place = t.logged("It is in {path}.", path=aside)
        waiting.warning("%s %s %s", why, place, reason)

    def is_users(self, change: Change) -> bool:
        """Returns whether a change would affect what the user wrote or pinned."""
        return isinstance(change, SkillChange) and self.skills.is_users(change.name)

    def propose(self, change: Change, origin: Provenance, why: str = "") -> Proposal:
        """Saves a change for the user to review."""
        return self.proposals.add(change, origin, why=why, diff=self.preview(change))

    def approve(self, name: str) -> Proposal:
        """Makes a proposed change. Raises LearningError if it no longer applies; it then stays pending."""
        proposal = self._waiting(name)
        applied = self.apply(proposal.change, proposal.origin)
        return self.proposals.decide(proposal, "approved", applied.hash)

    def reject(self, name: str) -> Proposal:
        """Rejects a proposed change permanently."""
        return self.proposals.decide(self._waiting(name), "rejected")

    def revert(self, change: str, under: str, *, whole: bool = False) -> RevertReport:
        """Reverts one change, or with `whole` restores everything below `under` to its state after it."""
        self.try_sync()
        undo = self.history.restore if whole else self.history.revert
        with (
            self.memory.locked(),
            self.skills.locked(),
        ):  # locked, so that nobody writes between the read and the write
            untouched = self.skills.untouched()
            reverted = undo(change, under, Provenance("user"))
            touched = {
                part
                for path in reverted.files
                if path.startswith("skills/")
                for part in Path(path).parts
            }
            for name in touched & untouched:
                self.skills.rewritten(name)
        self.try_sync()
        return reverted

    def _waiting(self, name: str) -> Proposal:
        proposal = self.proposals.find(name)
        if proposal.status != "pending":
            raise LearningError(
                t.later(
                    "{name} was already {status}.", name=name, status=proposal.status
                ),
                hint=t.later("Nothing was changed."),
            )
        return proposal


def open_learning(  # noqa: PLR0913 - what tests and people change of it
    home: Home,
    settings: LearningSettings,
    environment: Mapping[str, str],
    *,
    clock: Clock | None = None,
    provider: MemoryProvider | None = None,
    bundled: Path = BUNDLED,
    person: str = "",
    exclusive_remote: ExclusiveRemote = contextlib.nullcontext,
) -> LearningService:
    """Builds the service. Reads no file, except the key of an external memory if one is set.

    A `person` is somebody other than the home's user: their memory and its proposals are separate,
    and they do not share the user's external memory.
    """
    clock = clock or SystemClock()
    folder = home.root / "learning"
    repository = HistoryRepository(home.root, folder / "history.git", environment)
    history = LearningHistory(home.root, repository)

    def remote() -> "LearningRemote":
        from hermes.learning.remote import LearningRemote

        return LearningRemote(settings.remote, repository, history, environment)

    limits = MemoryLimits(settings.memory_limit, settings.user_limit)
    if person:
        name = folder_of(person)
        memory = MemoryFiles(home.memories / "people" / name, history, limits)
        proposals = folder / "people" / name / "proposals"
    else:
        memory = MemoryFiles(
            home.memories,
            history,
            limits,
            provider=provider or external_memory(home, settings, environment),
        )
        proposals = folder / "proposals"
    skills = SkillLibrary(home.skills, SkillRecords(folder), history, clock, bundled)
    service = LearningService(home, clock, history, memory, skills, proposals)
    if settings.remote and repository.usable and not person:
        service.remote = remote
        service.exclusive_remote = exclusive_remote
    return service


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def folder_of(person: str) -> str:
    """Returns the name of a person's folder: readable and unique."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", person).strip("-")[:40]
    return f"{plain}-{hashlib.sha256(person.encode()).hexdigest()[:8]}"


def unused(learning: LearningService, now: float, days: int) -> list[SkillChange]:
    """Returns changes that retire skills: written by Hermes, not pinned or edited by the user, and
    long unused.
    """
    if not days:
        return []
    uses, records = learning.skills.records.uses(), learning.skills.records.all()
    found: list[SkillChange] = []
    for skill in learning.skills.all():
        if skill.origin != "agent" or learning.skills.is_users(skill.name):
            continue
        last = max(uses.get(skill.name, SkillUse()).last, records[skill.name].created)
        if now - last > days * _DAY_S:
            found.append(SkillChange(skill.name, retire=True))
    return found
