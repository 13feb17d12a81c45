"""Skills: list, write, install, enable, disable and revert them."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec

from hermes.children.git_folder import find_git
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.memory import (
    ChangeHistory,
    ChangeId,
    HistoryLimit,
    OptionalChange,
    history_of,
    revert_change,
)
from hermes.commands.views import (
    Block,
    Column,
    DiffBlock,
    Line,
    Look,
    Span,
    TextResult,
    line,
    message,
    table,
)
from hermes.errors import UsageError
from hermes.learning.change import Provenance, SkillChange, SkillFileChange
from hermes.learning.scan import SkillFinding, scan_files
from hermes.learning.skill import MAIN, Skill, problems, read_files, require_name
from hermes.learning.skill_folders import Archived
from hermes.learning.skill_install import InstallPlan, altered, install, plan
from hermes.learning.skill_records import SkillUse
from hermes.learning.skill_source import open_skill_source
from hermes.text.formats import ago, first_line
from hermes.text.translation import shown_reason, to_translate, translator

t = translator(__name__)


EXAMPLES = to_translate("""\
examples:
  hermes skills list                                  all skills
  hermes skills install ./brew-tea                    from a folder, a .zip or .tar file
  hermes skills install https://host/repo.git#skills/brew-tea
  hermes skills proposals                             proposed changes to review
  hermes skills approve p3                            make one of them
  hermes skills list --archived                       retired skills; restore brings one back
  hermes skills history brew-tea                      how one skill changed
  hermes skills revert 3f2a91c0de                     revert a change

A skill is a folder with a SKILL.md in HERMES_HOME/skills. In the chat each one is a command: /brew-tea
""")
_TEMPLATE = to_translate("""\
---
name: {name}
description: What it does, and when to use it, in the words of a request.
---
# {name}

1. The first step, with exact commands.
2. How to check that it worked.
""")
_KNOW_IT = to_translate("This applies to new sessions.")

SkillName = Annotated[str, Arg(metavar="NAME")]


class SkillListing(msgspec.Struct, frozen=True, kw_only=True):
    """All skills, and how many are archived or wait for review."""

    skills: tuple[Skill, ...]
    archived: int
    proposals: int

    def document(self) -> Any:
        return self.skills

    def view(self, _now: float) -> Iterable[Block]:
        size = max((len(skill.name) for skill in self.skills), default=0)
        for skill in self.skills:
            about = first_line(skill.description)
            text = f"{skill.name:<{size}}  {_state(skill):<9}  {about}"
            yield line(text, "" if skill.offered else "dim", fit="cut")
        for skill in self.skills:
            if skill.problem:
                yield line(
                    t(
                        "{name} is not offered: {problem}",
                        name=skill.name,
                        problem=first_line(skill.problem),
                    ),
                    "warn",
                )
        if self.archived:
            yield line(
                t(
                    "\n{count:,} skill in the archive: hermes skills list --archived",
                    "\n{count:,} skills in the archive: hermes skills list --archived",
                    count=self.archived,
                )
            )
        if self.proposals:
            yield line(
                t(
                    "\n{count:,} proposed change to review: hermes skills proposals",
                    "\n{count:,} proposed changes to review: hermes skills proposals",
                    count=self.proposals,
                )
            )


class ArchiveListing(msgspec.Struct, frozen=True, kw_only=True):
    """Skills that were retired."""

    skills: tuple[Archived, ...]

    def document(self) -> Any:
        return self.skills

    def view(self, now: float) -> Iterable[Block]:
        size = max((len(one.name) for one in self.skills), default=0)
        for one in self.skills:
            when = f"{ago(one.when, now):<10}"
            text = f"{one.name:<{size}}  {when}  {first_line(one.description)}"
            yield line(text, fit="cut")
        if self.skills:
            yield line(t("Bring one back with: hermes skills restore NAME"))
        else:
            yield line(t("The archive is empty."))


class SkillUses(msgspec.Struct, frozen=True, kw_only=True):
    """How often each skill is used."""

    names: tuple[str, ...]
    uses: dict[str, SkillUse]

    def document(self) -> Any:
        return self.uses

    def view(self, now: float) -> Iterable[Block]:
        columns = (
            Column(t("skill")),
            Column(t("read"), right=True),
            Column(t("called"), right=True),
            Column(t("last")),
        )
        found = [(name, self.uses.get(name, SkillUse())) for name in self.names]
        found.sort(key=lambda one: -one[1].last)
        rows = [
            (
                name,
                str(use.views),
                str(use.commands),
                ago(use.last, now) if use.last else "never",
            )
            for name, use in found
        ]
        yield table(columns, rows)


class ShownSkill(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a skill, or of one of its files."""

    name: str
    text: str

    def view(self, _now: float) -> Iterable[Block]:
        yield line(self.text)


