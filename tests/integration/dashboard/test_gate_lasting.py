"""The gate over time: what lasts ends with its credential, and what is slow, odd or guessed in a crowd gets nowhere."""

import asyncio
import os
import socket
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.integration.dashboard.harness import PATIENCE, Harness, opened
from websockets.exceptions import ConnectionClosed, InvalidStatus

from hermes.settings import Home, Secrets
from hermes.surfaces.dashboard.credentials import Keyring
from hermes.surfaces.dashboard.open_connections import SIGNED_OUT
from hermes.surfaces.dashboard.running_file import RunningDashboard

_PASSWORD = Secrets({"HERMES_DASHBOARD_PASSWORD": "correct horse"}, {})


async def _cookie(harness: Harness) -> str:
    answer = await harness.client.get(harness.link.removeprefix(harness.url))
    harness.client.cookies.clear()
    return answer.headers["set-cookie"].partition(";")[0]


async def _closed(one: Any) -> int | None:
    """The code that a WebSocket is closed with."""
    async with asyncio.timeout(PATIENCE):
        try:
            while True:
                await one.recv()
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else None


async def test_a_new_key_ends_what_is_open(harness: Harness) -> None:
    paths = (
        "/api/feed",
        "/api/pty?command=shell",
        "/api/events?channel=x",
        "/api/pub?channel=x",
    )
    async with AsyncExitStack() as stack:
        sockets = [
            await stack.enter_async_context(harness.socket(path)) for path in paths
        ]
        Keyring(harness.app.home, harness.app.clock.now).renew()
        assert [await _closed(one) for one in sockets] == [SIGNED_OUT] * len(paths)


async def test_signing_out_ends_the_sockets_of_that_browser_and_no_other(
    harness: Harness,
) -> None:
    own = {"Cookie": await _cookie(harness), "Origin": harness.url}
    ticket = (await harness.client.post("/api/auth/tickets", headers=own)).json()[
        "ticket"
    ]
    words = ["hermes.v1", f"ticket.{ticket}"]
    async with (
        harness.socket(
            "/api/feed", token="", origin=harness.url, subprotocols=words
        ) as mine,
        harness.socket("/api/feed") as other,
    ):
        assert (
            await harness.client.post("/api/auth/logout", headers=own)
        ).status_code == 200
        assert await _closed(mine) == SIGNED_OUT
        await (await other.ping())


@pytest.mark.parametrize("signed_out", ["this browser", "everybody"])
async def test_a_ticket_or_a_link_is_void_once_its_owner_is_signed_out(
    harness: Harness, signed_out: str
) -> None:
    link = (await harness.call("POST", "/api/auth/links"))["url"]
    own = {"Cookie": await _cookie(harness), "Origin": harness.url}
    ticket = (await harness.client.post("/api/auth/tickets", headers=own)).json()[
        "ticket"
    ]
    if signed_out == "everybody":
        Keyring(harness.app.home, harness.app.clock.now).renew()
        assert (await harness.client.get(link)).status_code == 401
    else:
        assert (
            await harness.client.post("/api/auth/logout", headers=own)
        ).status_code == 200
    with pytest.raises(InvalidStatus) as refused:
        await harness.socket(
            "/api/feed",
            token="",
            origin=harness.url,
            subprotocols=["hermes.v1", f"ticket.{ticket}"],
        )
    assert refused.value.response.status_code == 401


async def test_a_stream_ends_with_its_token(harness: Harness) -> None:
    async with harness.client.stream(
        "GET", "/api/stream", headers=harness.bearer("observe")
    ) as answer:
        pieces = answer.aiter_bytes()
        assert b"feed.hello" in await anext(pieces)
        Keyring(harness.app.home, harness.app.clock.now).renew()
        async with asyncio.timeout(PATIENCE):
            assert [piece async for piece in pieces if b"still here" not in piece] == []


async def test_cookies_of_other_programs_on_this_machine_change_nothing(
    harness: Harness,
) -> None:
    own = await _cookie(harness)
    others = (
        'theme={"dark": 1}',
        "a b=1",
        "a=b c",
        'x="open',
        "=x",
        "x",
        "a[0]=1",
        "path=/",
        "x=\u00e9",
    )
    for value in [
        value for other in others for value in (f"{other}; {own}", f"{own}; {other}")
    ]:
        head = f"GET /api/auth HTTP/1.1\nHost: {harness.host}\nCookie: {value}\nConnection: close\n\n"
        assert (await harness.raw(head)).startswith(b"HTTP/1.1 200"), value


async def test_a_browser_with_an_old_cookie_is_always_shown_the_way_in(
    harness: Harness,
) -> None:
    stale = {
        "Cookie": f"{harness.served.board.access.cookie_name}=hd_x.y",
        "Accept": "text/html",
    }
    answers = [await harness.client.get("/", headers=stale) for _ in range(8)]
    assert {(one.status_code, one.headers["location"]) for one in answers} == {
        (303, "/login")
    }


