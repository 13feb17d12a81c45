"""Input for a program that is running already: judged by what that program would do with the whole line."""

import re
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from hermes.schema.events import Reach
from hermes.tools.policy.command_judge import judge_command
from hermes.tools.policy.inline_code import INTERPRETERS, PYTHON, judge_code
from hermes.tools.policy.effects import WORK, Effect, Level, widest, unclear, worst
from hermes.tools.policy.shell_parser import Unreadable, read_script
from hermes.tools.policy.paths import PathContext
from hermes.tools.policy.wrappers import SHELLS, program_name

_ANSWER = r"[\w.:-]{0,20}\s*"
"""A short answer to a question: yes, a number, a name."""
_LISTENS = frozenset(
    (
        *(
            "ssh",
            "docker",
            "podman",
            "kubectl",
            "su",
            "sudo",
            "screen",
            "tmux",
            "gdb",
            "lldb",
            "pdb",
            "ipython",
            "irb",
        ),
        *(
            "xargs",
            "parallel",
            "at",
            "batch",
            "vi",
            "vim",
            "nvim",
            "ed",
            "ex",
            "emacs",
            "sqlite3",
            "psql",
            "mysql",
        ),
        *(
            "expect",
            "script",
            "socat",
            "nc",
            "bc",
            "dc",
            "jshell",
            "ghci",
            "iex",
            "erl",
            "ocaml",
            "gnuplot",
            "octave",
        ),
    )
)
"""Programs that run what they are told, besides shells and interpreters."""


@runtime_checkable
class _Watches(Protocol):
    """Whoever runs programs in the background, and knows what was typed to each."""

    def typed(self, handle: str) -> str: ...

    def about(self, handle: str) -> tuple[Reach, str]: ...


def judge_typed(
    owner: object, arguments: Mapping[str, Any], site: PathContext
) -> tuple[Reach, Effect]:
    """How far the program reaches that is typed to, and what the input would make it do."""
    handle, text = str(arguments.get("id", "")), str(arguments.get("text", ""))
    if isinstance(owner, _Watches):
        before, (reach, command) = owner.typed(handle), owner.about(handle)
    else:
        before, reach, command = "", widest(()), ""
    whole = before + text
    least = WORK
    if re.search(r"\\\s*$", whole):
        least = unclear("the line goes on, and only its end says what it does")
    elif not isinstance(owner, _Watches) and not whole.endswith("\n"):
        least = unclear("the line is not finished")
    return reach, worst([least, _meaning(whole, command, site)])


def _meaning(text: str, command: str, site: PathContext) -> Effect:
    names = _programs(command)
    as_shell = judge_command(text, site).finding
    if (
        any(re.fullmatch(PYTHON, name) for name in names)
        and as_shell.level < Level.FORBID
    ):
        return judge_code("python", text)
    spoken = next((name for name in names if name in INTERPRETERS), "")
    if spoken and as_shell.level < Level.FORBID:
        return judge_code(spoken, text)
    listens = not names or any(name in SHELLS or name in _LISTENS for name in names)
    if not listens and as_shell.level < Level.FORBID and re.fullmatch(_ANSWER, text):
        return WORK
    return as_shell


def _programs(command: str) -> list[str]:
    """The programs of a command, and every other word in it that names one; none if it can't be told."""
    try:
        script = read_script(command, {})
    except Unreadable:
        return []
    return [
        program_name(word)
        for one in script.commands
        for word in one.words
        if word.plain
    ]
