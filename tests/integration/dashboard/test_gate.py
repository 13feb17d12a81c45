"""The gate in front of a real dashboard: nothing is reached around it, and each control has a test that needs it."""

import base64
import hashlib
import re
import stat
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from tests.integration.dashboard.harness import Harness, opened
from websockets.exceptions import InvalidStatus

from hermes.schema.events import SessionCreated, TurnEnded
from hermes.settings import Secrets
from hermes.surfaces.dashboard.credentials import SCOPES, Keyring, Scope
from hermes.surfaces.dashboard.page_language import InBrowserLanguage
from hermes.surfaces.dashboard.preview_origins import PreviewOrigins
from hermes.surfaces.web.application import WebApplication


def _example(path: str) -> str:
    return re.sub(r"{[^}]*}", "x", re.sub(r"{[^}]*:int}", "1", path))


async def _cookie(harness: Harness) -> dict[str, str]:
    """Arrives by the link, as a browser does."""
    answer = await harness.client.get(harness.link.removeprefix(harness.url))
    assert answer.status_code == 200
    (header,) = answer.headers.get_list("set-cookie")
    harness.client.cookies.clear()
    return {"Cookie": header.partition(";")[0]}


async def _status(harness: Harness, path: str, **options: Any) -> int:
    """What a WebSocket handshake is answered with."""
    try:
        async with harness.socket(path, **options):
            return 101
    except InvalidStatus as error:
        return error.response.status_code


# --- everything is behind it -----------------------------------------------------------------------------------------


_OPEN = {
    "/login",
    # A browser fetches these without the cookie when it installs the page as an app.
    "/favicon.svg",
    "/icon-192.png",
    "/icon-512.png",
    "/manifest.webmanifest",
}


async def test_every_route_refuses_without_a_credential_and_without_its_scope(
    harness: Harness,
) -> None:
    endpoints = harness.served.endpoints
    assert len(endpoints) > 50
    assert (await harness.client.get("/api/plugins/x/y")).status_code == 401
    for endpoint in endpoints:
        path = _example(endpoint.path)
        if endpoint.method == "WEBSOCKET":
            assert await _status(harness, path, token="") == 401, path
            assert await _status(
                harness, path, headers={"Authorization": "Bearer hd_x.y"}, token=""
            ) in {401, 429}, path
            continue
        answer = await harness.client.request(endpoint.method, path)
        if path in _OPEN:
            assert answer.status_code in {200, 401, 429}
        else:
            assert answer.status_code == 401, (endpoint.method, path, answer.text)


async def test_every_route_says_which_scope_it_needs_and_takes_no_other(
    harness: Harness,
) -> None:
    for endpoint in harness.served.endpoints:
        if endpoint.need == "open":
            assert endpoint.path in _OPEN
            continue
        others: list[Scope] = [
            scope for scope in SCOPES if scope not in {endpoint.need, "admin"}
        ]
        path = _example(endpoint.path)
        token = harness.token(*others)
        if endpoint.method == "WEBSOCKET":
            assert await _status(harness, path, token=token) == 403, path
        else:
            answer = await harness.client.request(
                endpoint.method, path, headers={"Authorization": f"Bearer {token}"}
            )
            assert answer.status_code == 403, (endpoint.method, path)
            assert repr(endpoint.need) in answer.json()["error"]


async def test_the_table_and_the_endpoints_are_the_same(harness: Harness) -> None:
    served = harness.served
    assert isinstance(served.application, PreviewOrigins)
    translated = served.application.application
    assert isinstance(translated, InBrowserLanguage)
    application = translated.application
    assert isinstance(application, WebApplication)
    assert application.routes is served.routes
    assert len(served.routes.routes) == len(served.endpoints)
    for endpoint in served.endpoints:
        is_socket = endpoint.method == "WEBSOCKET"
        protocol, method = (
            ("websocket", "GET") if is_socket else ("http", endpoint.method)
        )
        found = served.routes.find(protocol, method, _example(endpoint.path))
        assert found is not None
        assert found.route.need == endpoint.need


