"""The table of commands: the first words, and the modules that define their commands.

A module is imported only when one of its commands runs or is described. Modules of surfaces are listed by name only.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, NamedTuple

from hermes.text.translation import Translator

if TYPE_CHECKING:
    from hermes.commands.command import Command


class Topic(NamedTuple):
    """The first word after `hermes`. Its commands are in the modules, the most used ones in the first."""

    name: str
    modules: tuple[str, ...]
    summary: str
    group: str
    """Its heading in help, in English."""
    default: str = ""
    """The default action."""
    groups: Mapping[str, str] = MappingProxyType({})
    """Second words with actions of their own, and what they are for. Without an action they list."""

    @property
    def free_text(self) -> str:
        """The action that takes a sentence. It is used if somebody typed only the sentence."""
        return {"goal": "run", "kanban": "create"}.get(self.name, "")


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
    _topic("auth", "commands.auth", "sign in with an account instead of an API key", "Models", "list"),
    _topic("usage", "commands.models", "show tokens and cost, by day and model", "Models"),
    _topic("sessions", "commands.sessions commands.session_marks commands.undo commands.pins",
           "list, search, show and move your sessions", "Sessions"),
    _topic("resume", "surfaces.cli.conversation_commands", "continue a session from any surface", "Sessions"),
    _topic("worktree", "commands.worktrees", "work in a copy of a repository, then merge or drop it", "Sessions", "list"),
    _topic("import", "commands.imports", "import sessions, memory and skills from another agent", "Sessions"),
    _topic("goal", "commands.goals surfaces.cli.conversation_commands",
           "work towards a goal until it is reached", "Automation", "show"),
    _topic("kanban", "commands.cards commands.card_columns commands.card_planning commands.boards surfaces.cli.boards",
           "boards of cards that agents work through", "Automation", "list", boards="list, make, change and choose boards"),
    _topic("cron", "commands.jobs surfaces.cli.jobs", "run jobs at certain times", "Automation", "list"),
    _topic("batch", "commands.batches surfaces.cli.batches", "answer a dataset of prompts, export trajectories",
           "Automation", "list"),
    _topic("agents", "commands.side_work surfaces.cli.left_work", "list, steer and stop background work", "Automation", "list"),
    _topic("dashboard", "surfaces.dashboard.command", "Hermes in your browser", "Surfaces"),
    _topic("gateway", "surfaces.gateway.command commands.people commands.platforms surfaces.gateway.api_server.command",
           "Hermes in chat apps, as a service", "Surfaces",
           pair="list who has access; approve and revoke people", key=_KEYS),
    _topic("send", "commands.send", "send a message to a chat, from a script", "Surfaces"),
    _topic("acp", "surfaces.acp.command", "Hermes in your editor", "Surfaces"),
    _topic("api", "surfaces.gateway.api_server.command", "Hermes behind OpenAI's and Anthropic's APIs", "Surfaces", key=_KEYS),
    _topic("memory", "commands.memory surfaces.cli.editing", "show, edit and revert what Hermes remembers", "Learning", "show"),
    _topic("skills", "commands.skills commands.proposals", "list, install, review and revert skills", "Learning", "list"),
    _topic("tools", "commands.tools", "list the tools and where they are offered", "Tools and agents"),
    _topic("mcp", "commands.mcp commands.mcp_logins commands.mcp_import surfaces.cli.tool_server "
           "surfaces.gateway.mcp_server.command",
           "connect MCP servers, or serve Hermes as one", "Tools and agents", "list"),
    _topic("agent", "commands.agent_files surfaces.cli.editing", "agents of your own: a prompt and limits in a file",
           "Tools and agents", "list"),
    _topic("voice", "commands.voice", "set up and try speech recognition and spoken replies", "Tools and agents", "status"),
    _topic("codex", "commands.codex", "run your turns with the codex program, or switch back", "Tools and agents"),
    _topic("plugins", "commands.plugins", "list, enable and disable plugins", "Tools and agents", "list"),
    _topic("hooks", "commands.plugins", "list, trust and test hooks", "Tools and agents", "list"),
    _topic("config", "commands.config surfaces.cli.editing", "show and change settings and secrets", "Settings"),
    _topic("policy", "commands.policy", "show and check what runs without asking", "Settings", "show"),
    _topic("project", "commands.project", "show a project's rules, commands and agents, and trust them", "Settings", "show"),
    _topic("profile", "commands.profiles", "separate homes, such as one for work", "Settings", "list"),
    _topic("doctor", "commands.doctor", "check this installation and suggest fixes", "Maintenance"),
    _topic("report", "commands.report", "write a bug report without your secrets", "Maintenance"),
    _topic("logs", "surfaces.cli.log_tail", "show the log of Hermes itself, or follow it", "Maintenance"),
    _topic("update", "commands.updates", "update Hermes safely, or go back", "Maintenance"),
    _topic("uninstall", "commands.updates", "remove Hermes, but not your data", "Maintenance"),
    _topic("backup", "commands.backup", "write all your data to one file", "Maintenance"),
    _topic("restore", "commands.backup", "restore a backup", "Maintenance"),
    _topic("events", "commands.events surfaces.cli.event_tail",
           "watch live events, replay past ones, count them", "Maintenance"),
    _topic("store", "commands.store", "show the database of your sessions, copy it to another", "Maintenance", "status"),
    _topic("hosts", "commands.hosts", "list the machines that use this store", "Maintenance", "list"),
    _topic("worker", "surfaces.cli.worker", "run turns for several machines", "Maintenance"),
    _topic("completion", "commands.completion", "complete commands, options and names in your shell", "Maintenance"),
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
    "slash_commands", "sessions", "undo", "jobs", "models", "auth", "memory", "skills", "tools", "mcp",
    "policy", "codex", "config", "doctor", "goals", "side_work", "worktrees", "pins", "project", "hosts", "kanban_chat",
)  # fmt: skip
CHAT_MODULES = tuple(f"hermes.commands.{name}" for name in _CHAT_TOPICS)
"""Modules with commands of chats, in the order of the help."""
CHAT_APP_MODULES = (
    *CHAT_MODULES[:6],
    "hermes.commands.policy",
    "hermes.commands.codex",
    "hermes.commands.goals",
    "hermes.commands.side_work",
    "hermes.commands.worktrees",
    "hermes.commands.pins",
    "hermes.commands.project",
    "hermes.commands.kanban_chat",
)
"""Those with commands that a role may use in chat apps."""


def table_text(text: str) -> str:
    """A summary or an explanation of this table, in the reader's language."""
    return Translator("command table")(text)


def group_title(group: str) -> str:
    """The heading of a group of commands, in the reader's language."""
    return Translator("command group")(group)


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
