"""The cheapest model for work on the side: of the user's own provider, that can do it, and nowhere else."""

import pytest

from hermes.providers.adapter import ModelAdapter
from hermes.providers.build import build_helper, build_model
from hermes.providers.cheapest_model import Need, cheapest
from hermes.providers.endpoint import Options
from hermes.providers.routing import chosen_route
from hermes.settings import Secrets, Settings
from hermes.settings.models import CustomModel, CustomProvider, ModelSettings


def choice(settings: Settings, need: Need | None = None, **keys: str) -> str:
    route = cheapest(chosen_route(settings, Secrets({}, keys)), need or Need())
    return f"{route.provider}:{route.model}" if route else ""


@pytest.mark.parametrize(
    ("provider", "model", "cheap"),
    [
        ("openai", "gpt-5.5", "openai:gpt-5-mini"),
        ("openai", "gpt-5-mini", ""),
        ("openai", "gpt-5-nano", ""),
        ("anthropic", "claude-sonnet-5-5", "anthropic:claude-haiku-4-5"),
        ("anthropic", "claude-unheard-of-9", "anthropic:claude-haiku-4-5"),
        ("openrouter", "anthropic/claude-sonnet-4.6", "openrouter:openai/gpt-5-mini"),
        ("gemini", "gemini-2.5-pro", "gemini:gemini-2.5-flash"),
        ("deepseek", "deepseek-chat", ""),
        ("ollama", "qwen3", ""),
        ("embedded", "base", ""),
    ],
)
def test_it_is_a_model_of_the_same_provider_that_costs_less(
    provider: str, model: str, cheap: str
) -> None:
    keys = {
        "OPENAI_API_KEY": "k",
        "ANTHROPIC_API_KEY": "k",
    }  # other keys make nobody else's model a candidate
    assert (
        choice(Settings(model=ModelSettings(provider=provider, default=model)), **keys)
        == cheap
    )


def test_another_service_that_speaks_like_a_known_one_is_not_asked_for_models_it_may_not_have() -> (
    None
):
    mine = CustomProvider(base_url="https://gateway.example.org/v1", family="anthropic")
    settings = Settings(
        model=ModelSettings(provider="mine", default="claude-opus-5"),
        custom_providers={"mine": mine},
    )
    assert choice(settings) == ""


def test_a_region_of_the_provider_stays_the_one_that_was_chosen() -> None:
    settings = Settings(
        model=ModelSettings(
            provider="openai",
            default="gpt-5.5",
            base_url="https://eu.api.openai.com/v1",
        )
    )
    route = cheapest(chosen_route(settings, Secrets({}, {})), Need())
    assert route is not None
    assert route.base_url == "https://eu.api.openai.com/v1"


def test_what_the_task_needs_comes_before_the_price() -> None:
    models = {
        "main": CustomModel(window=100_000, input_price=5.0, output_price=5.0),
        "small": CustomModel(window=4_000, input_price=0.1, output_price=0.1),
        "large": CustomModel(window=100_000, input_price=1.0, output_price=1.0),
        "seeing": CustomModel(
            window=100_000, input_price=9.0, output_price=9.0, images=True
        ),
        "free?": CustomModel(window=100_000),
    }
    mine = CustomProvider(base_url="http://127.0.0.1:9/v1", models=models)

    def mine_at(model: str) -> Settings:
        return Settings(
            model=ModelSettings(provider="mine", default=model),
            custom_providers={"mine": mine},
        )

    assert choice(mine_at("main")) == "mine:small"
    assert choice(mine_at("main"), Need(window=50_000)) == "mine:large"
    assert choice(mine_at("main"), Need(images=True)) == "mine:seeing"
    assert choice(mine_at("seeing"), Need(images=True)) == ""
    assert (
        choice(mine_at("free?"), Need(window=50_000)) == ""
    )  # its price is not known: perhaps it costs nothing


def test_a_helper_is_asked_alone_and_plainly() -> None:
    chosen = ModelSettings(
        provider="openai",
        default="gpt-5.5",
        reasoning_effort="xhigh",
        temperature=0.1,
        fallback=("gpt-5",),
    )
    settings, secrets = (
        Settings(model=chosen),
        Secrets({}, {"OPENAI_API_KEY": "sk-test"}),
    )
    route = cheapest(chosen_route(settings, secrets), Need())
    assert route is not None
    (helper,) = build_helper(route, settings, secrets).candidates
    assert isinstance(helper.model, ModelAdapter)
    assert helper.model.endpoint.options == Options()
    main = build_model(settings, secrets).candidates[0].model
    assert isinstance(main, ModelAdapter)
    assert main.endpoint.options.reasoning_effort == "xhigh"
