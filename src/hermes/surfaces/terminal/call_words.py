"""A tool call in words: `Read src/app.py`, and several of one kind as `Read 6 files`."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from hermes.core.arguments import BadArguments, parse_arguments
from hermes.primitives.lazy_pattern import lazy_pattern
from hermes.primitives.untyped import object_of
from hermes.surfaces.terminal.text import one_line
from hermes.text.translation import to_translate, translator

t = translator(__name__)

_Arguments: TypeAlias = Mapping[str, Any]
_PATCHED = lazy_pattern(
    r"^(?:\*\*\* (?:Add|Update|Delete) File:|(?:---|\+\+\+) (?:[ab]/)?)\s*(\S.*?)\s*$",
    re.MULTILINE,
)
_LENT = "mcp.hermes."  # before the name of a tool of Hermes that codex uses
_MAX_VALUES = 3  # of a call that has no words of its own


class CallWords(msgspec.Struct, frozen=True):
    """What a call does."""

    verb: str
    object: str = ""
    kind: str = ""
    """Calls of one kind that follow each other are shown as one; empty for a call that stands alone."""
    thing: str = ""
    """What it is about: the file, where the object has also a line."""

    @property
    def label(self) -> str:
        """The call on one line."""
        if not self.object:
            return self.verb.removesuffix(":").removesuffix("：").rstrip()
        return f"{self.verb} {self.object}"


class _Wording(msgspec.Struct, frozen=True):
    verb: str
    object: Callable[[_Arguments], str]
    kind: str = ""


def _of(*names: str) -> Callable[[_Arguments], str]:
    """Returns a function that finds the first of these arguments."""
    return lambda values: next(
        (_first_line(values[name]) for name in names if values.get(name)), ""
    )


def _searched(values: _Arguments) -> str:
    where = values.get("path") or values.get("glob") or "."
    words = _first_line(values.get("pattern", ""))
    if where == ".":
        return t("for {words}", words=words)
    return t("for {words} in {where}", words=words, where=_first_line(where))


def _read(values: _Arguments) -> str:
    path, first = _of("path")(values), values.get("offset") or 1
    if isinstance(first, int) and first > 1:
        return t("{path} from line {first}", path=path, first=first)
    return path


def _delegated(values: _Arguments) -> str:
    action = values.get("action", "start")
    task = _of("task", "child")(values)
    return task if action == "start" else f"{action} {task}".rstrip()


_WORDINGS: Mapping[str, _Wording] = {
    "read_file": _Wording(to_translate("Read"), _read, "read"),
    "vision_analyze": _Wording(to_translate("Look at"), _of("image"), "look"),
    "image_generate": _Wording(to_translate("Draw"), _of("prompt")),
    "list_files": _Wording(
        to_translate("List"), lambda values: _of("path")(values) or ".", "list"
    ),
    "search_files": _Wording(to_translate("Search"), _searched, "search"),
    "session_search": _Wording(
        to_translate("Search sessions for"), _of("query", "words"), "search"
    ),
    "write_file": _Wording(to_translate("Write"), _of("path")),
    "edit_file": _Wording(to_translate("Edit"), _of("path")),
    "apply_patch": _Wording(
        to_translate("Edit"),
        lambda values: ", ".join(patched_files(str(values.get("patch", "")))),
    ),
    "terminal": _Wording(to_translate("Run"), _of("command")),
    "exec_command": _Wording(to_translate("Run"), _of("command", "cmd")),
    "run_python": _Wording(to_translate("Run Python"), _of("code")),
    "process": _Wording(to_translate("Check"), _of("id", "process", "name")),
    "process_write": _Wording(to_translate("Type into"), _of("id", "process", "name")),
    "web_search": _Wording(to_translate("Search the web for"), _of("query"), "web"),
    "web_fetch": _Wording(to_translate("Fetch"), _of("url"), "fetch"),
    "todo": _Wording(to_translate("Plan"), lambda _: ""),
    "present_plan": _Wording(to_translate("Show the plan:"), _of("title")),
    "ask_user": _Wording(to_translate("Ask"), _of("question", "text")),
    "delegate": _Wording(to_translate("Delegate"), _delegated),
}


def call_words(name: str, arguments: str) -> CallWords:
    """Returns what a call does. A tool without words of its own is shown by its name and its first values."""
    name = name.removeprefix(_LENT)
    wording = _WORDINGS.get(name)
    try:
        values = parse_arguments(arguments)
    except BadArguments:
        verb = t.marked(wording.verb) if wording else _tool_name(name)
        return CallWords(verb, t("(unreadable arguments)"))
    named: _Arguments = object_of(values)
    if wording is None:
        return CallWords(_tool_name(name), one_line(_values(named)))
    verb, about = t.marked(wording.verb), one_line(wording.object(named))
    thing = one_line(_of("path")(named)) if wording.kind == "read" else about
    return CallWords(verb, about, wording.kind, thing)


def calls_in_words(calls: Sequence[CallWords]) -> str:
    """Returns several calls in one phrase: `Read 6 files, searched 2 times`."""
    kinds: dict[str, set[str]] = {}
    for number, call in enumerate(calls):
        is_thing = call.kind in {"read", "list", "look", "fetch"}
        one = call.thing if is_thing else str(number)
        kinds.setdefault(call.kind, set()).add(one)
    parts = [_several(kind, len(objects)) for kind, objects in kinds.items()]
    return ", ".join(
        part if not at else part[:1].lower() + part[1:] for at, part in enumerate(parts)
    )


def _several(kind: str, count: int) -> str:
    match kind:
        case "read":
            return t("Read {count:,} file", "Read {count:,} files", count=count)
        case "look":
            return t(
                "Looked at {count:,} picture",
                "Looked at {count:,} pictures",
                count=count,
            )
        case "list":
            return t("Listed {count:,} folder", "Listed {count:,} folders", count=count)
        case "search":
            return t("Searched {count:,} time", "Searched {count:,} times", count=count)
        case "web":
            return t(
                "Searched the web {count:,} time",
                "Searched the web {count:,} times",
                count=count,
            )
        case _:
            return t("Fetched {count:,} page", "Fetched {count:,} pages", count=count)


def patched_files(patch: str) -> list[str]:
    """Returns the files that a patch changes, each once."""
    return list(
        dict.fromkeys(name for name in _PATCHED.findall(patch) if name != "/dev/null")
    )


def _tool_name(name: str) -> str:
    """Returns the name of a tool: `files: read` for the tool `read` of the MCP server `files`."""
    if name.startswith("mcp."):  # as codex calls it
        return one_line(name.removeprefix("mcp.").replace(".", ": ", 1))
    return one_line(name.removeprefix("mcp__").replace("__", ": "))


def _values(values: _Arguments) -> str:
    """Returns the first plain values. Lists and objects are left out, because they would be shown as JSON."""
    plain = [_first_line(one) for one in values.values() if isinstance(one, str)]
    return " ".join(part for part in plain[:_MAX_VALUES] if part)


def _first_line(value: object) -> str:
    text = str(value).strip()
    first, _, more = text.partition("\n")
    return f"{first} …" if more.strip() else first
