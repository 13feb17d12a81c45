"""What a caller of `hermes mcp serve` gets with narrow scopes."""

from pathlib import Path

import pytest

from hermes.app import build
from hermes.events import Bus
from hermes.settings import Home, Settings
from hermes.settings.load import load_secrets
from hermes.surfaces.gateway.mcp_server.command import served_tools
from hermes.surfaces.gateway.mcp_server.served_tools import served_caller


async def test_tools_alone_do_not_reach_sessions_or_people(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    with build(Settings(), home, bus=Bus()) as app:
        served = served_tools(app, load_secrets({}, home=home), tmp_path)
        names = {spec.name for spec, _ in served.listed(("tools",))}
        assert "hermes_read_file" in names
        assert not names & {"hermes_session_search", "hermes_ask_user"}
        refused = await served.call(("tools",), "hermes_session_search", {"query": "x"})
        assert not refused.ok


async def test_a_caller_does_not_see_what_another_has_running(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    with build(Settings(), home, bus=Bus()) as app:
        served = served_tools(app, load_secrets({}, home=home), tmp_path)
        scopes = ("tools",)

        async def call(caller: str, tool: str, arguments: dict[str, object]) -> str:
            served_caller.set(caller)
            return (await served.call(scopes, f"hermes_{tool}", arguments)).text

        try:
            began = await call(
                "one", "terminal", {"command": "sleep 600", "background": True}
            )
            if "needs permission" in began:
                pytest.skip("there is no sandbox here")
            assert "sleep 600" in await call("one", "process", {"action": "list"})
            assert "sleep 600" not in await call("two", "process", {"action": "list"})
        finally:
            await served.close()
