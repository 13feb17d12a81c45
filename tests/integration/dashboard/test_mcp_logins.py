"""Logins at MCP servers from the page: a request to begin one always gets an answer."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from tests.fakes.web_server import Asked, Raw, web_server
from tests.integration.dashboard.harness import Harness

from hermes.errors import HermesError
from hermes.surfaces.dashboard.routes.mcp_logins import McpLoginRoutes
from hermes.surfaces.web.endpoint import EndpointCall

PATH = "/api/mcp/lab/login"


def _configure(home: Path, url: str) -> None:
    (home / "config.yaml").write_text(f"mcp_servers: {{lab: {{url: '{url}'}}}}\n")


class Silent:
    """A server that takes requests and never answers, until it hangs up."""

    def __init__(self) -> None:
        self.asked: asyncio.Queue[Asked] = asyncio.Queue()
        self.hangs_up = asyncio.Event()

    def answer(self, asked: Asked) -> Raw:
        self.asked.put_nowait(asked)

        async def never(_: asyncio.StreamWriter) -> None:
            await self.hangs_up.wait()

        return never


async def test_a_login_that_another_one_replaces_is_answered(harness: Harness) -> None:
    silent = Silent()
    async with web_server(silent.answer) as server, asyncio.timeout(60):
        _configure(harness.app.home.root, server.url)
        first = asyncio.ensure_future(harness.ask("POST", PATH))
        await silent.asked.get()
        second = asyncio.ensure_future(harness.ask("POST", PATH))
        answer = await first
        silent.hangs_up.set()
        await second
    assert answer.status_code == 400
    assert "another one was begun" in answer.text


async def test_a_login_that_fails_in_an_unknown_way_is_answered(
    harness: Harness,
) -> None:
    _configure(harness.app.home.root, "https://127.0.0.1:x")
    answer = await harness.ask("POST", PATH)
    assert answer.status_code == 400
    assert "You are not signed in at lab: the login failed." in answer.text
    assert (await harness.call("GET", PATH))["state"] == "failed"


async def test_a_server_that_does_not_answer_is_not_waited_for_without_end(
    harness: Harness,
) -> None:
    silent = Silent()
    routes = McpLoginRoutes(harness.served.board, begin_timeout_s=0.1)
    call = EndpointCall({"name": "lab"}, None, None, cast("Any", None))
    async with web_server(silent.answer) as server, asyncio.timeout(60):
        _configure(harness.app.home.root, server.url)
        with pytest.raises(HermesError, match="did not answer within"):
            await routes.begin(call)
    assert routes.attempt(call).state in ("none", "failed")