async def test_passwords_guessed_all_at_once_are_not_all_looked_at(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, secrets=_PASSWORD) as harness:
        host, _, port = harness.host.partition(":")
        lines = [await asyncio.open_connection(host, int(port)) for _ in range(12)]
        body = b"password=wrong"
        head = f"POST /login HTTP/1.1\r\nHost: {harness.host}\r\nOrigin: {harness.url}\r\nConnection: close\r\n"
        for _, writer in lines:
            writer.write(
                f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:-1]
            )
        await harness.call(
            "GET", "/api/auth", scope="observe"
        )  # by now all of them have begun
        for _, writer in lines:
            writer.write(body[-1:])
        async with asyncio.timeout(PATIENCE):
            answers = [await reader.read() for reader, _ in lines]
        assert sum(b" 401 " in answer[:20] for answer in answers) == 4
        assert sum(b" 429 " in answer[:20] for answer in answers) == 8
        for _, writer in lines:
            writer.close()


async def test_a_connection_without_a_request_does_not_last(harness: Harness) -> None:
    harness.served.board.feed.request_timeout_s = 0.1
    host, _, port = harness.host.partition(":")
    for sent in ("", "GET / HT", "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(sent.encode())
        async with asyncio.timeout(PATIENCE):
            assert await reader.read() == b""
        writer.close()
    async with harness.client.stream(
        "GET", "/api/stream", headers=harness.bearer("observe")
    ) as answer:
        pieces = answer.aiter_bytes()
        await anext(pieces)
        harness.app.bus.publish("still.there", {})
        assert b"still.there" in await anext(
            pieces
        )  # an answer may take as long as it likes


async def test_a_connection_stays_open_between_requests_and_as_a_websocket(
    harness: Harness,
) -> None:
    """Longer than clients keep one, so that it is not closed just as they use it; the time of a head or a body, six
    seconds here, is over when they have come."""
    harness.served.board.feed.request_timeout_s = 2.0
    host, _, port = harness.host.partition(":")
    head = f"Host: {harness.host}\r\nAuthorization: {harness.bearer('observe')['Authorization']}\r\n\r\n"
    async with (
        asyncio.timeout(PATIENCE),
        harness.socket("/api/feed", scope="observe") as socket,
    ):
        reader, writer = await asyncio.open_connection(host, int(port))
        for pause in (6.5, 0.0):
            writer.write(b"GET /api/auth HT")
            await asyncio.sleep(0.05)
            writer.write(f"TP/1.1\r\n{head}".encode())
            answer = await reader.readuntil(b"\r\n\r\n")
            assert b" 200 " in answer.partition(b"\r\n")[0], answer
            await reader.readexactly(
                int(answer.lower().partition(b"content-length:")[2].split()[0])
            )
            await asyncio.sleep(pause)
            assert not reader.at_eof()
        await (await socket.ping())
        writer.close()


async def test_names_that_no_file_can_have_are_not_found(harness: Harness) -> None:
    for name in (
        "%00",
        "a%00.js",
        "a" * 5000,
        "%252e%252e/server.py",
        "..%5cserver.py",
    ):
        for path in (f"/static/{name}", f"/plugins/orb/{name}"):
            assert (await harness.ask("GET", path)).status_code == 404, name


async def test_an_answer_for_good_is_a_matter_for_an_admin(harness: Harness) -> None:
    session = (await harness.call("POST", "/api/sessions", {}))["id"]
    path = f"/api/sessions/{session}/approvals/c1"
    assert (
        await harness.ask("POST", path, {"answer": "always"}, scope="approve")
    ).status_code == 403
    for scope, answer in (
        ("approve", "once"),
        ("approve", "session"),
        ("approve", "deny"),
        ("admin", "always"),
    ):
        assert await harness.call("POST", path, {"answer": answer}, scope=scope) == {
            "counted": False
        }


def test_a_dashboard_that_crashed_is_not_taken_for_one_that_runs() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        assert RunningDashboard(url, "", "", os.getpid()).listens()
    assert not RunningDashboard(url, "", "", os.getpid()).listens()


async def test_a_plugin_s_page_is_served_only_as_it_was_agreed_to(
    tmp_path: Path,
) -> None:
    folder = Home(tmp_path / "home").plugins / "page" / "dashboard"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_bytes(
        msgspec.json.encode({"name": "page", "entry": "page.js"})
    )
    (folder / "page.js").write_text("export default () => {}")
    async with opened(tmp_path) as harness:
        (row,) = [
            one
            for one in (await harness.call("GET", "/api/plugins"))["plugins"]
            if one["name"] == "page"
        ]
        await harness.call(
            "PUT", "/api/plugins/page", {"enabled": True, "hash": row["hash"]}
        )
        assert (
            await harness.ask("GET", "/plugins/page/page.js")
        ).text == "export default () => {}"
        (folder / "page.js").write_text("export default () => steal()")
        (folder / "more.js").write_text("steal()")
        for name in ("page.js", "more.js"):
            assert (
                await harness.ask("GET", f"/plugins/page/{name}")
            ).status_code == 404
