"""Installs a skill from a source, in two steps: a plan for the person to read, then the installation."""

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
from hermes.text.translation import translator

t = translator(__name__)


class InstallPlan(msgspec.Struct, frozen=True):
    """What would be installed: the files, their hash, the findings in them, and the diff."""

    name: str
    source: str
    files: Mapping[str, bytes]
    hash: str
    findings: list[SkillFinding]
    diff: str
    replaces: bool

    @property
    def dangers(self) -> list[SkillFinding]:
        """The findings that block the installation."""
        return [finding for finding in self.findings if finding.level == "danger"]


def plan(
    library: SkillLibrary, source: SkillSource, *, skill: str = "", expected: str = ""
) -> InstallPlan:
    """Examines a source. `skill` names one of several in it; `expected` is the hash it must have."""
    name, files = _choose(source, skill)
    require_name(name)
    if wrong := problems(files[MAIN].decode("utf-8", "replace")):
        raise LearningError(
            t.later(
                "{name} is not a valid skill: {wrong}.",
                name=name,
                wrong="; ".join(wrong),
            ),
            hint=t.later("Nothing was installed."),
        )
    digest = tree_hash(files)
    if expected and not digest.startswith(expected.removeprefix("sha256:").lower()):
        raise LearningError(
            t.later(
                "These are not the expected files: their hash is sha256:{digest}.",
                digest=digest,
            ),
            hint=t.later("Nothing was installed."),
        )
    before = _installed(library, name)
    return InstallPlan(
        name,
        source.source,
        files,
        digest,
        scan_files(files),
        files_diff(name, before, files),
        bool(before),
    )


def install(
    library: SkillLibrary, chosen: InstallPlan, *, despite_dangers: bool = False
) -> AppliedChange:
    """Installs the skill, pinned by its hash."""
    if chosen.dangers and not despite_dangers:
        hint = t.later(
            "Nothing was installed. Read the files; if you are sure, install with --despite-dangers."
        )
        raise LearningError(
            t.later(
                "{name} was not installed: {dangers}.",
                name=chosen.name,
                dangers=chosen.dangers[0],
            ),
            hint=hint,
        )
    return library.install(chosen.name, chosen.files, chosen.source)


def altered(library: SkillLibrary, name: str) -> bool:
    """Returns whether an installed skill differs from what was installed."""
    record = library.records.get(name)
    return (
        record.origin == "installed"
        and tree_hash(read_files(library.find(name).folder)) != record.hash
    )


def _choose(source: SkillSource, wanted: str) -> tuple[str, dict[str, bytes]]:
    found = source.skills()
    if not found:
        raise LearningError(
            t.later("There is no SKILL.md in {source}.", source=source.source),
            hint=t.later("Nothing was installed."),
        )
    if wanted:
        if wanted not in found:
            known = ", ".join(sorted(found))
            raise LearningError(
                t.later("There is no skill {wanted!r} in it.", wanted=wanted),
                hint=t.later("Nothing was installed. It has: {known}", known=known),
            )
        return wanted, found[wanted]
    if MAIN in source.files:
        name = next(
            name for name, files in found.items() if files[MAIN] == source.files[MAIN]
        )
        return name, found[name]
    if len(found) > 1:
        known = ", ".join(sorted(found))
        raise LearningError(
            t.later(
                "There are {count} skills in it: {known}.",
                count=len(found),
                known=known,
            ),
            hint=t.later("Nothing was installed. Name one with --skill."),
        )
    return next(iter(found.items()))


def _installed(library: SkillLibrary, name: str) -> dict[str, bytes]:
    known = {skill.name: skill for skill in library.all()}
    skill = known.get(name)
    if skill and skill.origin != "bundled":
        return read_files(skill.folder)
    return {}
