"""Connecting a model over HTTP: tried, listed, saved, applied at once; no key comes back, and not every address is called."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.model_service import model_service
from tests.integration.dashboard.harness import Harness

KEY = "sk-ant-test-0123456789abcdefghijklmnop"
WRONG = "sk-ant-wrong-0123456789abcdefghijklmno"


@pytest.fixture(autouse=True)
def _no_keys_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HERMES_CACHE", str(tmp_path_factory.mktemp("cache")))


async def _error(harness: Harness, path: str, body: dict[str, Any]) -> str:
    answer = await harness.ask("POST", path, body)
    assert answer.status_code in {400, 502}, answer.text
    return answer.text


async def test_a_key_is_tried_and_saved_and_answers_without_a_restart(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    with model_service("claude-haiku-4-5", key=KEY) as service:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", service.url)
        tried = await harness.call("POST", "/api/connections/try", {"key": KEY})
        assert (tried["provider"], tried["label"]) == ("anthropic", "Anthropic")
        assert [one["name"] for one in tried["models"]] == ["claude-haiku-4-5"]
        assert not harness.app.home.env_file.exists()
        body = {"provider": "anthropic", "model": "claude-haiku-4-5", "key": KEY}
        said = await harness.call("POST", "/api/connections", body)
        assert "Anthropic claude-haiku-4-5 answers" in said["sentence"]
        status = await harness.call("GET", "/api/status")
        assert status["model"] == "anthropic:claude-haiku-4-5"
        assert harness.served.board.agent.describe().name == "claude-haiku-4-5"
        every = await harness.call("GET", "/api/connections")
        settings = await harness.call("GET", "/api/settings")
        assert KEY not in f"{tried}{said}{status}{every}{settings}"
        (anthropic,) = [one for one in every["providers"] if one["name"] == "anthropic"]
        assert anthropic["key_set"]


async def test_a_wrong_key_is_refused_with_the_reason_and_not_saved(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    with model_service("claude-haiku-4-5", key=KEY) as service:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", service.url)
        said = await _error(harness, "/api/connections/try", {"key": WRONG})
        assert "rejected the API key (401)" in said
        body = {"provider": "anthropic", "model": "claude-haiku-4-5", "key": WRONG}
        said += await _error(harness, "/api/connections", body)
        assert WRONG not in said
        assert not harness.app.home.env_file.exists()
        assert not harness.app.home.config.exists()


async def test_a_shape_that_several_have_names_them_and_calls_nobody(
    harness: Harness,
) -> None:
    key = "sk-0123456789abcdef0123456789abcdef"
    tried = await harness.call("POST", "/api/connections/try", {"key": key})
    assert tried["candidates"][0]["name"] == "deepseek"
    assert tried["models"] == []


async def test_a_typed_address_gets_only_the_key_that_came_with_it(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        model_service("claude-haiku-4-5", key=KEY) as good,
        model_service("m") as thief,
    ):
        monkeypatch.setenv("ANTHROPIC_BASE_URL", good.url)
        body = {"provider": "anthropic", "model": "claude-haiku-4-5", "key": KEY}
        await harness.call("POST", "/api/connections", body)
        for provider in ("", "anthropic", "own"):
            theirs = {"provider": provider, "base_url": thief.url}
            await harness.call("POST", "/api/connections/try", theirs)
        await harness.call(
            "POST",
            "/api/connections",
            {**theirs, "provider": "anthropic", "model": "m"},
        )
        assert thief.requests
        assert all(KEY not in str(request) for request in thief.requests)


@pytest.mark.parametrize(
    "address",
    [
        "http://169.254.169.254/latest",
        "http://[::ffff:169.254.169.254]/latest",
        "http://[64:ff9b::a9fe:a9fe]/latest",
        "http://[2002:a9fe:a9fe::]/latest",
        "http://[fd00:ec2::254]/latest",
        "http://100.100.100.200/latest",
        "http://0251.0376.0251.0376/latest",
        "http://2852039166/latest",
        "http://metadata.google.internal/v1",
        "http://[fe80::1]/v1",
        "http://0xA9FEA9FE/v1",
    ],
)
async def test_a_link_local_address_is_not_called(
    harness: Harness, address: str
) -> None:
    body = {"base_url": address, "key": KEY}
    assert "does not call that address" in await _error(
        harness, "/api/connections/try", body
    )


@pytest.mark.parametrize(
    "body",
    [
        {"provider": "nonsense", "key": KEY},
        {"base_url": "file:///etc/passwd"},
        {"base_url": "http://user:pass@127.0.0.1/v1"},
        {"key": "short"},
    ],
)
async def test_what_can_not_be_right_is_refused(
    harness: Harness, body: dict[str, str]
) -> None:
    await _error(harness, "/api/connections/try", body)
    assert not harness.app.home.config.exists()


async def test_a_redirect_is_not_followed(harness: Harness) -> None:
    with model_service("m") as inside, model_service("m") as outside:
        outside.redirect_to = inside.url.removesuffix("/v1")
        await _error(harness, "/api/connections/try", {"base_url": outside.url})
        assert inside.requests == []


async def test_running_servers_are_found_and_used(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    with model_service("llama3.2:3b", is_ollama=True) as service:
        monkeypatch.setenv("OLLAMA_HOST", service.host)
        found = await harness.call("GET", "/api/connections/servers")
        (server,) = [one for one in found["servers"] if one["base_url"] == service.url]
        assert server["models"][0]["name"] == "llama3.2:3b"
        body = {"provider": "ollama", "base_url": service.url, "model": "llama3.2:3b"}
        await harness.call("POST", "/api/connections", body)
        status = await harness.call("GET", "/api/status")
        assert status["model"] == "ollama:llama3.2:3b"


async def test_a_local_model_that_was_not_offered_is_refused(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    for name in ("/etc/passwd", "base"):
        body = {"provider": "embedded", "model": name}
        assert "not on this machine" in await _error(harness, "/api/connections", body)
    offers = (await harness.call("GET", "/api/connections/local"))["offers"]
    assert {"base", "small"} <= {one["name"] for one in offers}


async def test_a_model_that_nobody_knows_is_not_downloaded(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no local model" in await _error(
        harness, "/api/connections/download", {"name": "../x"}
    )
    assert (await harness.call("GET", "/api/connections/download"))["name"] == ""


async def test_a_download_that_breaks_unexpectedly_ends_with_the_reason(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A folder where the lock file belongs is an error that nobody foresaw."""
    monkeypatch.setenv("HERMES_CACHE", str(tmp_path))
    (tmp_path / "models" / "small.lock").mkdir(parents=True)
    path = "/api/connections/download"
    state = await harness.call("POST", path, {"name": "small"})
    async with asyncio.timeout(20):
        while state["running"]:
            state = await harness.call("GET", path)
    assert "The download failed" in state["problem"]
    assert "small.lock" in state["problem"]


async def test_a_provider_that_does_not_exist_is_not_saved_by_a_setting(
    harness: Harness,
) -> None:
    answer = await harness.ask(
        "PUT", "/api/settings/model.provider", {"value": "antropic"}
    )
    assert answer.status_code == 400
    assert "Did you mean anthropic?" in answer.text
    assert not harness.app.home.config.exists()


@pytest.mark.parametrize(
    "address",
    [
        "http://me:hunter2@127.0.0.1:9/v1",
        "http://127.0.0.1:9/v1?token=hunter2",
        "http://127.0.0.1:9/v1\r\nx: hunter2",
    ],
)
async def test_an_address_with_a_key_is_not_saved_even_if_forced(
    harness: Harness, address: str
) -> None:
    body = {"provider": "own", "model": "m", "base_url": address, "force": True}
    said = await _error(harness, "/api/connections", body)
    assert "hunter2" not in said
    assert not harness.app.home.config.exists()


async def test_a_key_that_is_none_is_refused_where_another_is_stored(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    body = {"provider": "anthropic", "model": "m", "key": "no key", "force": True}
    assert "not a key" in await _error(harness, "/api/connections", body)
    assert not harness.app.home.config.exists()
