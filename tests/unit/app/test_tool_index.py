"""Ranking tools by a request. The figures over many requests come from `make bench BENCH=tool_search`."""

import pytest

from hermes.app.deferred_tools.related_words import stem
from hermes.app.deferred_tools.tool_index import ToolIndex
from hermes.schema.tool_spec import ToolSpec


def spec(name: str, description: str, *arguments: str) -> ToolSpec:
    properties = {one: {"type": "string"} for one in arguments}
    return ToolSpec(
        name=f"mcp.{name}",
        description=description,
        parameters={"properties": properties},
    )


TOOLS = (
    spec("forge.createIssue", "Opens a ticket in a tracker.", "title", "body"),
    spec("forge.merge_pull_request", "Merges a pull request.", "number"),
    spec("files.delete_file", "Deletes a file.", "path"),
    spec("files.read_file", "Reads a file.", "path"),
    spec("mail.send_message", "Sends an email.", "recipient", "subject"),
    spec("rates.convert", "Converts an amount between currencies.", "amount"),
    spec("calendar.list_events", "Lists events of a calendar.", "day"),
)


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("create an issue", "mcp.forge.createIssue"),
        ("creating issues", "mcp.forge.createIssue"),
        ("report a bug", "mcp.forge.createIssue"),
        ("remove the document", "mcp.files.delete_file"),
        ("How many dollars are 20 euros?", "mcp.rates.convert"),
        ("which meetings do I have", "mcp.calendar.list_events"),
        ("merge the PR", "mcp.forge.merge_pull_request"),
    ],
)
def test_the_tool_that_fits_comes_first(query: str, name: str) -> None:
    assert ToolIndex(TOOLS).search(query, 3)[0].name == name


def test_a_query_without_a_common_word_finds_nothing() -> None:
    assert ToolIndex(TOOLS).search("zebra 17", 5) == []
    assert ToolIndex(()).search("anything", 5) == []


def test_the_same_query_always_gives_the_same_order() -> None:
    orders = {
        tuple(one.name for one in ToolIndex(order).search("file", 5))
        for order in (TOOLS, TOOLS[::-1])
    }
    assert len(orders) == 1


@pytest.mark.parametrize(
    "words",
    [
        ("repository", "repositories"),
        ("convert", "converts", "converting", "converted", "converter"),
        ("issue", "issues"),
        ("translate", "translation", "translator"),
    ],
)
def test_forms_of_a_word_have_one_stem(words: tuple[str, ...]) -> None:
    assert len({stem(word) for word in words}) == 1


@pytest.mark.parametrize(
    ("request_text", "argument"),
    [
        ("is it open on Wednesday?", "date"),
        ("read https://example.org/a", "url"),
        ("tell ann@example.org that I am late", "email"),
    ],
)
def test_a_value_in_a_request_stands_for_the_argument_that_takes_it(
    request_text: str, argument: str
) -> None:
    index = ToolIndex([spec("first", "", "colour"), spec("second", "", argument)])
    assert [one.name for one in index.search(request_text, 5)] == ["mcp.second"]


def test_the_choices_of_an_argument_find_its_tool() -> None:
    kinds = {"kind": {"type": "string", "enum": ["sedan", "truck"]}}
    rent = ToolSpec(name="rent", description="", parameters={"properties": kinds})
    other = ToolSpec(name="other", description="", parameters={})
    index = ToolIndex([other, rent])
    assert [one.name for one in index.search("a truck for Sunday", 5)] == ["rent"]
