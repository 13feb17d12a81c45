"""Describes what a lasting approval covers. The log, the hash of a request and the rules use the English text;
`shown_approval_scope` translates it for display."""

from collections.abc import Iterable
from pathlib import Path

from hermes.text.translation import translator

t = translator(__name__)


def commands_scope(words: str, folder: Path, reasons: Iterable[str]) -> str:
    """All commands that begin with these words."""
    what = t.logged("`{command} ...` in {folder}", command=words, folder=folder)
    return _with_reasons(what, reasons)


def one_command_scope(words: str, folder: Path, reasons: Iterable[str]) -> str:
    """Only the command with exactly these words."""
    what = t.logged("exactly `{command}` in {folder}", command=words, folder=folder)
    return _with_reasons(what, reasons)


def changes_scope(folder: Path) -> str:
    """Changes to files in a folder."""
    return t.logged("changes to files in {folder}", folder=folder)


def calls_scope(name: str) -> str:
    """All calls of a tool."""
    return t.logged("every call of {name}", name=name)


def with_network() -> str:
    """The reason for a call that itself requested the network."""
    return t.logged("with the network")


def _with_reasons(what: str, reasons: Iterable[str]) -> str:
    why = "; ".join(reasons)
    return f"{what} ({why})" if why else what
