"""Programs that run others: wrappers, shells, `eval`, `xargs`, `find`. What they run is judged separately."""

import re
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from hermes.tools.policy.effects import (
    EFFECTS,
    READ,
    WORK,
    Effect,
    Level,
    asks,
    unclear,
)
from hermes.tools.policy.environment_variables import variable_effect
from hermes.tools.policy.file_effects import read_files, write_files
from hermes.tools.policy.interpreters import judge_input, judge_script
from hermes.tools.policy.never_allowed import never_allowed
from hermes.tools.policy.paths import is_temporary_only
from hermes.tools.policy.pipelines import (
    find_names,
    find_starts,
    found_files,
    listed_files,
    program_name,
)
from hermes.tools.policy.program_call import (
    ProgramCall,
    is_abbreviation,
    operands,
)
from hermes.tools.policy.program_table import ProgramRunner, program
from hermes.tools.policy.shell_words import Word, word_set
from hermes.tools.policy.table_judge import SUBCOMMAND_VALUES, option_effects

_ONLY_WHEN_RUN = unclear("what it runs can't be known before it runs")
_NOT_KNOWN = unclear("Hermes can't tell what it runs")
_NAMES_PACKAGE = word_set("-y --yes -p --package --from --with --spec")
_SHELL_VALUES = r"[-+][a-zA-Z]*[oO]|--rcfile|--init-file"
"""Options of shells that take the next word as their value."""
_SHELL_COMMAND = ("--command", "--init-command")
_FETCHED_PROGRAM = r".@|^(https?|git|github|file):|/"


def runner_name(words: Sequence[Word]) -> str:
    """The table name of a program that runs another one (`env`, `uv run`); empty if these words are not one."""
    name = program_name(words[0])
    subcommands = [*words[1:2], *operands(words, SUBCOMMAND_VALUES)[:1]]
    for candidate in (*(f"{name} {word.text}" for word in subcommands), name):
        if program(candidate).runs is not None:
            return candidate
    return ""


def judge_runner(call: ProgramCall, runner: ProgramRunner) -> list[Effect]:
    """Judges a program that only runs another one."""
    if call.name == "command" and call.texts[:1] in (["-v"], ["-V"]):
        return [READ]
    effect = EFFECTS[
        call.program.effect if call.program.effect != "unknown" else "read"
    ]
    found = [effect if effect.level >= Level.ASK else READ]
    inner = _inner_words(call, runner)
    own = call.words[: len(call.words) - len(inner)]
    text = _joined(inner) if runner.shell_text else _split_text(call, own, runner)
    if text is not None:
        return found + _judged_text(call, text)
    found += _own_effects(call, own)
    if runner.fetches:
        found += _fetched(call, own, inner)
    if not runner.transparent:
        found.append(WORK)
    if not inner:
        return found
    if call.name == "coverage run":
        is_module = any(word.text == "-m" for word in own)
        inner = (Word("python3"), *([Word("-m")] if is_module else []), *inner)
    return found + call.judge.judge_words(call.command, inner)


def _inner_words(call: ProgramCall, runner: ProgramRunner) -> tuple[Word, ...]:
    """The program that a runner runs, with its arguments."""
    values = word_set(runner.values)
    rest = call.words[1:]
    if " " in call.name:
        subcommand = call.name.partition(" ")[2]
        rest = rest[call.texts.index(subcommand) + 1 :]
    while rest:
        text = rest[0].text
        is_option = text.startswith("-") and len(text) > 1
        if text == "--":
            rest = rest[1:]
            break
        if text in values:
            rest = rest[2:]
        elif is_option or re.match(r"[A-Za-z_]\w*=", text):
            rest = rest[1:]
        else:
            break
    return rest[runner.skip :]


def _joined(words: Sequence[Word]) -> Word | None:
    if not words:
        return None
    text = " ".join(word.text for word in words)
    return Word(text, known=all(word.known for word in words))


