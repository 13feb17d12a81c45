"""`tool_search`, `tool_describe` and `tool_call`: the tools of MCP servers without their descriptions in the prompt.

A call of `tool_call` is a call of the tool that it names: the policy, the person who is asked, the log and every
surface see that tool. See `core.calls`.
"""

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from hermes.app.deferred_tools.tool_index import ToolIndex
from hermes.core.arguments import BadArguments, parse_arguments
from hermes.core.ports import Effect, ForwardedCall, Tool, ToolContext
from hermes.errors import ToolFailed
from hermes.primitives.untyped import list_in, object_of
from hermes.schema.tool_spec import ToolResult, ToolSpec

SEARCH, DESCRIBE, CALL = "tool_search", "tool_describe", "tool_call"
CATALOGUE_TOOLS = (SEARCH, DESCRIBE, CALL)
SOURCE = "descriptions by MCP servers"
_SERVER_TOOL = "mcp."
_DEFAULT_RESULTS = 5
_MAX_FOUND = 20
_MAX_DESCRIBED = 10
_MAX_SUMMARY_CHARACTERS = 240
_MAX_NAMED_SERVERS = 30
Deferral: TypeAlias = Literal["auto", "always", "never"]

MAX_WINDOW_SHARE = 0.1
"""The part of the context window that servers' tools may take before they are deferred."""
_BYTES_PER_TOKEN = 4


def is_deferrable(name: str) -> bool:
    """Whether this is the name of a server's tool, which may stand behind `tool_search`."""
    return name.startswith(_SERVER_TOOL)


class ToolIndexes:
    """The index that was built last. Sessions that have the same tools share it."""

    def __init__(self) -> None:
        self._specs: tuple[ToolSpec, ...] = ()
        self._index = ToolIndex(())

    def of(self, specs: tuple[ToolSpec, ...]) -> ToolIndex:
        """Returns an index of these tools."""
        if specs != self._specs:
            self._specs, self._index = specs, ToolIndex(specs)
        return self._index


class ToolCatalogue:
    """The servers' tools of one session, and the three tools that a model finds and calls them with."""

    def __init__(self, tools: Mapping[str, Tool], indexes: ToolIndexes) -> None:
        self._tools = {name: one for name, one in tools.items() if is_deferrable(name)}
        self._indexes = indexes
        self._names = {_folded(name): name for name in self._tools}
        self._names |= {
            _folded(name.removeprefix(_SERVER_TOOL)): name for name in self._tools
        }

    def tools(self) -> tuple[Tool, ...]:
        """Returns the three tools; none if no server offers anything."""
        if not self._tools:
            return ()
        return (
            CatalogueTool(self._search_spec(), "read", self._search),
            CatalogueTool(_DESCRIBE_SPEC, "read", self._describe),
            ToolCallTool(self),
        )

    def find(self, name: object) -> str:
        """Returns the full name of a tool, which may be written in the ways that models write it. Raises ToolFailed."""
        found = self._names.get(_folded(str(name)))
        if found is None:
            near = difflib.get_close_matches(_folded(str(name)), self._names, n=3)
            names = ", ".join(dict.fromkeys(self._names[one] for one in near))
            known = f" Did you mean {names}?" if names else ""
            raise ToolFailed(
                f"There is no tool {str(name)[:100]!r}.{known}",
                hint="Find its name with tool_search.",
            )
        return found

    def _search_spec(self) -> ToolSpec:
        counts = Counter(name.split(".")[1] for name in self._tools)
        shown = [f"{one} ({count})" for one, count in sorted(counts.items())]
        if len(shown) > _MAX_NAMED_SERVERS:
            more = len(shown) - _MAX_NAMED_SERVERS
            shown = [*shown[:_MAX_NAMED_SERVERS], f"and {more} more"]
        return ToolSpec(
            name=SEARCH,
            description=f"Finds tools of MCP servers, which are not listed here. Servers (tools): {', '.join(shown)}. "
            f"Search before you say that you can't do something. Run what you found with {CALL}.",
            parameters=_SEARCH_PARAMETERS,
        )

    def _search(self, arguments: Mapping[str, Any]) -> str:
        query = str(arguments.get("query", ""))
        limit = arguments.get("limit")
        limit = limit if isinstance(limit, int) else _DEFAULT_RESULTS
        server = str(arguments.get("server") or "")
        specs = tuple(one.spec for one in self._tools.values())
        wanted = max(1, min(limit, _MAX_FOUND))
        found = self._indexes.of(specs).search(query, len(specs) if server else wanted)
        begin = f"{_SERVER_TOOL}{server}."
        names = [one.name for one in found if not server or one.name.startswith(begin)]
        if not names:
            return "No tool fits. Try other words, or fewer."
        return "\n".join(_summary(self._tools[name].spec) for name in names[:wanted])

    def _describe(self, arguments: Mapping[str, Any]) -> str:
        names = arguments.get("names")
        wanted = names if isinstance(names, list) else [names]
        specs = [self._tools[self.find(name)].spec for name in wanted[:_MAX_DESCRIBED]]
        return "\n\n".join(
            f"{one.name}\n{one.description}\n{msgspec.json.encode(one.parameters).decode()}"
            for one in specs
        )


