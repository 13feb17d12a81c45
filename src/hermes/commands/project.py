"""The project in the current folder: its rules, commands and agents, and what you have agreed to."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec

from hermes.app.prompt_files import PromptFile, PromptFiles
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.views import Block, Record, TextResult, line, message, table
from hermes.errors import NotFound
from hermes.settings.load import current_folder
from hermes.text.translation import shown_problem, translator
from hermes.tools.escapes import shown
from hermes.tools.project_rules import ProjectRules, project_rules
from hermes.tools.project_trust import checks_place, is_trusted, trust

t = translator(__name__)


_CHECKS = "rules"


class ShownFile(msgspec.Struct, frozen=True, kw_only=True):
    """A command or an agent from a file."""

    kind: str
    name: str
    description: str
    path: str
    trusted: bool


class ShownProject(msgspec.Struct, frozen=True, kw_only=True):
    """What a folder brings along for agents."""

    folder: str
    rules: ProjectRules
    trusted: bool
    """Whether the user has agreed to the commands of the rules."""
    files: tuple[ShownFile, ...]

    def view(self, _now: float) -> Iterable[Block]:
        rules = self.rules
        yield Record(
            (
                (t("folder"), shown(self.folder)),
                (t("verify"), shown(", ".join(rules.verify))),
                (t("lint"), shown(", ".join(rules.lint))),
                (t("protect"), shown(", ".join(rules.protect))),
                (t("forbid"), shown(", ".join(rules.forbid))),
                (t("problem"), shown(shown_problem(rules.problem))),
            )
        )
        if rules.checks:
            agreed = t("You agreed to run these commands in the sandbox.")
            asks = t(
                "Hermes asks before it runs these commands. To agree now: hermes project trust rules"
            )
            yield line(agreed if self.trusted else asks, "dim", fit="wrap")
        if self.files:
            rows = (
                (
                    one.kind,
                    one.name,
                    "yes" if one.trusted else "no",
                    shown(one.description),
                )
                for one in self.files
            )
            yield table((t("kind"), t("name"), t("agreed"), t("description")), rows)
        if any(not one.trusted for one in self.files):
            yield line(
                t("Read what you have not agreed to, then: hermes project trust NAME"),
                "dim",
                fit="wrap",
            )
        if not self.files and rules == ProjectRules():
            yield line(
                t("No rules, commands or agents. See docs/guide/project.md."), "dim"
            )


@command(
    "project show",
    slash="project",
    role="owner",
    scope="observe",
    group="Settings",
    private=True,
)
def show_project(context: CommandContext) -> ShownProject:
    """Show the rules, commands and agents of this project and of your home."""
    folder = folder_of(context)
    rules = project_rules(folder)
    files = prompt_files(context)
    found = [*files.all(folder, "command"), *files.all(folder, "agent")]
    return ShownProject(
        folder=str(folder),
        rules=rules,
        trusted=is_trusted(context.home.root, checks_place(folder), rules.digest),
        files=tuple(map(_shown, found)),
    )


@command("project trust")
def trust_project(
    context: CommandContext,
    name: Annotated[
        str, Arg("a command or agent, or `rules`; without one, everything")
    ] = "",
) -> TextResult:
    """Agree to the commands, agents and checks of this project, as they are now."""
    folder, files = folder_of(context), prompt_files(context)
    rules = project_rules(folder)
    waiting = [one for one in files.untrusted(folder) if name in ("", one.name)]
    place = checks_place(folder)
    wants_checks = name in ("", _CHECKS) and bool(rules.checks)
    if wants_checks and not is_trusted(context.home.root, place, rules.digest):
        trust(context.home.root, {place: rules.digest})
    elif not waiting:
        raise NotFound(
            t("There is nothing to agree to named {name}.", name=name)
            if name
            else t("There is nothing to agree to."),
            hint=t("See: hermes project show"),
        )
    else:
        wants_checks = False
    files.agree(waiting)
    agreed = [f"{one.kind} {one.name}" for one in waiting]
    agreed += [f"checks: {', '.join(rules.checks)}"] if wants_checks else []
    return message(
        t(
            "Agreed to {agreed}. If one changes, you are asked again.",
            agreed="; ".join(agreed),
        )
    )


def folder_of(context: CommandContext) -> Path:
    """The folder of the chat's session, or the current one."""
    if context.session:
        return Path(context.app.store.sessions.find(context.session).cwd or ".")
    return current_folder()


def prompt_files(context: CommandContext) -> PromptFiles:
    """The commands and agents from files."""
    return PromptFiles(context.home.root, Path.home())


def _shown(file: PromptFile) -> ShownFile:
    return ShownFile(
        kind=file.kind,
        name=file.name,
        description=file.description,
        path=file.path,
        trusted=file.is_trusted,
    )
