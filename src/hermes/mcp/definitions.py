"""A server's description of its tools: bounded in size, compared by a fingerprint, with names that can't collide."""

import fnmatch
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from hermes.mcp.safe_text import one_line, plain
from hermes.mcp.server_prompts import PromptDefinition
from hermes.schema.tool_spec import ToolSpec
from hermes.settings.mcp import McpToolSettings
from hermes.text.translation import translator

t = translator(__name__)


PREFIX = "mcp"
MAX_TOOLS = 512
MAX_DESCRIPTION_CHARACTERS = 4_000
MAX_SCHEMA_BYTES = 32 * 1024
_MAX_SERVER_CHARACTERS = 32
_SERVER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
_ARGUMENT = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_KEPT = frozenset(
    (
        "type",
        "properties",
        "required",
        "additionalProperties",
        "$defs",
        "definitions",
        "description",
    )
)
_TOOL = re.compile(r"[A-Za-z0-9_./-]{1,96}")


class Definition(msgspec.Struct, frozen=True, omit_defaults=True):
    """One tool as its server describes it."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    read_only: bool = False
    """Whether the server says that the tool changes nothing. Only a trusted server is believed."""

    @property
    def fingerprint(self) -> str:
        """A hash of the description and parameters, whatever their order."""
        return hashlib.sha256(
            msgspec.json.encode(self, order="deterministic")
        ).hexdigest()

    def spec(self, server: str) -> ToolSpec:
        """Returns the tool as a model sees it."""
        return ToolSpec(
            name=f"{PREFIX}.{server}.{self.name}",
            description=self.description,
            parameters=self.parameters,
        )


class Listing(msgspec.Struct, frozen=True):
    """The tools of a server at one moment, by name; `left_out` says which are not offered, and why."""

    tools: dict[str, Definition] = {}
    left_out: tuple[str, ...] = ()
    suspected: tuple[str, ...] = ()
    """The ones left out because their description looks like an instruction to the model."""
    has_resources: bool = False
    prompts: dict[str, PromptDefinition] = {}


class RawTool(msgspec.Struct, frozen=True):
    """A tool as the server sent it."""

    name: str
    description: str
    parameters: Any
    read_only: bool


def is_server_name(name: str) -> bool:
    """Whether this can be a server's name, which becomes part of its tools' names."""
    return _SERVER.fullmatch(name) is not None


def usable_server_name(name: str) -> str:
    """A server's name without characters that tool names can't have. Other programs also allow blanks and dots."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-_")[:_MAX_SERVER_CHARACTERS]


def listing(
    raw: Iterable[RawTool],
    chosen: McpToolSettings,
    scan: Callable[[str], str] = lambda _: "",
) -> Listing:
    """Returns the tools of a server that can be offered, in the order of their names. `scan` finds injected instructions."""
    tools: dict[str, Definition] = {}
    left_out: list[str] = []
    suspected: list[str] = []
    for tool in sorted(raw, key=lambda tool: tool.name):
        if not _is_chosen(tool.name, chosen):
            continue
        name = one_line(tool.name, 60)
        if tool.name in tools:
            left_out.append(t.logged("{name}: two tools have that name", name=name))
            continue
        made = _definition(tool)
        if isinstance(made, str):
            left_out.append(f"{name}: {made}")
        elif len(tools) >= MAX_TOOLS:
            left_out.append(
                t.logged(
                    "{name}: only the first {count} are offered",
                    name=name,
                    count=MAX_TOOLS,
                )
            )
        else:
            found = "" if tool.name in chosen.vetted else _injection(tool, scan)
            if found:
                suspected.append(f"{name}: {found}")
            else:
                tools[tool.name] = made
    return Listing(tools, (*left_out, *suspected), tuple(suspected))


def _injection(tool: RawTool, scan: Callable[[str], str]) -> str:
    """Names what looks like an instruction to the model, or is hidden, in the texts of a tool that the model would read."""
    found = scan("\n".join((tool.description, *dict.fromkeys(_texts(tool.parameters)))))
    return (
        t.logged(
            "its description looks like an attack ({found})", found=one_line(found, 120)
        )
        if found
        else ""
    )


