"""Programs that run others: wrappers, shells, `eval`, `xargs`, `find`. What they run is judged in its own right."""

import re

import msgspec

from hermes.tools.policy import catalogue
from hermes.tools.policy.effects import (
    EFFECTS,
    READ,
    WORK,
    Effect,
    Level,
    asks,
    unclear,
)
from hermes.tools.policy.file_programs import operands, written
from hermes.tools.policy.never_allowed import floor
from hermes.tools.policy.shell_parser import ShellCommand
from hermes.tools.policy.interpreters import judge_file, judge_input
from hermes.tools.policy.judging import Judging
from hermes.tools.policy.table_judge import added_by_options, fetched
from hermes.tools.policy.pipelines import found_places, listed, starts_of
from hermes.tools.policy.paths import secret_reason
from hermes.tools.policy.environment_variables import assigned
from hermes.tools.policy.shell_words import Word
from hermes.tools.policy.wrappers import (
    FETCHING,
    SHELLS,
    TRANSPARENT,
    inner_words,
    program_name,
    runs_text,
    shell_text,
    xargs_mark,
    xargs_words,
)


def judge_wrapped(judge: Judging, command: ShellCommand, wrapper: str) -> list[Effect]:
    """A program whose only work is to run another one."""
    if judge.is_deep:
        return [unclear("it is nested too deeply")]
    words = command.words
    kind = catalogue.programs().get(wrapper, "read")
    found = [EFFECTS[kind]] if EFFECTS[kind].level >= Level.ASK else [READ]
    if wrapper == "command" and len(words) > 1 and words[1].text in ("-v", "-V"):
        return [READ]
    text = runs_text(command, wrapper)
    if text is not None:
        return found + (
            judge.deeper(text.text)
            if text.known
            else [unclear("what it runs is not known")]
        )
    inner = inner_words(words, wrapper)
    for word in words[1 : len(words) - len(inner)]:
        name, sign, value = word.text.partition("=")
        if sign and re.fullmatch(r"\w+", name):
            found.append(assigned(name, Word(value, word.known), judge.site))
    found += added_by_options(program_name(words[0]), words[: len(words) - len(inner)])
    if wrapper in FETCHING:
        found += fetched(wrapper, words, inner)
    if wrapper not in TRANSPARENT:
        found.append(WORK)
    if not inner:
        return found
    if wrapper == "coverage run":
        inner = (Word("python3"), *inner)
    if wrapper in ("sudo", "doas") and any(
        word.text in ("-i", "-s", "--shell", "--login") for word in words
    ):
        found.append(EFFECTS["privilege"])
    return found + judge.again(command, inner)


def judge_shell(judge: Judging, name: str, command: ShellCommand) -> list[Effect]:  # noqa: ARG001 - one shape for all
    """A shell: what it is told with `-c`, a script, or its input."""
    text = shell_text(command.words)
    if text is not None:
        return (
            judge.deeper(text.text)
            if text.known
            else [unclear("what it runs is only known when it runs")]
        )
    files = operands(
        command.words, frozenset(("-o", "--rcfile", "--init-file", "+O", "-O"))
    )
    if (
        files
        and files[0].text not in ("-", "/dev/stdin")
        and not any(word.text == "-s" for word in command.words)
    ):
        return judge_file(judge, command, files[0])
    return judge_input(judge, command, "shell")


def judge_evaluated(judge: Judging, name: str, command: ShellCommand) -> list[Effect]:
    """`eval`, `trap`, `source`: text or files that this shell runs."""
    words = command.words[1:]
    if name in ("source", "."):
        if not words:
            return [READ]
        if not words[0].known or words[0].text.startswith("/dev/"):
            return [unclear("what it runs is only known when it runs")]
        temporary = any(
            judge.site.is_temporary(path) and not judge.site.is_inside(path)
            for path in judge.site.paths(words[0])
        )
        return [
            asks("it runs a script from a temporary folder") if temporary else WORK,
            *judge.fresh(words[0]),
        ]
    if name == "trap":
        words = (
            words[:1] if len(words) > 1 and not words[0].text.startswith("-") else ()
        )
    if not words:
        return [READ]
    if not all(word.plain for word in words):
        return [unclear("what it runs is only known when it runs")]
    return judge.evaluated(" ".join(word.text for word in words))


def judge_xargs(judge: Judging, name: str, command: ShellCommand) -> list[Effect]:  # noqa: ARG001 - one shape for all
    """`xargs`: the program it runs, with what it will add."""
    inner = xargs_words(command.words)
    if not inner:
        return (
            [READ]
            if program_name(command.words[0]) == "xargs"
            else [unclear("what it runs is not known")]
        )
    added = listed(command.upstream) if command.given is None else None
    mark = xargs_mark(command.words)
    filler = added or Word("$1", known=False)
    if any(mark in word.text for word in inner):
        inner = tuple(
            filler
            if word.text == mark
            else Word(word.text, known=mark not in word.text)
            for word in inner
        )
    else:
        inner = (*inner, filler)
    if program_name(inner[0]) in SHELLS or (
        program_name(command.words[0]) == "parallel" and len(inner) == 2
    ):
        text = shell_text(inner)
        if text is None:
            return [unclear("it runs what another program prints")]
    return judge.again(msgspec.structs.replace(command, upstream=(), given=None), inner)


def judge_find(judge: Judging, name: str, command: ShellCommand) -> list[Effect]:  # noqa: ARG001 - one shape for all
    """`find`: where it looks, and what it does with what it finds."""
    words = command.words
    texts = [word.text for word in words]
    starts = starts_of(words)
    found = [
        asks(reason)
        for reason in (secret_reason(judge.site, word) for word in starts)
        if reason
    ]
    names = [
        words[place + 1]
        for place, text in enumerate(texts[:-1])
        if text in ("-name", "-iname", "-path")
    ]
    standing = found_places(starts, names)
    if "-delete" in texts:
        found += judge.again(command, (Word("rm"), Word("-f"), *standing))
    for place, text in enumerate(texts):
        if text in ("-fprint", "-fprintf", "-fls", "-fprint0") and place + 1 < len(
            words
        ):
            found.append(written([words[place + 1]], judge.site))
        if text in ("-exec", "-execdir", "-ok", "-okdir"):
            ends = [
                end for end in range(place + 1, len(texts)) if texts[end] in (";", "+")
            ] or [len(texts)]
            filled: list[Word] = []
            for word in words[place + 1 : ends[0]]:
                filled += standing if word.text == "{}" else [word]
            found += _ruin(judge, command, filled, names) + judge.again(
                command, tuple(filled)
            )
    return found or [READ]


def _ruin(
    judge: Judging, command: ShellCommand, filled: list[Word], names: list[Word]
) -> list[Effect]:
    """Removing all that is found at a root is removing the root."""
    if (
        names
        or not filled
        or program_name(filled[0]) not in ("rm", "shred", "chmod", "chown")
    ):
        return []
    least = floor("rm", (Word("rm"), Word("-r"), *starts_of(command.words)), judge.site)
    return [least] if least is not None else []
