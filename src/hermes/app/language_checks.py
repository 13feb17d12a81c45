"""Chooses the language servers that check the files a turn changed, and builds the command that asks them."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from hermes.children.helper_programs import find_program
from hermes.children.own_python import module_command
from hermes.settings.tools import LanguageServerSettings

TIMEOUT_S = 20
_MAX_FILES = 30
_SUFFIXES: Mapping[str, tuple[str, ...]] = {
    "python": (".py", ".pyi"),
    "go": (".go",),
    "rust": (".rs",),
    "typescript": (".ts", ".tsx", ".js", ".jsx"),
}
_KNOWN: Mapping[str, tuple[str, ...]] = {
    "python": (
        "basedpyright-langserver --stdio",
        "pyright-langserver --stdio",
        "ruff server",
    ),
    "go": ("gopls",),
    "rust": ("rust-analyzer",),
    "typescript": ("typescript-language-server --stdio",),
}
"""The servers that are looked for on PATH, the best first."""


class LanguageCheck(msgspec.Struct, frozen=True):
    """One server, and the command that prints its errors in the changed files."""

    server: str
    command: str


def language_checks(
    settings: LanguageServerSettings,
    changed: Sequence[Path],
    cwd: Path,
    environ: Mapping[str, str],
) -> Iterator[LanguageCheck]:
    """The checks of the changed files. A server comes from the user's settings or PATH, never from the project."""
    for language, suffixes in _SUFFIXES.items():
        files = [
            str(path.relative_to(cwd) if path.is_relative_to(cwd) else path)
            for path in changed
            if path.suffix in suffixes and path.is_file()
        ]
        argv = _server(getattr(settings, language), language, environ) if files else []
        if argv:
            wanted = {
                "server": argv,
                "files": files[:_MAX_FILES],
                "timeout": TIMEOUT_S,
            }
            client = module_command(
                "hermes.tools.process.language_client",
                msgspec.json.encode(wanted).decode(),
            )
            yield LanguageCheck(Path(argv[0]).name, shlex.join(client))


def _server(named: str, language: str, environ: Mapping[str, str]) -> list[str]:
    """The command line of the server for a language; empty if there is none."""
    if named == "off":
        return []
    for line in (named,) if named else _KNOWN[language]:
        program, *more = shlex.split(line)
        if path := find_program(program, environ):
            return [path, *more]
    return []
