"""Agents from files: list, show, write and remove them. `/agents` shows the agents that are working now."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from hermes.app.prompt_files import PromptFile, PromptFiles
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.project import folder_of, prompt_files
from hermes.commands.tools import tools_of
from hermes.commands.views import Block, Record, TextResult, line, message, table
from hermes.errors import HermesError, NotFound, UsageError, in_sentences, os_reason
from hermes.primitives.files import create_private
from hermes.text.translation import shown_problem, to_translate, translator
from hermes.tools.escapes import shown

t = translator(__name__)


AgentName = Annotated[str, Arg("an agent, as the list shows it", metavar="NAME")]
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_KEYS = ("description", "model", "tools", "mode", "budget", "skills")
_PROMPT = to_translate(
    "You are {name}. Say here who you are, what you do, and how you work."
)


class ListedAgent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent as it is listed."""

    name: str
    description: str
    where: str
    model: str
    mode: str
    usable: bool
    problem: str


class AgentList(msgspec.Struct, frozen=True, kw_only=True):
    """The agents of this folder and of your home."""

    agents: tuple[ListedAgent, ...]

    def view(self, _now: float) -> Iterable[Block]:
        rows = (
            (one.name, one.where, shown(one.model), one.mode, shown(one.description))
            for one in self.agents
        )
        yield table(
            (t("NAME"), t("FROM"), t("MODEL"), t("MODE"), t("DESCRIPTION")),
            rows,
            narrow=((0, 1), (4,)),
        )
        for one in self.agents:
            if one.problem:
                yield line(
                    f"{one.name}: {shown(shown_problem(one.problem))}",
                    "warn",
                    fit="wrap",
                )
        if any(not one.usable and not one.problem for one in self.agents):
            hint = t(
                "Agents of the project wait for you. Read one, then: hermes project trust NAME"
            )
            yield line(hint, "dim", fit="wrap")
        yield line(
            t("Work as one: hermes --agent NAME, or /agent NAME"), "dim", fit="wrap"
        )


class ShownAgent(msgspec.Struct, frozen=True, kw_only=True):
    """Everything in an agent's file, and which parts of it don't apply here."""

    name: str
    description: str
    path: str
    model: str
    tools: tuple[str, ...]
    without: tuple[str, ...]
    mode: str
    budget: str
    skills: tuple[str, ...]
    prompt: str
    agreed: bool
    problems: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        return int(bool(self.problems))

    def view(self, _now: float) -> Iterable[Block]:
        facts = (
            (t("name"), self.name),
            (t("description"), self.description),
            (t("file"), self.path or "built in"),
            (t("model"), self.model or t("that of the session")),
            (t("tools"), ", ".join(self.tools) or t("those of the session")),
            (t("without"), ", ".join(self.without)),
            (t("mode"), self.mode or t("that of the session")),
            (t("budget"), self.budget or t("that of the session")),
            (t("skills"), ", ".join(self.skills)),
            (t("agreed"), "yes" if self.agreed else t("no; hermes project trust {name}", name=self.name)),
        )  # fmt: skip
        yield Record(tuple((key, shown(value)) for key, value in facts))
        for problem in self.problems:
            yield line(shown(problem), "warn", fit="wrap")
        yield line("")
        yield from (line(shown(one), fit="wrap") for one in self.prompt.splitlines())


@command("agent list", scope="observe")
def list_agents(context: CommandContext) -> AgentList:
    """List the agents of this project and of your home."""
    files = prompt_files(context).all(folder_of(context), "agent")
    return AgentList(agents=tuple(map(_listed, files)))


@command("agent show", scope="observe")
def show_agent(context: CommandContext, name: AgentName) -> ShownAgent:
    """Show what an agent's file says, and check its tools and skills."""
    file = _found(context, name)
    return ShownAgent(
        name=file.name,
        description=file.description,
        path=file.path,
        model=file.model,
        tools=file.tools or (),
        without=file.without,
        mode=file.mode,
        budget=str(file.budget),
        skills=file.skills,
        prompt=file.body,
        agreed=file.is_trusted,
        problems=tuple(_problems(context, file)),
    )


