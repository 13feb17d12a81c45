"""`hermes tools`: what the model can do, and which of it is offered where."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hermes.app import App, build
from hermes.core.ports import Tool
from hermes.settings.load import find_home, load, load_secrets
from hermes.surfaces.terminal.text import (
    TextScreen,
    cut,
    one_line,
    pad,
    stdout_screen,
    wrap,
)
from hermes.tools.toolsets import SURFACES, TOOLSETS, ToolChoice, toolset_of

DOES = {
    "read": "only reads",
    "network": "uses the network",
    "files": "changes files",
    "other": "runs programs",
}
"""What a tool may do, by its effect."""
_DOES = max(map(len, DOES.values()))


class Listed(msgspec.Struct, frozen=True):
    """A tool as it is listed."""

    name: str
    toolset: str
    does: str
    summary: str
    offered: bool


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--surface",
        metavar="NAME",
        choices=sorted(SURFACES),
        default="cli",
        help="where: cli, tui, api, gateway or cron",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.epilog = "Change it with the settings tools.enabled and tools.disabled: toolsets, tools or patterns like mcp.*"


def run(args: argparse.Namespace) -> int:
    from hermes.app.session_tools import needs_of, offers_schedules
    from hermes.tools import all_tools

    home = find_home()
    with build(load(home=home), home) as app:
        needs = needs_of(
            app, load_secrets(home=home), surface=args.surface, extra=_of_the_agent(app)
        )
        tools = all_tools(needs)
        hidden = () if offers_schedules(app, args.surface) else ("schedule",)
        rows = listed(
            tools,
            msgspec.structs.replace(
                needs.choice, disabled=(*needs.choice.disabled, *hidden)
            ),
        )
        unknown = needs.choice.unknown(tools)
    if args.json:
        print(
            msgspec.json.format(
                msgspec.json.encode(document(rows, unknown)), indent=2
            ).decode()
        )
        return 0
    for line in lines_of(rows, unknown, stdout_screen()):
        print(line)
    return 0


def _of_the_agent(app: App) -> tuple[Tool, ...]:
    """Tools that are made of the agent itself, and those that MCP servers offered last."""
    from hermes.app.agent import Agent
    from hermes.app.delegate_tool import Delegation
    from hermes.app.schedules.tools import schedule_tools

    agent = Agent(app, load_secrets(home=app.home))
    servers = agent.toolbox.servers
    served = servers.tools().values() if servers else ()
    return (
        Delegation(app, lambda: agent.service).delegate,
        *schedule_tools(app, "cli"),
        *served,
    )


def listed(tools: Mapping[str, Tool], choice: ToolChoice) -> list[Listed]:
    """Every tool, with what it may do and whether it is offered."""
    return [
        Listed(
            name=name,
            toolset=toolset_of(name),
            does=DOES[one.effect],
            summary=_first_sentence(one.spec.description),
            offered=choice.wants(name),
        )
        for name, one in tools.items()
    ]


def document(rows: Sequence[Listed], unknown: Sequence[str]) -> dict[str, Any]:
    """Everything, for a script."""
    return {"tools": msgspec.to_builtins(rows), "unknown": list(unknown)}


def lines_of(
    rows: Sequence[Listed], unknown: Sequence[str], screen: TextScreen
) -> list[str]:
    """The tools by set; one that is not offered is marked."""
    lines: list[str] = []
    widest = max((len(row.name) for row in rows), default=0)
    for toolset in TOOLSETS:
        own = [row for row in rows if row.toolset == toolset.name]
        if own:
            lines += ["", screen.style.bold(f"{toolset.name}: {toolset.summary}")]
            lines += [line for row in own for line in _tool(row, widest, screen)]
    if unknown:
        lines += [
            "",
            screen.style.yellow(
                f"No tool or set is called {', '.join(map(one_line, unknown))} (settings)."
            ),
        ]
    return lines[1:]


def _tool(row: Listed, widest: int, screen: TextScreen) -> list[str]:
    name = one_line(row.name)
    does = row.does if row.offered else "off"
    if screen.is_narrow:
        return [
            cut(f"  {name}", screen.columns),
            *(f"    {line}" for line in wrap(does, screen.columns - 4)),
        ]
    text = cut(
        f"  {pad(name, widest)}  {pad(does, _DOES)}  {one_line(row.summary)}",
        screen.columns,
    )
    return [text if row.offered else screen.style.dim(text)]


def _first_sentence(text: str) -> str:
    first = text.split(". ", maxsplit=1)[0].strip()
    return first if first.endswith(".") or not first else f"{first}."
