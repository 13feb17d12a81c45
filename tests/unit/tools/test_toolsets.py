"""Which surface offers which tools, and how the settings change that."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hermes.core.ports import Effect, Tool, ToolContext
from hermes.core.prompt import STABLE
from hermes.schema.tool_spec import ToolResult, ToolSpec
from hermes.tools import Needs, all_tools, default_tools, session_tools
from hermes.tools.session_search import FoundMessage
from hermes.tools.tool import tool
from hermes.tools.toolsets import SURFACES, TOOLSETS, ToolChoice, toolset_of


class Foreign:
    """A tool from elsewhere."""

    effect: Effect = "network"

    def __init__(self, name: str) -> None:
        self.spec = ToolSpec(
            name=name, description="From elsewhere.", parameters={"type": "object"}
        )

    def paths(self, arguments: Mapping[str, Any], cwd: Path) -> tuple[Path, ...]:
        return ()

    async def run(
        self, arguments: Mapping[str, Any], context: ToolContext
    ) -> ToolResult:
        return ToolResult(text="")


class NoPast:
    def find(self, query: str, *, session: str, limit: int) -> list[FoundMessage]:
        return []

    def around(
        self, session: str, seq: int, *, before: int, after: int
    ) -> list[FoundMessage]:
        return []


def needs(choice: ToolChoice = ToolChoice(), extra: tuple[Tool, ...] = ()) -> Needs:  # noqa: B008 - frozen
    home = Path("/home-that-is-not")
    return Needs(
        outputs=home / "out",
        environment={},
        hermes_home=home,
        recall=NoPast(),
        extra=extra,
        choice=choice,
    )


FOREIGN = tuple(
    Foreign(name)
    for name in ("web_fetch", "browser_click", "mcp.git.log", "delegate", "dice")
)
BASIC = [
    "terminal",
    "read_file",
    "list_files",
    "search_files",
    "write_file",
    "edit_file",
    "todo",
]
MORE = [
    "apply_patch",
    "ask_user",
    "session_search",
    "run_python",
    "process",
    "process_write",
]


def offered(surface: str, **more: tuple[str, ...]) -> list[str]:
    return list(session_tools(needs(ToolChoice(surface, **more), FOREIGN)))


def test_a_person_at_the_machine_gets_all() -> None:
    for surface in ("cli", "tui"):
        assert offered(surface) == [
            *BASIC,
            *MORE,
            "web_fetch",
            "browser_click",
            "mcp.git.log",
            "delegate",
            "dice",
        ]


def test_other_surfaces_get_less() -> None:
    for surface in ("gateway", "a surface nobody knows"):
        assert not {"terminal", "run_python", "delegate"} & set(offered(surface))
    assert not {"run_python", "delegate"} & set(offered("api"))
    assert "browser_click" not in offered("batch")
    assert "ask_user" not in offered("cron")


def test_others_get_the_browser_only_if_the_settings_ask_for_it() -> None:
    assert not ToolChoice("gateway").for_others().wants("browser_click")
    asked = ToolChoice("gateway", ("browser", "sessions")).for_others()
    assert asked.wants("browser_click")
    assert not asked.wants("session_search")


def test_the_settings_add_and_take_away() -> None:
    assert "browser_click" in offered("batch", enabled=("browser",))
    assert "terminal" in offered("gateway", enabled=("terminal",))
    assert "mcp.git.log" not in offered("cli", disabled=("mcp.git.*",))
    assert offered("cli", enabled=("todo",), disabled=("*",)) == []
    assert "write_file" not in offered(
        "cli", enabled=("write_file",), disabled=("files",)
    )


def test_entries_that_mean_nothing_are_told() -> None:
    choice = ToolChoice("cli", ("brwoser", "web"), ("todo", "mcp.x.*"))
    assert choice.unknown(all_tools(needs())) == ("brwoser", "mcp.x.*")


def test_a_tool_from_elsewhere_takes_no_place_of_ours(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, logger="hermes.tools"):
        tools = session_tools(
            needs(extra=(Foreign("read_file"), Foreign("dice"), Foreign("dice")))
        )
    assert tools["read_file"].effect == "read"
    assert [record.getMessage().split(" already")[0] for record in caplog.records] == [
        "there is a tool read_file",
        "there is a tool dice",
    ]


def test_every_tool_is_in_a_set_and_every_surface_names_real_sets() -> None:
    names = {one.name for one in TOOLSETS}
    assert all(set(sets) <= names for sets in SURFACES.values())
    assert {toolset_of(name) for name in [*BASIC, *MORE]} == {
        "terminal",
        "files",
        "plan",
        "ask",
        "sessions",
        "code",
    }


def test_without_past_sessions_there_is_no_search_in_them() -> None:
    bare = Needs(outputs=Path("/x"), environment={}, hermes_home=Path("/y"))
    assert "session_search" not in session_tools(bare)


def test_the_first_tools_are_those_the_embedded_model_knows() -> None:
    assert list(all_tools(needs()))[:7] == list(
        default_tools(Path("/x"), environment={}, hermes_home=Path("/y"))
    )
    assert list(all_tools(needs())) == [*BASIC, *MORE]


def test_the_prompt_and_all_tools_are_small_as_sent() -> None:
    tools = session_tools(needs())
    wire = [
        {"type": "function", "function": msgspec.to_builtins(one.spec)}
        for one in tools.values()
    ]
    size = len(msgspec.json.encode(wire)) + len(msgspec.json.encode(STABLE))
    assert size < 9_000  # of 12,000: the web and delegation come on top


async def test_a_registered_tool_is_offered_and_runs() -> None:
    @tool("dice", effect="read")
    def dice(sides: int = 6) -> str:
        """Rolls."""
        return f"1 of {sides}"

    tools = session_tools(needs(extra=(dice,)))
    assert (
        await tools["dice"].run({}, ToolContext("c", "s", Path("/"), lambda text: None))
    ).text == "1 of 6"
