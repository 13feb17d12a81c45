"""What an approval for the rest of a session covers, and which commands are safe without a sandbox.

An approval normally covers exactly the same call. It covers more in two cases: installing packages by plain name, and
a program that only changes the workspace while a sandbox confines it there without the network. The reasons for asking
are part of the scope, so a command that is judged differently has a different scope.
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from hermes.tools.policy.effects import ASKS_FOR_NETWORK, EFFECTS, Effect, Level
from hermes.tools.policy.file_effects import secret_reason
from hermes.tools.policy.paths import PathContext, is_stream
from hermes.tools.policy.program_call import operands
from hermes.tools.policy.program_runners import runner_name
from hermes.tools.policy.program_table import program
from hermes.tools.policy.scope_words import commands_scope, one_command_scope
from hermes.tools.policy.shell_parser import Unreadable, read_script
from hermes.tools.policy.shell_words import ShellCommand, ShellScript, Word, word_set
from hermes.tools.policy.table_judge import install_command

_REPEATABLE_REASONS = frozenset(
    (
        *(EFFECTS[effect].reason for effect in ("network", "packages", "listens")),
        ASKS_FOR_NETWORK,
    )
)
"""Reasons that apply equally to the next command in the scope. Anything else, such as destroying, publishing, sending
messages or raising privileges, needs approval each time."""
_PLAIN_OPTION = r"-{1,2}[A-Za-z0-9][\w=./,:%+-]*"
_PLAIN_NODES = word_set(
    "program list pipeline command command_name comment redirected_statement word number string string_content"
    " raw_string concatenation file_redirect file_descriptor"
)
"""The syntax nodes of plain commands. In any other, bash may evaluate parts: subscripts, conditions, arithmetic."""


class CommandScope(msgspec.Struct, frozen=True):
    """The words that a command must have, and whether others may follow."""

    words: tuple[str, ...]
    is_open: bool = False

    def describe(self, folder: Path, reasons: Iterable[str]) -> str:
        """Describes the scope for a person."""
        scope = commands_scope if self.is_open else one_command_scope
        return scope(shlex.join(self.words), folder, reasons)


def command_scope(
    command: str, effects: Sequence[Effect], context: PathContext, *, is_held: bool
) -> CommandScope | None:
    """The scope of a command; None if an approval can cover only the identical text.

    `is_held`: a sandbox confines it to the workspace, without the network.
    """
    asked = [one for one in effects if one.level >= Level.ASK]
    if any(one.reason not in _REPEATABLE_REASONS for one in asked):
        return None
    script = _plain_script(command)
    if script is None:
        return None
    others = [one for one in script.commands if not _is_side_command(one, context)]
    if len(others) != 1:
        return None
    scope = _scope(others[0], is_held_work=is_held and not asked)
    if scope is not None and not scope.is_open and any(map(_is_cd, script.commands)):
        return None  # the same words mean something else in another folder
    return scope


def _plain_script(text: str) -> ShellScript | None:
    """Parses a text that consists of plain commands; None for any other."""
    try:
        script = read_script(text, {})
    except Unreadable:
        return None
    return script if script.kinds <= _PLAIN_NODES else None


def _is_cd(command: ShellCommand) -> bool:
    return bool(command.words) and command.words[0].text == "cd"


def _is_side_command(command: ShellCommand, context: PathContext) -> bool:
    """Whether a command can be ignored beside the main one: it only reads, or changes to a folder of the workspace."""
    if not _is_cd(command):
        return _is_safe(command, context)
    targets = [word for word in operands(command.words) if word.plain]
    paths = [path for word in targets for path in context.paths(word)]
    return bool(paths) and all(context.is_inside(path) for path in paths)


def _scope(command: ShellCommand, *, is_held_work: bool) -> CommandScope | None:
    if not _is_plain(command) or runner_name(command.words):
        return None
    texts = tuple(word.text for word in command.words)
    install = install_command(texts)
    if install:
        return CommandScope(install, is_open=True)
    entry = program(texts[0])
    runs_others = entry.has_trait("runs-others") or entry.has_trait("task-runner")
    does_one_thing = entry.effect == "work" and not entry.subcommands
    if is_held_work and does_one_thing and not runs_others:
        # Other arguments either leave it work in the workspace, or make it ask again.
        return CommandScope(texts[:1], is_open=True)
    return CommandScope(texts)


def _is_plain(command: ShellCommand) -> bool:
    """Whether a command consists only of literal words."""
    has_more = bool(command.assignments) or command.given is not None
    streams = all(is_stream(one.target.text) for one in command.redirects)
    words = command.words
    is_text = all(word.plain and word.text.isprintable() for word in words)
    return bool(words) and is_text and streams and not has_more


def only_reads(text: str, context: PathContext) -> bool:
    """Whether every command in a text certainly changes nothing and reads no secrets, even without a sandbox.

    Git never qualifies, because a repository's configuration can make it run anything.
    """
    script = _plain_script(text)
    if script is None or not script.commands:
        return False
    for command in script.commands:
        if not _is_safe(command, context):
            return False
        if _is_cd(command):
            for word in operands(command.words) or [Word(str(context.home))]:
                for path in context.paths(word):
                    context = context.after_cd(path)
    return True


def _is_safe(command: ShellCommand, context: PathContext) -> bool:
    """Whether one command certainly changes nothing and reads no secrets."""
    if not _is_plain(command):
        return False
    options = program(command.words[0].text).safe_options
    if options is None:
        return False
    pattern = _PLAIN_OPTION if options == "any" else options
    for word in command.words[1:]:
        is_option = word.text.startswith("-") and word.text != "-"
        if is_option and not re.fullmatch(pattern, word.text):
            return False
        if secret_reason(context, word):
            return False
    return True
