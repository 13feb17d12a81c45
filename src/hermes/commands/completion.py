"""Completion of the command line for bash, zsh and fish, made from the table of commands."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal, get_args

import msgspec

from hermes.commands.command import Arg, Command, Parameter, command
from hermes.commands.context import CommandContext
from hermes.commands.table import TOPICS, Topic, commands_of
from hermes.commands.views import RawText
from hermes.schema.events import Mode

Shell = Literal["bash", "zsh", "fish"]
Kind = Literal["sessions", "models", "agents", "profiles"]
_MAX_SESSIONS = 50
_VALUES: Mapping[str, Kind] = {
    "--resume": "sessions",
    "--model": "models",
    "--agent": "agents",
    "--profile": "profiles",
}
_CHOICES: Mapping[str, tuple[str, ...]] = {"--approvals": get_args(Mode)}
_NAMES_AGENT = ("agent show", "agent edit", "agent remove")
_NAMES_PROFILE = tuple(
    f"profile {action}"
    for action in ("show", "clone", "rename", "use", "remove", "export")
)
_OWN_OPTIONS = (
    *("--help", "--version", "--prompt", "--image", "--json", "--resume", "--continue"),
    *(
        "--model",
        "--provider",
        "--cwd",
        "--approvals",
        "--agent",
        "--profile",
        "--fetch",
        "--verbose",
    ),
)


class CompletionPoint(msgspec.Struct, frozen=True):
    """What can follow the words of a path, such as `sessions show`."""

    path: str
    words: tuple[str, ...]
    kind: Kind | None = None
    """What else can follow, which is looked up when it is needed."""


@command("completion", group="Settings")
def print_completion(
    context: CommandContext,  # noqa: ARG001 - every command has one
    shell: Annotated[Shell, Arg("the shell that it is for")],
) -> RawText:
    """Print a script that completes commands, options, sessions and models in a shell.

    bash: eval "$(hermes completion bash)" in ~/.bashrc; zsh: the same in ~/.zshrc; fish: hermes completion fish | source
    """
    points = written_points()
    make = {"bash": bash_script, "zsh": zsh_script, "fish": fish_script}[shell]
    return RawText(lines=tuple(make(points).splitlines()))


@command("completion names")
def complete_names(
    context: CommandContext, kind: Annotated[Kind, Arg("what to list")]
) -> RawText:
    """List names for shell completion: sessions, models, agents or profiles."""
    return RawText(lines=tuple(_names(context, kind)))


def _names(context: CommandContext, kind: Kind) -> Iterator[str]:
    if kind == "agents":
        from hermes.commands.project import folder_of, prompt_files

        files = prompt_files(context).all(folder_of(context), "agent")
        yield from (one.name for one in files)
        return
    if kind == "profiles":
        from hermes.settings.load import find_base
        from hermes.settings.profiles import DEFAULT_PROFILE, profile_names

        yield DEFAULT_PROFILE
        yield from profile_names(find_base(context.environment).root)
        return
    if not context.app.has_log:
        return
    sessions = context.app.store.sessions
    if kind == "sessions":
        yield "last"
        yield from (one.id for one in sessions.recent(limit=_MAX_SESSIONS))
        return
    used = {
        f"{row.provider}:{row.model}": None for row in sessions.usage() if row.model
    }
    yield from used


def written_points() -> list[CompletionPoint]:
    """The points as `make docs` wrote them. A shell asks for them at each start, and loading every command takes long."""
    file = Path(__file__).with_name("completion.json")
    return msgspec.json.decode(file.read_bytes(), type=list[CompletionPoint])


def completion_points() -> Iterator[CompletionPoint]:
    """Every path of words with what can follow it, from the commands themselves."""
    yield CompletionPoint("", (*(topic.name for topic in TOPICS), *_OWN_OPTIONS))
    for topic in TOPICS:
        yield from _points_of(topic)


def _points_of(topic: Topic) -> Iterator[CompletionPoint]:
    found = list(commands_of(topic))
    prefixes = [topic.name, *(f"{topic.name} {group}" for group in topic.groups)]
    names = [one.name for one in found]
    for prefix in prefixes:
        below = [name for name in (*prefixes, *names) if name.startswith(f"{prefix} ")]
        actions = [name.removeprefix(f"{prefix} ").split(" ")[0] for name in below]
        own = next((one for one in found if one.name == prefix), None)
        options = _options(own) if own else ("--help",)
        kind = _operand(own) if own else None
        words = tuple(dict.fromkeys((*actions, *_operand_choices(own), *options)))
        yield CompletionPoint(prefix, words, kind)
    for one in found:
        if one.name not in prefixes:
            words = (*_operand_choices(one), *_options(one))
            yield CompletionPoint(one.name, words, _operand(one))


def _options(found: Command) -> tuple[str, ...]:
    flags = [one.flag for one in found.parameters if one.is_option]
    return (*flags, "--json", "--help")


def _operands(found: Command | None) -> list[Parameter]:
    if found:
        return [one for one in found.parameters if not one.is_option]
    return []


def _operand(found: Command | None) -> Kind | None:
    """The kind of name that the operands of a command are, if such names can be listed."""
    for one in _operands(found):
        if one.arg.current == "session":
            return "sessions"
        if one.name in ("model", "name") and found and found.name.startswith("model "):
            return "models"
        if one.name == "name" and found and found.name in _NAMES_AGENT:
            return "agents"
        if one.name in ("name", "source") and found and found.name in _NAMES_PROFILE:
            return "profiles"
    return None


def _operand_choices(found: Command | None) -> tuple[str, ...]:
    return tuple(choice for one in _operands(found) for choice in one.choices)


def bash_script(points: list[CompletionPoint]) -> str:
    """The function for bash."""
    values = "\n".join(
        f'    {option}) COMPREPLY=($(compgen -W "$(hermes completion names {kind} 2>/dev/null)" -- "$cur")); return;;'
        for option, kind in _VALUES.items()
    )
    choices = "\n".join(
        f'    {option}) COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$cur")); return;;'
        for option, words in _CHOICES.items()
    )
    known = "|".join(f'"{one.path}"' for one in points if one.path)
    cases = "\n".join(
        f'    "{one.path}") words="{" ".join(one.words)}"{_looked_up(one.kind)};;'
        for one in points
    )
    return f"""\
