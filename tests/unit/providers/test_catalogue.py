"""Facts about models, and what they cost."""

import pytest

from hermes.providers.catalogue import (
    UNKNOWN,
    Prices,
    all_models,
    cost,
    facts_of,
    with_cost,
)
from hermes.providers.provider_table import FAMILIES, family
from hermes.schema.messages import Usage
from hermes.settings.models import CustomModel


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("gpt-5-mini-2025-08-07", 0.25),
        ("gpt-5-2025-08-07", 1.25),
        ("gpt-5.5", 5.0),
        ("claude-sonnet-5-5", 2.0),
        ("anthropic/claude-sonnet-4.6", 3.0),
        ("claude-opus-4-20250514", 15.0),
        ("claude-haiku-4-5", 1.0),
    ],
)
def test_the_longest_known_beginning_of_a_name_decides(
    model: str, price: float
) -> None:
    prices = facts_of(model).prices
    assert prices is not None
    assert prices.input == price


def test_a_name_that_nobody_knows_gets_careful_assumptions_and_no_price() -> None:
    assert facts_of("my-own-model") == UNKNOWN
    assert with_cost(Usage(input_tokens=5), UNKNOWN).cost_usd is None


def test_every_entry_is_sound() -> None:
    for name, facts in all_models().items():
        assert name == name.lower()
        assert 0 < facts.max_output <= facts.window, name
        assert not facts.family or family(facts.family) in FAMILIES, name


def test_every_familys_usual_model_is_known() -> None:
    for quirks in FAMILIES:
        if quirks.default_model:
            assert facts_of(quirks.default_model) != UNKNOWN, quirks.family


def test_the_users_own_facts_win_and_the_rest_stays() -> None:
    mine = {
        "gpt-5": CustomModel(
            window=1000, input_price=1.0, output_price=2.0, images=False
        )
    }
    facts = facts_of("gpt-5", mine)
    assert (facts.window, facts.images, facts.reasoning) == (1000, False, True)
    assert facts.prices == Prices(1.0, 2.0)


def test_cached_tokens_are_part_of_the_input_and_have_their_own_price() -> None:
    usage = Usage(
        input_tokens=1000,
        output_tokens=100,
        cache_read_tokens=600,
        cache_write_tokens=300,
    )
    assert cost(usage, Prices(10.0, 20.0, 1.0, 12.5)) == pytest.approx(
        (100 * 10 + 600 + 300 * 12.5 + 100 * 20) / 1e6
    )
    assert cost(usage, Prices(10.0, 20.0)) == pytest.approx(
        (1000 * 10 + 100 * 20) / 1e6
    )


def test_a_cost_that_the_provider_names_is_kept() -> None:
    assert (
        with_cost(Usage(input_tokens=5, cost_usd=0.5), facts_of("gpt-5")).cost_usd
        == 0.5
    )
