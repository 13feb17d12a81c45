"""Servers that misbehave: each costs its own call, is visible in the status, and nothing else notices."""

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from hermes.errors import ToolFailed
from hermes.settings.mcp import McpServerSettings
from hermes.text.install_words import install_hint

if TYPE_CHECKING:
    from tests.integration.mcp.conftest import Bench


async def test_a_server_that_dies_is_reported_and_started_again(bench: "Bench") -> None:
    servers = await bench.prepared()
    with pytest.raises(ToolFailed, match=r"ended by itself \(exit code 3\)") as failed:
        await bench.call(servers, "die")
    assert "last words" not in failed.value.message, (
        "the model gets no words of the server as ours"
    )
    assert "may or may not have taken effect" in failed.value.hint
    status = servers.status()[0]
    assert (status.state, status.detail) == (
        "failed",
        "it ended by itself (exit code 3): the last words",
    )
    assert (await bench.call(servers, "echo", text="again")).text == "again"
    assert servers.status()[0].state == "connected"


async def test_a_server_that_can_not_start_says_why_and_is_tried_less_and_less_often(
    bench: "Bench",
) -> None:
    servers = await bench.prepared("die")
    status = servers.status()[0]
    assert (status.state, status.detail) == (
        "failed",
        "it ended by itself (exit code 4): no such database",
    )
    assert not servers.tools()
    waits: list[float] = []
    for _ in range(3):
        await servers.prepare(20)
        waits.append(servers.status()[0].retry_in)
    assert 0 < waits[0] <= 1
    assert len([line for line in bench.noted() if line.startswith("started")]) == 2, (
        "within the wait it is left alone"
    )


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (
            McpServerSettings(command="no-such-program"),
            "there is no program 'no-such-program'",
        ),
        (
            McpServerSettings(command="sh", cwd="/no/such/folder"),
            "there is no folder /no/such/folder",
        ),
        (McpServerSettings(), "it needs either a command or a url"),
        (
            McpServerSettings(command="sh", url="http://127.0.0.1:1/mcp"),
            "it needs either a command or a url",
        ),
        (McpServerSettings(url="ftp://example.org"), "its url is not usable"),
        (
            McpServerSettings(url="http://example.org/mcp", headers={"X-Key": "1"}),
            "its headers would be sent unencrypted",
        ),
        (
            McpServerSettings(url="http://127.0.0.1:1/mcp"),
            "it can't be reached: All connection attempts failed",
        ),
    ],
)
async def test_settings_that_can_not_work_are_explained(
    bench: "Bench", settings: McpServerSettings, why: str
) -> None:
    servers = bench.servers(fake=settings)
    await servers.prepare(20)
    assert (servers.status()[0].state, servers.status()[0].detail) == ("failed", why)
    assert servers.status()[0].hint


async def test_a_name_that_could_leave_its_folder_is_not_used(bench: "Bench") -> None:
    servers = bench.servers(**{"../../x": bench.program()})
    await servers.prepare(20)
    assert servers.status()[0].detail == "its name can't be used"
    assert not bench.noted()


async def test_a_server_that_never_answers_is_given_up_and_gone(
    bench: "Bench", running: Any
) -> None:
    servers = await bench.prepared("mute", connect_timeout=2.0)
    assert servers.status()[0].detail == "it did not answer within 2 s"
    pid = int(bench.noted()[0].split()[1])
    assert not running(pid)


async def test_a_call_that_hangs_ends_and_a_second_one_restarts_the_server(
    bench: "Bench", wait_until: Any
) -> None:
    servers = await bench.prepared(timeout=1.5)
    pid = servers.status()[0].pid
    with pytest.raises(ToolFailed, match=r"did not answer within 1\.5 s"):
        await bench.call(servers, "hang")
    await wait_until(
        lambda: any(line.startswith("cancelled") for line in bench.noted())
    )
    assert servers.status()[0].pid == pid
    with pytest.raises(ToolFailed, match="did not answer"):
        await bench.call(servers, "hang")
    assert servers.status()[0].state == "failed"
    assert (await bench.call(servers, "echo", text="again")).text == "again"
    assert servers.status()[0].pid != pid


async def test_an_answer_of_a_gigabyte_is_not_read(
    bench: "Bench", wait_until: Any
) -> None:
    servers = await bench.prepared()
    with pytest.raises(ToolFailed, match="a message of more than 8 MiB"):
        await bench.call(servers, "big")
    assert (await bench.call(servers, "echo", text="again")).text == "again"


async def test_lines_that_are_no_messages_are_passed_over(bench: "Bench") -> None:
    assert (
        await bench.call(await bench.prepared(), "garbage")
    ).text == "after the garbage"


async def test_an_answer_that_can_not_be_read_is_an_answer(bench: "Bench") -> None:
    result = await bench.call(await bench.prepared(), "mangled")
    assert (result.ok, result.text) == (False, "Error: its answer can't be read")


async def test_a_program_that_speaks_something_else_is_left(bench: "Bench") -> None:
    servers = await bench.prepared()
    with pytest.raises(ToolFailed, match="does not speak MCP"):
        await bench.call(servers, "noise")


async def test_a_flood_of_notifications_is_dropped_and_counted(bench: "Bench") -> None:
    servers = await bench.prepared()
    assert (await bench.call(servers, "flood")).text == "after the flood"
    assert len(bench.shown) < 5_000
    assert "messages dropped" in servers.status()[0].detail


async def test_a_flood_on_stderr_is_kept_within_bounds(
    bench: "Bench", wait_until: Any
) -> None:
    servers = await bench.prepared()
    assert (await bench.call(servers, "complain")).text == "after the complaint"
    folder = bench.home.logs / "mcp"
    await wait_until((folder / "fake.log.1").exists)
    await servers.close()
    assert sum(file.stat().st_size for file in folder.iterdir()) <= 2 * 256 * 1024
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}


