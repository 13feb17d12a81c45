"""A task, what came of it, and the small checks that tasks are made of. A check returns what is wrong, or nothing."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

Kind: TypeAlias = Literal["choose", "finish", "answer"]


class Called(msgspec.Struct, frozen=True):
    """A call that the model made."""

    name: str
    arguments: dict[str, Any]


class TaskOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What is left after a task: the folder, the calls, the last words."""

    folder: Path
    calls: tuple[Called, ...]
    answer: str

    def text(self, name: str) -> str:
        """A file's text; empty when it does not exist."""
        path = self.folder / name
        return path.read_text(errors="replace") if path.is_file() else ""


Check: TypeAlias = Callable[[TaskOutcome], str]


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A request in a folder with `files`, and how to see whether it was done."""

    id: str
    kind: Kind
    request: str
    check: Check
    files: Mapping[str, str] = {}
    max_calls: int = 8


def all_of(*checks: Check) -> Check:
    """The first thing that is wrong."""
    return lambda outcome: next(
        (problem for check in checks if (problem := check(outcome))), ""
    )


def says(pattern: str) -> Check:
    """The answer matches, whatever its case."""
    return lambda outcome: (
        ""
        if re.search(pattern, outcome.answer, re.IGNORECASE | re.DOTALL)
        else f"the answer lacks {pattern!r}"
    )


def never_says(pattern: str) -> Check:
    """The answer does not match."""
    return lambda outcome: (
        f"the answer has {pattern!r}"
        if re.search(pattern, outcome.answer, re.IGNORECASE)
        else ""
    )


def holds(name: str, text: str) -> Check:
    """The file exists and holds the text."""
    return lambda outcome: (
        "" if text in outcome.text(name) else f"{name} does not hold {text!r}"
    )


def lacks(name: str, text: str) -> Check:
    """The file does not hold the text."""
    return lambda outcome: (
        f"{name} still holds {text!r}" if text in outcome.text(name) else ""
    )


def lines_are(name: str, *lines: str) -> Check:
    """The file's lines that are not empty, exactly."""

    def check(outcome: TaskOutcome) -> str:
        found = tuple(
            line.rstrip() for line in outcome.text(name).splitlines() if line.strip()
        )
        return "" if found == lines else f"{name} holds {found!r}"

    return check


def unchanged(files: Mapping[str, str]) -> Check:
    """None of the files changed."""
    return lambda outcome: next(
        (
            f"{name} changed"
            for name, text in files.items()
            if outcome.text(name) != text
        ),
        "",
    )


def no_calls(outcome: TaskOutcome) -> str:
    """Nothing was called: the request needs no tool."""
    return f"it called {outcome.calls[0].name}" if outcome.calls else ""


def calls(name: str, within: int = 1, **arguments: str) -> Check:
    """One of the first `within` calls is of that tool, with arguments that match the patterns."""

    def check(outcome: TaskOutcome) -> str:
        for called in outcome.calls[:within]:
            if called.name == name and all(
                re.search(pattern, str(called.arguments.get(key, "")), re.IGNORECASE)
                for key, pattern in arguments.items()
            ):
                return ""
        return f"it called {[called.name for called in outcome.calls[:within]] or 'nothing'}, not {name} {arguments}"

    return check