class CatalogueTool:
    """`tool_search` or `tool_describe`: answers with text of the servers."""

    def __init__(self, spec: ToolSpec, effect: Effect, answer: Any) -> None:
        self.spec = spec
        self.effect: Effect = effect
        self._answer = answer

    def paths(self, arguments: Mapping[str, Any], cwd: Path) -> tuple[Path, ...]:  # noqa: ARG002 - the port's shape
        """Returns nothing: no file is touched."""
        return ()

    async def run(
        self,
        arguments: Mapping[str, Any],
        context: ToolContext,  # noqa: ARG002 - the port's shape
    ) -> ToolResult:
        """Looks something up. What servers say of their tools is their text, not ours."""
        return ToolResult(text=self._answer(arguments), source=SOURCE)


class ToolCallTool:
    """`tool_call`, which never runs itself: its calls are calls of the tool that they name."""

    def __init__(self, catalogue: ToolCatalogue) -> None:
        self.spec = _CALL_SPEC
        self.effect: Effect = "other"
        self._catalogue = catalogue

    def forwarded(self, arguments: Mapping[str, Any]) -> ForwardedCall:
        """Returns the call that is meant. Raises ToolFailed if there is no such tool."""
        inner = arguments.get("arguments", {})
        if isinstance(inner, str):  # some models write the object as text
            try:
                inner = parse_arguments(inner)
            except BadArguments as error:
                raise ToolFailed(f"arguments: {error}") from error
        if not isinstance(inner, dict):
            raise ToolFailed("arguments: it must be an object")
        return ForwardedCall(self._catalogue.find(arguments.get("name")), inner)

    def paths(self, arguments: Mapping[str, Any], cwd: Path) -> tuple[Path, ...]:  # noqa: ARG002 - the port's shape
        """Returns nothing: the tool that is called decides."""
        return ()

    async def run(
        self,
        arguments: Mapping[str, Any],
        context: ToolContext,  # noqa: ARG002 - the port's shape
    ) -> ToolResult:
        """Fails: whoever runs calls forwards them."""
        raise ToolFailed(
            f"{arguments.get('name')} can't be called from here.",
            hint="Call it by its own name.",
        )


def _folded(name: str) -> str:
    """Returns a name without what models change in it: dots, underscores, case."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _summary(spec: ToolSpec) -> str:
    """Describes a tool in one line: its name, arguments with their types, and the beginning of what it does."""
    about = " ".join(spec.description.split())
    if len(about) > _MAX_SUMMARY_CHARACTERS:
        about = about[: _MAX_SUMMARY_CHARACTERS - 1] + "…"
    required = spec.parameters.get("required", ())
    properties = spec.parameters.get("properties", {})
    arguments = ", ".join(
        f"{name}{'' if name in required else '?'}: {_type_name(properties[name])}"
        for name in sorted(properties, key=lambda name: name not in required)
    )
    return f"{spec.name}({arguments}): {about}"


def _type_name(schema: Any) -> str:
    choices = list_in(schema, "enum")
    if 0 < len(choices) <= 8:
        return "|".join(str(one) for one in choices)
    kind = object_of(schema).get("type", "any")
    if isinstance(kind, list):
        return "|".join(map(str, kind))
    return str(kind)


def _properties(required: Iterable[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


_SEARCH_PARAMETERS = _properties(
    ("query",),
    query={
        "type": "string",
        "description": "What one tool should do, in words; in English, as most describe themselves.",
    },
    server={"type": "string", "description": "Only tools of this server."},
    limit={"type": "integer", "description": f"Default {_DEFAULT_RESULTS}."},
)
_DESCRIBE_SPEC = ToolSpec(
    name=DESCRIBE,
    description="Shows the full description and argument schema of tools found by tool_search.",
    parameters=_properties(
        ("names",), names={"type": "array", "items": {"type": "string"}}
    ),
)
_CALL_SPEC = ToolSpec(
    name=CALL,
    description="Calls a tool found by tool_search.",
    parameters=_properties(
        ("name", "arguments"),
        name={"type": "string", "description": "As tool_search shows it."},
        arguments={"type": "object", "description": "The arguments of that tool."},
    ),
)


def shown_tools(
    tools: Mapping[str, Tool], wanted: Deferral, window_tokens: int | None
) -> dict[str, Tool]:
    """Returns the tools that a prompt describes: either those of the servers, or the three that find them."""
    servers = [one for name, one in tools.items() if is_deferrable(name)]
    can_defer = all(name in tools for name in CATALOGUE_TOOLS)
    is_deferred = can_defer and _is_deferred(servers, wanted, window_tokens)
    return {
        name: one
        for name, one in tools.items()
        if not (is_deferrable(name) if is_deferred else name in CATALOGUE_TOOLS)
    }


def _is_deferred(
    servers: list[Tool], wanted: Deferral, window_tokens: int | None
) -> bool:
    if not servers or wanted == "never":
        return False
    if wanted == "always":
        return True
    if not window_tokens:
        return False
    size = sum(len(msgspec.json.encode(one.spec)) for one in servers)
    return size / _BYTES_PER_TOKEN > window_tokens * MAX_WINDOW_SHARE
