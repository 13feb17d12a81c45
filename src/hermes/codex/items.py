"""The items that codex announces, and their translation into Hermes' tool calls and results.

Unknown fields are ignored and missing ones have defaults, so that newer versions of codex work as far as possible. An
item of an unknown kind or shape is `Other`.
"""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from hermes.primitives.untyped import text_in
from hermes.schema.messages import ToolCall, ToolFinished
from hermes.text.formats import count

_MAX_PATCH_NAMES = 3  # files that the summary of a patch names
_MAX_ITEM_RESULT_CHARACTERS = (
    24_000  # characters of one result; codex's own model is shown less
)
_SHELLS = frozenset(
    f"{folder}{name}"
    for folder in ("", "/bin/", "/usr/bin/")
    for name in ("bash", "sh", "zsh")
)


class _Item(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    id: str = ""


class AgentMessage(_Item, frozen=True):
    """A message of the model."""

    text: str = ""


class Reasoning(_Item, frozen=True):
    """Reasoning of the model, as far as codex shows it."""

    summary: tuple[str, ...] = ()
    content: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return "\n\n".join(part for part in (self.summary or self.content) if part)


class UserWords(_Item, frozen=True):
    """A user's message that reached the model."""

    client_id: str | None = None
    content: tuple[Any, ...] = ()

    @property
    def text(self) -> str:
        return "\n".join(
            part.get("text", "")
            for part in self.content
            if isinstance(part, Mapping) and "text" in part
        )


class CommandItem(_Item, frozen=True):
    """A command."""

    command: str = ""
    cwd: str = ""
    status: str = ""
    aggregated_output: str | None = None
    exit_code: int | None = None


class PatchedFile(msgspec.Struct, frozen=True):
    """The change of one file. `diff` is the whole text of a file that is added or deleted, else a hunk."""

    path: str
    kind: Mapping[str, Any] | str = ""
    diff: str = ""

    @property
    def what(self) -> str:
        """The kind of change: `add`, `delete` or `update`."""
        return (
            self.kind if isinstance(self.kind, str) else str(self.kind.get("type", ""))
        )

    @property
    def moved_to(self) -> str:
        return text_in(self.kind, "move_path")


class PatchItem(_Item, frozen=True):
    """A patch."""

    changes: tuple[PatchedFile, ...] = ()
    status: str = ""

    def paths(self, cwd: Path) -> tuple[Path, ...]:
        """Returns the absolute paths of the files that the patch changes."""
        named = [
            place
            for change in self.changes
            for place in (change.path, change.moved_to)
            if place
        ]
        return tuple(cwd / place for place in named)


class McpCall(_Item, frozen=True):
    """A call of an MCP server's tool."""

    server: str = ""
    tool: str = ""
    arguments: Any = None
    status: str = ""
    result: Any = None
    error: Any = None


class DynamicCall(_Item, frozen=True):
    """A call of a tool that a client lent to codex directly."""

    namespace: str | None = None
    tool: str = ""
    arguments: Any = None
    status: str = ""
    content_items: tuple[Any, ...] | None = None
    success: bool | None = None


class Other(msgspec.Struct, frozen=True):
    """Anything else."""

    id: str
    type: str
    fields: Mapping[str, Any]

    @property
    def text(self) -> str:
        return text_in(self.fields, "text")


Work: TypeAlias = CommandItem | PatchItem | McpCall | DynamicCall
Item: TypeAlias = AgentMessage | Reasoning | UserWords | Work | Other

_KINDS: dict[str, type[Item]] = {
    "agentMessage": AgentMessage,
    "reasoning": Reasoning,
    "userMessage": UserWords,
    "commandExecution": CommandItem,
    "fileChange": PatchItem,
    "mcpToolCall": McpCall,
    "dynamicToolCall": DynamicCall,
}
_DECODERS = {name: msgspec.json.Decoder(kind) for name, kind in _KINDS.items()}


class _Kind(msgspec.Struct, frozen=True):
    type: str = ""
    id: str = ""


_KIND = msgspec.json.Decoder(_Kind)
_ANY = msgspec.json.Decoder(dict[str, Any])


def read_item(raw: msgspec.Raw) -> Item:
    """Decodes the item in a message. Raises msgspec.DecodeError if it is not an object with a type."""
    kind = _KIND.decode(raw)
    decoder = _DECODERS.get(kind.type)
    if decoder is not None:
        try:
            return decoder.decode(raw)
        except msgspec.ValidationError:
            pass  # codex changed the item's shape
    return Other(kind.id, kind.type, _ANY.decode(raw))


def shown_command(command: str) -> str:
    """Returns the command as the model wrote it, without the shell call that codex wraps it in.

    Only the system's own shells are removed: a program of that name elsewhere may do anything.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    wrapped = len(words) == 3 and words[1] in ("-lc", "-c") and words[0] in _SHELLS
    return words[2] if wrapped else command


def changes_in_words(changes: Sequence[PatchedFile], cwd: str = "") -> str:
    """Summarizes changes: `1 add, 1 update: a.py, b.py`, or with many files `4 update: a.py, b.py, c.py, +1 more`."""
    counts = Counter(change.what for change in changes)
    kinds = [
        f"{counts[kind]} {kind}" for kind in ("add", "update", "delete") if counts[kind]
    ]
    kinds += [
        f"{count} {kind or 'change'}"
        for kind, count in counts.items()
        if kind not in ("add", "update", "delete")
    ]
    names = [
        relative_to(change.path, cwd)
        + (f" -> {relative_to(change.moved_to, cwd)}" if change.moved_to else "")
        for change in changes
    ]
    shown = names[:_MAX_PATCH_NAMES] + (
        [f"+{len(names) - _MAX_PATCH_NAMES} more"]
        if len(names) > _MAX_PATCH_NAMES
        else []
    )
    return (
        f"{', '.join(kinds) or 'no changes'}: {', '.join(shown)}"
        if names
        else "no changes"
    )


def changes_as_diff(changes: Sequence[PatchedFile], cwd: str = "") -> str:
    """Returns the changes file by file, in the form of Hermes' own patches."""
    return "\n".join(_change_report(change, cwd) for change in changes)


def changes_to_decide(changes: Sequence[PatchedFile], cwd: str = "") -> str:
    """Returns planned changes as a diff, including the whole text of new files."""
    return "\n".join(
        _planned(change, relative_to(change.path, cwd), cwd)
        for change in changes
        if change.what != "delete"
    )


def _planned(change: PatchedFile, name: str, cwd: str) -> str:
    if change.what == "add":
        lines = change.diff.splitlines()
        return "\n".join(
            [
                "--- /dev/null",
                f"+++ b/{name}",
                f"@@ -0,0 +1,{len(lines)} @@",
                *(f"+{line}" for line in lines),
            ]
        )
    after = relative_to(change.moved_to, cwd) if change.moved_to else name
    return f"--- a/{name}\n+++ b/{after}\n{change.diff.rstrip()}"


def _change_report(change: PatchedFile, cwd: str) -> str:
    name = relative_to(change.path, cwd)
    match change.what:
        case "add":
            return f"Created {name}: {count(len(change.diff.splitlines()), 'line')}."
        case "delete":
            return f"Deleted {name}."
        case _:
            head = (
                f"Moved {name} -> {relative_to(change.moved_to, cwd)}"
                if change.moved_to
                else f"Edited {name}"
            )
            return f"{head}:\n{change.diff.rstrip()}"


def relative_to(path: str, cwd: str) -> str:
    """Returns the path relative to a folder, if it is inside; otherwise unchanged."""
    if cwd:
        return path.removeprefix(cwd.rstrip("/") + "/")
    return path


def call_of(item: Work, cwd: str = "") -> ToolCall:
    """Returns the item as a tool call. The same item always gives the same bytes."""
    match item:
        case CommandItem():
            return _call(
                item.id,
                "exec_command",
                {"command": shown_command(item.command), "cwd": item.cwd or cwd},
            )
        case PatchItem():
            patch = [
                {
                    "diff": change.diff,
                    "kind": change.what,
                    "path": relative_to(change.path, cwd),
                }
                for change in item.changes
            ]
            return _call(
                item.id,
                "apply_patch",
                {"changes": changes_in_words(item.changes, cwd), "items": patch},
            )
        case McpCall():
            return _call(item.id, f"mcp.{item.server}.{item.tool}", item.arguments)
        case DynamicCall():
            name = f"{item.namespace}.{item.tool}" if item.namespace else item.tool
            return _call(item.id, name, item.arguments)


def _call(number: str, name: str, arguments: object) -> ToolCall:
    known: Mapping[Any, Any] = {"value": arguments}
    if arguments is None:
        known = {}
    elif isinstance(arguments, Mapping):
        known = arguments
    return ToolCall(
        id=number,
        name=name,
        arguments=msgspec.json.encode(known, order="sorted").decode(),
    )


def result_of(item: Work, cwd: str = "", refusal: str = "") -> ToolFinished:
    """Returns the item's result as a model would read it. `refusal` is the reason if Hermes declined it."""
    call = call_of(item, cwd)
    text, ok = _outcome(item, cwd, refusal)
    return ToolFinished(call_id=call.id, name=call.name, text=_cut(text), ok=ok)


def _outcome(item: Work, cwd: str, refusal: str) -> tuple[str, bool]:
    if item.status == "declined" or (
        refusal and isinstance(item, McpCall) and item.status == "failed"
    ):
        return f"Not run: {refusal or 'it was not approved'}.", False
    match item:
        case CommandItem():
            return _command_outcome(item)
        case PatchItem():
            ok = item.status == "completed"
            told = changes_as_diff(item.changes, cwd)
            return (
                told
                if ok
                else f"Not applied ({item.status or 'failed'}): {changes_in_words(item.changes, cwd)}"
            ), ok
        case McpCall():
            return _mcp_outcome(item)
        case DynamicCall():
            return _texts(item.content_items or ()), bool(item.success)


def _command_outcome(item: CommandItem) -> tuple[str, bool]:
    output = item.aggregated_output or ""
    if item.exit_code:
        return f"{output.rstrip()}\n[exit code {item.exit_code}]".lstrip(), False
    if item.status != "completed":
        return (
            f"{output.rstrip()}\n[{item.status or 'ended'} without an exit code]".lstrip(),
            False,
        )
    return output or "(no output)", True


def _mcp_outcome(item: McpCall) -> tuple[str, bool]:
    if item.error is not None:
        message = (
            item.error.get("message", "")
            if isinstance(item.error, Mapping)
            else str(item.error)
        )
        return str(message) or "It failed.", False
    content = item.result.get("content") if isinstance(item.result, Mapping) else None
    text = (
        _texts(content)
        if isinstance(content, Sequence) and not isinstance(content, str)
        else ""
    )
    return text, item.status == "completed"


def _texts(parts: Sequence[Any]) -> str:
    """Returns the texts in a result; other content is only named."""
    found = []
    for part in parts:
        if isinstance(part, Mapping):
            text = part.get("text")
            found.append(
                text if isinstance(text, str) else f"[{part.get('type', 'something')}]"
            )
    return "\n".join(found)


def _cut(text: str) -> str:
    if len(text) <= _MAX_ITEM_RESULT_CHARACTERS:
        return text
    half = _MAX_ITEM_RESULT_CHARACTERS // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half:,} characters left out ...]\n{text[-half:]}"


def note_of(item: Other) -> str:
    """Returns a line that describes an item that is neither a call nor a message."""
    match item.type:
        case "webSearch":
            return f"[codex searched the web: {item.fields.get('query', '')}]"
        case "imageView":
            return f"[codex looked at a picture: {item.fields.get('path', '')}]"
        case "plan":
            return str(item.fields.get("text", ""))
        case "contextCompaction":
            return "[codex compacted its own context]"
        case _:
            return f"[codex: {item.type or 'something unnamed'}]"
