"""Completion in the input: commands, skills and choices after `/`, files after `@`."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from hermes.learning.learning_service import PREFIX, SkillCommand
from hermes.surfaces.terminal.text import one_line
from hermes.surfaces.tui.file_list import FileList
from hermes.surfaces.tui.slash_lookup import find_slash, slashes

Skills: TypeAlias = Callable[[], Sequence[SkillCommand]]

_FILE = re.compile(r"(?:^|\s)@(\"?)([^\s\"]*)$")


class InputCompleter(Completer):
    """Suggests completions. Runs in a thread."""

    def __init__(self, files: FileList, skills: Skills = lambda: ()) -> None:
        self._files = files
        self._skills = skills
        self._known: Sequence[SkillCommand] | None = None

    def get_completions(
        self,
        document: Document,
        complete_event: CompleteEvent,  # noqa: ARG002
    ) -> Iterable[Completion]:
        before = document.text_before_cursor
        if before.startswith("/") and "\n" not in before:
            yield from self._commands(before[1:])
        elif found := _FILE.search(before):
            word = found[2]
            for name in self._files.find(word):
                shown = f'"{name}"' if " " in name else name
                yield Completion(
                    shown, start_position=-len(found[1] + word), display=name
                )

    def _commands(self, text: str) -> Iterable[Completion]:
        name, space, value = text.partition(" ")
        if not space:
            if (
                self._known is None or not name
            ):  # skills are listed when a command begins, not on every keystroke
                self._known = self._skills()
            for known, about in (
                *((one.slash, one.summary) for one in slashes()),
                *map(_name_and_summary, self._known),
            ):
                if known.startswith(name) or (name and known.startswith(PREFIX + name)):
                    yield Completion(
                        known, -len(name), display=f"/{known}", display_meta=about
                    )
            return
        slash = find_slash(name)
        for choice in slash.slash_choices if slash else ():
            if choice.startswith(value):
                yield Completion(choice, -len(value))


def _name_and_summary(command: SkillCommand) -> tuple[str, str]:
    return command.name, one_line(command.description)
