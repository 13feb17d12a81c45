"""The tools that the model can use, and where each is offered."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

import msgspec

from hermes.app import App
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.views import Block, Column, TableRow, line, table
from hermes.core.ports import Tool
from hermes.settings.gateway import connected_platforms
from hermes.text.translation import shown_reason, to_translate, translator
from hermes.tools.toolsets import TOOLSETS, ToolChoice, toolset_of

t = translator(__name__)


EXAMPLES = to_translate(
    "Change it with the settings tools.enabled and tools.disabled: toolsets, tools or patterns like mcp.*"
)
EFFECTS = {
    "read": to_translate("changes no files"),
    "network": to_translate("uses the network"),
    "files": to_translate("changes files"),
    "other": to_translate("runs programs"),
}
"""What a tool may do, by its effect."""


class ListedTool(msgspec.Struct, frozen=True):
    """A tool as it is listed."""

    name: str
    toolset: str
    does: str
    summary: str
    offered: bool


class ToolListing(msgspec.Struct, frozen=True, kw_only=True):
    """The tools by toolset, and names in the settings that match no tool."""

    tools: tuple[ListedTool, ...]
    unknown: tuple[str, ...] = ()

    def view(self, _now: float) -> Iterable[Block]:
        widest = max((len(one.name) for one in self.tools), default=0)
        effects = max(len(t.marked(one)) for one in EFFECTS.values())
        columns = (Column(least=widest), Column(least=effects), Column())
        before = ""
        for toolset in TOOLSETS:
            own = [one for one in self.tools if one.toolset == toolset.name]
            if not own:
                continue
            yield line(
                f"{before}{toolset.name}: {shown_reason(toolset.summary)}", "bold"
            )
            before = "\n"
            rows = [
                TableRow(
                    (one.name, one.does if one.offered else "off", one.summary),
                    "" if one.offered else "dim",
                )
                for one in own
            ]
            yield table(columns, rows, narrow=((0,), (1,)), indent=2)
        if self.unknown:
            yield line(
                t(
                    "\nNo tool or set is called {unknown} (settings).",
                    unknown=", ".join(self.unknown),
                ),
                "warn",
            )


@command("tools", slash="tools", scope="observe", group="Permissions")
def list_tools(
    context: CommandContext,
    *,
    surface: Annotated[
        Literal["api", "cli", "cron", "dashboard", "gateway", "tui"],
        Arg("where: cli, tui, dashboard, api, gateway or cron", metavar="NAME"),
    ] = "cli",
) -> ToolListing:
    """List the tools and where they are offered."""
    chat = context.conversation
    if chat is not None:
        offered = chat.agent.tools(chat.session)
        return ToolListing(tools=listed(offered, None))
    tools, choice = tools_of(context, surface)
    unknown = tuple(choice.unknown(tools))
    return ToolListing(tools=listed(tools, choice), unknown=unknown)


def tools_of(
    context: CommandContext, surface: str
) -> tuple[Mapping[str, Tool], ToolChoice]:
    """Every tool, and which of them a surface offers."""
    from hermes.app.session_tools import choice_of, needs_of, offers_schedules
    from hermes.tools import all_tools

    app = context.app
    choice = choice_of(app, surface)
    needs = needs_of(app, context.secrets, choice, extra=_agent_tools(context, app))
    hidden = () if offers_schedules(app, surface) else ("schedule",)
    if not connected_platforms(app.settings.gateway, context.secrets):
        hidden = (*hidden, "messages")
    disabled = (*needs.choice.disabled, *hidden)
    return all_tools(needs), msgspec.structs.replace(needs.choice, disabled=disabled)


def listed(
    tools: Mapping[str, Tool], choice: ToolChoice | None
) -> tuple[ListedTool, ...]:
    """Every tool, its effect, and whether it is offered; all are if no surface is given."""
    return tuple(
        ListedTool(
            name=name,
            toolset=toolset_of(name),
            does=t.marked(EFFECTS[one.effect]),
            summary=_first_sentence(one.spec.description),
            offered=choice is None or choice.wants(name),
        )
        for name, one in tools.items()
    )


def _agent_tools(context: CommandContext, app: App) -> tuple[Tool, ...]:
    """Tools built from the agent itself, and those that MCP servers offered last."""
    from hermes.app.agent import Agent
    from hermes.app.delegate_tool import Delegation
    from hermes.app.schedules.tools import schedule_tools
    from hermes.app.send_tool import message_tools
    from hermes.app.session_tools import speaking_tools

    agent = Agent(app, context.secrets)
    servers = agent.toolbox.servers
    served: Any = servers.tools().values() if servers else ()
    delegate = Delegation(app, lambda: agent.service).delegate
    return (
        *(delegate, *schedule_tools(app, "cli"), *served),
        *(*message_tools(app), *speaking_tools(app, context.secrets)),
    )


def _first_sentence(text: str) -> str:
    first = text.split(". ", maxsplit=1)[0].strip()
    return first if first.endswith(".") or not first else f"{first}."
