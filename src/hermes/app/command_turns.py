"""The model, tools and mode that a command's file sets for the turn that the command starts."""

from collections.abc import Iterable
from pathlib import Path
from typing import cast

from hermes.app.engine import ApprovalMode, EngineChoice
from hermes.app.prompt_files import PromptFile, PromptFiles, stricter
from hermes.errors import HermesError

_BLOCK = '\n\n<command name="{name}">\n'


def command_of(
    files: PromptFiles, cwd: Path, texts: Iterable[str]
) -> PromptFile | None:
    """The file of the command that one of these messages calls. Reads files."""
    for text in texts:
        name = text.partition("\n")[0].partition(" ")[0].removeprefix("/").lower()
        if not text.startswith("/") or _BLOCK.format(name=name) not in text:
            continue
        try:
            return files.find(cwd, "command", name)
        except HermesError:
            continue  # a command of Hermes itself, or its file has changed since
    return None


def with_command(
    choice: EngineChoice, mode: ApprovalMode, file: PromptFile
) -> EngineChoice:
    """The choice for a turn that a command started, in a session with this mode."""
    model = file.model or choice.model
    return EngineChoice(model, choice.attended, _mode(file, mode))


def _mode(file: PromptFile, mode: ApprovalMode) -> ApprovalMode:
    """The mode of the turn: the file's if it is stricter. A file the user wrote or agreed to may also allow edits where
    Hermes would ask; it never ends plan mode, and never allows everything.
    """
    allows_edits = (mode, file.mode) == ("ask", "auto-edit") and file.is_trusted
    if allows_edits or stricter(file.mode, mode):
        return cast("ApprovalMode", file.mode)
    return mode
