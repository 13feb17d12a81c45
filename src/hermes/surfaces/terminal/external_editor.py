"""Finds the person's editor, and lets them edit a text in it."""

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from hermes.children.helper_programs import find_program, skipped_program
from hermes.errors import HermesError
from hermes.settings.load import environment
from hermes.text.translation import translator

t = translator(__name__)


def editor() -> list[str]:
    """The command of the editor. One that was not chosen needs a terminal."""
    environ = environment()
    chosen = environ.get("VISUAL", "").strip() or environ.get("EDITOR", "").strip()
    try:
        command = shlex.split(chosen)
    except ValueError as error:
        raise HermesError(
            t("VISUAL or EDITOR is not a valid command: {error}", error=error),
            hint=t("Correct it."),
        ) from error
    if command:
        program = command[0] if "/" in command[0] else find_program(command[0], environ)
        if program is None:
            raise _no_such_editor(command[0], environ)
        return [program, *command[1:]]
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        hint = t("Set VISUAL or EDITOR, or use: hermes config set KEY VALUE")
        raise HermesError(
            t("There is no terminal to edit in, and no editor is set."), hint=hint
        )
    return _some_editor()


def _no_such_editor(name: str, environ: Mapping[str, str]) -> HermesError:
    if found := skipped_program(name, environ):
        hint = t(
            "Hermes does not use {found}: it is inside a project. If you trust it, set EDITOR to its full path.",
            found=found,
        )
        return HermesError(t("The editor was not found: {name}.", name=name), hint=hint)
    return HermesError(
        t("The editor was not found: {name}.", name=name),
        hint=t("Set VISUAL or EDITOR to one that is installed."),
    )


def _some_editor() -> list[str]:
    for name in ("sensible-editor", "nano", "vim", "vi"):
        if program := find_program(name, environment()):
            return [program]
    raise HermesError(
        t("No editor was found."),
        hint=t("Set VISUAL or EDITOR to one; or use: hermes config set KEY VALUE"),
    )


def edit_text(text: str, suffix: str) -> str:
    """Returns a text as the person left it in their editor. The caller has given the terminal to the editor."""
    command = editor()
    with tempfile.TemporaryDirectory(prefix="hermes-edit-") as folder:
        draft = Path(folder, f"text{suffix}")
        draft.write_text(text, encoding="utf-8")
        try:
            code = subprocess.run([*command, str(draft)], check=False).returncode
        except OSError as error:
            raise HermesError(
                t(
                    "The editor can't be started: {command} ({strerror})",
                    command=command[0],
                    strerror=error.strerror,
                ),
                hint=t("Set VISUAL or EDITOR. Nothing was changed."),
            ) from error
        if code != 0:
            raise HermesError(
                t("The editor ended with code {code}.", code=code),
                hint=t("Nothing was changed."),
            )
        return draft.read_text(encoding="utf-8", errors="replace")
