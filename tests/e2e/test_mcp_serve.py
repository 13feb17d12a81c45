"""`hermes mcp serve` as another agent uses it: real processes, and the mcp library's own client."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
from tests.fakes.first_use import OnFirstUse

from hermes.app import build
from hermes.events import Bus
from hermes.schema.events import SessionCreated
from hermes.schema.messages import UserMessage
from hermes.settings import Home, Settings
from hermes.testing.installed import InstalledHermes, executable

if TYPE_CHECKING:
    import mcp
    from mcp.client import streamable_http
else:
    mcp = OnFirstUse("mcp")
    streamable_http = OnFirstUse("mcp.client.streamable_http")

READERS = {"sessions_list", "sessions_search", "sessions_read", "memory_read"}


def fill(hermes: InstalledHermes) -> str:
    """A home with one session."""
    with build(Settings(), Home(hermes.home), bus=Bus()) as app:
        session = app.begin(SessionCreated(surface="test", cwd="/")).session
        app.record(session, UserMessage(text="the tomatoes need water"))
    return session


def text_of(result: Any) -> str:
    return "".join(block.text for block in result.content)


@asynccontextmanager
async def client_of(streams: Any) -> AsyncIterator["mcp.ClientSession"]:
    async with (
        streams as (reading, writing, *_),
        mcp.ClientSession(reading, writing) as it,
    ):
        await it.initialize()
        yield it


def on_stdio(hermes: InstalledHermes, *options: str) -> Any:
    return mcp.stdio_client(
        mcp.StdioServerParameters(
            command=str(executable()),
            args=["mcp", "serve", *options],
            env=hermes.environ(),
            cwd=str(hermes.work),
        )
    )


async def test_reading_is_the_default_and_finds_what_was_said(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path)
    session = fill(hermes)
    async with asyncio.timeout(60), client_of(on_stdio(hermes)) as client:
        assert {one.name for one in (await client.list_tools()).tools} == READERS
        found = await client.call_tool("sessions_search", {"query": "tomatoes"})
        assert session in text_of(found)
        read = await client.call_tool("sessions_read", {"session": session})
        assert (
            json.loads(text_of(read))["messages"][0]["text"]
            == "the tomatoes need water"
        )
        refused = await client.call_tool("hermes_terminal", {"command": "id"})
        assert refused.is_error


async def test_tools_go_through_the_policy_and_nobody_to_ask_means_no(
    tmp_path: Path,
) -> None:
    hermes = InstalledHermes(tmp_path)
    fill(hermes)
    (hermes.work / "note.txt").write_text("read me")
    options = ("--scope", "tools")
    async with asyncio.timeout(60), client_of(on_stdio(hermes, *options)) as client:
        names = {one.name for one in (await client.list_tools()).tools}
        assert not names & READERS
        assert "hermes_write_file" not in names
        read = await client.call_tool("hermes_read_file", {"path": "note.txt"})
        assert "read me" in text_of(read)
        asked = await client.call_tool("hermes_terminal", {"command": "rm -rf .."})
        assert asked.is_error
        assert "nobody can be asked" in text_of(asked)
    assert (hermes.work / "note.txt").exists()


@asynccontextmanager
async def over_http(hermes: InstalledHermes) -> AsyncIterator[str]:
    """The server, and its address."""
    process = await hermes.start("mcp", "serve", "--http", "--port", "0")
    assert process.stdout is not None
    try:
        line = (await asyncio.wait_for(process.stdout.readline(), 60)).decode()
        yield line.split(" at ")[1].split(". ")[0]
    finally:
        process.terminate()
        await asyncio.wait_for(process.communicate(), 30)


async def key_of(hermes: InstalledHermes, *scopes: str) -> str:
    wanted = [word for scope in scopes for word in ("--scope", scope)]
    done = await hermes.run("api", "key", "add", "test", *wanted)
    return done.out.splitlines()[0].strip()


def http_client(key: str) -> httpx2.AsyncClient:
    headers = {"authorization": f"Bearer {key}"}
    return httpx2.AsyncClient(headers=headers, timeout=30)


async def test_over_http_a_key_sees_what_its_scopes_allow(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path)
    session = fill(hermes)
    refused = await hermes.run("mcp", "serve", "--http")
    assert refused.code
    assert "hermes api key add" in refused.err
    reader = await key_of(hermes, "mcp", "sessions")
    chatter = await key_of(hermes, "chat")
    async with asyncio.timeout(120), over_http(hermes) as url:
        async with (
            http_client(reader) as line,
            client_of(
                streamable_http.streamable_http_client(url, http_client=line)
            ) as client,
        ):
            names = {one.name for one in (await client.list_tools()).tools}
            assert names == READERS - {"memory_read"}
            found = await client.call_tool("sessions_search", {"query": "tomatoes"})
            assert session in text_of(found)
            assert (await client.call_tool("memory_read", {})).is_error
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        async with http_client(chatter) as line:
            assert (await line.post(url, json=ping)).status_code == 403
        async with http_client("sk-hermes-wrong") as line:
            assert (await line.post(url, json=ping)).status_code == 401
        async with http_client(reader) as line:
            for header in (
                {"host": "evil.example"},
                {"origin": "https://evil.example"},
            ):
                answer = await line.post(url, json=ping, headers=header)
                assert answer.status_code == 403, header
