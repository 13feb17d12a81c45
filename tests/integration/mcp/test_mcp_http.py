"""Services over streamable HTTP: a real one, and ones that refuse, redirect, flood or talk nonsense."""

import asyncio
import gzip
import json
import socket
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from hermes.errors import ToolFailed
from hermes.settings.mcp import McpServerSettings

if TYPE_CHECKING:
    from tests.integration.mcp.conftest import Bench

TOKEN = "tok-very-secret-123"  # noqa: S105 - of nobody
REAL = """
import sys
from pydantic import BaseModel
from mcp.server.mcpserver import MCPServer, Context

server = MCPServer("weather")

@server.tool()
def forecast(city: str) -> str:
    "Tomorrow's weather."
    return f"Sun in {city}"

@server.tool()
async def slowly(context: Context) -> str:
    "Takes its time."
    await context.report_progress(1, 2, "half")
    return "done"

class Table(BaseModel):
    seats: int
    outside: bool = False

@server.tool()
async def reserve(context: Context) -> str:
    "Asks first."
    answer = await context.elicit("Which table?", Table)
    return f"{answer.action} {answer.data if answer.action == 'accept' else ''}".strip()

server.run(transport="streamable-http", port=int(sys.argv[1]))
"""


class Service(BaseHTTPRequestHandler):
    """Answers as the path says."""

    seen: list[dict[str, str]]

    # pyrefly: ignore[missing-override-decorator]
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        pass

    def do_GET(self) -> None:
        self._reply(405, b"")

    do_DELETE = do_GET  # noqa: N815

    def do_POST(self) -> None:
        content = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.seen.append(
            {
                "path": self.path,
                **{name.lower(): value for name, value in self.headers.items()},
            }
        )
        match self.path:
            case "/401" | "/403" | "/404" | "/500" as path:
                self._reply(int(path[1:]), b"no")
            case "/away":
                self._reply(307, b"", Location="http://localhost:9/elsewhere")
            case "/nonsense":
                self._reply(200, b"<html>", **{"Content-Type": "application/json"})
            case "/packed":
                headers = {
                    "Content-Type": "application/json",
                    "Content-Encoding": "gzip",
                }
                self._reply(200, gzip.compress(b"x" * 1_000_000), **headers)
            case path:
                self._speak(path, content)

    def _speak(self, path: str, content: dict[str, Any]) -> None:
        result: dict[str, Any]
        match content.get("method"):
            case "initialize":
                version = content["params"]["protocolVersion"]
                info = {"name": "raw", "version": "1"}
                result = {
                    "protocolVersion": version,
                    "capabilities": {"tools": {}},
                    "serverInfo": info,
                }
            case "tools/list":
                result = {"tools": [{"name": "get", "inputSchema": {"type": "object"}}]}
            case "tools/call" if path == "/huge":
                self._huge()
                return
            case "tools/call" if path == "/expired":
                self._reply(404, b"no such session")
                return
            case "tools/call":
                result = {
                    "content": [
                        {
                            "type": "text",
                            "text": f"you are {self.headers['authorization']}",
                        }
                    ]
                }
            case _:
                self._reply(202, b"")
                return
        body = json.dumps(
            {"jsonrpc": "2.0", "id": content["id"], "result": result}
        ).encode()
        self._reply(200, body, **{"Content-Type": "application/json"})

    def _huge(self) -> None:
        """A gigabyte, if somebody reads it."""
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(10**9))
        self.end_headers()
        try:
            for _ in range(1000):
                self.wfile.write(b"x" * 10**6)
        except OSError:
            self.seen.append({"path": "stopped"})

    def _reply(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def service() -> Iterator[tuple[str, list[dict[str, str]]]]:
    seen: list[dict[str, str]] = []
    handler = type("Handler", (Service,), {"seen": seen})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.01}
        )
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", seen
        server.shutdown()
        thread.join()