async def test_closing_ends_everything_a_server_started(
    bench: "Bench", running: Any
) -> None:
    servers = await bench.prepared("stubborn")
    daemon = int((await bench.call(servers, "daemon")).text)
    supervisor, server = servers.status()[0].pid, int(bench.noted()[0].split()[1])
    assert all(map(running, (daemon, supervisor, server)))
    await servers.close()
    assert not any(map(running, (daemon, supervisor, server)))
    assert str(supervisor) not in os.listdir("/proc"), "no zombie is left"  # noqa: PTH208


async def test_a_server_that_ends_takes_its_daemons_along(
    bench: "Bench", running: Any, wait_until: Any
) -> None:
    servers = await bench.prepared()
    daemon = int((await bench.call(servers, "daemon")).text)
    with pytest.raises(ToolFailed):
        await bench.call(servers, "die")
    await wait_until(lambda: not running(daemon))


def _unread(connection: Any) -> int:
    """Bytes that wait for the server to read."""
    return connection._child._child._writer.transport.get_write_buffer_size()


async def test_a_server_that_does_not_read_does_not_hold_up_an_interrupt(
    bench: "Bench", wait_until: Any
) -> None:
    servers = await bench.prepared()
    calls = [asyncio.ensure_future(bench.call(servers, "deaf"))]
    await wait_until(lambda: "deaf" in bench.noted())
    calls += [
        asyncio.ensure_future(bench.call(servers, "echo", text="x" * 1_000_000))
        for _ in range(3)
    ]
    connection = servers._servers["fake"]._connection
    assert connection is not None
    await wait_until(lambda: _unread(connection) > 500_000)
    for call in calls:
        call.cancel()
    async with asyncio.timeout(3):
        await asyncio.wait(calls)


async def test_a_server_that_is_slow_to_end_does_not_take_its_successor_along(
    bench: "Bench", running: Any, wait_until: Any
) -> None:
    servers = await bench.prepared("stubborn")
    old = servers.status()[0].pid
    connection = servers._servers["fake"]._connection
    assert connection is not None
    closing = asyncio.ensure_future(connection.close())
    await wait_until(lambda: servers.status()[0].pid != old)
    assert (await bench.call(servers, "echo", text="new")).text == "new"
    new = servers.status()[0].pid
    await closing
    await wait_until(lambda: not running(old))
    assert (servers.status()[0].state, servers.status()[0].pid) == ("connected", new)
    await servers.close()
    assert not running(new)


HERMES = """
import asyncio, sys, msgspec
from pathlib import Path
from hermes.core.ports import ToolContext
from hermes.mcp import McpServers
from hermes.settings import Home, Secrets
from hermes.settings.sections import McpServerSettings

async def main():
    settings = msgspec.json.decode(sys.argv[2], type=McpServerSettings)
    servers = McpServers({"fake": settings}, Home(Path(sys.argv[1])), Secrets({}, {}), {"HOME": "/"})
    await servers.prepare(30)
    context = ToolContext("1", "s", Path("/"), lambda _: None)
    daemon = await servers.tools()["mcp.fake.daemon"].run({}, context)
    print(servers.status()[0].pid, daemon.text, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_killing_hermes_ends_its_servers(
    bench: "Bench", running: Any, wait_until: Any
) -> None:
    settings = msgspec.json.encode(bench.program("stubborn")).decode()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        HERMES,
        str(bench.home.root),
        settings,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    supervisor, daemon = map(int, (await process.stdout.readline()).split())
    server = int(bench.noted()[0].split()[1])
    assert all(map(running, (supervisor, daemon, server)))
    process.kill()
    await process.wait()
    await wait_until(lambda: not any(map(running, (supervisor, daemon, server))))


async def test_stopping_the_supervisor_ends_everything(
    bench: "Bench", running: Any, wait_until: Any
) -> None:
    servers = await bench.prepared("stubborn")
    daemon = int((await bench.call(servers, "daemon")).text)
    os.kill(servers.status()[0].pid, signal.SIGTERM)
    await wait_until(
        lambda: not running(daemon) and servers.status()[0].state == "failed"
    )


async def test_killing_the_supervisor_ends_the_server(
    bench: "Bench", running: Any, wait_until: Any
) -> None:
    servers = await bench.prepared()
    server = int(bench.noted()[0].split()[1])
    os.kill(servers.status()[0].pid, signal.SIGKILL)
    await wait_until(lambda: not running(server))
    await wait_until(lambda: servers.status()[0].state == "failed")
    assert (await bench.call(servers, "echo", text="again")).text == "again"


async def test_closing_while_a_call_runs_ends_the_call(
    bench: "Bench", wait_until: Any
) -> None:
    servers = await bench.prepared()
    call = asyncio.ensure_future(bench.call(servers, "hang"))
    await wait_until(lambda: "hanging" in bench.noted())
    await servers.close()
    with pytest.raises(ToolFailed, match="has ended"):
        await call


WITHOUT = """
import asyncio, sys
from pathlib import Path
sys.modules["mcp"] = None  # as if it were not installed
from hermes.mcp import McpServers
from hermes.settings import Home, Secrets
from hermes.settings.sections import McpServerSettings

servers = McpServers({"fake": McpServerSettings(command="true")}, Home(Path(sys.argv[1])), Secrets({}, {}), {"HOME": "/"})
asyncio.run(servers.prepare(30))
print(servers.status()[0].detail, servers.status()[0].hint)
"""


async def test_a_missing_library_is_named(bench: "Bench") -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        WITHOUT,
        str(bench.home.root),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    assert f"not installed {install_hint('mcp')}".encode() in out
