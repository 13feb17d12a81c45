"""Which service answers."""

import pytest

from hermes.errors import SettingsError
from hermes.providers.routing import ModelRoute, first_route, keys_of, route_for
from hermes.settings import Secrets, Settings
from hermes.settings.models import CustomModel, CustomProvider, ModelSettings


def secrets(**values: str) -> Secrets:
    return Secrets({}, values)


def choose(settings: Settings | None = None, **environ: str) -> ModelRoute:
    return first_route(settings or Settings(), secrets(**environ))


@pytest.mark.parametrize(
    ("environ", "provider", "api", "base_url"),
    [
        ({}, "embedded", "chat", ""),
        ({"OPENAI_API_KEY": "k"}, "openai", "responses", "https://api.openai.com/v1"),
        (
            {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1/"},
            "openai-compatible",
            "chat",
            "http://127.0.0.1:9/v1",
        ),
        (
            {"OPENAI_BASE_URL": "http://localhost:11434/v1"},
            "ollama",
            "chat",
            "http://localhost:11434/v1",
        ),
        (
            {"ANTHROPIC_API_KEY": "k"},
            "anthropic",
            "anthropic",
            "https://api.anthropic.com/v1",
        ),
        (
            {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "http://x:1"},
            "anthropic",
            "anthropic",
            "http://x:1",
        ),
        (
            {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"},
            "openai",
            "responses",
            "https://api.openai.com/v1",
        ),
        (
            {"OPENROUTER_API_KEY": "k"},
            "openrouter",
            "chat",
            "https://openrouter.ai/api/v1",
        ),
        ({"DEEPSEEK_API_KEY": "k"}, "deepseek", "chat", "https://api.deepseek.com/v1"),
    ],
)
def test_keys_and_addresses_choose_the_provider(
    environ: dict[str, str], provider: str, api: str, base_url: str
) -> None:
    route = first_route(Settings(), Secrets({}, environ))
    assert (route.provider, route.api, route.base_url) == (provider, api, base_url)


def test_a_model_chooses_the_provider_that_makes_it_among_those_with_a_key() -> None:
    settings = Settings(model=ModelSettings(default="claude-opus-5-5"))
    assert (
        choose(settings, OPENAI_API_KEY="k", ANTHROPIC_API_KEY="k").provider
        == "anthropic"
    )
    assert choose(settings, OPENAI_API_KEY="k").provider == "openai"


def test_a_named_provider_wins_over_the_environment() -> None:
    route = choose(
        Settings(model=ModelSettings(provider="groq", default="llama-4")),
        OPENAI_API_KEY="k",
    )
    assert (route.provider, route.model, route.key_variable) == (
        "groq",
        "llama-4",
        "GROQ_API_KEY",
    )


def test_openais_name_at_another_address_behaves_as_that_address_says() -> None:
    settings = Settings(
        model=ModelSettings(provider="openai", base_url="http://127.0.0.1:9/v1")
    )
    route = choose(settings)
    assert (route.api, route.quirks.family) == ("chat", "generic")
    assert (
        choose(
            Settings(model=ModelSettings(provider="openai")),
            OPENAI_BASE_URL="http://127.0.0.1:9/v1",
        ).api
        == "chat"
    )


def test_the_wire_format_can_be_chosen() -> None:
    settings = Settings(
        model=ModelSettings(base_url="http://127.0.0.1:9/v1", api="anthropic")
    )
    assert choose(settings).api == "anthropic"


def test_anthropics_key_alone_makes_an_address_anthropics() -> None:
    settings = Settings(model=ModelSettings(base_url="http://proxy.example/v1"))
    route = choose(settings, ANTHROPIC_API_KEY="k")
    assert (route.provider, route.api, route.base_url) == (
        "anthropic",
        "anthropic",
        "http://proxy.example/v1",
    )
    assert keys_of(route, secrets(ANTHROPIC_API_KEY="k")) == ("k",)


@pytest.mark.parametrize(
    ("model", "environ"),
    [
        (ModelSettings(base_url="http://proxy.example/v1"), {"OPENAI_API_KEY": "o"}),
        (ModelSettings(base_url="http://proxy.example/v1", api="chat"), {}),
        (ModelSettings(), {"OPENAI_BASE_URL": "http://proxy.example/v1"}),
    ],
)
def test_anthropics_key_goes_nowhere_else(
    model: ModelSettings, environ: dict[str, str]
) -> None:
    route = choose(Settings(model=model), ANTHROPIC_API_KEY="k", **environ)
    assert (route.provider, route.api, route.key_variable) == (
        "openai-compatible",
        "chat",
        "OPENAI_API_KEY",
    )


def test_an_address_that_tells_who_it_is_is_believed() -> None:
    settings = Settings(model=ModelSettings(base_url="http://localhost:11434/v1"))
    assert choose(settings, ANTHROPIC_API_KEY="k").provider == "ollama"


def test_a_provider_of_ones_own_has_its_address_key_and_models() -> None:
    mine = CustomProvider(
        base_url="https://llm.example/v1",
        key_env="MINE_KEY",
        models={"m": CustomModel(window=9)},
    )
    settings = Settings(
        model=ModelSettings(provider="mine", default="m"),
        custom_providers={"mine": mine},
    )
    route = choose(settings)
    assert (route.base_url, route.key_variable, route.custom["m"].window) == (
        "https://llm.example/v1",
        "MINE_KEY",
        9,
    )


def test_facts_about_a_known_providers_models_keep_its_address_and_key() -> None:
    facts = CustomProvider(
        key_env="OPENAI_API_KEY", models={"gpt-9": CustomModel(window=9)}
    )
    route = choose(
        Settings(
            model=ModelSettings(provider="openai"), custom_providers={"openai": facts}
        )
    )
    assert (route.base_url, route.api) == ("https://api.openai.com/v1", "responses")


def test_an_unknown_provider_is_named_with_the_nearest() -> None:
    with pytest.raises(SettingsError) as caught:
        choose(Settings(model=ModelSettings(provider="antropic")))
    assert caught.value.hint == "Did you mean anthropic?"


@pytest.mark.parametrize("address", ["localhost:1234", "ftp://x/v1", "https://"])
def test_an_address_that_can_not_be_called_is_refused(address: str) -> None:
    with pytest.raises(SettingsError):
        choose(Settings(model=ModelSettings(base_url=address)))


@pytest.mark.parametrize(
    ("text", "provider", "model"),
    [
        ("anthropic:claude-opus-5-5", "anthropic", "claude-opus-5-5"),
        ("openrouter:openai/gpt-5:free", "openrouter", "openai/gpt-5:free"),
        ("llama3:8b", "openai", "llama3:8b"),
        ("gpt-5-mini", "openai", "gpt-5-mini"),
        ("deepseek", "deepseek", "deepseek-chat"),
        ("embedded", "embedded", ""),
    ],
)
def test_another_model_is_named_with_or_without_its_provider(
    text: str, provider: str, model: str
) -> None:
    origin = choose(OPENAI_API_KEY="k")
    route = route_for(Settings(), secrets(), text, origin)
    assert (route.provider, route.model) == (provider, model)


def test_several_keys_are_separated_by_commas_or_numbered() -> None:
    route = choose(OPENAI_API_KEY="a")
    found = keys_of(
        route,
        secrets(OPENAI_API_KEY="a, b,", OPENAI_API_KEY_2="c", OPENAI_API_KEY_3="a"),
    )
    assert found == ("a", "b", "c")


def test_a_missing_key_is_asked_for_by_name_and_local_servers_need_none() -> None:
    with pytest.raises(SettingsError, match="GROQ_API_KEY is not set"):
        keys_of(choose(Settings(model=ModelSettings(provider="groq"))), secrets())
    assert keys_of(choose(OPENAI_BASE_URL="http://127.0.0.1:9/v1"), secrets()) == ()


def test_a_key_with_impossible_characters_is_refused_without_being_shown() -> None:
    with pytest.raises(SettingsError) as caught:
        keys_of(choose(OPENAI_API_KEY="x"), secrets(OPENAI_API_KEY="secret\u2026key"))
    assert "secret" not in caught.value.message + caught.value.hint


def test_a_route_holds_no_keys() -> None:
    assert "sk-very" not in repr(choose(OPENAI_API_KEY="sk-very-secret"))
