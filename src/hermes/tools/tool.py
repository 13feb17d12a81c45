"""`@tool`: a plain typed function becomes a tool. Its annotations are the schema, its docstring the description.

    @tool("count_words", effect="read", paths=("path",))
    def count_words(context: ToolContext, path: Annotated[str, Meta(description="A text file.")]) -> str:
        "Counts the words of a file."
        return str(len(resolved(path, context.cwd).read_text().split()))

A synchronous function runs in a thread. On a class, the decorated method of an instance is a tool with that state.
`paths` names the parameters that are paths; when the paths are inside other text, it is a function that finds them.
"""

import asyncio
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, get_type_hints, overload

import msgspec

from hermes.core.ports import Effect, Tool, ToolContext
from hermes.errors import ToolFailed
from hermes.primitives.lazy_pattern import lazy_pattern
from hermes.schema.tool_spec import ToolResult, ToolSpec

_NOISE = ("$defs", "title", "additionalProperties", "minLength", "maxLength")
"""Parts of a schema that programs need and models don't. Calls are checked against the types themselves."""
_AT = lazy_pattern(r" - at `\$\.?(.*)`$")

PathsOf: TypeAlias = Callable[[Mapping[str, Any]], Iterable[str]]
"""Finds the paths in a call's arguments, as the model wrote them. Never raises, whatever the arguments are."""

Precheck: TypeAlias = Callable[[Any, Mapping[str, Any], tuple[Path, ...], Path], None]
"""Raises ToolFailed if a call of the owner's tool with these arguments and files can't succeed or would change nothing.
"""
EffectOf: TypeAlias = Callable[[Mapping[str, Any]], Effect]
"""The effect of a call, if that depends on its arguments: to read a file, or to fetch an address. Never raises."""
About: TypeAlias = Callable[[Any, Mapping[str, Any]], str]
"""Describes a call, given the tool's owner and the arguments, if the arguments alone don't say enough. Never raises."""
Joins: TypeAlias = Callable[[Any], bool]
"""Whether prompts already describe the tool of this owner."""


class ToolFunction:
    """The function behind a tool.

    Its schema is created when it is first needed, so that a tool that no model sees costs nothing.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        paths: tuple[str, ...] | PathsOf,
        facts: "CallFacts",
    ) -> None:
        self.name = name
        self.function = function
        self.facts = facts
        self.is_async = inspect.iscoroutinefunction(function)
        self._paths = paths

    @cached_property
    def form(self) -> type[msgspec.Struct]:
        """The type of the arguments."""
        fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
        for name, (kind, default) in self._parameters.items():
            if kind is not ToolContext:
                has_default = default is not inspect.Parameter.empty
                fields.append((name, kind, default) if has_default else (name, kind))
        return msgspec.defstruct(
            self.name, fields, forbid_unknown_fields=True, frozen=True, kw_only=True
        )

    @cached_property
    def spec(self) -> ToolSpec:
        """The tool as a model sees it."""
        description = " ".join((self.function.__doc__ or "").split())
        return ToolSpec(
            name=self.name, description=description, parameters=schema_of(self.form)
        )

    @cached_property
    def context_name(self) -> str:
        """The parameter that takes the context; empty if there is none."""
        kinds = self._parameters.items()
        return next((name for name, (kind, _) in kinds if kind is ToolContext), "")

    @cached_property
    def paths_of(self) -> PathsOf:
        """Finds the paths in the arguments."""
        paths = self._paths
        if isinstance(paths, tuple):
            return _named(self.form, paths)
        return paths

    @cached_property
    def _parameters(self) -> dict[str, tuple[Any, Any]]:
        """The type and the default of each parameter."""
        hints = get_type_hints(self.function, include_extras=True)
        return {
            one.name: (hints.get(one.name), one.default)
            for one in inspect.signature(self.function).parameters.values()
            if one.name != "self"
        }


class CallFacts(msgspec.Struct, frozen=True):
    """Further facts about a tool's calls. See `tool`."""

    about: "About | None" = None
    precheck: "Precheck | None" = None
    effect_of: "EffectOf | None" = None
    joins: "Joins | None" = None


