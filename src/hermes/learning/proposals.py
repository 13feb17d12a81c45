"""Proposed changes that wait for the user's decision. Each is a separate file, written atomically."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from hermes.core.ports import Clock
from hermes.errors import SettingsError
from hermes.learning.change import Change, LearningError, Provenance
from hermes.primitives.files import make_private_folder
from hermes.primitives.untyped import number_in_text
from hermes.settings import atomic
from hermes.text.translation import translator

t = translator(__name__)

Status: TypeAlias = Literal["pending", "approved", "rejected"]
_MAX_DECIDED_PROPOSALS = 300  # decided proposals that are kept
_MAX_OPEN_PROPOSALS = 100  # pending at once


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A proposed change: its reason, author, diff and status."""

    id: str
    change: Change
    origin: Provenance
    why: str = ""
    diff: str = ""
    created: float = 0.0
    status: Status = "pending"
    hash: str = ""
    """Its hash in the history, once approved."""


class Proposals:
    """The folder of proposals."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock

    def pending(self) -> list[Proposal]:
        """Returns the pending proposals, oldest first."""
        return [proposal for proposal in self.all() if proposal.status == "pending"]

    def all(self) -> list[Proposal]:
        """Returns all proposals, oldest first."""
        paths = sorted(
            self._folder.glob("p*.json"), key=lambda path: _number(path.stem)
        )
        return [self._read(path) for path in paths]

    def find(self, name: str) -> Proposal:
        """Returns a proposal by its id."""
        path = self._folder / f"{name}.json"
        if not _number(name) or not path.is_file():
            raise LearningError(
                t.later("There is no proposal {name!r}.", name=name),
                hint=t.later("See: hermes skills proposals"),
            )
        return self._read(path)

    def add(
        self, change: Change, origin: Provenance, *, why: str, diff: str
    ) -> Proposal:
        """Saves a proposal, unless the same change is already pending or was rejected."""
        with self._locked():
            known = self.all()
            for proposal in known:
                if proposal.change == change and proposal.status != "approved":
                    return proposal
            if (
                sum(proposal.status == "pending" for proposal in known)
                >= _MAX_OPEN_PROPOSALS
            ):
                raise LearningError(
                    t.later(
                        "{max_open_proposals} proposals are already pending.",
                        max_open_proposals=_MAX_OPEN_PROPOSALS,
                    ),
                    hint=t.later("See: hermes skills proposals"),
                )
            number = max((_number(proposal.id) for proposal in known), default=0) + 1
            proposal = Proposal(
                id=f"p{number}",
                change=change,
                origin=origin,
                why=why,
                diff=diff,
                created=self._clock.now(),
            )
            self._write(proposal)
            self._forget(known)
            return proposal

    def decide(self, proposal: Proposal, status: Status, change: str = "") -> Proposal:
        """Records a decision."""
        decided = msgspec.structs.replace(proposal, status=status, hash=change)
        with self._locked():
            self._write(decided)
        return decided

    def _forget(self, known: list[Proposal]) -> None:
        decided = [proposal for proposal in known if proposal.status != "pending"]
        for proposal in decided[: max(0, len(decided) - _MAX_DECIDED_PROPOSALS)]:
            (self._folder / f"{proposal.id}.json").unlink(missing_ok=True)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        make_private_folder(self._folder)
        try:
            with atomic.locked(self._folder / "proposals"):
                yield
        except SettingsError as error:
            raise LearningError(error.words, hint=error.hint_words) from error

    def _write(self, proposal: Proposal) -> None:
        text = msgspec.json.format(msgspec.json.encode(proposal), indent=1).decode()
        atomic.replace(self._folder / f"{proposal.id}.json", text)

    def _read(self, path: Path) -> Proposal:
        try:
            return msgspec.json.decode(path.read_bytes(), type=Proposal)
        except (OSError, msgspec.MsgspecError) as error:
            raise LearningError(
                t.later("{path} can't be read ({error}).", path=path, error=error),
                hint=t.later("Move it away; nothing else is lost."),
            ) from error


def _number(name: str) -> int:
    return number_in_text(name[1:]) or 0 if name[:1] == "p" else 0