def _split_text(
    call: ProgramCall, own: Sequence[Word], runner: ProgramRunner
) -> Word | None:
    """The shell command given to an option such as `env -S`; None if there is none."""
    for option in runner.splits.split():
        for place, word in enumerate(own[1:], 1):
            name, _, value = word.text.partition("=")
            is_long = is_abbreviation(name, option)
            letters = re.match(rf"-\w*?{option[1:]}(.*)", word.text, re.DOTALL)
            if is_long or (letters and len(option) == 2):
                glued = letters[1] if letters and not is_long else value
                first = [Word(glued, word.known)] if glued else []
                return _joined([*first, *call.words[place + 1 :]])
    return None


def _judged_text(call: ProgramCall, text: Word) -> list[Effect]:
    if text.known:
        return call.judge.judge_text(text.text)
    return [_NOT_KNOWN]


def _own_effects(call: ProgramCall, own: tuple[Word, ...]) -> list[Effect]:
    """The effects of the runner's own words: variables that it sets, and options."""
    found: list[Effect] = []
    for word in own[1:]:
        name, sign, value = word.text.partition("=")
        if sign and re.fullmatch(r"\w+", name):
            found.append(variable_effect(name, Word(value, word.known), call.context))
    command = msgspec.structs.replace(call.command, words=own)
    name = program_name(own[0])
    return found + option_effects(ProgramCall(call.judge, name, program(name), command))


def _fetched(
    call: ProgramCall, own: Sequence[Word], inner: Sequence[Word]
) -> list[Effect]:
    """The effect of downloading the program before it runs; empty if it is not downloaded."""
    named = call.name != "uvx" and any(word.text in _NAMES_PACKAGE for word in own)
    versioned = inner and re.search(_FETCHED_PROGRAM, inner[0].text)
    return [EFFECTS["packages"]] if named or versioned else []


def judge_shell(call: ProgramCall) -> list[Effect]:
    """Judges a shell: the command of `-c`, a script, or standard input."""
    text = command_of_shell(call.words)
    if text is not None:
        if text.known:
            return call.judge.judge_text(text.text)
        return [_ONLY_WHEN_RUN]
    files = call.operands
    reads_input = "-s" in call.texts
    if files and files[0].text not in ("-", "/dev/stdin") and not reads_input:
        return judge_script(call, files[0])
    return judge_input(call, "shell")


def command_of_shell(words: Sequence[Word]) -> Word | None:
    """The command given to `sh -c`; None if there is no `-c`."""
    for place, word in enumerate(words[1:], 1):
        if re.fullmatch(_SHELL_VALUES, words[place - 1].text):
            continue
        option, sign, value = word.text.partition("=")
        if sign and option in _SHELL_COMMAND:
            return Word(value, word.known)
        is_short = re.fullmatch(r"[-+][a-zA-Z]*[cC][a-zA-Z]*", word.text)
        if is_short or word.text in _SHELL_COMMAND:
            pattern = r"[-+][a-zA-Z]+"
            rest = [
                one for one in words[place + 1 :] if not re.fullmatch(pattern, one.text)
            ]
            return rest[0] if rest else Word("", known=False)
        if not word.text.startswith(("-", "+")):
            return None
    return None


def judge_eval(call: ProgramCall) -> list[Effect]:
    """`eval` and `trap`: code that this shell runs."""
    words = call.words[1:]
    if call.texts[:1] == ["--"]:
        words = words[1:]
    if call.name == "trap":
        sets = len(words) > 1 and not words[0].text.startswith("-")
        words = words[:1] if sets else ()
    if not words:
        return [READ]
    if not all(word.plain for word in words):
        return [_ONLY_WHEN_RUN]
    return call.judge.judge_in_same_shell(" ".join(word.text for word in words))


def judge_source(call: ProgramCall) -> list[Effect]:
    """`source`: a file that this shell runs."""
    if not call.texts:
        return [READ]
    file = call.words[1]
    if not file.known or file.text.startswith("/dev/"):
        return [_ONLY_WHEN_RUN]
    effect = WORK
    if is_temporary_only(call.context, file):
        effect = asks("it runs a script from a temporary folder")
    return [effect, *call.judge.written_script(file)]