# Completion of hermes. Load it with: eval "$(hermes completion bash)"
_hermes() {{
  local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}" path="" next="" words="" i
  case "$prev" in
{values}
{choices}
    --cwd) COMPREPLY=($(compgen -d -- "$cur")); return;;
  esac
  for ((i = 1; i < COMP_CWORD; i++)); do
    next="${{path:+$path }}${{COMP_WORDS[i]}}"
    case "$next" in {known}) path="$next";; esac
  done
  case "$path" in
{cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o default -F _hermes hermes"""


def _looked_up(kind: Kind | None) -> str:
    """Names are looked up only where no option is being typed."""
    if kind is None:
        return ""
    return f'; [[ "$cur" == -* ]] || words="$words $(hermes completion names {kind} 2>/dev/null)"'


def zsh_script(points: list[CompletionPoint]) -> str:
    """The same function, in zsh's emulation of bash."""
    start = "autoload -U +X compinit && compinit -u\nautoload -U +X bashcompinit && bashcompinit"
    script = bash_script(points).replace("completion bash", "completion zsh")
    return f"{start}\n{script}"


def fish_script(points: list[CompletionPoint]) -> str:
    """The completions for fish."""
    known = " ".join(f"'{one.path}'" for one in points if one.path)
    lines = [
        f"""\
# Completion of hermes. Load it with: hermes completion fish | source
function __hermes_at
    set -l path ''
    for word in (commandline -opc)[2..-1]
        set -l next (string trim -- "$path $word")
        contains -- "$next" {known}; and set path $next
    end
    test "$path" = "$argv[1]"
end
complete -c hermes -f"""
    ]
    for one in points:
        words = " ".join(one.words)
        names = f" (hermes completion names {one.kind} 2>/dev/null)" if one.kind else ""
        lines.append(
            f"complete -c hermes -n \"__hermes_at '{one.path}'\" -a '{words}{names}'"
        )
    for option, kind in _VALUES.items():
        name = option.removeprefix("--")
        lines.append(
            f"complete -c hermes -l {name} -x -a '(hermes completion names {kind} 2>/dev/null)'"
        )
    for option, words in _CHOICES.items():
        name = option.removeprefix("--")
        lines.append(f"complete -c hermes -l {name} -x -a '{' '.join(words)}'")
    return "\n".join(lines)
