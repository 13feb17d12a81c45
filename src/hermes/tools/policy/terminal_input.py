"""Judges input to a running program by what that program would do with the whole line."""

import re
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from hermes.schema.events import Reach
from hermes.tools.policy.command_judge import judge_command
from hermes.tools.policy.effects import WORK, Effect, Level, unclear, widest, worst
from hermes.tools.policy.inline_code import judge_code
from hermes.tools.policy.paths import PathContext
from hermes.tools.policy.pipelines import program_name
from hermes.tools.policy.program_table import program
from hermes.tools.policy.shell_parser import Unreadable, read_script

_SHORT_ANSWER = r"[\w.:-]{0,20}\s*"
"""A short answer to a question: yes, a number, a name."""


@runtime_checkable
class _BackgroundPrograms(Protocol):
    """Runs programs in the background, and remembers what was typed into each."""

    def typed(self, handle: str) -> str: ...

    def about(self, handle: str) -> tuple[Reach, str]: ...


def judge_terminal_input(
    owner: object, arguments: Mapping[str, Any], context: PathContext
) -> tuple[Reach, Effect]:
    """The reach of the program that gets the input, and the effect of the input."""
    handle, text = str(arguments.get("id", "")), str(arguments.get("text", ""))
    before, reach, command = "", widest(()), ""
    if isinstance(owner, _BackgroundPrograms):
        before, (reach, command) = owner.typed(handle), owner.about(handle)
    line = before + text
    least = WORK
    if re.search(r"\\\s*$", line):
        least = unclear("the line continues, and only its end shows what it does")
    elif not isinstance(owner, _BackgroundPrograms) and not line.endswith("\n"):
        least = unclear("the line is not finished")
    return reach, worst([least, _line_effect(line, command, context)])


def _line_effect(line: str, command: str, context: PathContext) -> Effect:
    """The effect of typing a line into a command: a shell, an interpreter, or a program that asks a question."""
    as_shell = judge_command(line, context).effect
    if as_shell.level == Level.FORBID:
        return as_shell
    names = _programs(command)
    judges = [program(name).judge for name in names]
    if "python" in judges:
        return judge_code("python", line)
    if "interpreter" in judges:
        return judge_code(names[judges.index("interpreter")], line)
    obeys = "shell" in judges or any(
        program(name).has_trait("prompt") for name in names
    )
    if names and not obeys and re.fullmatch(_SHORT_ANSWER, line):
        return WORK
    return as_shell


def _programs(command: str) -> list[str]:
    """The programs in a command, and every other word that may name one; empty if it can't be parsed."""
    try:
        script = read_script(command, {})
    except Unreadable:
        return []
    words = [word for one in script.commands for word in one.words]
    return [program_name(word) for word in words if word.plain]
