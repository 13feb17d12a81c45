"""What a person reads before they decide: the command whole, or the file and what would become of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes.core.ports import Tool
from hermes.errors import ToolFailed
from hermes.tools.escapes import shown
from hermes.tools.files.apply_patch import plan_patch
from hermes.tools.files.diff import edit_diff, text_diff
from hermes.tools.files.edit_match import plan_edit

_COMPARED = 400_000  # bytes of a file that is compared
_SHOWN = 20_000  # characters of a change in a question


def command_summary(command: str, folder: Path) -> str:
    """A command, whole, with everything in it that could hide spelled out."""
    return shown(f"Run in {folder}:\n{command}")


def call_summary(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """A call with its arguments."""
    listed = "\n".join(
        f"  {name}: {value!s:.2000}" for name, value in arguments.items()
    )
    described = description(tool, arguments)
    return shown(f"{tool.spec.name}{f': {described}' if described else ''}\n{listed}")


def description(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """What a tool itself says a call is about, such as an element of a page; empty when it says nothing."""
    describe = getattr(tool, "describe", None)
    return str(describe(arguments)) if callable(describe) else ""


def reading_summary(tool: Tool, paths: tuple[Path, ...]) -> str:
    """Which file would be read."""
    return shown(f"{tool.spec.name}: {_places(paths)}")


def change_summary(
    tool: Tool, arguments: Mapping[str, Any], paths: tuple[Path, ...], cwd: Path
) -> str:
    """The file and what would become of it."""
    if not paths:
        return call_summary(tool, arguments)
    patch = arguments.get("patch")
    if isinstance(patch, str):
        return shown(f"{tool.spec.name}\n{_cut(_patched(patch, cwd))}")
    path = paths[-1]
    before = _text(path)
    content, old, new = (
        arguments.get(name) for name in ("content", "old_text", "new_text")
    )
    if isinstance(content, str):
        what = _new_content(before, content, exists=before is not None or path.exists())
    elif isinstance(old, str) and isinstance(new, str):
        what = _new_part(
            before, old, new, replace_all=arguments.get("replace_all") is True
        )
    else:
        return call_summary(tool, arguments)
    return shown(f"{tool.spec.name} {_places(paths)}\n{_cut(what)}")


def _places(paths: tuple[Path, ...]) -> str:
    """A path, and where it leads if it is a link."""
    return " -> ".join(str(path) for path in paths)


def _patched(patch: str, cwd: Path) -> str:
    try:
        return plan_patch(patch, cwd).preview
    except ToolFailed as error:
        return f"(as the files are now, this would fail: {error.message})\n{patch}"


def _new_content(before: str | None, content: str, *, exists: bool) -> str:
    size = f"{len(content.splitlines()):,} lines, {len(content.encode(errors='replace')):,} bytes"
    if before is None:
        what = "replaces a file that can't be compared" if exists else "new content"
        return f"{what}, {size}:\n{content}"
    return f"replaced, {size}:\n{text_diff(before, content)}"


def _new_part(before: str | None, old: str, new: str, *, replace_all: bool) -> str:
    if before is not None:
        try:
            return edit_diff(
                plan_edit(before, old, new, replace_all=replace_all), whole=True
            )
        except ToolFailed as error:
            return f"(as the file is now, this would fail: {error.message})"
    return "\n".join(
        [
            *(f"-{line}" for line in old.split("\n")),
            *(f"+{line}" for line in new.split("\n")),
        ]
    )


def _cut(text: str) -> str:
    """What fits into a question. What does not is counted, never just gone."""
    left = len(text) - _SHOWN
    return (
        f"{text[:_SHOWN]}\n... {left:,} more characters are not shown here"
        if left > 0
        else text
    )


def _text(path: Path) -> str | None:
    """What is in the file now; None if that can't be compared."""
    try:
        if not path.is_file() or path.stat().st_size > _COMPARED:
            return None
        return path.read_bytes().decode()
    except (OSError, ValueError):
        return None
