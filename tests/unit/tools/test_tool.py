"""Tools from typed functions: the schema, strict arguments, paths."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta, Struct

from hermes.core.ports import Tool, ToolContext
from hermes.errors import ToolFailed
from hermes.schema.tool_spec import ToolResult
from hermes.tools import default_tools
from hermes.tools.tool import tool

CONTEXT = ToolContext("c", "s", Path("/work"), lambda text: None)


class Point(Struct):
    x: int
    default: Literal["a", "b"] = "a"


@tool("greet", effect="read", paths=("path",))
async def greet(
    context: ToolContext,
    name: Annotated[str, Meta(description="Whom.")],
    path: str = "here",
    times: Annotated[int, Meta(ge=1, le=3)] = 2,
    points: list[Point] | None = None,
    loud: bool = False,
) -> str:
    """Greets
    somebody."""
    return f"{name} {path} {times} {points} {loud} {context.call_id}"


@tool("add", effect="read")
def add(one: int, two: int) -> ToolResult:
    """Adds."""
    return ToolResult(text=str(one + two), ok=False)


class Counter:
    def __init__(self) -> None:
        self.count = 0

    @tool("bump", effect="other")
    def bump(self, by: int = 1) -> str:
        """Counts."""
        self.count += by
        return str(self.count)


def test_the_schema_comes_from_the_annotations() -> None:
    assert (greet.spec.name, greet.spec.description, greet.effect) == (
        "greet",
        "Greets somebody.",
        "read",
    )
    parameters = greet.spec.parameters
    assert (parameters["type"], parameters["required"]) == ("object", ["name"])
    properties = parameters["properties"]
    assert list(properties) == ["name", "path", "times", "points", "loud"]
    assert properties["name"] == {"type": "string", "description": "Whom."}
    assert properties["times"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 3,
        "default": 2,
    }
    assert properties["loud"] == {"type": "boolean"}
    assert "$ref" not in str(parameters)
    assert properties["points"]["anyOf"][0]["items"]["properties"]["default"][
        "enum"
    ] == ["a", "b"]


async def test_arguments_become_typed_values() -> None:
    result = await greet.run({"name": "Ada", "points": [{"x": 1}]}, CONTEXT)
    assert result == ToolResult(text="Ada here 2 [Point(x=1, default='a')] False c")
    assert await add.run({"one": 1, "two": 2}, CONTEXT) == ToolResult(
        text="3", ok=False
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": 3}, "greet: argument `name`: Expected `str`, got `int`."),
        (
            {"name": "a", "times": "2"},
            "greet: argument `times`: Expected `int`, got `str`.",
        ),
        ({"name": "a", "times": 9}, "greet: argument `times`: Expected `int` <= 3."),
        (
            {"name": "a", "points": [{"x": None}]},
            "greet: argument `points[0].x`: Expected `int`, got `null`.",
        ),
        ({}, "greet: Object missing required field `name`."),
        ({"name": "a", "nam": "b"}, "greet: Object contains unknown field `nam`."),
    ],
)
async def test_wrong_arguments_are_named(
    arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(ToolFailed) as failed:
        await greet.run(arguments, CONTEXT)
    assert failed.value.message == message


async def test_a_method_is_a_tool_of_its_object() -> None:
    one, two = Counter(), Counter()
    await one.bump.run({"by": 5}, CONTEXT)
    assert (await one.bump.run({}, CONTEXT)).text == "6"
    assert (await two.bump.run({}, CONTEXT)).text == "1"
    assert one.bump.owner is one
    assert Counter.bump.spec is one.bump.spec


def test_paths_are_absolute_and_survive_nonsense() -> None:
    cwd = Path("/work-that-is-not")
    assert greet.paths({"name": "a"}, cwd) == (cwd / "here",)
    assert greet.paths({"path": "a/../../etc/x"}, cwd) == (Path("/etc/x"),)
    assert greet.paths({"path": "/b//c/"}, cwd) == (Path("/b/c"),)
    assert greet.paths({"path": 3}, cwd) == ()
    assert greet.paths({"path": "a\0b"}, cwd) == (cwd / "a\0b",)
    assert greet.paths({"path": "~no-such-user/x"}, cwd) == (cwd / "~no-such-user/x",)


def test_the_default_tools_are_small() -> None:
    home = Path("/home-that-is-not")
    tools: dict[str, Tool] = default_tools(
        home / "cache", environment={}, hermes_home=home
    )
    assert list(tools) == [
        "terminal",
        "read_file",
        "list_files",
        "search_files",
        "write_file",
        "edit_file",
        "todo",
    ]
    specs = [
        [one.spec.name, one.spec.description, one.spec.parameters]
        for one in tools.values()
    ]
    assert len(msgspec.json.encode(specs)) < 5500
    assert {name for name, one in tools.items() if one.effect == "read"} == {
        "read_file",
        "list_files",
        "search_files",
        "todo",
    }


async def test_todo_shows_the_list() -> None:
    todo = default_tools(Path("/x"), environment={}, hermes_home=Path("/y"))["todo"]
    items = [
        {"text": "read\nit", "status": "done"},
        {"text": "fix", "status": "in_progress"},
        {"text": "test"},
    ]
    assert (
        await todo.run({"items": items}, CONTEXT)
    ).text == "[x] read it\n[>] fix\n[ ] test\n(1 of 3 done)"
    with pytest.raises(ToolFailed, match=r"items\[0\]\.status"):
        await todo.run({"items": [{"text": "a", "status": "maybe"}]}, CONTEXT)