@pytest.fixture
async def weather(wait_until: Any) -> AsyncIterator[str]:
    """The library's own server."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        REAL,
        str(port),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )

    def is_up() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        await wait_until(is_up)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        await process.wait()


async def test_a_real_service_is_used(bench: "Bench", weather: str) -> None:
    servers = bench.servers(fake=McpServerSettings(url=weather))
    await servers.prepare(20)
    assert sorted(servers.tools()) == [
        "mcp.fake.forecast",
        "mcp.fake.reserve",
        "mcp.fake.slowly",
    ]
    assert (await bench.call(servers, "forecast", city="Oslo")).text == "Sun in Oslo"
    assert (await bench.call(servers, "slowly")).text == "done"
    assert bench.shown == ["half (1/2)\n"]
    assert (await bench.call(servers, "reserve")).text == "decline"
    bench.answers = ["4", "yes"]
    assert (await bench.call(servers, "reserve")).text == "accept seats=4 outside=True"
    wrong = await bench.call(servers, "forecast")
    assert not wrong.ok
    assert wrong.source == "MCP server fake"


async def test_headers_are_sent_and_never_shown(
    bench: "Bench", service: tuple[str, list[dict[str, str]]]
) -> None:
    bench.secrets["WEATHER_TOKEN"] = TOKEN
    url, seen = service
    servers = bench.servers(
        fake=McpServerSettings(
            url=f"{url}/mcp", headers={"Authorization": "Bearer ${WEATHER_TOKEN}"}
        )
    )
    await servers.prepare(20)
    assert (
        await bench.call(servers, "get", any_argument=1)
    ).text == "you are Bearer ********"
    assert {one["authorization"] for one in seen} == {f"Bearer {TOKEN}"}
    assert TOKEN not in repr(servers.status())
    for file in bench.home.root.rglob("*"):
        assert not file.is_file() or TOKEN.encode() not in file.read_bytes()


@pytest.mark.parametrize(
    ("path", "why", "hint"),
    [
        ("/401", "it needs you to sign in (401)", "hermes config set NAME_TOKEN"),
        ("/403", "it refused access (403)", "token"),
        ("/404", "there is nothing at its address (404)", "/mcp"),
        ("/500", "it answered with an error (500)", "later"),
        (
            "/away",
            "it refused: Redirect to http://localhost:9/elsewhere not followed",
            "",
        ),
        ("/nonsense", "it refused: Failed to parse JSON response", ""),
        ("/packed", "it sends compressed answers", ""),
    ],
)
async def test_a_service_that_can_not_be_used_is_explained(
    bench: "Bench",
    service: tuple[str, list[dict[str, str]]],
    path: str,
    why: str,
    hint: str,
) -> None:
    servers = bench.servers(fake=McpServerSettings(url=service[0] + path))
    await servers.prepare(20)
    status = servers.status()[0]
    assert status.state == "failed"
    assert status.detail.startswith(why)
    assert hint in status.hint


async def test_an_answer_of_a_gigabyte_is_not_read(
    bench: "Bench", service: tuple[str, list[dict[str, str]]], wait_until: Any
) -> None:
    url, seen = service
    servers = bench.servers(fake=McpServerSettings(url=f"{url}/huge"))
    await servers.prepare(20)
    result = await bench.call(servers, "get")
    assert not result.ok
    assert "it sent more than 8 MiB" in result.text
    await wait_until(lambda: {"path": "stopped"} in seen)


async def test_a_session_that_has_expired_is_begun_again_at_the_next_call(
    bench: "Bench", service: tuple[str, list[dict[str, str]]]
) -> None:
    url, seen = service
    servers = bench.servers(fake=McpServerSettings(url=f"{url}/expired"))
    await servers.prepare(20)
    with pytest.raises(ToolFailed):
        await bench.call(servers, "get")
    before = len(seen)
    with pytest.raises(ToolFailed):
        await bench.call(servers, "get")
    assert len(seen) > before + 1, "it says hello again"


async def test_a_service_that_goes_away_is_noticed(
    bench: "Bench", service: tuple[str, list[dict[str, str]]]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        servers = bench.servers(
            fake=McpServerSettings(
                url=f"http://127.0.0.1:{port}/mcp", connect_timeout=0.5
            )
        )
        await servers.prepare(20)
    assert servers.status()[0].detail == "it did not answer within 0.5 s"
