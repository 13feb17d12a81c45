"""What "this session" covers: the kind of call that the person means, and nothing riskier.

A kind of command is a program with its subcommand, its options and everything else that says what it reaches; only
plain names (packages, branches) may vary. The reasons for asking are part of the kind, so a command that the policy
judges differently is another kind. Where the kind can't be determined, only the identical call is covered.
"""

import re
import shlex

import msgspec

from hermes.tools.policy import catalogue
from hermes.tools.policy.effects import ASKS_FOR_NETWORK, KINDS, Finding, Level
from hermes.tools.policy.fileworks import operands
from hermes.tools.policy.grammar import Command, Unreadable, read_script
from hermes.tools.policy.places import Site, is_stream
from hermes.tools.policy.readers import PLAIN_NODES, only_looks
from hermes.tools.policy.words import Word
from hermes.tools.policy.wrappers import program_name, wrapper_of

_REPEATABLE = frozenset((*(KINDS[kind].reason for kind in ("network", "packages", "listens")), ASKS_FOR_NETWORK))
"""Reasons that hold in the same way for the next command of the kind. What destroys, publishes, sends messages, works
elsewhere or with more rights is asked about each time."""
_NAME = r"(@[\w.-]+/)?\w[\w.-]*(\[[\w,-]+\])?((@|[=<>~!]=)[\w.^~-]+)?"
_RUNNERS = frozenset(
    (
        *("run", "run-script", "exec", "x", "dlx", "compose", "pip", "tool", "task", "mod", "pub", "package"),
        *("create", "init", "remote", "submodule", "lfs", "config", "cache", "self", "python", "env", "workspace"),
    )
)
"""Subcommands whose next word says what is done."""
_FLAGS = frozenset(
    (
        *("-D", "--save-dev", "-S", "--save", "-E", "--save-exact", "-O", "--save-optional", "--dev", "-y", "--yes"),
        *("-U", "--upgrade", "-q", "--quiet", "-v", "--verbose", "-u", "--set-upstream", "--no-audit", "--no-fund"),
        *("--silent", "--frozen-lockfile", "--all", "--tags", "--prune", "--rebase", "--no-rebase", "--ff-only"),
    )
)
"""Options that take no value: the word behind another one may be its value, and belongs to the kind."""


class Kind(msgspec.Struct, frozen=True):
    """The words that make the kind, and whether others may follow."""

    words: tuple[str, ...]
    is_open: bool = False

    def describe(self) -> str:
        """As a person reads it."""
        return f"`{shlex.join(self.words)}{' ...' if self.is_open else ''}`"


def command_kind(command: str, findings: tuple[Finding, ...], site: Site) -> Kind | None:
    """The kind of a command; None if an answer may only cover the identical command."""
    if any(one.level >= Level.ASK and one.reason not in _REPEATABLE for one in findings):
        return None
    try:
        script = read_script(command, {})
    except Unreadable:
        return None
    if not script.kinds <= PLAIN_NODES:
        return None
    is_work = all(one.level <= Level.WORK for one in findings)
    found = [_kind(one, is_work=is_work) for one in script.commands if not _only_looks(one, site)]
    return found[0] if len(found) == 1 else None


def _only_looks(command: Command, site: Site) -> bool:
    """Whether a command beside the one that matters only looks, or goes into a folder of the workspace."""
    if not command.words or command.words[0].text != "cd":
        return only_looks(command, site)
    targets = operands(command.words, frozenset())
    paths = [path for word in targets if word.plain for path in site.paths(word)]
    return bool(paths) and all(site.is_inside(path) for path in paths)


def _kind(command: Command, *, is_work: bool) -> Kind | None:
    words = command.words
    plain = words and all(word.plain and word.text.isprintable() for word in words)
    streams = all(is_stream(one.target.text) for one in command.redirects)
    if not plain or not streams or command.assignments or command.given is not None or wrapper_of(words):
        return None
    name = program_name(words[0])
    if name == "git" or name in catalogue.subcommands():
        return _subcommand(name, words)
    if is_work and name not in catalogue.TASK_RUNNERS and catalogue.programs().get(name) == "work":
        return Kind((name,), is_open=True)  # whatever it is told, it stays work in the workspace, or is judged anew
    return Kind(tuple(word.text for word in words))


def _subcommand(name: str, words: tuple[Word, ...]) -> Kind:
    kept: list[str] = []
    named: list[str] = []  # the subcommand, and what it is about where that matters
    is_value = is_open = False
    for text in (word.text for word in words[1:]):
        is_option = text.startswith("-")
        if not is_option and not is_value:
            if not named or (len(named) == 1 and named[0] in _RUNNERS):
                named.append(text)
            elif re.fullmatch(_NAME, text):
                is_open = True
                continue
        kept.append(text)
        is_value = is_option and text not in _FLAGS and "=" not in text
    return Kind((name, *kept), is_open=is_open)
