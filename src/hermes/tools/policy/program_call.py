"""One program with its arguments, as passed to the functions that judge it."""

import re
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from hermes.tools.policy.effects import Effect, Level
from hermes.tools.policy.paths import PathContext
from hermes.tools.policy.program_table import Program
from hermes.tools.policy.shell_words import ShellCommand, Word, WordSet, word_set

if TYPE_CHECKING:
    from hermes.tools.policy.command_judge import CommandJudge

_HELP = ("--version", "--help", "-h", "-V", "version", "help")


class ProgramCall(msgspec.Struct, frozen=True, dict=True):
    """A program, its table entry, and the words it is called with."""

    judge: "CommandJudge"
    name: str
    program: Program
    command: ShellCommand

    @property
    def words(self) -> tuple[Word, ...]:
        """The program and its arguments."""
        return self.command.words

    @property
    def context(self) -> PathContext:
        """Where it runs."""
        return self.judge.context

    def with_words(self, words: tuple[Word, ...]) -> "ProgramCall":
        """The same call with other words."""
        command = msgspec.structs.replace(self.command, words=words)
        return ProgramCall(self.judge, self.name, self.program, command)

    @cached_property
    def texts(self) -> list[str]:
        """Its arguments as text."""
        return [word.text for word in self.words[1:]]

    @cached_property
    def operands(self) -> list[Word]:
        """Its arguments that are neither options nor their values."""
        return operands(self.words, word_set(self.program.values))

    @cached_property
    def signs(self) -> list[str]:
        """Its arguments without the values after `=`. Bundled letters are also listed one by one."""
        return self._signs(self.texts)

    @cached_property
    def options(self) -> list[str]:
        """The same for the arguments before `--`, which are the only ones that can be options."""
        end = self.texts.index("--") if "--" in self.texts else None
        return self._signs(self.texts[:end])

    def _signs(self, texts: list[str]) -> list[str]:
        signs = [text.partition("=")[0] for text in texts]
        if self.program.bundled:
            bundles = [sign for sign in signs if re.fullmatch(r"-[a-zA-Z]{2,}", sign)]
            signs += [f"-{letter}" for bundle in bundles for letter in bundle[1:]]
        return signs

    def has(self, *options: str) -> bool:
        """Whether one of these options is given, possibly abbreviated."""
        return any(is_given(option, self.options) for option in options)

    def values_of(self, *options: str) -> list[Word]:
        """The values of options: the next word (`-o x`, `-vo x`), or the rest of the same word (`-ox`, `--output=x`)."""
        return [value for option in options for value in _values(self.words, option)]

    def after(self, *options: str) -> list[Word]:
        """The words directly after these options."""
        return [word for before, word in pairwise(self.words) if before.text in options]

    def prints_help(self, effect: Effect) -> bool:
        """Whether it only prints its version or its help."""
        if len(self.texts) == 2 and self.texts[1] == "--help":  # help for a subcommand
            return effect.level < Level.FORBID and self.texts[0].isalpha()
        short = ("-v", "-version") if effect.level <= Level.WORK else ()
        return len(self.texts) == 1 and self.texts[0] in (*_HELP, *short)


def operands(words: Sequence[Word], values: WordSet = frozenset()) -> list[Word]:
    """The arguments that are neither options nor the values of options."""
    found: list[Word] = []
    only_operands, is_value = False, False
    for word in words[1:]:
        if is_value:
            is_value = False
        elif only_operands or not word.text.startswith("-") or word.text == "-":
            found.append(word)
        elif word.text == "--":
            only_operands = True
        else:
            is_value = word.text in values
    return found


def is_given(option: str, signs: Sequence[str]) -> bool:
    """Whether an option or a word is among the arguments, possibly abbreviated."""
    return option in signs or any(is_abbreviation(sign, option) for sign in signs)


def is_abbreviation(text: str, option: str) -> bool:
    """Whether a text is the long option `option`, or an abbreviation of it."""
    return len(text) > 3 and text.startswith("--") and option.startswith(text)


def _values(words: Sequence[Word], option: str) -> list[Word]:
    found: list[Word] = []
    for place, word in enumerate(words[1:], 1):
        if word.text == "--":
            break
        value = _value_in(word.text, option)
        if value:
            found.append(Word(value, word.known))
        elif value is not None:
            found += words[place + 1 : place + 2]
    return found


def _value_in(text: str, option: str) -> str | None:
    """The value of an option in the same word; empty if the value is the next word; None if it is another option."""
    if option.startswith("--"):
        name, _, value = text.partition("=")
        return value if is_abbreviation(name, option) else None
    glued = re.match(rf"-\w*?{re.escape(option[1:])}(.*)", text, re.DOTALL)
    return glued[1] if glued else None
