"""A request for approval: the summary for the person, and a hash of everything that was judged.

The summary shows the whole command, or a file and its change. The hash covers arguments, folder, reach and files, and
ensures that exactly what was approved runs.
"""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from hermes.core.ports import Tool
from hermes.errors import ToolFailed
from hermes.text.formats import count
from hermes.tools.escapes import shown
from hermes.tools.files.diff import edit_diff, text_diff
from hermes.tools.files.edit_match import plan_edit
from hermes.tools.files.open_buffers import (
    OpenBuffers,
    RememberedBuffers,
    buffered_content,
    unsaved_data,
)
from hermes.tools.files.patch_plan import plan_patch

_MAX_COMPARED_BYTES = 400_000
_MAX_SHOWN_CHARS = 20_000
_HASHED_VARIABLES = (
    r"PATH|HOME|SHELL|LD_\w+|DYLD_\w+|BASH_ENV|ENV|IFS|GIT_\w+|PYTHON(PATH|STARTUP|HOME)|NODE_(OPTIONS|PATH)"
    r"|\w*PROXY"
)


def command_summary(command: str, folder: Path) -> str:
    """The whole command, with invisible characters made visible."""
    return shown(f"Run in {_on_one_line(str(folder))}:\n{command}")  # not translated


def call_summary(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """A call with its arguments."""
    described = description(tool, arguments)
    title = f"{tool.spec.name}: {described}" if described else tool.spec.name
    lines = [f"  {name}: {value}" for name, value in arguments.items()]
    return shown(_cut("\n".join([title, *lines])))


def description(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """The tool's own description of a call's target, such as an element of a page; empty if it has none."""
    describe = getattr(tool, "describe", None)
    return str(describe(arguments)) if callable(describe) else ""


def read_summary(tool: Tool, paths: tuple[Path, ...]) -> str:
    """Names the file that would be read."""
    return shown(f"{tool.spec.name}: {_on_one_line(listed_paths(paths))}")


def change_summary(
    tool: Tool, arguments: Mapping[str, Any], paths: tuple[Path, ...], cwd: Path
) -> str:
    """Shows the file that would be changed, and the change."""
    if not paths:
        return call_summary(tool, arguments)
    patch = arguments.get("patch")
    buffers = _buffers_of(tool)
    if isinstance(patch, str):
        return shown(f"{tool.spec.name}\n{_cut(_patch_preview(patch, cwd, buffers))}")
    change = _file_change(arguments, paths[-1], buffers)
    if change is None:
        return call_summary(tool, arguments)
    name = _on_one_line(listed_paths(paths))
    return shown(f"{tool.spec.name} {name}\n{_cut(change)}")


def listed_paths(paths: tuple[Path, ...]) -> str:
    """A path, followed by its target if it is a link."""
    return " -> ".join(str(path) for path in paths)


def _on_one_line(name: str) -> str:
    """A path with its line breaks escaped, so that a file name can't add a line to the summary."""
    return name.replace("\n", "\\n")


def _buffers_of(tool: Tool) -> OpenBuffers | None:
    """The unsaved files that the tool's editor last reported; None without an editor."""
    buffers = getattr(getattr(tool, "owner", None), "buffers", None)
    return None if buffers is None else RememberedBuffers(buffers)


def _patch_preview(patch: str, cwd: Path, buffers: OpenBuffers | None) -> str:
    try:
        read = partial(buffered_content, buffers=buffers)
        return plan_patch(patch, cwd, read).preview
    except ToolFailed as error:
        return f"(as the files are now, this would fail: {error.message})\n{patch}"  # not translated


def _file_change(
    arguments: Mapping[str, Any], path: Path, buffers: OpenBuffers | None
) -> str | None:
    """What a call would change in a file; None if its arguments don't tell."""
    before = _text_of(path, buffers)
    content = arguments.get("content")
    if isinstance(content, str):
        return _new_content(before, content, exists=before is not None or path.exists())
    old, new = arguments.get("old_text"), arguments.get("new_text")
    if isinstance(old, str) and isinstance(new, str):
        replace_all = arguments.get("replace_all") is True
        return _new_part(before, old, new, replace_all=replace_all)
    return None


def _new_content(before: str | None, content: str, *, exists: bool) -> str:
    size = f"{count(len(content.splitlines()), 'line')}, {count(len(content.encode(errors='replace')), 'byte')}"
    if before is not None:
        return f"replaced, {size}:\n{text_diff(before, content)}"
    what = (
        "replaces a file that can't be compared" if exists else "new file"
    )  # not translated
    return f"{what}, {size}:\n{content}"


def _new_part(before: str | None, old: str, new: str, *, replace_all: bool) -> str:
    if before is None:
        removed = [f"-{line}" for line in old.split("\n")]
        added = [f"+{line}" for line in new.split("\n")]
        return "\n".join([*removed, *added])
    try:
        plan = plan_edit(before, old, new, replace_all=replace_all)
    except ToolFailed as error:
        return (
            f"(as the file is now, this would fail: {error.message})"  # not translated
        )
    return edit_diff(plan, whole=True)


def _cut(text: str) -> str:
    """As much of a text as fits into a question, and a note on how much is left."""
    left = len(text) - _MAX_SHOWN_CHARS
    if left <= 0:
        return text
    return f"{text[:_MAX_SHOWN_CHARS]}\n... {left:,} more characters are not shown here"  # not translated


def _text_of(path: Path, buffers: OpenBuffers | None) -> str | None:
    """The current content of a file; None if it can't be compared."""
    try:
        if not path.is_file() or path.stat().st_size > _MAX_COMPARED_BYTES:
            return None
        saved = path.read_bytes()
        return (unsaved_data(buffers, path, saved) or saved).decode()
    except (OSError, ValueError):
        return None


class JudgedCall(msgspec.Struct, frozen=True):
    """The call that a decision is about."""

    tool: str
    arguments: Mapping[str, Any]
    folder: str
    reach: str
    paths: tuple[Path, ...] = ()


def binding_hash(call: JudgedCall, environment: Mapping[str, str]) -> str:
    """A hash of the call and the state of its files. It changes if a file is replaced, changed, or linked elsewhere."""
    variables = {
        name: value
        for name, value in sorted(environment.items())
        if re.fullmatch(_HASHED_VARIABLES, name)
    }
    identities = [_identity(str(path)) for path in call.paths]
    parts = (
        call.tool,
        call.arguments,
        call.folder,
        call.reach,
        identities,
        variables,
    )
    return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()


def _identity(path: str) -> tuple[Any, ...]:
    """Identifies what is at a path: the file, its size and time, a link's target. A missing file has an identity too."""
    name = _encodable(path)
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return (name, "nothing")
    if not stat.S_ISLNK(found.st_mode):
        return (name, *_stamp(path))
    target = os.path.realpath(path)
    return (name, "link", _encodable(target), found.st_ino, *_stamp(target))


def _stamp(path: str) -> tuple[Any, ...]:
    """The device, inode and mode; for a file also its size and modification time."""
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return ("nothing",)
    stamp = (found.st_dev, found.st_ino, found.st_mode)
    if not stat.S_ISREG(found.st_mode):
        return stamp
    return (*stamp, found.st_size, found.st_mtime_ns)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def existing(paths: Iterable[Path]) -> tuple[Path, ...]:
    """The paths that exist, without duplicates."""
    return tuple(path for path in dict.fromkeys(paths) if os.path.lexists(path))
