"""git: its global options, and the subcommands that the table can't fully describe."""

import re
import shlex
from collections.abc import Callable

from hermes.text.translation import translator
from hermes.tools.policy.effects import (
    EFFECTS,
    READ,
    WORK,
    Effect,
    Level,
    asks,
    worst,
)
from hermes.tools.policy.file_effects import write_files
from hermes.tools.policy.paths import is_elsewhere
from hermes.tools.policy.program_call import ProgramCall
from hermes.tools.policy.program_table import program
from hermes.tools.policy.shell_words import Word, word_set
from hermes.tools.policy.table_judge import named_files, subcommand_effect

t = translator(__name__)

_HARMLESS_KEYS = (
    r"(?i)(user\.|color\.|advice\.|init\.defaultbranch|core\.(quotepath|autocrlf|eol|ignorecase|filemode|abbrev|whitespace)"
    r"|commit\.(gpgsign|verbose)|tag\.gpgsign|pull\.(rebase|ff)|push\.(default|autosetupremote)|merge\.(ff|conflictstyle)"
    r"|diff\.(algorithm|renames|context|noprefix|mnemonicprefix)|log\.|status\.|branch\.\S+\.(remote|merge)|rerere\.|fetch\.prune"
    r"|rebase\.(autostash|autosquash)|format\.|grep\.|blame\.|column\.|safe\.directory)"
)
_READING_CONFIG = word_set(
    "--get --get-all --list -l --get-regexp --show-origin --show-scope --get-urlmatch"
)
_CHANGING_CONFIG = ("--unset", "-e", "--edit", "--add", "--remove")
_VERBOSE = r"-v+|--verbose"
_PATH = r"\.|\.\.|\*|(\./|\.\./|:).*|.*(\.[a-z]{1,4}|/)|.*\*.*"


def judge_git(call: ProgramCall) -> list[Effect]:
    """Judges a git command, and the shell commands it runs."""
    found, rest = _global_options(call)
    files = named_files(call.words, call.context, call.program)
    if not rest:
        return [*found, files]
    if not rest[0].plain:
        return [EFFECTS["runs"], files]
    inner = call.with_words((call.words[0], *rest))
    effect = _subcommand(inner)
    if effect.level == Level.WORK and _works_elsewhere(call, len(rest)):
        found.append(asks("it changes a repository outside the workspace", "machine"))
    texts = _shell_texts(inner)
    run = [one for text in texts for one in call.judge.judge_text(text)]
    return [*found, effect, files, *run]


def _global_options(call: ProgramCall) -> tuple[list[Effect], list[Word]]:
    """The effects of the options before the subcommand, and the words from the subcommand on."""
    found: list[Effect] = []
    rest = list(call.words[1:])
    values = word_set(call.program.values)
    while rest and rest[0].text.startswith("-"):
        if rest[0].text in ("--version", "--help"):
            break
        word = rest.pop(0)
        option, _, text = word.text.partition("=")
        value = Word(text, word.known)
        if word.text in values and rest:
            value = rest.pop(0)
        found.append(_global_option(option, value))
    return found, rest


def _global_option(option: str, value: Word) -> Effect:
    if option in ("-c", "--config-env"):
        if not value.plain or not re.match(_HARMLESS_KEYS, value.text):
            return asks("it makes git run other programs, or behave in another way")
    elif option == "--exec-path" and value.text:
        return EFFECTS["runs"]
    return READ


def _works_elsewhere(call: ProgramCall, rest: int) -> bool:
    """Whether the options before the subcommand name a repository outside the workspace."""
    options = call.with_words(call.words[: len(call.words) - rest])
    folders = options.values_of("-C", "--git-dir", "--work-tree")
    return any(
        not call.context.paths(word) or is_elsewhere(call.context, word)
        for word in folders
    )


def _subcommand(call: ProgramCall) -> Effect:
    name = call.texts[0]
    special = _SUBCOMMANDS.get(name)
    if special is not None:
        return special(call)
    effect = subcommand_effect(call)
    if effect == "unknown":
        return asks(
            t.logged("Hermes does not know what {name} does", name=f"`git {name}`")
        )
    writes = call.has("--output", "--open-files-in-pager")
    if effect == "read" and (writes or any(text[:2] == "-O" for text in call.texts)):
        return asks("it writes a file, or runs another program")
    outputs = call.values_of(*program(f"git {name}").outputs.split())
    if not outputs:
        return EFFECTS[effect]
    return worst([EFFECTS[effect], write_files(outputs, call.context)])


def _checkout(call: ProgramCall) -> Effect:
    """`git checkout` discards changes if it is given paths."""
    names = [text for text in call.texts[1:] if not text.startswith("-")]
    creates = {"-b", "--orphan", "-t", "--track"} & set(call.texts)
    named = len(names) > 1 or any(re.fullmatch(_PATH, name) for name in names)
    if "--" in call.texts or (named and not creates):
        return EFFECTS["rewrites"]
    return EFFECTS[subcommand_effect(call)]


def _push(call: ProgramCall) -> Effect:
    """`+branch` forces, `:branch` deletes."""
    if any(re.match(r"\+|:.", text) for text in call.texts):
        return EFFECTS["overwrites"]
    return EFFECTS[subcommand_effect(call)]


def _remote(call: ProgramCall) -> Effect:
    """`git remote`, judged without `-v`, which only makes it print more."""
    words = [word for word in call.words if not re.fullmatch(_VERBOSE, word.text)]
    return EFFECTS[subcommand_effect(call.with_words(tuple(words)))]


def _symbolic_ref(call: ProgramCall) -> Effect:
    return EFFECTS["rewrites"] if len(call.texts) > 2 else WORK


def _config(call: ProgramCall) -> Effect:
    names = [text for text in call.texts[1:] if not text.startswith("-")]
    if _READING_CONFIG & set(call.texts) or names[:1] in (["get"], ["list"]):
        return READ
    if len(names) <= 1 and not any(
        text.startswith(_CHANGING_CONFIG) for text in call.texts
    ):
        return READ
    key = (names[1:] if names[:1] == ["set"] else names)[:1]
    outside = call.has("--global", "--system", "-f", "--file")
    if key and not outside and re.match(_HARMLESS_KEYS, key[0]):
        return WORK
    return asks(
        "it changes git's configuration, which can run programs later", "machine"
    )


_SUBCOMMANDS: dict[str, Callable[[ProgramCall], Effect]] = {
    "checkout": _checkout,
    "config": _config,
    "push": _push,
    "remote": _remote,
    "symbolic-ref": _symbolic_ref,
}


def _shell_texts(call: ProgramCall) -> list[str]:
    """The shell commands that git is asked to run."""
    name, *texts = call.texts
    if name == "submodule" and "foreach" in texts:
        command = texts[texts.index("foreach") + 1 :]
        return [" ".join(text for text in command if text != "--recursive")]
    if name == "bisect" and texts[:1] == ["run"]:
        return [shlex.join(texts[1:])]
    if name == "rebase":
        return [word.text for word in call.values_of("-x", "--exec")]
    return []