async def test_errors_are_in_english_for_programs(harness: Harness) -> None:
    german = {"Accept-Language": "de", "Origin": harness.url}
    cookie, token = await _cookie(harness), harness.bearer("admin")

    async def error(headers: dict[str, str]) -> str:
        answer = await harness.client.post(
            "/api/sessions", json={"cwd": "/nowhere"}, headers=german | headers
        )
        return answer.json()["error"]

    assert await error(cookie) == "Es gibt keinen Ordner /nowhere."
    assert await error(token) == "There is no folder /nowhere."
    assert await error(cookie | token) == "There is no folder /nowhere."
    assert await error({}) == "There is no credential."
    assert 'lang="de"' in (await harness.client.get("/login", headers=german)).text


async def test_what_is_not_there_looks_the_same_to_strangers(harness: Harness) -> None:
    known, unknown = (
        await harness.client.get("/api/sessions"),
        await harness.client.get("/api/nothing"),
    )
    assert (
        (known.status_code, known.text)
        == (unknown.status_code, unknown.text)
        == (401, unknown.text)
    )
    assert (await harness.ask("GET", "/api/nothing")).status_code == 404


async def test_no_path_leads_out(harness: Harness) -> None:
    rest = f"HTTP/1.1\nHost: {harness.host}\nAuthorization: Bearer {harness.token('admin')}\nConnection: close\n\n"
    for path in (
        "/static/../server.py",
        "/static/%2e%2e/server.py",
        "/static//etc/passwd",
        "/plugins/x/../../y",
    ):
        assert (await harness.raw(f"GET {path} {rest}")).startswith(b"HTTP/1.1 404"), (
            path
        )


