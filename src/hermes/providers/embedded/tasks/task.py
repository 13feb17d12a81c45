"""A task, its outcome, and the small checks that tasks consist of. A check returns the problem, or nothing."""

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
    """The outcome of a task: the folder, the calls, and the final answer."""

    folder: Path
    calls: tuple[Called, ...]
    answer: str

    def text(self, name: str) -> str:
        """Returns a file's text; empty if it does not exist."""
        path = self.folder / name
        return path.read_text(errors="replace") if path.is_file() else ""


Check: TypeAlias = Callable[[TaskOutcome], str]


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A request in a folder with `files`, and the check that decides whether it passed."""

    id: str
    kind: Kind
    request: str
    check: Check
    files: Mapping[str, str] = {}
    max_calls: int = 8


def all_of(*checks: Check) -> Check:
    """Checks several conditions and reports the first that fails."""
    return lambda outcome: next(
        (problem for check in checks if (problem := check(outcome))), ""
    )


def says(pattern: str) -> Check:
    """Checks that the answer matches, ignoring case."""
    return lambda outcome: (
        ""
        if re.search(pattern, outcome.answer, re.IGNORECASE | re.DOTALL)
        else f"the answer lacks {pattern!r}"
    )


def never_says(pattern: str) -> Check:
    """Checks that the answer does not match."""
    return lambda outcome: (
        f"the answer has {pattern!r}"
        if re.search(pattern, outcome.answer, re.IGNORECASE)
        else ""
    )


def holds(name: str, text: str) -> Check:
    """Checks that the file exists and contains the text."""
    return lambda outcome: (
        "" if text in outcome.text(name) else f"{name} does not hold {text!r}"
    )


def lacks(name: str, text: str) -> Check:
    """Checks that the file does not contain the text."""
    return lambda outcome: (
        f"{name} still holds {text!r}" if text in outcome.text(name) else ""
    )


def lines_are(name: str, *lines: str) -> Check:
    """Checks that the file's non-empty lines are exactly these."""

    def check(outcome: TaskOutcome) -> str:
        found = tuple(
            line.rstrip() for line in outcome.text(name).splitlines() if line.strip()
        )
        return "" if found == lines else f"{name} holds {found!r}"

    return check


def unchanged(files: Mapping[str, str]) -> Check:
    """Checks that none of the files changed."""
    return lambda outcome: next(
        (
            f"{name} changed"
            for name, text in files.items()
            if outcome.text(name) != text
        ),
        "",
    )


def no_calls(outcome: TaskOutcome) -> str:
    """Checks that no tool was called, because the request needs none."""
    return f"it called {outcome.calls[0].name}" if outcome.calls else ""


def calls(name: str, within: int = 1, **arguments: str) -> Check:
    """Checks that one of the first `within` calls used that tool, with arguments that match the patterns."""

    def check(outcome: TaskOutcome) -> str:
        for called in outcome.calls[:within]:
            if called.name == name and all(
                re.search(pattern, str(called.arguments.get(key, "")), re.IGNORECASE)
                for key, pattern in arguments.items()
            ):
                return ""
        return f"it called {[called.name for called in outcome.calls[:within]] or 'nothing'}, not {name} {arguments}"

    return check