def judge_xargs(call: ProgramCall) -> list[Effect]:
    """`xargs` and `parallel`: the program they run, with the arguments they will add."""
    inner = _xargs_program(call)
    if not inner:
        return [READ if call.name == "xargs" else _NOT_KNOWN]
    listed = listed_files(call.command.upstream) if call.command.given is None else None
    inner = _filled(
        inner, _xargs_placeholder(call.words), listed or Word("$1", known=False)
    )
    runs_shell = program(program_name(inner[0])).judge == "shell"
    runs_text = call.name == "parallel" and len(inner) == 2
    if (runs_shell or runs_text) and command_of_shell(inner) is None:
        return [unclear("it runs what another program prints")]
    command = msgspec.structs.replace(call.command, upstream=(), given=None)
    return call.judge.judge_words(command, inner)


def _xargs_program(call: ProgramCall) -> tuple[Word, ...]:
    values = word_set(call.program.values)
    rest = call.words[1:]
    while rest and rest[0].text.startswith("-"):
        rest = rest[2:] if rest[0].text in values else rest[1:]
    return tuple(word for word in rest if word.text not in (":::", "::::"))


def _xargs_placeholder(words: Sequence[Word]) -> str:
    """The text that `xargs -I` or `parallel` replaces with each argument."""
    for word, following in pairwise(words[1:]):
        if word.text in ("-I", "-J", "--replace"):
            return following.text
        if word.text.startswith("-I"):
            return word.text[2:]
        if not word.text.startswith("-"):
            break
    return "{}"


def _filled(
    words: Sequence[Word], placeholder: str, argument: Word
) -> tuple[Word, ...]:
    """The words with the argument in place of each placeholder, or at the end if there is none."""
    if not any(placeholder in word.text for word in words):
        return (*words, argument)
    return tuple(
        argument
        if word.text == placeholder
        else Word(word.text, known=placeholder not in word.text)
        for word in words
    )


def judge_find(call: ProgramCall) -> list[Effect]:
    """`find`: where it looks, and what it does with the files it finds."""
    starts = find_starts(call.words)
    names = find_names(call.words, "-name", "-iname", "-path")
    files = found_files(starts, names)
    outputs = call.after("-fprint", "-fprintf", "-fls", "-fprint0")
    found = [read_files(starts, call.context)]
    if outputs:
        found.append(write_files(outputs, call.context))
    if "-delete" in call.texts:
        words = (Word("rm"), Word("-f"), *files)
        found += call.judge.judge_words(call.command, words)
    for inner in _find_commands(call, files):
        if not names:
            found += _removes_starts(call, inner, starts)
        found += call.judge.judge_words(call.command, inner)
    return found


def _find_commands(call: ProgramCall, files: list[Word]) -> list[tuple[Word, ...]]:
    """The commands of `-exec` and similar actions, with the files in place of `{}`."""
    commands: list[tuple[Word, ...]] = []
    inner: list[Word] | None = None
    for word in call.words[1:]:
        if inner is None:
            if word.text in ("-exec", "-execdir", "-ok", "-okdir"):
                inner = []
        elif word.text in (";", "+"):
            commands.append(tuple(inner))
            inner = None
        else:
            inner += files if word.text == "{}" else [word]
    return [*commands, tuple(inner)] if inner is not None else commands


def _removes_starts(
    call: ProgramCall, inner: Sequence[Word], starts: list[Word]
) -> list[Effect]:
    """Judges removing everything that `find` finds like removing the folders it searches."""
    if not inner or program_name(inner[0]) not in ("rm", "shred", "chmod", "chown"):
        return []
    words = (Word("rm"), Word("-r"), *starts)
    effect = never_allowed("rm", words, call.context)
    return [effect] if effect is not None else []
