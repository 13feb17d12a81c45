"""Installing a skill from elsewhere: first a plan with everything a person should see, then the deed."""

from collections.abc import Mapping

import msgspec

from hermes.learning.change import AppliedChange, LearningError
from hermes.learning.scan import SkillFinding, scan_files
from hermes.learning.skill import (
    MAIN,
    files_diff,
    problems,
    read_files,
    require_name,
    tree_hash,
)
from hermes.learning.skill_library import SkillLibrary
from hermes.learning.skill_source import SkillSource


class InstallPlan(msgspec.Struct, frozen=True):
    """What would be installed: its files and their hash, what was found in them, and what would change."""

    name: str
    source: str
    files: Mapping[str, bytes]
    hash: str
    findings: list[SkillFinding]
    diff: str
    replaces: bool

    @property
    def dangers(self) -> list[SkillFinding]:
        """What speaks against it."""
        return [finding for finding in self.findings if finding.level == "danger"]


def plan(
    library: SkillLibrary, parcel: SkillSource, *, skill: str = "", expected: str = ""
) -> InstallPlan:
    """Looks at a parcel. `skill` names one of several in it; `expected` is the hash that it must have."""
    name, files = _choose(parcel, skill)
    require_name(name)
    if wrong := problems(files[MAIN].decode("utf-8", "replace")):
        raise LearningError(
            f"{name} is not a proper skill: {'; '.join(wrong)}.",
            hint="Nothing was installed.",
        )
    digest = tree_hash(files)
    if expected and not digest.startswith(expected.removeprefix("sha256:").lower()):
        raise LearningError(
            f"These are not the files you meant: their hash is sha256:{digest}.",
            hint="Nothing was installed.",
        )
    before = _installed(library, name)
    return InstallPlan(
        name,
        parcel.source,
        files,
        digest,
        scan_files(files),
        files_diff(name, before, files),
        bool(before),
    )


def install(
    library: SkillLibrary, chosen: InstallPlan, *, despite_dangers: bool = False
) -> AppliedChange:
    """Puts the skill in place, pinned by its hash."""
    if chosen.dangers and not despite_dangers:
        hint = "Nothing was installed. Read the files; if you are sure, install with --despite-dangers."
        raise LearningError(
            f"{chosen.name} was not installed: {chosen.dangers[0]}.", hint=hint
        )
    return library.install(chosen.name, chosen.files, chosen.source)


def altered(library: SkillLibrary, name: str) -> bool:
    """Whether an installed skill is no longer what was installed."""
    record = library.records.get(name)
    return (
        record.origin == "installed"
        and tree_hash(read_files(library.find(name).folder)) != record.hash
    )


def _choose(parcel: SkillSource, wanted: str) -> tuple[str, dict[str, bytes]]:
    found = parcel.skills()
    if not found:
        raise LearningError(
            f"There is no SKILL.md in {parcel.source}.", hint="Nothing was installed."
        )
    if wanted:
        if wanted not in found:
            known = ", ".join(sorted(found))
            raise LearningError(
                f"There is no skill {wanted!r} in it.",
                hint=f"Nothing was installed. It has: {known}",
            )
        return wanted, found[wanted]
    if MAIN in parcel.files:
        name = next(
            name for name, files in found.items() if files[MAIN] == parcel.files[MAIN]
        )
        return name, found[name]
    if len(found) > 1:
        known = ", ".join(sorted(found))
        raise LearningError(
            f"There are {len(found)} skills in it: {known}.",
            hint="Nothing was installed. Name one with --skill.",
        )
    return next(iter(found.items()))


def _installed(library: SkillLibrary, name: str) -> dict[str, bytes]:
    known = {skill.name: skill for skill in library.all()}
    skill = known.get(name)
    return read_files(skill.folder) if skill and skill.origin != "bundled" else {}
