"""The first tools in their simplest form, confined to a folder: for trying models without the real ones."""

import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from hermes.schema.messages import ToolCall, ToolFinished
from hermes.schema.tool_spec import ToolSpec

_PROGRAMS = frozenset(
    {
        "ls",
        "cat",
        "wc",
        "head",
        "tail",
        "grep",
        "sort",
        "uniq",
        "date",
        "pwd",
        "mkdir",
        "mv",
        "cp",
        "touch",
        "rmdir",
    }
    | {"git", "echo", "df", "du", "whoami"}
)


class Refused(Exception):
    """A call that can't be done; its text is the result."""


def _spec(
    name: str, description: str, *required: str, **properties: dict[str, Any]
) -> ToolSpec:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(required),
    }
    return ToolSpec(name=name, description=description, parameters=parameters)


_TEXT: dict[str, Any] = {"type": "string"}
_NUMBER: dict[str, Any] = {"type": "integer"}
_ITEMS: dict[str, Any] = {
    "type": "array",
    "items": {"type": "object", "properties": {"text": _TEXT, "status": _TEXT}},
}

WORKSHOP_SPECS: tuple[ToolSpec, ...] = (
    _spec("read_file", "Read a text file.", "path", path=_TEXT, offset=_NUMBER, limit=_NUMBER),
    _spec("list_files", "List a folder.", path=_TEXT),
    _spec("search_files", "Search files for a regular expression.", "pattern", pattern=_TEXT, path=_TEXT),
    _spec("write_file", "Create or overwrite a file.", "path", "content", path=_TEXT, content=_TEXT),
    _spec("edit_file", "Replace a text that occurs once.", "path", "old_text", "new_text",
          path=_TEXT, old_text=_TEXT, new_text=_TEXT),
    _spec("terminal", "Run a shell command.", "command", command=_TEXT),
    _spec("todo", "Replace the to-do list.", "items", items=_ITEMS),
)  # fmt: skip


class FolderTools:
    """Runs the first tools inside one folder. Commands are limited to a few harmless programs."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What a model is offered."""
        return WORKSHOP_SPECS

    async def run(self, call: ToolCall, folder: Path) -> ToolFinished:
        """Runs one call; what can't be done is a result too."""
        tools: dict[str, Callable[[Path, dict[str, Any]], str]] = {
            "read_file": _read,
            "list_files": _list,
            "search_files": _search,
            "write_file": _write,
            "edit_file": _edit,
            "terminal": _terminal,
            "todo": lambda _, arguments: f"{len(arguments['items'])} items",
        }
        try:
            text = tools[call.name](
                folder, msgspec.json.decode(call.arguments, type=dict[str, Any])
            )
        except (Refused, OSError, KeyError, re.error, msgspec.DecodeError) as error:
            return ToolFinished(
                call_id=call.id, name=call.name, text=str(error), ok=False
            )
        return ToolFinished(call_id=call.id, name=call.name, text=text)


def _inside(folder: Path, name: str) -> Path:
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise Refused(f"outside the folder: {name}")
    return path


def _read(folder: Path, arguments: dict[str, Any]) -> str:
    path = _inside(folder, arguments["path"])
    if not path.is_file():
        raise Refused(f"{arguments['path']} does not exist.")
    text = path.read_text(errors="replace")
    count = len(text.splitlines())
    return (
        f"[{arguments['path']}: lines 1-{count} of {count}]\n{text}"
        if text
        else f"[{arguments['path']}: empty file]"
    )


def _list(folder: Path, arguments: dict[str, Any]) -> str:
    path = _inside(folder, arguments.get("path", "."))
    if not path.is_dir():
        raise Refused(f"no such folder: {arguments['path']}")
    return "\n".join(
        sorted(
            f"{entry.name}/" if entry.is_dir() else entry.name
            for entry in path.iterdir()
        )
    )


def _search(folder: Path, arguments: dict[str, Any]) -> str:
    pattern = re.compile(arguments["pattern"])
    found: list[str] = []
    for path in sorted(_inside(folder, arguments.get("path", ".")).rglob("*")):
        lines = path.read_text(errors="replace").splitlines() if path.is_file() else []
        fitting = [
            f"{number}: {line}"
            for number, line in enumerate(lines, 1)
            if pattern.search(line)
        ]
        found += [str(path.relative_to(folder)), *fitting] if fitting else []
    return "\n".join(found) or "No matches."


def _write(folder: Path, arguments: dict[str, Any]) -> str:
    path = _inside(folder, arguments["path"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(arguments["content"])
    return f"Created {arguments['path']}."


def _edit(folder: Path, arguments: dict[str, Any]) -> str:
    path = _inside(folder, arguments["path"])
    if not path.is_file():
        raise Refused(f"{arguments['path']} does not exist.")
    text, old = path.read_text(), arguments["old_text"]
    if text.count(old) != 1:
        raise Refused(f"old_text occurs {text.count(old)} times in {arguments['path']}")
    path.write_text(text.replace(old, arguments["new_text"]))
    return f"Edited {arguments['path']}:\n-{old}\n+{arguments['new_text']}"


def _terminal(folder: Path, arguments: dict[str, Any]) -> str:
    command: str = arguments["command"]
    words = shlex.split(command, posix=True)
    risky = any(sign in command for sign in (";", "|", "&", "`", "$(", ">", "<", ".."))
    if (
        not words
        or words[0] not in _PROGRAMS
        or risky
        or any(word.startswith(("/", "~")) for word in words)
    ):
        raise Refused(f"refused: {command}")
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=20, check=False
    )
    return (done.stdout + done.stderr).strip()
