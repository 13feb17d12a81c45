"""Publishes reports of MCP servers as events of this process, and scans the descriptions of their tools."""

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
from hermes.text.translation import translator

t = translator(__name__)


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
            text = t.logged(
                "The MCP server {name} can't be used: {why}. See: hermes mcp list",
                name=status.name,
                why=status.detail.rstrip("."),
            )
            notices.warning("%s", text)

    def login_ended(server: str, reason: str) -> None:
        command = login_command(server)
        publish(McpLoginEnded(server=server, reason=reason, command=command))
        text = t.logged(
            "Your login at the MCP server {name} has ended: {why}. Sign in again: {command}",
            name=server,
            why=reason,
            command=command,
        )
        notices.warning("%s", text)

    def logged(server: str, level: str, text: str) -> None:
        publish(McpServerLogged(server=server, level=level, text=text))
        log.info("%s says (%s): %s", server, level, text)

    def suspected(server: str, findings: tuple[str, ...]) -> None:
        publish(McpToolsSuspected(server=server, findings=findings))
        text = t.logged(
            "Tools of the MCP server {name} are not offered: {findings}. See: hermes mcp list",
            name=server,
            findings="; ".join(findings[:3]),
        )
        notices.warning("%s", text)

    return ServerReports(
        on_change=changed,
        on_login_ended=login_ended,
        on_log=logged,
        on_suspected=suspected,
        scan=scan,
    )
