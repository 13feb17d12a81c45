"""The list of MCP servers."""

import pytest

from hermes.commands.mcp import ListedServer
from hermes.mcp.server_config import ServerStatus


@pytest.mark.parametrize(
    ("status", "note"),
    [
        (ServerStatus(name="a", state="idle", detail="at the first call", tools=1), ""),
        (ServerStatus(name="a", state="off", detail="it is not enabled"), ""),
        (ServerStatus(name="a", state="connecting"), "a: connecting"),
        (
            ServerStatus(name="a", state="connected", detail="files 1.0", tools=2),
            "a: connected: files 1.0",
        ),
        (
            ServerStatus(name="a", state="failed", detail="it ended", retry_in=4.6),
            "a: failed, tried again in 5 s: it ended",
        ),
        (
            ServerStatus(name="a", state="connected", tools=3, changed=("x", "y")),
            "a: connected, changed: x, y",
        ),
    ],
)
def test_a_note_says_how_a_server_is_unless_it_waits(
    status: ServerStatus, note: str
) -> None:
    assert ListedServer(status, "a program").note == note