LONG = "9" * 5_000
"""More digits than Python's `int` converts."""


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"/api/sessions/none/messages/{LONG}", 404),
        (f"/api/sessions/none/pictures/{LONG}/1", 404),
        (f"/api/sessions/none/pictures/1/{LONG}", 404),
        (f"/api/sessions?limit={LONG}", 422),
    ],
)
async def test_a_number_of_thousands_of_digits_is_like_any_wrong_value(
    harness: Harness, path: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    assert (await harness.ask("GET", path)).status_code == status
    assert (await harness.client.get(path)).status_code == 401
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("name", ["content-length", "range", "x-other"])
async def test_a_header_of_thousands_of_digits_is_no_failure_of_the_server(
    harness: Harness, name: str
) -> None:
    for value in (LONG, f"bytes={LONG}-", f"bytes=0-{LONG}", f"bytes=-{LONG}"):
        head = (
            f"GET /static/favicon.svg HTTP/1.1\nHost: {harness.host}\n{name}: {value}\n"
            "Connection: close\n\n"
        )
        assert int((await harness.raw(head)).split()[1]) < 500, value[:10]


async def test_a_body_with_a_number_of_thousands_of_digits_is_refused(
    harness: Harness,
) -> None:
    answer = await harness.client.post(
        "/api/sessions", content=f'{{"title": {LONG}}}', headers=harness.bearer("admin")
    )
    assert answer.status_code == 422


# --- Host -----------------------------------------------------------------------------------------------------------


async def test_dns_rebinding_host_refused(harness: Harness) -> None:
    port = harness.host.partition(":")[2]
    for host in (
        "evil.example", "127.0.0.1", "127.0.0.1:1", "localhost", f"127.0.0.1.evil.example:{port}",
        f"evil.example:{port}", f"localhost.:{port}", f"0.0.0.0:{port}", f"127.1:{port}",
        f"[::ffff:127.0.0.1]:{port}", f"127.0.0.1:{port}:{port}", f"127.0.0.1:{port}@evil.example", "",
    ):  # fmt: skip
        headers = {"Host": host, **harness.bearer("admin")}
        assert (
            await harness.client.get("/api/status", headers=headers)
        ).status_code in {
            400,
            403,
        }, host
        assert await _status(harness, "/api/feed", headers={"Host": host}) in {
            400,
            403,
        }, host


async def test_own_hosts_are_welcome(harness: Harness) -> None:
    port = harness.host.partition(":")[2]
    for host in ("127.0.0.1", "localhost", "LocalHost", "[::1]"):
        headers = {"Host": f"{host}:{port}", **harness.bearer("observe")}
        assert (
            await harness.client.get("/api/auth", headers=headers)
        ).status_code == 200, host


async def test_duplicate_host_refused(harness: Harness) -> None:
    token = harness.token("admin")
    for second in (harness.host, "evil.example"):
        hosts = f"Host: {harness.host}\nHost: {second}"
        head = f"GET /api/auth HTTP/1.1\n{hosts}\nAuthorization: Bearer {token}\nConnection: close\n\n"
        assert (await harness.raw(head)).startswith(b"HTTP/1.1 400")


# --- Origin and fetch metadata --------------------------------------------------------------------------------------


def _foreign(harness: Harness) -> list[str]:
    host, _, port = harness.host.partition(":")
    return [
        "null", "", "file://", "http://evil.example", "https://evil.example", f"https://{harness.host}", f"http://{host}",
        f"http://{host}:{int(port) + 1}", f"http://localhost:{port}", "http://localhost:3000", f"ws://{harness.host}",
        f"http://{harness.host}.evil.example", f"http://evil.example:{port}", f"http://{harness.host}/",
        "chrome-extension://abcdef", "moz-extension://abc", "app://obsidian.md",
    ]  # fmt: skip


async def test_ws_cross_origin_refused_even_with_credential(harness: Harness) -> None:
    for origin in _foreign(harness):
        for path in (
            "/api/feed",
            "/api/pty",
            "/api/pub?channel=x",
            "/api/events?channel=x",
        ):
            assert await _status(harness, path, origin=origin) == 403, (origin, path)


async def test_cross_origin_requests_refused_even_with_credential(
    harness: Harness,
) -> None:
    cookie = await _cookie(harness)
    for origin in _foreign(harness):
        for method in ("GET", "POST"):
            answer = await harness.client.request(
                method, "/api/sessions", headers={"Origin": origin, **cookie}
            )
            assert answer.status_code == 403, (origin, method)
            assert "access-control-allow-origin" not in answer.headers


async def test_own_origin_is_welcome(harness: Harness) -> None:
    cookie = await _cookie(harness)
    answer = await harness.client.post(
        "/api/auth/tickets", headers={"Origin": harness.url, **cookie}
    )
    assert answer.status_code == 200
    assert await _status(harness, "/api/feed", origin=harness.url) == 101


async def test_fetch_metadata_cross_site_refused(harness: Harness) -> None:
    cookie = await _cookie(harness)
    for site in ("cross-site", "same-site", "weird"):
        for method, path in (
            ("GET", "/api/sessions"),
            ("POST", "/api/sessions"),
            ("GET", "/static/x.js"),
        ):
            answer = await harness.client.request(
                method, path, headers={"Sec-Fetch-Site": site, **cookie}
            )
            assert answer.status_code == 403, (site, method, path)
        assert (
            await _status(harness, "/api/feed", headers={"Sec-Fetch-Site": site}) == 403
        )


async def test_a_link_from_elsewhere_may_lead_to_the_page_and_to_nothing_else(
    harness: Harness,
) -> None:
    arriving = {
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "navigate",
        "Accept": "text/html",
    }
    answer = await harness.client.get("/", headers=arriving)
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert (await harness.client.get("/login", headers=arriving)).status_code == 200
    cookie = await _cookie(harness)
    assert (
        await harness.client.get("/api/sessions", headers=arriving | cookie)
    ).status_code == 403
    assert (await harness.client.post("/login", headers=arriving)).status_code == 403


async def test_a_cookie_alone_changes_nothing(harness: Harness) -> None:
    """Forms of other pages come with the cookie in old browsers, and without an Origin in some."""
    cookie = await _cookie(harness)
    before = len((await harness.call("GET", "/api/sessions"))["sessions"])
    for kind in (
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "text/plain",
        "application/json",
        "",
        "x",
    ):
        answer = await harness.client.post(
            "/api/sessions", headers={"Content-Type": kind, **cookie}, content=b"{}"
        )
        assert answer.status_code == 403, kind
    assert len((await harness.call("GET", "/api/sessions"))["sessions"]) == before


# --- credentials ----------------------------------------------------------------------------------------------------


async def test_the_link_works_once_and_sets_a_strict_cookie(harness: Harness) -> None:
    path = harness.link.removeprefix(harness.url)
    answer = await harness.client.get(path)
    assert answer.status_code == 200
    flags = {
        part.strip().lower().partition("=")[0]: part
        for part in answer.headers["set-cookie"].split(";")
    }
    assert {"httponly", "samesite"} <= set(flags)
    assert flags["samesite"].strip().lower() == "samesite=strict"
    assert "<script" not in answer.text
    assert "hd_" not in answer.text
    harness.client.cookies.clear()
    assert (await harness.client.get(path)).status_code == 401
    assert "set-cookie" not in (await harness.client.get(path)).headers


async def test_a_cookie_opens_pages_but_no_websocket(harness: Harness) -> None:
    cookie = await _cookie(harness)
    assert (await harness.client.get("/api/auth", headers=cookie)).json()[
        "by"
    ] == "cookie"
    assert (
        await _status(
            harness, "/api/feed", token="", headers=cookie, origin=harness.url
        )
        == 401
    )


async def test_a_ticket_opens_one_websocket(harness: Harness) -> None:
    cookie = await _cookie(harness)
    answer = await harness.client.post(
        "/api/auth/tickets", headers={"Origin": harness.url, **cookie}
    )
    ticket = answer.json()["ticket"]
    assert answer.json()["expires_in"] == 30
    options: dict[str, Any] = {
        "token": "",
        "origin": harness.url,
        "subprotocols": ["hermes.v1", f"ticket.{ticket}"],
    }
    async with harness.socket("/api/feed", **options) as socket:
        assert socket.subprotocol == "hermes.v1"
    assert await _status(harness, "/api/feed", **options) == 401


async def test_a_ticket_has_only_the_scopes_of_its_owner(harness: Harness) -> None:
    answer = await harness.client.post(
        "/api/auth/tickets", headers=harness.bearer("observe")
    )
    words = ["hermes.v1", f"ticket.{answer.json()['ticket']}"]
    assert await _status(harness, "/api/pty", token="", subprotocols=words) == 403


async def test_a_token_in_the_url_is_for_older_publishers_alone(
    harness: Harness,
) -> None:
    token = harness.token("admin")
    assert (await harness.client.get(f"/api/auth?token={token}")).status_code == 401
    assert await _status(harness, f"/api/feed?token={token}", token="") == 401
    assert await _status(harness, f"/api/pub?channel=x&token={token}", token="") == 101


async def test_signing_out_makes_the_cookie_void(harness: Harness) -> None:
    cookie = await _cookie(harness)
    assert (
        await harness.client.post(
            "/api/auth/logout", headers={"Origin": harness.url, **cookie}
        )
    ).status_code == 200
    assert (await harness.client.get("/api/auth", headers=cookie)).status_code == 401


async def test_a_new_key_makes_everything_void_at_once(harness: Harness) -> None:
    cookie, token = await _cookie(harness), harness.bearer("observe")
    assert (await harness.client.get("/api/auth", headers=token)).status_code == 200
    Keyring(harness.app.home, harness.app.clock.now).renew()
    for headers in (cookie, token):
        assert (
            await harness.client.get("/api/auth", headers=headers)
        ).status_code == 401


async def test_a_credential_is_of_one_kind_and_ends(harness: Harness) -> None:
    keys = Keyring(harness.app.home, harness.app.clock.now)
    name = harness.served.board.access.cookie_name
    cookie, token = (
        keys.mint("cookie", SCOPES, seconds=60),
        keys.mint("token", SCOPES, seconds=60),
    )
    old = keys.mint("token", SCOPES, seconds=-1)
    wider = token.partition(".")[0] + "." + cookie.partition(".")[2]
    for headers in ({"Authorization": f"Bearer {cookie}"}, {"Cookie": f"{name}={token}"},
                    {"Authorization": f"Bearer {old}"}, {"Authorization": f"Bearer {wider}"}):  # fmt: skip
        assert (
            await harness.client.get("/api/auth", headers=headers)
        ).status_code == 401


@pytest.mark.parametrize("kind", ["token", "ticket", "cookie", "link"])
async def test_bad_credential_throttled(harness: Harness, kind: str) -> None:
    async def wrong(number: int) -> httpx2.Response:
        guess = f"hd_{'A' * 20}{number}.{'B' * 43}"
        match kind:
            case "token":
                return await harness.client.get(
                    "/api/auth", headers={"Authorization": f"Bearer {guess}"}
                )
            case "cookie":
                return await harness.client.get(
                    "/api/auth",
                    headers={
                        "Cookie": f"{harness.served.board.access.cookie_name}={guess}"
                    },
                )
            case "link":
                return await harness.client.get(f"/login?code={number}")
            case _:
                with pytest.raises(InvalidStatus) as refused:
                    async with harness.socket(
                        "/api/feed", token="", subprotocols=[f"ticket.{number}"]
                    ):
                        pass
                return httpx2.Response(
                    refused.value.response.status_code,
                    headers=dict(refused.value.response.headers),
                )

    answers = [await wrong(number) for number in range(6)]
    assert [answer.status_code for answer in answers] == [401] * 4 + [429] * 2
    assert int(answers[-1].headers["retry-after"]) >= 1
    status = await harness.call("GET", "/api/status", scope="observe")
    assert status["wrong_credentials"] == 6


async def test_the_right_token_is_never_made_to_wait(harness: Harness) -> None:
    for _ in range(10):
        await harness.client.get(
            "/api/auth", headers={"Authorization": "Bearer hd_x.y"}
        )
    assert (
        await harness.client.get("/api/auth", headers=harness.bearer("observe"))
    ).status_code == 200


# --- what answers carry ---------------------------------------------------------------------------------------------


async def test_security_headers(harness: Harness) -> None:
    for path in ("/", "/login", "/api/auth", "/nothing"):
        answer = await harness.client.get(path)
        policy = answer.headers["content-security-policy"]
        is_data = answer.headers["content-type"].startswith("application/json")
        assert ("script-src 'self'" in policy) is not is_data
        assert policy.startswith("default-src 'none'; ")
        assert "unsafe-eval" not in policy
        assert (
            "'unsafe-inline'" not in policy.partition("script-src")[2].partition(";")[0]
        )
        assert ("referrer-policy" in answer.headers) is not is_data
        assert answer.headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert not any(name.startswith("access-control") for name in answer.headers)
        assert "server" not in answer.headers


async def test_a_preview_has_a_name_of_its_own_and_nothing_else_there(
    harness: Harness,
) -> None:
    name, port = f"preview-{'0a' * 16}.localhost", harness.host.partition(":")[2]
    headers = {"Host": f"{name}:{port}"}
    answer = await harness.client.get("/preview", headers=headers)
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert policy.startswith(
        "sandbox allow-scripts allow-same-origin; default-src 'none'"
    )
    assert policy.endswith("frame-ancestors http://127.0.0.1:* http://localhost:*")
    for path in ("/", "/login", "/api/auth", "/preview/", "/static/preview.html"):
        given = {**headers, **harness.bearer("admin")}
        assert (await harness.client.get(path, headers=given)).status_code == 403
    for other in ("preview.localhost", "preview-1.localhost", f"x.{name}", f"{name}.x"):
        given = {"Host": f"{other}:{port}", **harness.bearer("admin")}
        assert (await harness.client.get("/preview", headers=given)).status_code == 403
    page = await harness.ask("GET", "/", scope="observe")
    frames = f"frame-src 'self' http://*.localhost:{port};"
    assert frames in page.headers["content-security-policy"]


async def test_the_one_script_in_the_page_is_the_one_that_the_policy_names(
    harness: Harness,
) -> None:
    page = await harness.ask("GET", "/", scope="observe")
    (script,) = re.findall(r"<script>(.+?)</script>", page.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = page.headers["content-security-policy"]
    assert f"script-src 'self' 'sha256-{digest}';" in policy


async def test_the_preview_has_an_origin_of_its_own(harness: Harness) -> None:
    answer = await harness.ask("GET", "/preview", scope="observe")
    policy = answer.headers.get_list("content-security-policy")
    assert len(policy) == 1
    assert policy[0].startswith("sandbox allow-scripts; default-src 'none'; ")
    assert "allow-same-origin" not in policy[0]
    assert "connect-src" not in policy[0]
    assert "frame-ancestors 'self'" in policy[0]
    assert answer.headers["x-frame-options"] == "SAMEORIGIN"
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_unauthenticated_answers_hold_no_credential(harness: Harness) -> None:
    running = (harness.app.home.root / "dashboard" / "running.json").read_text()
    token = running.partition('"token":"')[2].partition('"')[0]
    assert token.startswith("hd_")
    for path in (
        "/",
        "/login",
        "/api/auth",
        "/api/status",
        "/static/app.js",
        "/api/openapi.json",
    ):
        answer = await harness.client.get(path)
        assert "hd_" not in answer.text + str(answer.headers)


async def test_credentials_lie_in_files_for_this_user_alone(harness: Harness) -> None:
    folder = harness.app.home.root / "dashboard"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for path in folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


async def test_no_credential_is_logged(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    token = harness.token("publish")
    async with harness.socket(f"/api/pub?channel=x&token={token}", token="") as socket:
        await socket.send("not json")
    await harness.client.get(harness.link.removeprefix(harness.url))
    server_lines = [
        record.getMessage()
        for record in caplog.records
        if not record.name.startswith(("websockets.client", "httpx", "httpcore"))
    ]
    assert token not in "\n".join(server_lines)
    assert urlsplit(harness.link).query.partition("=")[2] not in "\n".join(server_lines)


async def test_the_file_of_a_running_dashboard_is_gone_afterwards(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as harness:
        path = harness.app.home.root / "dashboard" / "running.json"
        assert path.exists()
    assert not path.exists()


# --- the password ---------------------------------------------------------------------------------------------------


async def test_a_password_opens_the_door_and_guessing_it_takes_long(
    tmp_path: Path,
) -> None:
    secrets = Secrets({"HERMES_DASHBOARD_PASSWORD": "correct horse"}, {})
    async with opened(tmp_path, secrets=secrets) as harness:
        assert "password" in (await harness.client.get("/login")).text
        right, form = {"password": "correct horse"}, {"Origin": harness.url}
        answer = await harness.client.post("/login", data=right, headers=form)
        assert answer.status_code == 200
        assert "samesite=strict" in answer.headers["set-cookie"].lower()
        harness.client.cookies.clear()
        assert (
            await harness.client.post(
                "/login", data=right, headers={"Origin": "http://evil.example"}
            )
        ).status_code == 403
        wrong = [
            await harness.client.post(
                "/login", data={"password": str(number)}, headers=form
            )
            for number in range(6)
        ]
        assert [one.status_code for one in wrong] == [401] * 4 + [429] * 2
        assert (
            await harness.client.post("/login", data=right, headers=form)
        ).status_code == 429


async def test_without_a_password_none_is_right(harness: Harness) -> None:
    for given in ("", "x"):
        answer = await harness.client.post(
            "/login", data={"password": given}, headers={"Origin": harness.url}
        )
        assert answer.status_code == 401


# --- what two servers could read in two ways, and what nobody can read ------------------------------------------------


@pytest.mark.parametrize(
    "lines",
    [
        "Content-Length: 2\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\nContent-Length: 2",
        "Transfer-Encoding: chunked\nTransfer-Encoding: chunked",
        "X-Folded: one\n two",
        "Content-Length: 2\n\tTransfer-Encoding: chunked",
    ],
)
async def test_a_request_with_two_ends_is_refused(harness: Harness, lines: str) -> None:
    head = f"POST /login HTTP/1.1\nHost: {harness.host}\nConnection: close\n{lines}\n\n0\n\n"
    assert (await harness.raw(head)).startswith(b"HTTP/1.1 400")


async def test_looking_whether_a_link_is_there_does_not_use_it_up(
    harness: Harness,
) -> None:
    path = harness.link.removeprefix(harness.url)
    looked = await harness.client.head(path)
    assert (looked.status_code, "set-cookie" in looked.headers) == (200, False)
    for line in (
        "Sec-Purpose: prefetch;prerender",
        "Purpose: prefetch",
        "X-Purpose: preview",
        "X-Moz: prefetch",
    ):
        name, _, purpose = line.partition(": ")
        ahead = await harness.client.get(path, headers={name: purpose})
        assert (ahead.status_code, "set-cookie" in ahead.headers) == (503, False), line
    assert await _cookie(harness)


async def test_a_second_cookie_of_our_name_does_not_lock_anybody_out(
    harness: Harness,
) -> None:
    good = (await _cookie(harness))["Cookie"]
    bad = f"{good.partition('=')[0]}=hd_old.mark"
    for cookies in (
        f"{bad}; {good}",
        f"{good}; {bad}",
        f"{bad}; other=1; {bad}; {good}",
    ):
        assert (
            await harness.client.get("/api/auth", headers={"Cookie": cookies})
        ).status_code == 200
    assert (
        await harness.client.get("/api/auth", headers={"Cookie": f"{bad}; {bad}"})
    ).status_code == 401


async def test_no_route_fails_on_what_nobody_can_read(harness: Harness) -> None:
    described = await harness.call("GET", "/api/openapi.json")
    huge = "9" * 25
    bodies = (
        b'{"text": "\xff\xfe"}',
        b"\xff",
        b"[" * 50_000,
        b'{"x": ' + huge.encode() + b"}",
    )
    tried = 0
    for path, methods in described["paths"].items():
        for method, one in methods.items():
            where = _example(re.sub(r"{[^}]*(?:seq|number)[^}]*}", huge, path))
            names = [
                each["name"]
                for each in one.get("parameters", ())
                if each["in"] == "query"
            ]
            query = "&".join(f"{name}={huge}" for name in names)
            sent = bodies if "requestBody" in one else (b"",) if method == "get" else ()
            for body in sent:
                given = {"content": body, "headers": harness.bearer("admin")}
                async with harness.client.stream(
                    method.upper(), f"{where}?{query}", **given
                ) as answer:  # some never end
                    assert answer.status_code != 500, (method, where, body[:20])
                tried += 1
    assert tried > 50


async def test_reasons_in_earlier_rows_are_in_the_browsers_language(
    harness: Harness,
) -> None:
    app = harness.app
    session = app.begin(SessionCreated(surface="dashboard")).session
    app.record(session, TurnEnded(reason="interrupted", detail="You stopped the turn."))
    path, german = f"/api/sessions/{session}/events", {"Accept-Language": "de"}

    async def detail(headers: dict[str, str]) -> str:
        answer = await harness.client.get(path, headers=german | headers)
        return answer.json()["events"][-1]["detail"]

    assert await detail(await _cookie(harness)) == "Du hast die Runde gestoppt."
    assert await detail(harness.bearer("admin")) == "You stopped the turn."
