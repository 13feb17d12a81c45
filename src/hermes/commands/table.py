"""The table of commands: the first words, and the modules that define their commands.

A module is imported only when one of its commands runs or is described. Modules of surfaces stand here by name alone.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hermes.commands.command import Command


class Topic(NamedTuple):
    """The first word after `hermes`. Its commands are in the modules, the most used ones in the first."""

    name: str
    modules: tuple[str, ...]
    summary: str
    group: str
    default: str = ""
    """The default action."""
    groups: Mapping[str, str] = MappingProxyType({})
    """Second words with actions of their own, and what they are for. Without an action they list."""


def _topic(
    name: str, modules: str, summary: str, group: str, default: str = "", **groups: str
) -> Topic:
    found = tuple(f"hermes.{module}" for module in modules.split())
    return Topic(name, found, summary, group, default, groups)


_KEYS = "make, list and remove keys"

TOPICS = (
    _topic("setup", "surfaces.cli.setup", "connect a model, in under a minute", "Models"),
    _topic("model", "commands.models surfaces.cli.models surfaces.cli.model_tasks",
           "list, pick, add and test models", "Models", "list"),
    _topic("usage", "commands.models", "show tokens and cost, by day and model", "Models"),
    _topic("sessions", "commands.sessions commands.undo commands.pins",
           "list, search, show and move your sessions", "Sessions"),
    _topic("resume", "surfaces.cli.resume", "continue a session from any surface", "Sessions"),
    _topic("import", "commands.imports", "import sessions, memory and skills from another agent", "Sessions"),
    _topic("memory", "commands.memory surfaces.cli.editing", "show, edit and revert what Hermes remembers", "Learning", "show"),
    _topic("skills", "commands.skills commands.proposals", "list, install, review and revert skills", "Learning", "list"),
    _topic("dashboard", "surfaces.dashboard.command", "Hermes in your browser", "Sessions"),
    _topic("gateway", "surfaces.gateway.command surfaces.gateway.api_server.command",
           "Hermes in chat apps, as a service", "Sessions",
           pair="list who has access; approve and revoke people", key=_KEYS),
    _topic("worker", "surfaces.cli.worker", "run turns for several machines", "Sessions"),
    _topic("cron", "commands.jobs surfaces.cli.jobs", "run jobs at certain times", "Sessions", "list"),
    _topic("events", "commands.events surfaces.cli.event_tail", "watch live events, replay past ones, count them", "Sessions"),
    _topic("api", "surfaces.gateway.api_server.command", "Hermes behind OpenAI's API", "Sessions", key=_KEYS),
    _topic("agents", "commands.side_work", "list the agents from files", "Settings", "list"),
    _topic("project", "commands.project", "show a project's rules, commands and agents, and agree to them", "Settings", "show"),
    _topic("tools", "commands.tools", "list the tools and where they are offered", "Settings"),
    _topic("mcp", "commands.mcp surfaces.cli.tool_server", "list, add, test and remove MCP servers", "Settings", "list"),
    _topic("codex", "commands.codex", "run your turns with the codex program, or switch back", "Settings"),
    _topic("plugins", "commands.plugins", "list, enable and disable plugins", "Settings", "list"),
    _topic("hooks", "commands.plugins", "list, trust and test hooks", "Settings", "list"),
    _topic("policy", "commands.policy", "show and check what runs without asking", "Settings", "show"),
    _topic("config", "commands.config surfaces.cli.editing", "show and change settings and secrets", "Settings"),
    _topic("store", "commands.store", "show the database of your sessions, copy it to another", "Settings", "status"),
    _topic("hosts", "commands.hosts", "list the machines that use this store", "Settings", "list"),
    _topic("backup", "commands.backup", "write all your data to one file", "Settings"),
    _topic("restore", "commands.backup", "restore a backup", "Settings"),
    _topic("completion", "commands.completion", "complete commands, options and names in your shell", "Settings"),
    _topic("doctor", "commands.doctor", "check this installation and suggest fixes", "Settings"),
)  # fmt: skip

CHAT = "hermes.surfaces.tui.chat"  # `hermes` without a question, at a terminal

EXAMPLES = (
    ('hermes "what is in this folder?"', "one answer"),
    ("git diff | hermes 'review this'", "with piped input"),
    ("hermes --continue", "continue where you left off"),
    ("hermes doctor", "check the installation"),
    ("hermes config set display.color never", "change one setting"),
    ("hermes config set OPENAI_API_KEY", "store a secret; you are asked for it"),
)

_CHAT_TOPICS = (
    "slash_commands", "sessions", "undo", "jobs", "models", "memory", "skills", "tools", "mcp",
    "policy", "codex", "config", "doctor", "side_work", "pins", "project", "hosts",
)  # fmt: skip
CHAT_MODULES = tuple(f"hermes.commands.{name}" for name in _CHAT_TOPICS)
"""Modules with commands of chats, in the order of the help."""
CHAT_APP_MODULES = (
    *CHAT_MODULES[:5],
    "hermes.commands.policy",
    "hermes.commands.side_work",
    "hermes.commands.pins",
    "hermes.commands.project",
)
"""Those with commands that a role may use in chat apps."""


def find_topic(name: str) -> Topic | None:
    return next((topic for topic in TOPICS if topic.name == name), None)


def commands_in(module: ModuleType) -> Iterator["Command"]:
    """The commands that a module defines, in their order."""
    from hermes.commands.command import Command

    for value in vars(module).values():
        if isinstance(value, Command) and value.function.__module__ == module.__name__:
            yield value


def commands_of(topic: Topic) -> Iterator["Command"]:
    """The commands of a topic."""
    for name in topic.modules:
        for one in commands_in(import_module(name)):
            if one.name.split(" ")[0] == topic.name:
                yield one


def find_command(topic: Topic, words: list[str]) -> "Command | None":
    """The command named by the words after the topic; None if there is no such command, or they ask for help."""
    name, default, rest = topic.name, topic.default, words
    if words and words[0] in topic.groups:
        name, default, rest = f"{name} {words[0]}", "list", words[1:]
    action, own = next(iter(rest), default), None
    for one in commands_of(topic):  # no module is imported that is not needed
        if one.name == f"{name} {action}":
            return one
        if one.name == name:
            own = one
    return own


def every_command() -> Iterator["Command"]:
    """All commands that work in more than one place; each once."""
    modules = [name for topic in TOPICS for name in topic.modules]
    for name in dict.fromkeys((*modules, *CHAT_MODULES)):
        if name.startswith("hermes.commands."):
            yield from commands_in(import_module(name))


def chat_commands(modules: tuple[str, ...] = CHAT_MODULES) -> Iterator["Command"]:
    """The commands of chats, in the order of their help."""
    for name in modules:
        yield from (one for one in commands_in(import_module(name)) if one.slash)
