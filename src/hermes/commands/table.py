"""The table of commands: which first words there are, and the modules that have their commands.

A module is imported only when one of its commands runs or is described. Modules of surfaces stand here by name alone;
one with `configure(parser)` and `run(args)` reads its arguments by itself.
"""

from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hermes.commands.command import Command


class Topic(NamedTuple):
    """A first word behind `hermes`. Its commands are in the modules, those used most in the first."""

    name: str
    modules: tuple[str, ...]
    summary: str
    group: str
    default: str = ""
    """The action that is meant when none is given."""


def _topic(
    name: str, modules: str, summary: str, group: str, default: str = ""
) -> Topic:
    found = tuple(f"hermes.{module}" for module in modules.split())
    return Topic(name, found, summary, group, default)


TOPICS = (
    _topic("sessions", "commands.sessions commands.undo", "list, search, show and move your sessions", "Sessions"),
)  # fmt: skip

CHAT_MODULES = ("hermes.commands.sessions", "hermes.commands.undo")
"""Modules with commands of chats, in the order of the help."""


def find_topic(name: str) -> Topic | None:
    return next((topic for topic in TOPICS if topic.name == name), None)


def commands_in(module: ModuleType) -> Iterator["Command"]:
    """The commands that a module defines, in their order."""
    from hermes.commands.command import Command

    for value in vars(module).values():
        if (
            isinstance(value, Command)
            and value.function.__module__ == module.__name__
        ):
            yield value


def commands_of(topic: Topic) -> Iterator["Command"]:
    """The commands of a topic."""
    for name in topic.modules:
        for one in commands_in(import_module(name)):
            if one.name.split(" ")[0] == topic.name:
                yield one


def find_command(topic: Topic, words: list[str]) -> "Command | None":
    """The command that the words behind the topic name; None when they name none, or ask for help."""
    action = next(iter(words), topic.default)
    names = {topic.name, f"{topic.name} {action}"}
    return next((one for one in commands_of(topic) if one.name in names), None)


def every_command() -> Iterator["Command"]:
    """All commands that work in more than one place; each once."""
    modules = [name for topic in TOPICS for name in topic.modules]
    for name in dict.fromkeys((*modules, *CHAT_MODULES)):
        if name.startswith("hermes.commands."):
            yield from commands_in(import_module(name))


def chat_commands() -> Iterator["Command"]:
    """The commands of chats, in the order of their help."""
    for name in CHAT_MODULES:
        yield from (one for one in commands_in(import_module(name)) if one.slash)
