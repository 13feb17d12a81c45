"""What an answer for the rest of a session covers: the kind of call that a person means, and nothing riskier.

Exactly the same call, word for word, is the rule. Two kinds are open: installing packages by their plain names, and a
program that only works in the workspace, while a sandbox holds it there without the network. The reasons a command is
asked for belong to its kind, so what the policy judges in another way is another kind.
"""

import shlex

import msgspec

from hermes.tools.policy import catalogue
from hermes.tools.policy.effects import ASKS_FOR_NETWORK, EFFECTS, Effect, Level
from hermes.tools.policy.file_programs import operands
from hermes.tools.policy.shell_parser import ShellCommand, Unreadable, read_script
from hermes.tools.policy.packages import installing
from hermes.tools.policy.paths import PathContext, is_stream
from hermes.tools.policy.readers import PLAIN_NODES, only_looks
from hermes.tools.policy.wrappers import wrapper_of

_REPEATABLE = frozenset(
    (
        *(EFFECTS[kind].reason for kind in ("network", "packages", "listens")),
        ASKS_FOR_NETWORK,
    )
)
"""Reasons that hold in the same way for the next command of the kind. What destroys, publishes, sends messages, works
elsewhere or with more rights is asked about each time."""

_RUN_OTHERS = catalogue.TASK_RUNNERS | frozenset(
    (
        *(
            "nodemon",
            "concurrently",
            "npm-run-all",
            "run-s",
            "run-p",
            "hyperfine",
            "air",
            "bacon",
            "cargo-watch",
        ),
        *(
            "valgrind",
            "gdb",
            "lldb",
            "rr",
            "dlv",
            "bear",
            "ccache",
            "sccache",
            "distcc",
            "kcov",
            "emmake",
            "emcmake",
        ),
        *(
            "ant",
            "sbt",
            "mill",
            "lein",
            "gulp",
            "grunt",
            "nx",
            "turbo",
            "lerna",
            "rush",
            "tup",
            "redo",
            "doit",
            "waf",
        ),
        *(
            "gradlew",
            "mvnw",
            "java",
            "jshell",
            "groovy",
            "tsx",
            "ts-node",
            "ipython",
            "Rscript",
            "R",
            "irb",
            "elixir",
        ),
    )
)
"""Programs whose words name what they run: of those every word counts."""


class Kind(msgspec.Struct, frozen=True):
    """The words that make the kind, and whether others may follow."""

    words: tuple[str, ...]
    is_open: bool = False

    def describe(self) -> str:
        """As a person reads it."""
        words = shlex.join(self.words)
        return f"`{words} ...`" if self.is_open else f"exactly `{words}`"


def command_kind(
    command: str, findings: tuple[Effect, ...], site: PathContext, *, is_held: bool
) -> Kind | None:
    """The kind of a command; None when only the very same text is the same thing.

    `is_held`: a sandbox keeps it in the workspace, without the network.
    """
    if any(
        one.level >= Level.ASK and one.reason not in _REPEATABLE for one in findings
    ):
        return None
    try:
        script = read_script(command, {})
    except Unreadable:
        return None
    if not script.kinds <= PLAIN_NODES:
        return None
    others = [one for one in script.commands if not _only_looks(one, site)]
    if len(others) != 1:
        return None
    kind = _kind(
        others[0],
        is_held_work=is_held and all(one.level <= Level.WORK for one in findings),
    )
    moves = any(one.words and one.words[0].text == "cd" for one in script.commands)
    return (
        kind if kind is None or kind.is_open or not moves else None
    )  # the same words mean another thing elsewhere


def _only_looks(command: ShellCommand, site: PathContext) -> bool:
    """Whether a command beside the one that matters only looks, or goes into a folder of the workspace."""
    if not command.words or command.words[0].text != "cd":
        return only_looks(command, site)
    targets = operands(command.words, frozenset())
    paths = [path for word in targets if word.plain for path in site.paths(word)]
    return bool(paths) and all(site.is_inside(path) for path in paths)


def _kind(command: ShellCommand, *, is_held_work: bool) -> Kind | None:
    words = command.words
    plain = words and all(word.plain and word.text.isprintable() for word in words)
    streams = all(is_stream(one.target.text) for one in command.redirects)
    if (
        not plain
        or not streams
        or command.assignments
        or command.given is not None
        or wrapper_of(words)
    ):
        return None
    texts = tuple(word.text for word in words)
    if installs := installing(texts):
        return Kind(installs, is_open=True)
    name = texts[0]
    does_many_things = name in catalogue.subcommands() or name in _RUN_OTHERS
    if (
        is_held_work
        and not does_many_things
        and catalogue.programs().get(name) == "work"
    ):
        return Kind(
            (name,), is_open=True
        )  # whatever it is told, it stays work in the workspace, or is judged anew
    return Kind(texts)