class FunctionTool:
    """A tool made from a function. `owner` is the object to which the method belongs, if any."""

    __slots__ = ("_function", "_spec", "effect", "owner")

    def __init__(
        self,
        function: ToolFunction,
        effect: Effect,
        owner: object = None,
        spec: ToolSpec | None = None,
    ) -> None:
        self.effect: Effect = effect
        self.owner = owner
        self._function = function
        self._spec = spec

    @property
    def name(self) -> str:
        """The name; does not create the `spec`."""
        return self._spec.name if self._spec else self._function.name

    @property
    def spec(self) -> ToolSpec:
        """The tool as a model sees it."""
        return self._spec or self._function.spec

    @property
    def joins_later(self) -> bool:
        """Whether prompts don't describe the tool at first. It can be called nevertheless."""
        return self._function.facts.joins is not None

    def has_joined(self) -> bool:
        """Whether prompts describe the tool now."""
        joins = self._function.facts.joins
        return joins is None or joins(self.owner)

    @overload
    def __get__(self, owner: None, kind: type) -> "FunctionTool": ...
    @overload
    def __get__(self, owner: object, kind: type) -> "FunctionTool": ...
    def __get__(self, owner: object, kind: type) -> "FunctionTool":
        return (
            self
            if owner is None
            else FunctionTool(self._function, self.effect, owner, self._spec)
        )

    def offered_as(self, spec: ToolSpec) -> "FunctionTool":
        """The same tool with another description for the model."""
        return FunctionTool(self._function, self.effect, self.owner, spec)

    def paths(self, arguments: Mapping[str, Any], cwd: Path) -> tuple[Path, ...]:
        """Returns the absolute paths in the arguments: as written, and where their links lead."""
        found: dict[Path, None] = {}
        for path in self._function.paths_of(arguments):
            found |= dict.fromkeys(spellings(path, cwd))
        return tuple(found)

    def effect_of(self, arguments: Mapping[str, Any]) -> Effect:
        """The effect of this call. `effect` is the strongest effect that any call of the tool can have."""
        effect_of = self._function.facts.effect_of
        return effect_of(arguments) if effect_of else self.effect

    def describe(self, arguments: Mapping[str, Any]) -> str:
        """Describes the call for whoever decides about it; empty if the arguments say everything."""
        about = self._function.facts.about
        return about(self.owner, arguments) if about else ""

    def precheck(self, arguments: Mapping[str, Any], cwd: Path) -> None:
        """Raises ToolFailed for a call that can't succeed or would change nothing, as far as that is known before it
        runs."""
        precheck = self._function.facts.precheck
        if precheck is not None:
            self._convert(arguments)
            paths = self.paths(arguments, cwd)
            precheck(self.owner, arguments, paths, cwd)

    async def run(
        self, arguments: Mapping[str, Any], context: ToolContext
    ) -> ToolResult:
        """Checks the arguments and calls the function."""
        called = self._function
        given = msgspec.structs.asdict(self._convert(arguments))
        if called.context_name:
            given[called.context_name] = context
        first = () if self.owner is None else (self.owner,)
        if called.is_async:
            result = await called.function(*first, **given)
        else:
            result = await asyncio.to_thread(called.function, *first, **given)
        return result if isinstance(result, ToolResult) else ToolResult(text=result)

    def _convert(self, arguments: Mapping[str, Any]) -> msgspec.Struct:
        try:
            return msgspec.convert(arguments, self._function.form)
        except msgspec.ValidationError as error:
            what = str(error)
            place = _AT.search(what)
            if place:
                what = f"argument `{place[1]}`: {what[: place.start()]}"
            raise ToolFailed(
                f"{self.spec.name}: {what}.", hint="Nothing was done."
            ) from error


