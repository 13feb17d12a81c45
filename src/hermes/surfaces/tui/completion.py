"""Completion in the input: slash commands and their choices at its beginning, files after an `@`."""

import re
from collections.abc import Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from hermes.surfaces.tui.files import Files
from hermes.surfaces.tui.slash.table import SLASHES, find_slash

_FILE = re.compile(r"(?:^|\s)@(\"?)([^\s\"]*)$")


class InputCompleter(Completer):
    """Suggests what may come next. Runs in a thread."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002
        before = document.text_before_cursor
        if before.startswith("/") and "\n" not in before:
            yield from _commands(before[1:])
        elif found := _FILE.search(before):
            word = found[2]
            for name in self._files.find(word):
                shown = f'"{name}"' if " " in name else name
                yield Completion(shown, start_position=-len(found[1] + word), display=name)


def _commands(text: str) -> Iterable[Completion]:
    name, space, value = text.partition(" ")
    if not space:
        for slash in SLASHES:
            if slash.name.startswith(name):
                yield Completion(slash.name, -len(name), display=f"/{slash.name}", display_meta=slash.summary)
        return
    slash = find_slash(name)
    for choice in slash.choices if slash else ():
        if choice.startswith(value):
            yield Completion(choice, -len(value))
