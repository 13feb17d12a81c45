"""Connecting a model: a service on loopback is tried with a key, its models are listed, and one is saved."""

from pathlib import Path
from typing import Any

import pytest
from tests.fakes.model_service import model_service
from tests.fakes.self_hosted_server import SelfHostedServer, running_server

from hermes.app.connections import (
    Connection,
    known_service,
    list_models,
    local_service,
    locate,
    name_for_address,
    own_service,
    possible_addresses,
    save,
    small_context,
    try_model,
)
from hermes.errors import ModelError, UsageError
from hermes.providers.routing import first_route, keys_of
from hermes.providers.server_discovery import find_local_servers
from hermes.settings import Home, load, load_secrets
from hermes.settings.edit import set_value

KEY = "sk-ant-test-0123456789abcdefghij"
OTHER = "sk-ant-wrong-0123456789abcdefghi"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def _anthropic(monkeypatch: pytest.MonkeyPatch, url: str, key: str) -> Connection:
    """Anthropic at another address, as ANTHROPIC_BASE_URL says."""
    monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    return known_service("anthropic", key=key)


async def test_the_models_of_a_service_are_listed_with_the_usual_one_first(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("claude-haiku-4-5", "text-embedding-x", "claude-sonnet-5-5")
    with model_service(*names, key=KEY) as service:
        connection = _anthropic(monkeypatch, service.url, KEY)
        listed = await list_models(connection, home)
    assert [one.name for one in listed] == [
        "claude-sonnet-5-5",
        "claude-haiku-4-5",
        "text-embedding-x",
    ]
    assert listed[0].is_usual
    assert listed[0].output_price
    assert listed[0].window
    assert "pictures" in listed[0].abilities
    assert listed[2].abilities == ()
    assert not home.config.exists()


async def test_a_wrong_key_is_refused_with_its_variable(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    with model_service("claude-haiku-4-5", key=KEY) as service:
        connection = _anthropic(monkeypatch, service.url, OTHER)
        with pytest.raises(ModelError) as failure:
            await list_models(connection, home)
    assert failure.value.reason == "auth"
    assert "hermes config set ANTHROPIC_API_KEY" in failure.value.hint
    assert OTHER not in str(failure.value) + failure.value.hint


async def test_a_key_is_checked_where_everybody_may_list_models(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    with model_service("z-ai/glm-5", key=KEY) as service:
        service.lists_to_everyone = True
        monkeypatch.setenv("OPENROUTER_BASE_URL", service.url)
        with pytest.raises(ModelError) as failure:
            await list_models(known_service("openrouter", key=OTHER), home)
        assert failure.value.reason == "auth"
        listed = await list_models(known_service("openrouter", key=KEY), home)
        assert [one.name for one in listed] == ["z-ai/glm-5"]


async def test_a_redirect_does_not_take_the_key_along(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    with model_service("m") as thief, model_service("m") as service:
        service.redirect_to = thief.url.removesuffix("/v1")
        connection = own_service("own", service.url, key=KEY)
        with pytest.raises(ModelError):
            await locate(connection, home)
        with pytest.raises(ModelError):
            await try_model(connection.at_model("m"), home)
        assert thief.requests == []
        assert service.requests[0].key == KEY


async def test_a_saved_connection_answers_and_its_key_is_private(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    with model_service("claude-haiku-4-5", key=KEY) as service:
        connection = _anthropic(monkeypatch, service.url, KEY)
        chosen = connection.at_model("claude-haiku-4-5")
        assert await try_model(chosen, home) > 0
        assert save(chosen, home) == ()
    route = first_route(load(home=home), load_secrets(home=home))
    assert (route.provider, route.model) == ("anthropic", "claude-haiku-4-5")
    assert keys_of(route, load_secrets(home=home)) == (KEY,)
    assert KEY not in home.config.read_text()
    assert home.env_file.stat().st_mode & 0o077 == 0


async def test_a_new_provider_does_not_inherit_the_address_and_format_of_the_old_one(
    home: Home,
) -> None:
    home.ensure()
    set_value(home.config, "model.provider", "openai-compatible")
    set_value(home.config, "model.base_url", "http://lab:8000/v1")
    set_value(home.config, "model.api", "responses")
    save(known_service("anthropic", key=KEY, model="claude-haiku-4-5"), home)
    model = load(home=home).model
    assert (model.provider, model.base_url, model.api) == ("anthropic", "", "auto")


async def test_a_stored_key_does_not_go_to_an_address_that_was_typed(
    home: Home,
) -> None:
    with model_service("m") as service:
        save(own_service("own", "http://127.0.0.1:9/v1", key=KEY, model="m"), home)
        await locate(own_service("own", service.url), home)
        assert KEY not in {request.key for request in service.requests}


async def test_the_v1_and_the_scheme_may_be_left_out(home: Home) -> None:
    with model_service("qwen3") as service:
        found, models = await locate(own_service("own", f"http://{service.host}"), home)
    assert found.base_url == service.url
    assert [one.name for one in models] == ["qwen3"]


def test_what_a_typed_address_may_mean() -> None:
    assert possible_addresses("localhost:8000")[0] == "http://localhost:8000/v1"
    assert (
        possible_addresses("models.example.org")[0] == "https://models.example.org/v1"
    )
    assert possible_addresses("https://x.org/v1/chat/completions") == (
        "https://x.org/v1",
    )
    for wrong in ("", "ftp://x.org", "http://", "http://x:notaport", "foo bar"):
        with pytest.raises(UsageError):
            possible_addresses(wrong)


@pytest.mark.parametrize(
    "host",
    ["a..b", ".a", "a" * 64, "a." * 127 + "com", "a%00b", "*", "\u0300x", "🦄.org"],
)
def test_a_host_that_can_not_exist_is_named(host: str) -> None:
    with pytest.raises(UsageError) as refused:
        possible_addresses(f"https://{host}/v1")
    assert refused.value.hint.startswith(f"The host name {host[:80]!r} is not valid")


@pytest.mark.parametrize("host", ["gpu_1", "x.org.", "bücher.de", "[fe80::1%eth0]"])
def test_a_host_that_may_exist_is_an_address(host: str) -> None:
    assert possible_addresses(f"http://{host}/v1") == (f"http://{host}/v1",)


async def test_a_running_ollama_is_found_where_its_variable_says(home: Home) -> None:
    with model_service("llama3.2:3b", "nomic-embed-text", is_ollama=True) as service:
        servers = await find_local_servers({"OLLAMA_HOST": service.host})
        found = next(one for one in servers if one.base_url == service.url)
        assert (found.provider, found.label) == ("ollama", "Ollama")
        assert [(one.name, one.size) for one in found.models] == [
            ("llama3.2:3b", 2_019_393_189)
        ]
        chosen = local_service(found, "llama3.2:3b")
        assert await try_model(chosen, home) > 0
        save(chosen, home)
    route = first_route(load(home=home), load_secrets(home=home))
    assert (route.provider, route.base_url, route.model) == (
        "ollama",
        service.url,
        "llama3.2:3b",
    )


@pytest.mark.parametrize("host", ["example.org:11434", "https://127.0.0.1:1", "a:b:c"])
async def test_only_loopback_is_asked(host: str) -> None:
    servers = await find_local_servers({"OLLAMA_HOST": host})
    assert all(one.base_url.startswith("http://127.0.0.1:") for one in servers)


async def test_a_server_that_lists_no_models_is_none(home: Home) -> None:
    with model_service(key=KEY) as service:  # it answers 401
        servers = await find_local_servers({"OLLAMA_HOST": service.host})
    assert service.url not in {one.base_url for one in servers}
    assert service.requests


def test_a_second_address_gets_a_name_of_its_own(home: Home) -> None:
    addresses = {
        "http://localhost:8000/v1": "my-server",
        "127.0.0.1:8001": "localhost",
        "http://localhost:8002/v1": "localhost-8002",
        "https://GPU.lab.example/v1": "gpu-lab-example",
        "https://gpu.lab.example:444/v1": "gpu-lab-example-444",
        "192.168.1.5:8000": "my-server-192-168-1-5",
        "https://openai/v1": "openai-2",
    }
    for typed, expected in addresses.items():
        name = name_for_address(typed, home)
        assert name == expected
        address = possible_addresses(typed)[0]
        save(own_service(name, address, model="m"), home)
    for typed, expected in addresses.items():  # each is known again
        assert name_for_address(typed, home) == expected
    assert len(load(home=home).custom_providers) == len(addresses)


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        ("ollama", "OLLAMA_CONTEXT_LENGTH"),
        ("lmstudio", "lms load"),
        ("llamacpp", "llama-server -c"),
    ],
)
async def test_a_context_that_is_too_small_is_noticed_before_it_is_used(
    kind: Any, advice: str, home: Home
) -> None:
    served = SelfHostedServer(kind, lambda _: "ok", context_tokens=4096)
    with running_server(served) as server:
        known = Connection(provider=kind, base_url=server.url, model=server.model)
        typed = own_service("own", server.url, model=server.model)
        for connection in (known, typed):
            facts = await small_context(connection, home)
            assert facts is not None
            assert "a context of 4,096 tokens" in facts.warning()
            assert advice in facts.advice()
        server.context_tokens = 32_768
        assert await small_context(known, home) is None


async def test_a_small_model_and_a_cloud_service_get_no_warning_about_context(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = SelfHostedServer("llamacpp", lambda _: "ok", context_tokens=4096)
    small.parameters = 1_500_000_000
    with running_server(small) as server:
        local = Connection(provider="llamacpp", base_url=server.url, model=server.model)
        assert await small_context(local, home) is None
        asked = len(server.paths)
        cloud = _anthropic(monkeypatch, server.url, KEY)
        assert await small_context(cloud, home) is None
        assert len(server.paths) == asked
