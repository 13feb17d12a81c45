"""What a server says of its tools: names, limits, fingerprints, differences."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.mcp.definitions import (
    MAX_DESCRIPTION_CHARACTERS,
    MAX_TOOLS,
    Definition,
    RawTool,
    difference,
    is_server_name,
    listing,
)
from hermes.settings.mcp import McpToolSettings

ALL = McpToolSettings()


def raw(
    name: str, description: str = "", parameters: Any = None, *, read_only: bool = False
) -> RawTool:
    return RawTool(
        name,
        description,
        {"type": "object"} if parameters is None else parameters,
        read_only,
    )


@pytest.mark.parametrize(
    "name", ["", "a.b", "../x", "a b", "-x", "x" * 33, "é", "a/b", "x\n"]
)
def test_a_server_name_that_could_mean_something_else_is_none(name: str) -> None:
    assert not is_server_name(name)


@given(st.lists(st.text(min_size=1, max_size=8), max_size=12))
def test_names_of_tools_never_leave_their_namespace_or_collide(
    names: list[str],
) -> None:
    found = listing([raw(name) for name in names], ALL)
    specs = [tool.spec("files").name for tool in found.tools.values()]
    assert len(set(specs)) == len(specs)
    assert all(
        name.startswith("mcp.files.") and name.isascii() and " " not in name
        for name in specs
    )
    assert len(found.tools) + len(found.left_out) == len(names)


def test_the_order_of_a_listing_does_not_depend_on_the_server() -> None:
    one = listing([raw("b"), raw("a")], ALL)
    two = listing([raw("a"), raw("b")], ALL)
    assert list(one.tools) == list(two.tools) == ["a", "b"]


@pytest.mark.parametrize(
    ("tool", "why"),
    [
        (raw("a b"), "its name has characters"),
        (raw("a", parameters=["no object"]), "not described as an object"),
        (raw("a", parameters={"type": "array"}), "not described as an object"),
        (
            raw("a", parameters={"type": "object", "description": "x" * 40_000}),
            "bytes (at most 32,768)",
        ),
        (raw("a", parameters={"x": object()}), "can't be read"),
        (raw("a", parameters={"properties": ["x"]}), "that models can't read"),
        (raw("a", parameters={"properties": {"x y": {}}}), "that models can't read"),
        (raw("a", parameters={"properties": {"x": 1}}), "that models can't read"),
        (raw("a", parameters={"required": 5}), "that models can't read"),
        (raw("a", parameters={"required": ["x"]}), "that models can't read"),
    ],
)
def test_a_tool_that_can_not_be_offered_is_named(tool: RawTool, why: str) -> None:
    found = listing([tool, raw("good")], ALL)
    assert list(found.tools) == ["good"]
    assert why in found.left_out[0]


def test_too_many_tools_are_left_out_and_said() -> None:
    found = listing([raw(f"t{number:04}") for number in range(MAX_TOOLS + 2)], ALL)
    assert len(found.tools) == MAX_TOOLS
    assert len(found.left_out) == 2


def test_descriptions_are_harmless_and_bounded() -> None:
    words = "\x1b[31mred\u202e\u200b " + "x" * 10_000
    schema = {
        "type": "object",
        "properties": {"p": {"description": "a\u2060b"}},
        "$schema": "https://json-schema.org",
    }
    tool = listing([raw("a", words, schema)], ALL).tools["a"]
    assert tool.description.startswith("red x")
    assert len(tool.description) < MAX_DESCRIPTION_CHARACTERS + 10
    assert tool.parameters == {
        "type": "object",
        "properties": {"p": {"description": "ab"}},
    }


def test_a_schema_without_properties_takes_any_argument() -> None:
    assert (
        listing([raw("a")], ALL).tools["a"].parameters["additionalProperties"] is True
    )
    closed = raw("a", parameters={"type": "object", "additionalProperties": False})
    assert listing([closed], ALL).tools["a"].parameters["additionalProperties"] is False


def test_a_schema_holds_nothing_that_spoils_a_request() -> None:
    schema = {
        "type": "object", "anyOf": [{"required": ["x"]}], "title": "T", "$schema": "s",
        "properties": {"x": {"type": "array"}, "y": {"type": "array", "items": {"type": "string"}}},
    }  # fmt: skip
    assert listing([raw("a", parameters=schema)], ALL).tools["a"].parameters == {
        "type": "object",
        "properties": {
            "x": {"type": "array", "items": {}},
            "y": {"type": "array", "items": {"type": "string"}},
        },
    }


def test_the_fingerprint_follows_what_counts_and_nothing_else() -> None:
    base = Definition("a", "words", {"type": "object", "properties": {}})
    same = Definition("a", "words", {"properties": {}, "type": "object"})
    assert base.fingerprint == same.fingerprint
    others = [
        Definition("a", "other words", base.parameters),
        Definition("a", "words", {"type": "object", "properties": {"x": {}}}),
        Definition("a", "words", base.parameters, read_only=True),
    ]
    assert len({base.fingerprint, *(other.fingerprint for other in others)}) == 4


def test_a_difference_is_told_in_words() -> None:
    old = Definition("a", "Adds.", {"properties": {"x": {"type": "string"}, "y": {}}})
    new = Definition(
        "a",
        "Adds and tells.",
        {"properties": {"x": {"type": "number"}, "z": {}}},
        read_only=True,
    )
    assert difference(old, new) == (
        "Before: Adds.\nNow: Adds and tells.\nNew arguments: z\nArguments that are gone: y\n"
        "Arguments that are described differently: x\nIt now says that it only reads."
    )
