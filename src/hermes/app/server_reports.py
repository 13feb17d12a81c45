"""What MCP servers report, as events of this process; and the scan of what they say about their tools."""

import logging

from hermes.app.app import App
from hermes.learning.scan import scan
from hermes.mcp.logins import login_command
from hermes.mcp.server_config import ServerReports, ServerStatus
from hermes.schema.event_base import Event, payload_of
from hermes.schema.mcp import (
    McpLoginEnded,
    McpServerChanged,
    McpServerLogged,
    McpToolsSuspected,
)

log = logging.getLogger("hermes.mcp")
notices = logging.getLogger("hermes.waiting")
"""What is logged here is shown to whoever sits at a terminal."""


def server_reports(app: App) -> ServerReports:
    """Publishes what servers report on the bus of the app."""

    def publish(event: Event) -> None:
        app.bus.publish(event.topic, payload_of(event))

    told: set[str] = set()

    def changed(status: ServerStatus) -> None:
        publish(
            McpServerChanged(
                server=status.name,
                state=status.state,
                detail=status.detail,
                tools=status.tools,
            )
        )
        if status.state == "failed" and status.name not in told:
            told.add(status.name)
            notices.warning(
                "The MCP server %s can't be used: %s. See: hermes mcp list",
                status.name,
                status.detail.rstrip("."),
            )

    def login_ended(server: str, reason: str) -> None:
        command = login_command(server)
        publish(McpLoginEnded(server=server, reason=reason, command=command))
        notices.warning(
            "Your login at the MCP server %s has ended: %s. Sign in again: %s",
            server,
            reason,
            command,
        )

    def logged(server: str, level: str, text: str) -> None:
        publish(McpServerLogged(server=server, level=level, text=text))
        log.info("%s says (%s): %s", server, level, text)

    def suspected(server: str, findings: tuple[str, ...]) -> None:
        publish(McpToolsSuspected(server=server, findings=findings))
        notices.warning(
            "Tools of the MCP server %s are not offered: %s. See: hermes mcp list",
            server,
            "; ".join(findings[:3]),
        )

    return ServerReports(
        on_change=changed,
        on_login_ended=login_ended,
        on_log=logged,
        on_suspected=suspected,
        scan=scan,
    )