class CheckedSkill(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with a skill."""

    name: str
    mistakes: tuple[str, ...]
    findings: tuple[SkillFinding, ...]

    @property
    def is_bad(self) -> bool:
        return bool(self.mistakes) or any(
            finding.level == "danger" for finding in self.findings
        )


class SkillCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Skills that were checked for mistakes and dangers."""

    skills: tuple[CheckedSkill, ...]

    @property
    def exit_code(self) -> int:
        return int(any(one.is_bad for one in self.skills))

    def view(self, _now: float) -> Iterable[Block]:
        for one in self.skills:
            for text in one.mistakes:
                yield _labelled(
                    "wrong", "bad", f"{one.name}: {first_line(shown_reason(text))}"
                )
            for finding in one.findings:
                look: Look = "bad" if finding.level == "danger" else "warn"
                what = first_line(finding.shown())
                yield _labelled(finding.level, look, f"{one.name}: {what}")
            if not one.mistakes and not one.findings:
                yield _labelled("ok", "good", one.name)


@command("skills list", slash="skills", scope="observe", group="Learning")
def list_skills(
    context: CommandContext,
    *,
    archived: Annotated[bool, "those that were retired"] = False,
) -> SkillListing | ArchiveListing:
    """List all skills; in the chat each one is a command."""
    skills = context.learning.skills
    if archived:
        return ArchiveListing(skills=tuple(skills.archived()))
    return SkillListing(
        skills=tuple(skills.all()),
        archived=len(skills.archived()),
        proposals=len(context.learning.proposals.pending()),
    )


@command("skills stats", scope="observe")
def show_skill_uses(context: CommandContext) -> SkillUses:
    """Show how often each skill is used."""
    skills = context.learning.skills
    names = tuple(skill.name for skill in skills.all())
    return SkillUses(names=names, uses=skills.records.uses())


@command("skills show", scope="observe")
def show_skill(
    context: CommandContext,
    name: SkillName,
    file: Annotated[str, "one of its files"] = "",
) -> ShownSkill:
    """Show the text of a skill."""
    return ShownSkill(name=name, text=context.learning.skills.view(name, file))


@command("skills new")
def new_skill(
    context: CommandContext,
    name: Annotated[str, "lower-case words with hyphens"],
) -> TextResult:
    """Create a skill of your own."""
    learning = context.learning
    require_name(name)
    if learning.skills.text_of(name, MAIN) is not None:
        raise UsageError(
            t("There is a skill {name} already.", name=name),
            hint=t("See it with: hermes skills show {name}", name=name),
        )
    first = SkillFileChange(MAIN, None, t.marked(_TEMPLATE, name=name))
    learning.home.ensure()
    learning.apply(SkillChange(name, (first,)), Provenance("user"))
    return message(
        str(learning.home.skills / name / MAIN),
        t("Write it there, then: hermes skills check {name}", name=name),
    )


@command("skills check", scope="admin")
def check_skills(
    context: CommandContext,
    name: Annotated[str, "one skill, or a folder (default: all)"] = "",
) -> SkillCheck:
    """Look for mistakes and dangers in skills."""
    library, folder = context.learning.skills, Path(name)
    if name and (folder / MAIN).is_file():
        return SkillCheck(skills=(_checked(folder.resolve().name, folder),))
    checked: list[CheckedSkill] = []
    for skill in [library.find(name)] if name else library.all():
        one = _checked(skill.name, skill.folder, bundled=skill.origin == "bundled")
        if skill.origin == "installed" and altered(library, skill.name):
            other = SkillFinding(
                "caution", t("has changed since it was installed"), MAIN
            )
            one = msgspec.structs.replace(one, findings=(*one.findings, other))
        checked.append(one)
    return SkillCheck(skills=tuple(checked))


@command("skills enable", scope="admin")
def enable_skill(context: CommandContext, name: SkillName) -> TextResult:
    """Offer a skill again."""
    context.learning.home.ensure()
    context.learning.skills.set(name, enabled=True)
    return message(
        t("{name} is offered. {know_it}", name=name, know_it=t.marked(_KNOW_IT))
    )


@command("skills disable", scope="admin")
def disable_skill(context: CommandContext, name: SkillName) -> TextResult:
    """Stop offering a skill."""
    context.learning.home.ensure()
    context.learning.skills.set(name, enabled=False)
    return message(
        t(
            "{name} is no longer offered. {know_it}",
            name=name,
            know_it=t.marked(_KNOW_IT),
        )
    )


@command("skills pin", scope="admin")
def pin_skill(context: CommandContext, name: SkillName) -> TextResult:
    """Pin a skill, so that only you can change it."""
    context.learning.home.ensure()
    context.learning.skills.set(name, pinned=True)
    return message(
        t(
            "Only you can change {name}. {know_it}",
            name=name,
            know_it=t.marked(_KNOW_IT),
        )
    )


@command("skills unpin", scope="admin")
def unpin_skill(context: CommandContext, name: SkillName) -> TextResult:
    """Unpin a skill, so that Hermes may improve it if it wrote it."""
    context.learning.home.ensure()
    context.learning.skills.set(name, pinned=False)
    return message(
        t(
            "Hermes may improve {name}, if it wrote it. {know_it}",
            name=name,
            know_it=t.marked(_KNOW_IT),
        )
    )


@command("skills retire", scope="admin")
def retire_skill(context: CommandContext, name: SkillName) -> TextResult:
    """Move a skill to the archive."""
    context.learning.apply(SkillChange(name, retire=True), Provenance("user"))
    return message(
        t(
            "{name} is in the archive. To bring it back: hermes skills restore {name}",
            name=name,
        )
    )


@command("skills restore", scope="admin")
def restore_skill(context: CommandContext, name: SkillName) -> TextResult:
    """Bring a skill back from the archive."""
    skill = context.learning.skills.restore(name)
    return message(
        t("{name} is back. {know_it}", name=skill.name, know_it=t.marked(_KNOW_IT))
    )


@command("skills install")
def install_skill(  # noqa: PLR0913 - the options of one command
    context: CommandContext,
    source: Annotated[str, "a git address may end in #FOLDER"],
    *,
    skill: Annotated[
        str, Arg("which one, when there are several", metavar="NAME")
    ] = "",
    hash_: Annotated[
        str, Arg("refuse any other files than these", metavar="SHA256")
    ] = "",
    dry_run: Annotated[bool, "only show what would be installed"] = False,
    yes: Annotated[bool, "don't ask"] = False,
    despite_dangers: Annotated[
        bool, "install even if the scan finds something dangerous"
    ] = False,
) -> TextResult:
    """Install a skill from a folder, an archive or a git address."""
    learning, environ = context.learning, context.environment
    opened = open_skill_source(source, git=find_git(environ), environment=environ)
    chosen = plan(learning.skills, opened, skill=skill, expected=hash_)
    context.surface.tell(*_plan_view(chosen))
    if dry_run:
        return message(
            t("Nothing was installed (--dry-run)."), failed=bool(chosen.dangers)
        )
    if chosen.replaces and not chosen.diff:
        return message(t("It is installed already, exactly like this."))
    if not yes and not chosen.dangers:
        context.confirm(t("Install it?"), t("Nothing was installed."))
    learning.home.ensure()
    install(learning.skills, chosen, despite_dangers=despite_dangers)
    return message(
        t(
            "Installed {name}. This applies to new sessions; in the chat: /{name}",
            name=chosen.name,
        )
    )


@command("skills history", scope="observe")
def show_skill_history(
    context: CommandContext, change: OptionalChange = "", *, limit: HistoryLimit = 20
) -> ChangeHistory:
    """Show how skills changed, and what one change did."""
    if any(skill.name == change for skill in context.learning.skills.all()):
        return history_of(context, f"skills/{change}", "", limit)
    return history_of(context, "skills", change, limit)


@command("skills revert", scope="approve")
def revert_skill(
    context: CommandContext,
    change: ChangeId,
    *,
    to: Annotated[bool, "restore skills as they were after it instead"] = False,
) -> TextResult:
    """Revert one change; later ones stay."""
    return revert_change(context, "skills", change, whole=to)


_ORIGINS = {
    "user": to_translate("yours"),
    "agent": to_translate("learned"),
    "installed": to_translate("installed"),
    "bundled": to_translate("bundled"),
}


def _state(skill: Skill) -> str:
    if not skill.enabled:
        return t("disabled")
    if skill.pinned:
        return t("pinned")
    return t.marked(_ORIGINS[skill.origin])


def _checked(name: str, folder: Path, *, bundled: bool = False) -> CheckedSkill:
    files = read_files(folder)
    text = files.get(MAIN, b"").decode("utf-8", "replace")
    return CheckedSkill(
        name=name,
        mistakes=tuple(problems(text, folder.resolve().name)),
        findings=() if bundled else tuple(scan_files(files)),
    )


def _labelled(label: str, look: Look, text: str) -> Line:
    return Line((Span(f"{label:<8}", look), Span(f" {text}")))


def _plan_view(chosen: InstallPlan) -> Iterator[Block]:
    yield DiffBlock(chosen.diff)
    about = t(
        "  {count:,} file from {source}",
        "  {count:,} files from {source}",
        count=len(chosen.files),
        source=first_line(chosen.source),
    )
    yield Line((Span("\n"), Span(chosen.name, "bold"), Span(about)))
    yield line(f"sha256:{chosen.hash}")
    for finding in chosen.findings:
        look: Look = "bad" if finding.level == "danger" else "warn"
        yield line(first_line(f"{finding.level}: {finding.shown()}"), look)
    if not chosen.findings:
        yield line(
            t("Nothing suspicious was found. That is no proof: read what you install.")
        )