def tool(  # noqa: PLR0913 - the others have defaults
    name: str,
    *,
    effect: Effect,
    paths: tuple[str, ...] | PathsOf = (),
    about: About | None = None,
    precheck: Precheck | None = None,
    effect_of: EffectOf | None = None,
    joins: Joins | None = None,
) -> Callable[[Callable[..., Any]], FunctionTool]:
    """Makes a tool of a function. `paths` names the parameters that are paths, or finds the paths in the arguments;
    `about` says what a call means when that depends on more than its arguments; `precheck` fails for a call that
    nobody needs to be asked about; `effect_of` says what a call does if that depends on its arguments; `joins` says
    from when on prompts describe the tool, if not from the start."""
    facts = CallFacts(about, precheck, effect_of, joins)

    def make(function: Callable[..., Any]) -> FunctionTool:
        return FunctionTool(ToolFunction(name, function, paths, facts), effect)

    return make


def schema_of(form: type[msgspec.Struct]) -> dict[str, Any]:
    """Returns the JSON schema of a type in the shortest form that models understand: no references, no titles."""
    schema = msgspec.json.schema(form)
    return _short(schema, schema.get("$defs", {}))


def tool_name(one: Tool) -> str:
    """The name of a tool; does not create its schema."""
    return one.name if isinstance(one, FunctionTool) else one.spec.name


def _short(node: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_short(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        kept = dict(definitions[node["$ref"].rpartition("/")[2]])
        kept.pop("description", None)  # a docstring, for programmers
        return _short(kept, definitions)
    kept = {key: value for key, value in node.items() if key not in _NOISE}
    if kept.get("default", ...) in (None, "", False, []):
        del kept["default"]
    if kept.get("required") == []:
        del kept["required"]
    if "enum" in kept and all(isinstance(value, str) for value in kept["enum"]):
        kept["type"] = "string"  # some providers require it
    properties = kept.pop("properties", {})
    short = {key: _short(value, definitions) for key, value in kept.items()}
    if properties:
        short["properties"] = {
            name: _short(value, definitions) for name, value in properties.items()
        }
    return short


def spellings(path: str, cwd: Path) -> tuple[Path, ...]:
    """Returns a path as written, made absolute, and the target of its links if that is another path."""
    joined = cwd / _expanded(path)
    as_written = Path(os.path.normpath(joined))
    try:
        real = Path(os.path.realpath(joined))
    except ValueError:  # a character that no path can hold, which the tool reports
        return (as_written,)
    return (as_written,) if real == as_written else (as_written, real)


def resolved(path: str, cwd: Path) -> Path:
    """Returns where a path that a model wrote leads in the end."""
    if not path.strip() or "\0" in path:
        raise ToolFailed(f"{path!r} is not a path.")
    try:
        return Path(os.path.realpath(cwd / _expanded(path)))
    except ValueError as error:
        raise ToolFailed(f"{path!r} is not a path.") from error


def judged(path: str, context: ToolContext) -> Path:
    """Returns where a path leads, if that has not changed since the call was judged."""
    real = resolved(path, context.cwd)
    require_judged(path, real, context)
    return real


def require_judged(name: str, real: Path, context: ToolContext) -> None:
    """Raises ToolFailed unless the file is one that was judged."""
    if context.targets and real not in context.targets:
        hint = "Nothing was done. Check the path before you continue."
        raise ToolFailed(
            f"{name} now leads to a different file than when this call was allowed.",
            hint=hint,
        )


def _expanded(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:  # a user that does not exist
        return Path(path)


def _named(form: type[msgspec.Struct], names: tuple[str, ...]) -> PathsOf:
    """Returns a function that finds the values of these parameters, or their defaults."""
    defaults = {field.name: field.default for field in msgspec.structs.fields(form)}

    def paths_of(arguments: Mapping[str, Any]) -> Iterable[str]:
        values = (arguments.get(name, defaults.get(name)) for name in names)
        return [value for value in values if isinstance(value, str)]

    return paths_of