def _texts(value: Any) -> Iterator[str]:
    """Yields every text inside a schema, including names."""
    match value:
        case str():
            yield value
        case dict():
            for key, item in value.items():
                yield str(key)
                yield from _texts(item)
        case list():
            for item in value:
                yield from _texts(item)


def _definition(tool: RawTool) -> Definition | str:
    """Returns the tool with harmless text, or why it can't be offered."""
    if not _TOOL.fullmatch(tool.name):
        return t.logged("its name has characters that a tool's name can't have")
    if (
        not isinstance(tool.parameters, dict)
        or tool.parameters.get("type", "object") != "object"
    ):
        return t.logged("its parameters are not described as an object")
    if not _is_sound(tool.parameters):
        return t.logged("its parameters are described in a way that models can't read")
    try:
        size = len(msgspec.json.encode(tool.parameters))
    except (msgspec.MsgspecError, RecursionError, TypeError, ValueError):
        return t.logged("its parameters can't be read")
    if size > MAX_SCHEMA_BYTES:
        return t.logged(
            "its parameters take {size:,} bytes (at most {limit:,})",
            size=size,
            limit=MAX_SCHEMA_BYTES,
        )
    words = plain(tool.description).strip()
    if len(words) > MAX_DESCRIPTION_CHARACTERS:
        words = words[:MAX_DESCRIPTION_CHARACTERS] + " [...]"
    return Definition(tool.name, words, _schema(tool.parameters), tool.read_only)


def _is_sound(parameters: Mapping[str, Any]) -> bool:
    """Whether the arguments have valid names. A provider that rejects one schema rejects the whole request."""
    properties, required = (
        parameters.get("properties") or {},
        parameters.get("required") or [],
    )
    if not isinstance(properties, dict) or not isinstance(required, list):
        return False
    names = all(
        _ARGUMENT.fullmatch(name) and isinstance(value, dict)
        for name, value in properties.items()
    )
    return names and all(
        isinstance(name, str) and name in properties for name in required
    )


def _schema(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the schema without parts that some providers reject. A schema without properties accepts any argument."""
    kept = {
        key: _harmless(value)
        for key, value in parameters.items()
        if key in _KEPT and value is not None
    }
    kept.setdefault("type", "object")
    if not kept.get("properties"):
        kept["properties"] = dict[str, Any]()
        kept.setdefault("additionalProperties", True)
    return kept


def _harmless(value: Any) -> Any:
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, list):
        return [_harmless(item) for item in value]
    if not isinstance(value, dict):
        return value
    inner = {key: _harmless(item) for key, item in value.items()}
    if inner.get("type") == "array" and "prefixItems" not in inner:
        inner.setdefault("items", dict[str, Any]())  # some providers require it
    return inner


def _is_chosen(name: str, chosen: McpToolSettings) -> bool:
    included = not chosen.include or any(
        fnmatch.fnmatchcase(name, pattern) for pattern in chosen.include
    )
    return included and not any(
        fnmatch.fnmatchcase(name, pattern) for pattern in chosen.exclude
    )


def difference(before: Definition, now: Definition) -> str:
    """Describes what changed, for a person to judge."""
    lines: list[str] = []
    if before.description != now.description:
        lines += [
            t.logged("Before: {text}", text=one_line(before.description, 600)),
            t.logged("Now: {text}", text=one_line(now.description, 1200)),
        ]
    old, new = (
        before.parameters.get("properties", {}),
        now.parameters.get("properties", {}),
    )
    added = [name for name in new if name not in old]
    gone = [name for name in old if name not in new]
    other = [name for name in new if name in old and new[name] != old[name]]
    if added:
        lines.append(t.logged("New arguments: {names}", names=_listed(added)))
    if gone:
        lines.append(t.logged("Arguments that are gone: {names}", names=_listed(gone)))
    if other:
        lines.append(
            t.logged(
                "Arguments that are described differently: {names}",
                names=_listed(other),
            )
        )
    if before.read_only != now.read_only:
        reads = t.logged("It now says that it only reads.")
        changes = t.logged("It now says that it may change something.")
        lines.append(reads if now.read_only else changes)
    return "\n".join(lines) or t.logged("Its parameters are described differently.")


def _listed(names: list[str]) -> str:
    return one_line(", ".join(names))
