"""What the parts of the analysis need of the judge that calls them."""

from typing import Protocol

from hermes.tools.policy.effects import Effect
from hermes.tools.policy.shell_parser import ShellCommand
from hermes.tools.policy.paths import PathContext
from hermes.tools.policy.shell_words import Word


class Judging(Protocol):
    """Judges one shell text, and everything that it makes run."""

    @property
    def site(self) -> PathContext:
        """Where the command is by now."""
        ...

    @property
    def is_deep(self) -> bool:
        """Whether it is nested deeper than anybody writes."""
        ...

    def defines(self, name: str) -> bool:
        """Whether a function of this name is defined in the text."""
        ...

    def fresh(self, file: Word) -> list[Effect]:
        """What running a file does that the command itself has just written; nothing if it has not."""
        ...

    def deeper(self, text: str) -> list[Effect]:
        """Judges a shell text that a program is given to run."""
        ...

    def evaluated(self, text: str) -> list[Effect]:
        """Judges a text that this same shell runs."""
        ...

    def again(self, command: ShellCommand, words: tuple[Word, ...]) -> list[Effect]:
        """Judges other words in the place of a command's own."""
        ...

    def named(self, words: tuple[Word, ...], name: str) -> Effect:
        """What the files among the arguments of any program mean."""
        ...
