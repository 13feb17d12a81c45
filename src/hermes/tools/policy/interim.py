"""The first policy: reading is free, secrets and effects are asked about, and some things are never done.

It decides by what can be told for certain; what can't be is asked about. It knows nothing of a sandbox.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from hermes.core.ports import Decision, Tool
from hermes.errors import ToolFailed
from hermes.schema.events import ApprovalRequested
from hermes.tools.diff import edit_diff, text_diff
from hermes.tools.edit import plan_edit
from hermes.tools.escapes import shown
from hermes.tools.floor import read_command
from hermes.tools.readers import only_reads
from hermes.tools.sensitive import Guard
from hermes.tools.terminal import Terminal
from hermes.tools.tool import FunctionTool

Mode: TypeAlias = Literal["ask", "auto-edit", "full"]

_COMPARED = 400_000
_SHOWN = 20_000


class InterimPolicy:
    """Decides by mode: `ask` about every effect, `auto-edit` files of the working directory, or `full`.

    `strict` asks about every command that does more than read, in every mode.
    """

    def __init__(self, mode: Mode, *, hermes_home: Path, user_home: Path, strict: bool = False) -> None:
        self._mode: Mode = mode
        self._guard = Guard(hermes_home.resolve())
        self._user_home = user_home
        self._strict = strict

    def judge(self, tool: Tool, arguments: Mapping[str, Any], cwd: Path) -> Decision:
        """What may be done with this call."""
        owner = tool.owner if isinstance(tool, FunctionTool) else None
        if isinstance(owner, Terminal):
            return self._command(arguments, owner.folder(cwd))
        if tool.effect == "read":
            return self._reading(tool, arguments, cwd)
        if tool.effect == "files":
            return self._writing(tool, arguments, cwd)
        if self._mode == "full" and not self._strict:
            return Decision("allow")
        return Decision("ask", _call(tool, arguments), "it may change something")

    def remember(self, request: ApprovalRequested) -> None:
        """Nothing is remembered beyond a session yet."""

    def _reading(self, tool: Tool, arguments: Mapping[str, Any], cwd: Path) -> Decision:
        paths = tool.paths(arguments, cwd)
        reason = self._guard.secret(paths)
        if not reason:
            return Decision("allow")
        return Decision("ask", shown(f"{tool.spec.name}: {_places(paths)}"), shown(reason))

    def _writing(self, tool: Tool, arguments: Mapping[str, Any], cwd: Path) -> Decision:
        paths = tool.paths(arguments, cwd)
        reason = self._guard.carrying(paths, cwd) if paths else "it does not say which file it changes"
        if not reason and self._mode != "ask":
            return Decision("allow")
        summary = _change(tool, arguments, paths) if paths else _call(tool, arguments)
        return Decision("ask", summary, shown(reason or "it changes a file"))

    def _command(self, arguments: Mapping[str, Any], folder: Path) -> Decision:
        command = arguments.get("command")
        if not isinstance(command, str):
            return Decision("allow")  # the tool refuses it
        if only_reads(command, folder, self._guard):
            return Decision("allow")
        summary = shown(f"Run in {folder}:\n{command}")
        reading = read_command(command, folder, self._user_home)
        if reading.forbidden:
            return Decision("forbid", summary, shown(reading.forbidden))
        if self._mode == "full" and not self._strict and not reading.unclear:
            return Decision("allow")
        return Decision("ask", summary, reading.unclear or "it may change something")


def _call(tool: Tool, arguments: Mapping[str, Any]) -> str:
    listed = "\n".join(f"  {name}: {value!s:.2000}" for name, value in arguments.items())
    return shown(f"{tool.spec.name}\n{listed}")


def _places(paths: tuple[Path, ...]) -> str:
    """A path, and where it leads if it is a link."""
    return " -> ".join(str(path) for path in paths)


def _change(tool: Tool, arguments: Mapping[str, Any], paths: tuple[Path, ...]) -> str:
    """The file and what would become of it."""
    before = _text(paths[-1])
    content, old, new = (arguments.get(name) for name in ("content", "old_text", "new_text"))
    if isinstance(content, str):
        what = _new_content(before, content)
    elif isinstance(old, str) and isinstance(new, str):
        what = _new_part(before, old, new, replace_all=arguments.get("replace_all") is True)
    else:
        return _call(tool, arguments)
    return shown(f"{tool.spec.name} {_places(paths)}\n{what[:_SHOWN]}")


def _new_content(before: str | None, content: str) -> str:
    size = f"{len(content.splitlines()):,} lines, {len(content.encode(errors='replace')):,} bytes"
    if before is None:
        return f"new content, {size}:\n{content}"
    return f"replaced, {size}:\n{text_diff(before, content)}"


def _new_part(before: str | None, old: str, new: str, *, replace_all: bool) -> str:
    if before is not None:
        try:
            return edit_diff(plan_edit(before, old, new, replace_all=replace_all))
        except ToolFailed as error:
            return f"(as the file is now, this would fail: {error.message})"
    return "\n".join([*(f"-{line}" for line in old.split("\n")), *(f"+{line}" for line in new.split("\n"))])


def _text(path: Path) -> str | None:
    """What is in the file now; None if that can't be compared."""
    try:
        if not path.is_file() or path.stat().st_size > _COMPARED:
            return None
        return path.read_bytes().decode()
    except (OSError, ValueError):
        return None
