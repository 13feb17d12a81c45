"""The gate without a server in front of it: what h11 and uvicorn would refuse or hide by themselves."""

import re
from pathlib import Path
from typing import Any

import pytest

from hermes.settings import Home
from hermes.surfaces.dashboard.access_control import DashboardAccess, DashboardErrors
from hermes.surfaces.dashboard.credentials import Keyring
from hermes.surfaces.web.application import WebApplication
from hermes.surfaces.web.hosts_and_origins import Addresses
from hermes.surfaces.web.routes import Route, RouteTable


def _time() -> float:
    return 1000.0


class Behind:
    """What the gate protects: notes who came."""

    def __init__(self) -> None:
        self.scopes: list[dict[str, Any]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scopes.append(scope)


async def _ask(
    home: Home,
    path: str,
    *headers: tuple[str, str],
    query: str = "",
    kind: str = "http",
) -> tuple[int, Behind]:
    """The status the gate answers with, 0 when it lets the request through, and what came through."""
    keys, behind = Keyring(home, _time), Behind()
    access = DashboardAccess(
        Addresses("http", "127.0.0.1", 80),
        keys,
        _time,
        port=80,
        secure=False,
        password="",
    )
    protocol: Any = kind
    routes = RouteTable(
        [Route(protocol, frozenset(), re.compile(path), "publish", behind)]
    )
    status = 0

    async def send(message: Any) -> None:
        nonlocal status
        status = message.get("status", status)

    async def receive() -> Any:
        raise AssertionError("nothing is read at the gate")

    raw = [(name.encode(), value.encode()) for name, value in headers]
    scope = {
        "type": kind,
        "method": "GET",
        "path": path,
        "headers": raw,
        "query_string": query.encode(),
    }
    application = WebApplication(routes, access, DashboardErrors())
    await application(scope, receive, send)
    return status, behind


@pytest.mark.parametrize("kind", ["http", "websocket"])
async def test_a_second_host_or_origin_is_refused(tmp_path: Path, kind: str) -> None:
    home = Home(tmp_path)
    token = Keyring(home, _time).mint("token", ("publish",), seconds=60)
    good = (
        ("host", "127.0.0.1"),
        ("authorization", f"Bearer {token}"),
        ("origin", "http://127.0.0.1"),
    )
    assert (await _ask(home, "/x", *good, kind=kind))[0] == 0
    for more in (
        ("host", "127.0.0.1"),
        ("Host", "evil.example"),
        ("origin", "http://127.0.0.1"),
    ):
        status, behind = await _ask(home, "/x", *good, more, kind=kind)
        assert (status, behind.scopes) == (400, [])
    assert (await _ask(home, "/x", *good[1:], kind=kind))[0] == 400


async def test_a_token_in_the_url_is_gone_behind_the_gate(tmp_path: Path) -> None:
    home = Home(tmp_path)
    token = Keyring(home, _time).mint("token", ("publish",), seconds=60)
    query = f"channel=a+b&token={token}&x=1"
    status, behind = await _ask(
        home, "/api/pub", ("host", "127.0.0.1"), query=query, kind="websocket"
    )
    assert status == 0
    assert behind.scopes[0]["query_string"] == b"channel=a+b&x=1"
    twice = await _ask(
        home,
        "/api/pub",
        ("host", "127.0.0.1"),
        query=f"{query}&token={token}",
        kind="websocket",
    )
    assert twice[0] == 401


async def test_two_credentials_in_one_header_are_none(tmp_path: Path) -> None:
    home = Home(tmp_path)
    token = Keyring(home, _time).mint("token", ("publish",), seconds=60)
    header = ("authorization", f"Bearer {token}")
    assert (await _ask(home, "/x", ("host", "127.0.0.1"), header, header))[0] == 401
