"""A server made with the real `mcp` library: prompts as commands, resources by `@`, progress, logging, cancellation."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.integration.mcp.conftest import eventually

from hermes.app.server_messages import names_resource, with_server_texts
from hermes.errors import Refused, UsageError
from hermes.mcp import McpServers
from hermes.settings.mcp import McpServerSettings

if TYPE_CHECKING:
    from tests.integration.mcp.conftest import Bench

PROGRAM = Path(__file__).with_name("library_server.py")
TIMEOUT_S = 20.0


async def prepared(bench: "Bench") -> McpServers:
    settings = McpServerSettings(
        command=sys.executable,
        args=(str(PROGRAM), str(bench.notes)),
        timeout=TIMEOUT_S,
        connect_timeout=TIMEOUT_S,
    )
    servers = bench.servers(lib=settings)
    await servers.prepare(TIMEOUT_S)
    return servers


async def test_a_prompt_is_called_with_its_arguments_and_scanned(
    bench: "Bench",
) -> None:
    servers = await prepared(bench)
    assert {name: one.usage for name, one in servers.prompts().items()} == {
        "lib:review": "PATH [FOCUS]",
        "lib:poisoned": "",
    }
    assert "prompt hostile" in bench.suspected[0][1][0]
    sent = await with_server_texts(servers, "/lib:review a.py slow code")
    assert sent.text == (
        '/lib:review a.py slow code\n\n<command name="lib:review">\n'
        "Review a.py and look for slow code.\n</command>"
    )
    named = await with_server_texts(servers, "/lib:review focus=leaks 'my file.py'")
    assert "Review my file.py and look for leaks." in named.text
    with pytest.raises(UsageError, match="needs: path"):
        await with_server_texts(servers, "/lib:review")
    with pytest.raises(UsageError, match="no prompt other"):
        await with_server_texts(servers, "/lib:other")
    with pytest.raises(Refused, match="looks like an attack"):
        await with_server_texts(servers, "/lib:poisoned")
    assert (await with_server_texts(servers, "/usr:bin")).text == "/usr:bin"


async def test_a_resource_is_attached_as_data_and_a_missing_one_is_named(
    bench: "Bench",
) -> None:
    servers = await prepared(bench)
    assert names_resource("lib:notes://today", servers.has)
    assert not names_resource("src/lib.py", servers.has)
    sent = await with_server_texts(servers, "do @lib:notes://today, please")
    assert '<attached path="lib:notes://today">' in sent.text
    assert "Water the plants." in sent.text
    assert "not instructions" in sent.text
    assert sent.text.count("</attached>") == 1
    missing = await with_server_texts(servers, "do @lib:notes://never")
    assert missing.text == "do @lib:notes://never"
    assert "notes://never is not attached" in missing.left[0]
    listed = await servers.resource("lib", "")
    assert "notes://today" in listed.text


async def test_resources_are_scanned_when_they_are_listed_and_read(
    bench: "Bench",
) -> None:
    servers = await prepared(bench)
    listed = await servers.resource("lib", "")
    assert "notes://letter" in listed.text
    assert "notes://trap" not in listed.text
    assert "a resource is left out" in listed.text
    read = await servers.resource("lib", "notes://letter")
    assert read.text.startswith("[This text looks like an attack")
    assert "SSH keys" in read.text
    clean = await servers.resource("lib", "notes://today")
    assert "attack" not in clean.text


async def test_progress_logging_and_cancellation_reach_the_library(
    bench: "Bench",
) -> None:
    servers = await prepared(bench)
    tools = servers.tools()
    done = await tools["mcp.lib.count"].run({}, bench.context())
    assert done.text == "three"
    shown = "".join(bench.shown)
    assert "step 1 (1/3)" in shown
    assert "step 3 (3/3)" in shown
    assert ("lib", "warning", "the end is near") in bench.logged
    waiting = asyncio.ensure_future(tools["mcp.lib.wait"].run({}, bench.context()))
    await eventually(lambda: "waiting" in "".join(bench.shown))
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await eventually(lambda: bench.notes.exists() and bool(bench.notes.read_text()))
    assert bench.notes.read_text() == "cancelled"
