"""Maps the model's verbs to the offered tools: which verbs are possible, and actions as calls and back.

Looks only at the offered specs: names, property names and what is required. A verb is not offered if its tool is absent
or requires a property that we can't fill.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from hermes.core.arguments import BadArguments, arguments_by_name, parse_arguments
from hermes.primitives.untyped import list_of, text_of
from hermes.providers.embedded.line_protocol import Action, Verb
from hermes.providers.embedded.text_edits import (
    appended,
    edit_action,
    unique_change,
    whole_lines,
)
from hermes.schema.messages import ToolCall
from hermes.schema.tool_spec import ToolSpec

_TOOLS: dict[str, tuple[str, ...]] = {
    "read": ("read_file", "read"),
    "list": ("list_files", "list_dir", "ls"),
    "find": ("search_files", "grep", "search"),
    "write": ("write_file", "write"),
    "edit": ("edit_file", "edit"),
    "run": ("terminal", "bash", "shell"),
    "todo": ("todo", "todo_write"),
}
_FIELDS: dict[str, tuple[str, ...]] = {
    "path": ("path", "file_path", "file", "filename", "directory", "dir"),
    "content": ("content", "text", "contents"),
    "old": ("old_text", "old_string", "old"),
    "new": ("new_text", "new_string", "new"),
    "pattern": ("pattern", "query", "text", "regex"),
    "command": ("command", "cmd"),
    "items": ("items", "todos", "tasks"),
}
_NEEDS: dict[str, tuple[str, ...]] = {
    "read": ("path",),
    "list": ("path",),
    "find": ("pattern",),
    "write": ("path", "content"),
    "edit": ("path", "old", "new"),
    "run": ("command",),
    "todo": ("items",),
}
_REGEX_SIGNS = re.compile(r"([.^$*+?{}\[\]\\|()])")


class OfferedTool(msgspec.Struct, frozen=True):
    """An offered tool in one of our roles, with its property names."""

    name: str
    fields: Mapping[str, str]
    spec: ToolSpec

    def arguments(self, **values: Any) -> dict[str, Any]:
        return {self.fields[field]: value for field, value in values.items()}


class OfferedTools:
    """The offered tools by role."""

    def __init__(self, specs: Iterable[ToolSpec]) -> None:
        by_name = {spec.name: spec for spec in specs}
        self._tools: dict[str, OfferedTool] = {}
        for role, names in _TOOLS.items():
            tool = next(
                (
                    fit
                    for name in names
                    if name in by_name and (fit := _fit(role, by_name[name]))
                ),
                None,
            )
            if tool is not None:
                self._tools[role] = tool

    @property
    def verbs(self) -> frozenset[Verb]:
        """The possible verbs. `append` and `replace` need reading and editing."""
        simple: tuple[Verb, ...] = ("read", "list", "find", "write", "run", "todo")
        changing: tuple[Verb, ...] = (
            ("append", "replace") if {"read", "edit"} <= self._tools.keys() else ()
        )
        return frozenset(
            ("say", *changing, *(verb for verb in simple if verb in self._tools))
        )

    def role(self, call: ToolCall) -> str:
        """Returns the role of a call's tool; empty if it has none."""
        return next(
            (role for role, tool in self._tools.items() if tool.name == call.name), ""
        )

    def call(
        self, action: Action, seen: Mapping[str, str], items: Iterable[str] = ()
    ) -> tuple[str, str]:
        """Returns the tool and JSON arguments of an action. `seen` is what files contain, `items` the list so far."""
        role = "edit" if action.verb in {"append", "replace"} else action.verb
        values = self._values(action, seen.get(action.path, ""), [*items, action.text])
        if action.verb == "append" and "content" in values:
            role = "write"
        tool = self._tools[role]
        return tool.name, msgspec.json.encode(tool.arguments(**values)).decode()

    def action(self, call: ToolCall) -> Action | None:  # noqa: PLR0911 - a table of verbs
        """Returns the action that a call represents; None if there is none. The inverse of `call`, for the history."""
        role = self.role(call)
        value = self._arguments(role, call)
        if value is None:
            return None
        text = {field: text_of(item) for field, item in value.items()}
        match role:
            case "read" | "list":
                return Action(verb=role, path=text["path"] or ".")
            case "write":
                return Action(verb="write", path=text["path"], text=text["content"])
            case "edit":
                return edit_action(text)
            case "find":
                return Action(
                    verb="find", text=re.sub(r"\\(.)", r"\1", text["pattern"])
                )
            case "run":
                return Action(verb="run", text=text["command"])
            case "todo":
                return Action(
                    verb="todo", text=(item_texts(value["items"]) or [""])[-1]
                )
            case _:
                return None

    def _arguments(self, role: str, call: ToolCall) -> dict[str, Any] | None:
        """Returns the arguments of a call by our own field names; None if they can't be read."""
        try:
            arguments = parse_arguments(call.arguments)
        except BadArguments:
            return None
        if not isinstance(arguments, dict):
            return None
        fields = self._tools[role].fields if role else {}
        return {field: arguments.get(name) for field, name in fields.items()}

    def todo_items(self, call: ToolCall) -> list[str]:
        """Returns the items that a call put on the to-do list."""
        arguments = arguments_by_name(call.arguments)
        return item_texts(arguments.get(self._tools["todo"].fields["items"]))

    def _values(self, action: Action, held: str, items: list[str]) -> dict[str, Any]:  # noqa: PLR0911 - as above
        match action.verb:
            case "read":
                return {"path": action.path}
            case "list":
                return self._listing(action.path)
            case "find":
                return {"pattern": self._pattern(action.text)} | self._any_case()
            case "write":
                return {"path": action.path, "content": whole_lines(action.text)}
            case "append":
                return appended(action, held)
            case "replace":
                return {"path": action.path} | self._change(action, held)
            case "run":
                return {"command": action.text}
            case "todo" | "say":
                return {"items": [self._item(text) for text in items]}

    def _listing(self, path: str) -> dict[str, Any]:
        """Returns the folder to list. For a pattern such as `src/*.py`, also the pattern if the tool accepts one."""
        folder, _, name = path.rpartition("/")
        if "*" not in path:
            return {"path": path}
        place = folder if folder and "*" not in folder else "."
        return {"path": place} | (
            {"glob": name} if "glob" in self._tools["list"].fields else {}
        )

    def _change(self, action: Action, held: str) -> dict[str, Any]:
        """Changes a repeated name everywhere if the tool can; anything else only at its first occurrence."""
        tool = self._tools["edit"]
        whole_words = len(re.findall(rf"\b{re.escape(action.old)}\b", held))
        if (
            "every" in tool.fields
            and len(action.old) > 2
            and whole_words > 1
            and action.old.isidentifier()
        ):
            return {"old": action.old, "new": action.text.rstrip("\n"), "every": True}
        return unique_change(action, held)

    def _pattern(self, text: str) -> str:
        """Returns the text to find, escaped if the tool takes a regular expression."""
        spec = self._tools["find"].spec
        described = f"{spec.description} {msgspec.json.encode(spec.parameters).decode()}".lower()
        if "regular expression" in described or "regex" in described:
            return _REGEX_SIGNS.sub(r"\\\1", text)
        return text

    def _any_case(self) -> dict[str, Any]:
        """Makes the search ignore case if the tool can, because small models do not copy capitals."""
        if "any_case" in self._tools["find"].fields:
            return {"any_case": True}
        return {}

    def _item(self, text: str) -> Any:
        """Returns an item in the tool's format: a string, or an object with a text and perhaps a status and an id."""
        tool = self._tools["todo"]
        schema = tool.spec.parameters["properties"][tool.fields["items"]].get(
            "items", {}
        )
        properties = schema.get("properties", {})
        if not properties:
            return text
        name = next(
            (
                n
                for n in ("text", "content", "title", "task", "item")
                if n in properties
            ),
            next(iter(properties)),
        )
        item: dict[str, Any] = {name: text}
        for extra in ("status", "state"):
            choices = properties.get(extra, {}).get("enum", ())
            if choices:
                item[extra] = "pending" if "pending" in choices else choices[0]
        return item


def item_texts(items: Any) -> list[str]:
    """Returns the texts of a list's items, in any format."""
    texts = []
    for item in list_of(items):
        if isinstance(item, dict):
            texts.append(
                next(
                    (
                        str(item[n])
                        for n in ("text", "content", "title", "task", "item")
                        if n in item
                    ),
                    "",
                )
            )
        else:
            texts.append(str(item))
    return texts


def _fit(role: str, spec: ToolSpec) -> OfferedTool | None:
    """Returns the tool in that role, if we can fill everything it requires."""
    properties = spec.parameters.get("properties", {})
    fields: dict[str, str] = {}
    for field in _NEEDS[role]:
        name = next((name for name in _FIELDS[field] if name in properties), None)
        if name is None:
            return None
        fields[field] = name
    fields |= {"glob": "glob"} if role == "list" and "glob" in properties else {}
    fields |= (
        {"any_case": "ignore_case"}
        if role == "find" and "ignore_case" in properties
        else {}
    )
    fields |= (
        {"every": "replace_all"}
        if role == "edit" and "replace_all" in properties
        else {}
    )
    required = set(spec.parameters.get("required", ()))
    return (
        OfferedTool(spec.name, fields, spec)
        if required <= set(fields.values())
        else None
    )
