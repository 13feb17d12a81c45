"""Signing in at a remote server, against an authorization server that checks every step."""

import asyncio
import contextlib
import http.client
import json
import stat
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import msgspec
import pytest
from tests.fakes.oauth_mcp_server import OAuthState, oauth_mcp_server

from hermes.errors import ToolFailed
from hermes.mcp.login import ServerSignIn
from hermes.mcp.logins import LoginStore, ServerLogin
from hermes.mcp.safe_text import ServerFailed
from hermes.settings.mcp import McpServerSettings

if TYPE_CHECKING:
    from tests.integration.mcp.conftest import Bench


@pytest.fixture
def remote() -> Iterator[OAuthState]:
    with oauth_mcp_server() as state:
        yield state


def settings(remote: OAuthState) -> McpServerSettings:
    return McpServerSettings(url=f"{remote.url}/mcp", connect_timeout=20.0)


async def visit(address: str) -> str:
    """A person's browser: follows the redirects, also to the port of the listener."""

    def fetch() -> str:
        with urlopen(address, timeout=20) as page:  # noqa: S310 - on loopback
            return page.read().decode()

    return await asyncio.to_thread(fetch)


async def sign_in(bench: "Bench", remote: OAuthState) -> ServerLogin:
    """Signs in with a browser on this machine."""
    visits: list[asyncio.Task[str]] = []
    flow = ServerSignIn("fake", settings(remote), bench.home)
    login = await flow.run(
        lambda address: visits.append(asyncio.ensure_future(visit(address))), None
    )
    assert "Signed in" in await visits[0]
    return login


async def test_a_browser_on_this_machine_signs_in_and_the_server_can_be_called(
    bench: "Bench", remote: OAuthState
) -> None:
    servers = bench.servers(fake=settings(remote))
    await servers.prepare(20)
    status = servers.status()[0]
    assert status.detail.startswith("it needs you to sign in (401)")
    assert "hermes mcp login fake" in status.hint
    login = await sign_in(bench, remote)
    again = bench.servers(fake=settings(remote))
    await again.prepare(20)
    assert (await bench.call(again, "look")).text.strip() == "looked"
    file = LoginStore(bench.home).path
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert login.access_token in file.read_text()
    for other in bench.home.root.rglob("*"):
        if other.is_file() and other != file:
            assert login.access_token.encode() not in other.read_bytes()


async def test_an_address_pasted_in_another_process_finishes_the_login(
    bench: "Bench", remote: OAuthState
) -> None:
    address = await ServerSignIn("fake", settings(remote), bench.home).begin()
    assert urlsplit(address).path == "/authorize"

    def landed() -> str:
        """Where a browser elsewhere ends: on a page that it can't open."""
        parts = urlsplit(address)
        line = http.client.HTTPConnection(parts.hostname or "", parts.port or 0)
        with contextlib.closing(line):
            line.request("GET", f"{parts.path}?{parts.query}")
            return line.getresponse().headers["location"]

    where = await asyncio.to_thread(landed)
    other = ServerSignIn("fake", settings(remote), bench.home)
    with pytest.raises(ServerFailed, match="does not belong to this login"):
        await other.finish(where.replace("state=", "state=x"))
    with pytest.raises(ServerFailed, match="another authorization server"):
        await other.finish(where.partition("&iss=")[0])
    login = await other.finish(f"  {where}\n")
    assert login.access_token in remote.access


async def test_a_refusal_is_said_in_the_words_of_the_protocol(
    bench: "Bench", remote: OAuthState
) -> None:
    remote.denies = True
    with pytest.raises(ServerFailed, match="access_denied"):
        await sign_in(bench, remote)


async def test_an_expired_token_is_refreshed_once_by_many_callers_in_two_processes(
    bench: "Bench", remote: OAuthState
) -> None:
    remote.expires_in = 1  # less than the margin: every use refreshes
    first = await sign_in(bench, remote)
    remote.access.clear()
    remote.expires_in = 3600
    remote.go.clear()
    one, two = (bench.servers(fake=settings(remote)) for _ in "12")  # two processes
    opening = [asyncio.ensure_future(each.prepare(20)) for each in (one, two)]
    await asyncio.to_thread(remote.arrived.wait, 20)
    remote.go.set()
    await asyncio.gather(*opening)
    results = [await bench.call(each, "look") for each in (one, two)]
    assert [result.ok for result in results] == [True, True]
    assert remote.refreshes == 1
    kept = LoginStore(bench.home).of("fake", f"{remote.url}/mcp")
    assert kept is not None
    assert kept.access_token in remote.access
    assert kept.refresh_token != first.refresh_token


async def test_a_dead_login_is_told_once_with_the_command(
    bench: "Bench", remote: OAuthState
) -> None:
    await sign_in(bench, remote)
    servers = bench.servers(fake=settings(remote))
    await servers.prepare(20)
    remote.has_died = True
    remote.access.clear()
    for _ in "12":
        with pytest.raises(ToolFailed) as failed:
            await bench.call(servers, "look")
        assert "hermes mcp login fake" in failed.value.hint
    assert [server for server, _ in bench.ended] == ["fake"]
    remote.has_died = False
    await sign_in(bench, remote)
    assert (await bench.call(bench.servers(fake=settings(remote)), "look")).ok


async def test_a_login_is_never_sent_to_another_address(
    bench: "Bench", remote: OAuthState
) -> None:
    await sign_in(bench, remote)
    with oauth_mcp_server() as other:
        other.access = set(remote.access)
        servers = bench.servers(fake=settings(other))
        await servers.prepare(20)
        assert servers.status()[0].detail.startswith("it needs you to sign in")


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("token_endpoint", "http://tokens.example/token", "without encryption"),
        ("resource", "https://bank.example/mcp", "a token for something else"),
    ],
)
async def test_addresses_that_leak_or_lead_elsewhere_are_refused(
    bench: "Bench", remote: OAuthState, field: str, value: str, why: str
) -> None:
    setattr(remote, field, value)
    with pytest.raises(ServerFailed, match=why):
        await ServerSignIn("fake", settings(remote), bench.home).begin()


def test_a_login_shows_nothing_of_its_tokens() -> None:
    login: Any = msgspec.convert(
        {
            "url": "u",
            "token_endpoint": "t",
            "resource": "r",
            "client": {"id": "c", "secret": "s3cret"},
            "access_token": "at-1",
        },
        ServerLogin,
    )
    assert "at-1" not in repr(login)
    assert "s3cret" not in repr(login)
    assert json.loads(msgspec.json.encode(login))["url"] == "u"
