"""`hermes memory`: what Hermes remembers of you and your work, as files that are yours."""

import argparse
import subprocess

import msgspec

from hermes.errors import HermesError, in_sentences
from hermes.learning.change import MemoryName
from hermes.learning.external_memory import MemoryProvider
from hermes.learning.learning_service import LearningService
from hermes.learning.memory import FILES
from hermes.surfaces.cli.parser import Parser, add_action
from hermes.surfaces.cli.skills_history import (
    add_history,
    learning_here,
    show_history,
    take_back,
)
from hermes.surfaces.terminal.text import clean, count, one_line, stdout_screen

_COUNTED = 1_000  # notes of a memory service
_EXAMPLES = """\
examples:
  hermes memory show                 what is remembered, and how full it is
  hermes memory edit user            change what Hermes knows about you
  hermes memory history              every change: when, whose, what
  hermes memory revert 3f2a91c0de    take one change back

Notes that look like injected instructions are kept out of the prompt; `show` marks them.
Changes that wait for your word: hermes skills proposals
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", parser_class=Parser
    )
    show = add_action(actions, "show", "show what is remembered")
    show.add_argument("--json", action="store_true", help="print JSON")
    edit = add_action(actions, "edit", "open a memory file in your editor")
    edit.add_argument(
        "file",
        choices=tuple(FILES),
        nargs="?",
        default="memory",
        help="memory (default) or user",
    )
    add_history(actions, "memories")


def run(args: argparse.Namespace) -> int:
    learning = learning_here()
    match args.action:
        case "edit":
            return _edit(learning, args.file)
        case "history":
            return show_history(learning, args, "memories")
        case "revert":
            return take_back(learning, args, "memories")
        case _:
            return _show(learning, as_json=getattr(args, "json", False))


def _show(learning: LearningService, *, as_json: bool) -> int:
    memory = learning.memory
    flagged = memory.flagged()
    if as_json:
        data = {
            "files": {FILES[name]: memory.read(name) for name in FILES},
            "flagged": msgspec.to_builtins(flagged),
        }
        print(msgspec.json.format(msgspec.json.encode(data), indent=2).decode())
        return 0
    style = stdout_screen().style
    for name in FILES:
        text = memory.read(name)
        print(
            style.bold(f"{FILES[name]}")
            + style.dim(f"  {memory.path(name)}, {memory.fill(name)}")
        )
        print(clean(text).rstrip() or "(empty)")
        print()
    for note in flagged:
        print(
            style.yellow(
                f"Kept out of the prompt ({note.why}): {one_line(note.text)[:120]}"
            )
        )
    if memory.provider is not None:
        print(_elsewhere(memory.provider))
    waiting = sum(
        proposal.change.title.startswith("memory")
        for proposal in learning.proposals.pending()
    )
    if waiting:
        print(f"{waiting} proposed changes wait for your word: hermes skills proposals")
    return 0


def _elsewhere(provider: MemoryProvider) -> str:
    """How the memory service is."""
    try:
        found = provider.recent(_COUNTED)
    except HermesError as error:
        return in_sentences(error)
    return f"The memory service answers; it has {count(len(found), 'note')}{' or more' * (len(found) == _COUNTED)}."


def _edit(learning: LearningService, name: MemoryName) -> int:
    from hermes.surfaces.cli.draft import editor

    path = learning.memory.path(name)
    command = editor()
    learning.home.ensure(learning.home.memories)
    path.touch(mode=0o600)
    try:
        code = subprocess.run([*command, str(path)], check=False).returncode
    except OSError as error:
        raise HermesError(
            f"The editor can't be started: {command[0]}.", hint="Set VISUAL or EDITOR."
        ) from error
    learning.history.settle()
    if code:
        raise HermesError(
            f"The editor ended with code {code}.", hint=f"What it saved is in {path}."
        )
    for note in learning.memory.flagged():
        print(f"Kept out of the prompt ({note.why}): {one_line(note.text)[:120]}")
    print(f"{FILES[name]}: {learning.memory.fill(name)}. New sessions know it.")
    return 0
