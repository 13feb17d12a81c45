"""What `hermes tools` prints."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from hermes.commands.tools import ListedTool, ToolListing, listed
from hermes.surfaces.terminal.render import draw
from hermes.surfaces.terminal.style import Style
from hermes.surfaces.terminal.text import TextScreen
from hermes.tools import Needs, all_tools
from hermes.tools.toolsets import ToolChoice

TOOLS = all_tools(Needs(outputs=Path("/x"), environment={}, hermes_home=Path("/y")))
WIDE, NARROW = (
    TextScreen(100, Style(enabled=False)),
    TextScreen(40, Style(enabled=False)),
)


def question_lines(
    rows: tuple[ListedTool, ...], unknown: Sequence[str], screen: TextScreen
) -> list[str]:
    listing = ToolListing(tools=rows, unknown=tuple(unknown))
    return "\n".join(draw(listing, screen, 0.0)).split("\n")


def test_tools_are_listed_by_set_with_what_they_may_do() -> None:
    lines = question_lines(listed(TOOLS, ToolChoice("gateway")), (), WIDE)
    assert lines[0] == "terminal: run commands"
    assert lines[1].split()[:4] == ["terminal", "off", "Runs", "a"]
    assert any(
        line.split()[:4] == ["read_file", "changes", "no", "files"] for line in lines
    )
    assert max(map(len, lines)) <= 100
    offered = {row.name: row.offered for row in listed(TOOLS, ToolChoice("gateway"))}
    assert (offered["terminal"], offered["read_file"]) == (False, True)


def test_a_narrow_screen_gets_short_lines() -> None:
    lines = question_lines(
        listed(TOOLS, ToolChoice(disabled=("terminal",))), ("x" * 3,), NARROW
    )
    assert lines[1:4] == ["  terminal", "    off", "  process"]
    assert max(len(line) for line in lines[:-1]) <= 44
    assert "No tool or set is called xxx" in lines[-1]


def test_the_document_has_everything() -> None:
    listing = ToolListing(tools=listed(TOOLS, ToolChoice()), unknown=("nothing",))
    found = msgspec.to_builtins(listing)
    assert found["unknown"] == ("nothing",)
    assert found["tools"][1] == {
        "name": "read_file",
        "toolset": "files",
        "does": "changes no files",
        "summary": "Reads text, a document or a recording; at most 50 KB at once.",
        "offered": True,
    }
