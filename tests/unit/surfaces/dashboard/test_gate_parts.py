"""The gate's parts by themselves: names, guesses, codes, the table."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.errors import SettingsError
from hermes.surfaces.dashboard.access_control import secured
from hermes.surfaces.dashboard.credentials import SCOPES, OneTimeCodes
from hermes.surfaces.dashboard.plugins import plugin_routes
from hermes.surfaces.web.access import LoginThrottle, covers
from hermes.surfaces.web.hosts_and_origins import Addresses, is_loopback, is_wildcard
from hermes.surfaces.web.routes import Route, RouteTable


class Time:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


# --- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "known"),
    [("127.0.0.1:9119", True), ("localhost:9119", True), ("[::1]:9119", True), ("127.0.0.1", False), ("", False),
     ("localhost:80", False), ("127.0.0.1:9119.", False), ("evil.example:9119", False), ("hermes.example.org", True),
     ("hermes.example.org:443", False), ("hermes.example.org:9119", False), ("Hermes.Example.ORG", True)],
)  # fmt: skip
def test_hosts(host: str, known: bool) -> None:
    assert (
        Addresses("http", "127.0.0.1", 9119, ["https://hermes.example.org"]).knows_host(
            host
        )
        is known
    )


@pytest.mark.parametrize(
    ("origin", "host", "known"),
    [("http://127.0.0.1:9119", "127.0.0.1:9119", True), ("http://localhost:9119", "127.0.0.1:9119", False),
     ("https://127.0.0.1:9119", "127.0.0.1:9119", False), ("https://hermes.example.org", "hermes.example.org", True),
     ("https://hermes.example.org", "127.0.0.1:9119", True), ("http://hermes.example.org", "hermes.example.org", False),
     ("http://hermes.example.org", "127.0.0.1:9119", False), ("null", "127.0.0.1:9119", False), ("", "", False)],
)  # fmt: skip
def test_origins(origin: str, host: str, known: bool) -> None:
    addresses = Addresses("http", "127.0.0.1", 9119, ["https://hermes.example.org"])
    assert addresses.knows_origin(origin, host) is known


def test_the_usual_port_goes_without_saying() -> None:
    addresses = Addresses("https", "10.0.0.7", 443)
    assert addresses.knows_host("10.0.0.7")
    assert addresses.knows_host("10.0.0.7:443")
    assert not addresses.knows_host("localhost")


@pytest.mark.parametrize(
    "url",
    ["hermes.example.org", "ftp://x", "https://", "https://x/path", "https://x?q"],
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(SettingsError):
        Addresses("http", "127.0.0.1", 1, [url])


def test_where_others_can_reach_it() -> None:
    assert [
        is_loopback(host)
        for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost", "LOCALHOST")
    ] == [True] * 5
    assert [
        is_loopback(host)
        for host in ("0.0.0.0", "::", "", "10.0.0.1", "example.org")  # noqa: S104
    ] == [False] * 5
    assert [is_wildcard(host) for host in ("0.0.0.0", "::", "", "[::]")] == [True] * 4  # noqa: S104 - the subject


# --- guesses --------------------------------------------------------------------------------------------------------


def test_five_failures_then_the_wait_doubles_up_to_a_minute() -> None:
    time = Time()
    throttle = LoginThrottle(time)
    waits: list[float] = []
    for _ in range(14):
        throttle.failed("password")
        waits.append(throttle.wait("password"))
        time.now += waits[-1]
    assert waits == [0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60]
    assert throttle.wait("token") == 0
    assert throttle.failures == 14


def test_a_failure_during_the_wait_is_counted_and_lengthens_nothing() -> None:
    time = Time()
    throttle = LoginThrottle(time)
    for _ in range(50):
        throttle.failed("password")
    assert throttle.wait("password") == 1
    assert throttle.failures == 50


def test_success_and_a_long_time_begin_anew() -> None:
    time = Time()
    throttle = LoginThrottle(time)
    for _ in range(5):
        throttle.failed("a")
        throttle.failed("b")
    throttle.succeeded("a")
    assert throttle.wait("a") == 0
    time.now += 601
    throttle.failed("b")
    assert throttle.wait("b") == 0


# --- codes ----------------------------------------------------------------------------------------------------------


def test_a_code_is_good_once_and_for_a_while() -> None:
    time = Time()
    codes: OneTimeCodes[str] = OneTimeCodes(30.0, time)
    first, second = codes.issue("one"), codes.issue("two")
    assert codes.redeem(first) == "one"
    assert codes.redeem(first) is None
    time.now += 30.0
    assert codes.redeem(second) is None
    assert codes.redeem("never issued") is None


def test_codes_that_nobody_uses_are_few() -> None:
    codes: OneTimeCodes[int] = OneTimeCodes(30.0, Time())
    issued = [codes.issue(number) for number in range(1500)]
    assert codes.redeem(issued[0]) is None
    assert codes.redeem(issued[-1]) == 1499
    assert len(codes._unused) <= 1000


# --- table and headers ----------------------------------------------------------------------------------------------


async def _serve(scope: object, receive: object, send: object) -> None:
    """Serves nothing."""


def test_a_path_that_is_not_in_the_table_has_no_route() -> None:
    table = RouteTable(
        [Route("http", frozenset({"GET"}), re.compile("^/api/x$"), "observe", _serve)]
    )
    assert table.find("http", "GET", "/api/x")
    for protocol, method, path in (
        ("http", "POST", "/api/x"), ("websocket", "GET", "/api/x"), ("http", "GET", "/api/x/y"),
        ("http", "GET", "/api/x\n"),
    ):  # fmt: skip
        assert table.find(protocol, method, path) is None


def test_a_plugin_s_routes_are_there_while_it_runs() -> None:
    table = RouteTable()
    table.add(plugin_routes("orb", _serve), group="orb")
    found = [
        table.find("http", method, "/api/plugins/orb/x") for method in ("GET", "POST")
    ]
    assert [one and one.route.need for one in found] == ["observe", "admin"]
    assert table.find("http", "GET", "/api/plugins/orbit") is None
    table.remove_group("orb")
    assert table.find("http", "GET", "/api/plugins/orb/x") is None


@given(
    st.lists(
        st.sampled_from(
            [
                "Access-Control-Allow-Origin",
                "content-security-policy",
                "X-Frame-Options",
                "etag",
            ]
        )
    )
)
def test_no_answer_can_loosen_what_the_gate_says(names: list[str]) -> None:
    headers = secured(
        [(name.encode(), b"*") for name in names], secure=False, policy=b""
    )
    assert [value for name, value in headers if name.lower() == b"x-frame-options"] == [
        b"DENY"
    ]
    assert not [
        name for name, _ in headers if name.lower().startswith(b"access-control")
    ]
    assert sum(name == b"content-security-policy" for name, _ in headers) == 1
    assert sum(name == b"etag" for name, _ in headers) == names.count("etag")


def test_an_admin_may_everything_and_others_what_they_hold() -> None:
    for need in SCOPES:
        assert covers(["admin"], need)
        assert [scope for scope in SCOPES if covers([scope], need)] == sorted(
            {need, "admin"}, key=SCOPES.index
        )
    assert covers([], "open")
