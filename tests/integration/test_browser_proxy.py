"""The browser's proxy by itself: who may use it, and what passes."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.fakes.web_server import Page, web_server

from hermes.errors import ToolFailed
from hermes.tools.browser.executable import browser_environment, find_executable
from hermes.tools.browser.proxy import GateProxy
from hermes.tools.web.address_check import AddressCheck


@asynccontextmanager
async def proxied(*allowed: str) -> AsyncIterator[tuple[GateProxy, int]]:
    proxy = GateProxy(AddressCheck(allowed))
    address = await proxy.start()
    try:
        yield proxy, int(address.rpartition(":")[2])
    finally:
        await proxy.close()


def authorization(proxy: GateProxy, password: str = "") -> str:
    word = base64.b64encode(
        f"{proxy.user}:{password or proxy.password}".encode()
    ).decode()
    return f"Proxy-Authorization: Basic {word}\r\n"


async def exchange(port: int, *parts: str) -> str:
    """Sends the parts, each after an answer to the one before, and reads to the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = ""
    async with asyncio.timeout(20):
        for part in parts[:-1]:
            writer.write(part.encode())
            answer += (await reader.readuntil(b"\r\n\r\n")).decode()
        writer.write(parts[-1].encode())
        answer += (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    return answer


async def test_without_its_password_nobody_gets_through() -> None:
    async with (
        web_server(lambda asked: Page("secret")) as server,
        proxied(f"127.0.0.1:{server.port}") as (proxy, port),
    ):
        for header in ("", authorization(proxy, "wrong")):
            for first in (
                f"GET {server.url}/ HTTP/1.1\r\n",
                f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\n",
            ):
                assert (await exchange(port, f"{first}{header}\r\n")).startswith(
                    "HTTP/1.1 407 "
                )
        assert server.asked == []


async def test_what_may_pass_passes_as_a_request_or_a_tunnel() -> None:
    async with (
        web_server(lambda asked: Page("words")) as server,
        proxied(f"127.0.0.1:{server.port}") as (proxy, port),
    ):
        header = authorization(proxy)
        answer = await exchange(
            port,
            f"GET {server.url}/a?b HTTP/1.1\r\nHost: other\r\nX-Mine: 1\r\n{header}\r\n",
        )
        assert answer.endswith("words")
        assert server.asked[0].target == "/a?b"
        assert server.asked[0].headers["host"] == f"127.0.0.1:{server.port}"
        assert server.asked[0].headers["x-mine"] == "1"
        assert "proxy-authorization" not in server.asked[0].headers
        tunnel = f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\n{header}\r\n"
        answer = await exchange(port, tunnel, "GET /in HTTP/1.1\r\nHost: x\r\n\r\n")
        assert answer.startswith("HTTP/1.1 200 Connection established")
        assert answer.endswith("words")


@pytest.mark.parametrize(
    "place",
    [
        "127.0.0.1:443",
        "[::1]:443",
        "169.254.169.254:443",
        "localhost:443",
        "1.1.1.1:25",
    ],
)
async def test_what_the_gate_refuses_is_refused_and_told(place: str) -> None:
    async with proxied() as (proxy, port):
        answer = await exchange(
            port, f"CONNECT {place} HTTP/1.1\r\n{authorization(proxy)}\r\n"
        )
        assert answer.startswith("HTTP/1.1 403 ")
        assert "was not contacted" in proxy.refusals()[0]
        assert proxy.refusals() == []


@pytest.mark.parametrize(
    "line", ["GET / HTTP/1.1", "GET file:///etc/passwd HTTP/1.1", "nonsense"]
)
async def test_what_is_no_request_for_a_web_page_is_refused(line: str) -> None:
    async with proxied() as (proxy, port):
        answer = await exchange(port, f"{line}\r\n{authorization(proxy)}\r\n")
        assert answer.split(" ")[1] in ("400", "403")


async def test_a_place_that_is_not_there_is_told() -> None:
    async with web_server(lambda asked: Page("")) as server:
        place = f"127.0.0.1:{server.port}"
    async with proxied(place) as (proxy, port):
        answer = await exchange(
            port, f"CONNECT {place} HTTP/1.1\r\n{authorization(proxy)}\r\n"
        )
        assert answer.startswith("HTTP/1.1 502 ")


def test_the_configured_browser_comes_first_then_path_then_the_bundled_one(
    tmp_path: Path,
) -> None:
    found = tmp_path / "chromium"
    other = tmp_path / "bundled"
    for path in (found, other):
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    assert find_executable(str(other), {"PATH": str(tmp_path)}, "") == str(other)
    assert find_executable("", {"PATH": str(tmp_path)}, str(other)) == str(found)
    assert find_executable("", {"PATH": "/nowhere"}, str(other)) == str(other)
    with pytest.raises(ToolFailed, match="No browser was found") as problem:
        find_executable("", {"PATH": "/nowhere"}, "/nowhere/chrome")
    assert "apt install chromium" in problem.value.hint


def test_the_browser_sees_no_key_and_no_proxy() -> None:
    given = {
        "PATH": "/bin",
        "LC_ALL": "C",
        "OPENAI_API_KEY": "x",
        "HTTPS_PROXY": "y",
        "HERMES_HOME": "z",
    }
    assert browser_environment(given) == {"PATH": "/bin", "LC_ALL": "C"}