@command("agent new")
def write_agent(  # noqa: PLR0913 - its options
    context: CommandContext,
    name: Annotated[str, Arg("lower-case letters, digits, - and _", metavar="NAME")],
    *,
    description: Annotated[str, "when to use it; `delegate` chooses by this"] = "",
    prompt: Annotated[str, "who it is and how it works"] = "",
    model: Annotated[str, "NAME or PROVIDER:NAME"] = "",
    tools: Annotated[str, "tools, toolsets or MCP servers, separated by commas"] = "",
    mode: Annotated[
        Literal["", "plan", "ask", "auto-edit", "full"], Arg("plan, ask, auto-edit or full", metavar="MODE")
    ] = "",
    budget: Annotated[str, "the most one turn may use: $0.50 or 200k tokens"] = "",
    skills: Annotated[str, "skills to load from the start, separated by commas"] = "",
    project: Annotated[bool, "in this project's .hermes/agents, not in your home"] = False,
) -> TextResult:  # fmt: skip
    """Write the file of a new agent; `hermes agent edit` changes it."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            t("{name!r} can't be the name of an agent.", name=name),
            hint=t("Use lower-case letters, digits, - and _."),
        )
    values = (description, model, tools, mode, budget, skills)
    facts = dict(zip(_KEYS, values, strict=True))
    folder = folder_of(context) / ".hermes" if project else context.home.ensure().root
    path = folder / "agents" / f"{name}.md"
    head = "".join(f"{key}: {_yaml(key, value)}\n" for key, value in facts.items() if value)  # fmt: skip
    text = f"---\n{head}---\n{prompt or t.marked(_PROMPT, name=name)}\n"
    _write(path, text)
    files = prompt_files(context)
    try:
        _agree(files, folder_of(context), path)
        files.find(folder_of(context), "agent", name)
    except HermesError as error:
        path.unlink()
        raise UsageError(error.words, hint=t("Nothing was written.")) from error
    return message(
        t("Wrote {path}", path=path),
        t(
            "Work as it: hermes --agent {name}. Change it: hermes agent edit {name}",
            name=name,
        ),
    )


@command("agent remove")
def remove_agent(
    context: CommandContext,
    name: AgentName,
    *,
    yes: Annotated[bool, "don't ask"] = False,
) -> TextResult:
    """Remove an agent's file."""
    file = _found(context, name)
    if not file.path:
        raise UsageError(t("{name} is built in and can't be removed.", name=file.name))
    if not yes:
        context.confirm(t("Remove {path}?", path=file.path), t("Nothing was removed."))
    Path(file.path).unlink()
    return message(t("Removed {path}", path=file.path))


def agent_to_edit(context: CommandContext, name: str) -> PromptFile:
    """The agent whose file is to be edited. Raises UsageError for a built-in one."""
    file = _found(context, name)
    if not file.path:
        hint = t(
            "Write your own, which takes its place: hermes agent new {name}",
            name=file.name,
        )
        raise UsageError(
            t("{name} is built in and has no file.", name=file.name), hint=hint
        )
    return file


def after_edit(context: CommandContext, before: PromptFile) -> TextResult:
    """Describes an agent after an edit. A file that the user had agreed to stays agreed to, because the edit is their
    own.
    """
    folder, files = folder_of(context), prompt_files(context)
    if before.in_project and before.is_trusted:
        _agree(files, folder, Path(before.path))
    found = [one for one in files.all(folder, "agent") if one.path == before.path]
    problems = [shown_problem(one.problem) for one in found if one.problem]
    if not found:
        problems = [t("{path} is no longer an agent", path=before.path)]
    return message(
        *problems, t("Saved {path}.", path=before.path), failed=bool(problems)
    )


def _found(context: CommandContext, name: str) -> PromptFile:
    """The agent of that name, even if it can't be used."""
    known = prompt_files(context).all(folder_of(context), "agent")
    found = next((one for one in known if one.name == name.lower()), None)
    if found is None:
        names = ", ".join(one.name for one in known)
        raise NotFound(
            t("There is no agent {name!r}.", name=name),
            hint=t("There are: {names}.", names=names),
        )
    return found


def _problems(context: CommandContext, file: PromptFile) -> Iterable[str]:
    if file.problem:
        yield shown_problem(file.problem)
        return
    unknown = file.unknown_tools(tools_of(context, "cli")[0])
    if unknown:
        yield t(
            "{place}: no tool, toolset or server is called {unknown}",
            place=file.place("tools"),
            unknown=", ".join(unknown),
        )
    for name in file.skills:
        try:
            context.learning.skills.view(name)
        except HermesError as error:
            yield f"{file.place('skills')}: {in_sentences(error)}"


def _listed(file: PromptFile) -> ListedAgent:
    where = "project" if file.in_project else "home"
    where = where if file.path else "built in"
    return ListedAgent(
        name=file.name,
        description=file.description,
        where=where if file.is_trusted else f"{where}, not agreed",
        model=file.model,
        mode=file.mode,
        usable=file.is_usable,
        problem=file.problem,
    )


def _yaml(key: str, value: str) -> str:
    """A value as JSON, which is YAML too."""
    if key in ("tools", "skills"):
        parts = [part.strip() for part in value.split(",") if part.strip()]
        return msgspec.json.encode(parts).decode()
    return msgspec.json.encode(value).decode()


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with create_private(path) as file:
            file.write(text.encode())
    except FileExistsError as error:
        hint = t("Change it: hermes agent edit {stem}", stem=path.stem)
        raise UsageError(t("{path} exists already.", path=path), hint=hint) from error
    except OSError as error:
        raise HermesError(
            t("{path} can't be written ({error}).", path=path, error=os_reason(error))
        ) from error


def _agree(files: PromptFiles, folder: Path, path: Path) -> None:
    real = str(path.resolve())
    files.agree([one for one in files.untrusted(folder) if one.path == real])
