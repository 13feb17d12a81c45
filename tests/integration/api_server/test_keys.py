"""Keys in a real home: hashes on disk, scopes, an end, and changes that count at once."""

import stat
from pathlib import Path

import pytest
from starlette.types import Message

from hermes.errors import NotFound, SettingsError
from hermes.settings import Home, Secrets
from hermes.surfaces.gateway.api_server.access_control import ApiAccess, OpenAIErrors
from hermes.surfaces.gateway.api_server.api_keys import (
    ApiKeys,
    environment_key,
    keys_file,
)
from hermes.surfaces.web.access import LoginThrottle, Source
from hermes.surfaces.web.application import WebApplication
from hermes.surfaces.web.hosts_and_origins import Addresses
from hermes.surfaces.web.routes import RouteTable
from hermes.testing import FakeClock


def test_a_key_is_shown_once_and_kept_as_a_hash(tmp_path: Path) -> None:
    home, clock = Home(tmp_path / "home"), FakeClock()
    keys, other = ApiKeys(home, clock.now), ApiKeys(home, clock.now)
    made, text = keys.add("laptop", ("chat",), seconds=60.0)
    path = keys_file(home)
    assert text.rpartition("-")[2] not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert other.check(text) == made
    for wrong in (
        text[:-1],
        text + "x",
        text.replace(made.id, "00000000"),
        made.id,
        "",
        "sk-hermes-",
        "ü" * 10,
    ):
        assert other.check(wrong) is None
    clock.advance(61)
    assert other.check(text) is None


def test_a_removed_key_is_void_at_once_for_a_server_that_runs(tmp_path: Path) -> None:
    home, clock = Home(tmp_path / "home"), FakeClock()
    server, keys = ApiKeys(home, clock.now), ApiKeys(home, clock.now)
    texts = [keys.add(name, ("chat",))[1] for name in ("a", "b")]
    assert all(server.check(text) for text in texts)
    keys.remove("a")
    assert [server.check(text) is not None for text in texts] == [False, True]
    with pytest.raises(NotFound, match="'a'"):
        keys.remove("a")


def test_a_file_that_can_not_be_read_opens_to_nobody(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    keys = ApiKeys(home, FakeClock().now)
    _, text = keys.add("a", ("chat",))
    keys_file(home).write_text("{")
    with pytest.raises(SettingsError, match="can't be read"):
        ApiKeys(home, FakeClock().now).check(text)


def test_a_key_may_also_come_from_the_environment() -> None:
    secrets = Secrets({}, {"GATEWAY_API_KEY": "a-long-secret"})
    assert environment_key(secrets, "a-long-secret") is not None
    for wrong in ("a-long-secre", "", "a-long-secret "):
        assert environment_key(secrets, wrong) is None
    assert environment_key(Secrets({}, {}), "") is None


async def test_a_request_meets_keys_that_can_not_be_read_with_an_error_in_openais_shape(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path / "home").ensure()
    keys_file(home).parent.mkdir(parents=True)
    keys_file(home).write_text("broken")
    clock, sent = FakeClock(), list[Message]()

    async def receive() -> Message:
        raise AssertionError("nothing is read")

    async def send(message: Message) -> None:
        sent.append(message)

    source = Source(Addresses("http", "127.0.0.1", 8711, ()), "api.public_urls")
    keys = ApiKeys(home, clock.now)
    access = ApiAccess(source, keys, Secrets({}, {}), LoginThrottle(clock.now))
    application = WebApplication(RouteTable(), access, OpenAIErrors())
    headers = [
        (b"host", b"127.0.0.1:8711"),
        (b"authorization", b"Bearer sk-hermes-00000000-guess"),
    ]
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/v1/models",
        "headers": headers,
    }
    await application(scope, receive, send)
    assert [sent[0]["status"], b'"type":"api_error"' in sent[1]["body"]] == [500, True]
