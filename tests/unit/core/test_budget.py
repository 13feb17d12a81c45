"""Caps stop before they are passed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.budget import Budget, BudgetSpent, Cap, Price, Unit, parse_amount
from hermes.schema.messages import Usage


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("$2.50", ("usd", 2.5)),
        ("2.5 usd", ("usd", 2.5)),
        ("3 dollars", ("usd", 3)),
        ("200k", ("tokens", 200_000)),
        ("50000 tokens", ("tokens", 50_000)),
        ("1.5M", ("tokens", 1_500_000)),
    ],
)
def test_amounts_are_read_as_people_write_them(text: str, amount: tuple[Unit, float]) -> None:
    assert parse_amount(text) == amount


@pytest.mark.parametrize("text", ["", "lots", "$", "-5", "$5 tokens", "1e9", "5 euros"])
def test_anything_else_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="is not an amount"):
        parse_amount(text)


def test_without_caps_there_is_no_limit() -> None:
    assert Budget().room(1_000_000) is None


def test_a_call_that_could_pass_a_cap_is_not_made() -> None:
    budget = Budget([Cap("turn", "tokens", 1000)])
    budget.spend(Usage(input_tokens=600, output_tokens=300))
    with pytest.raises(BudgetSpent, match="900 of 1,000 tokens per turn"):
        budget.room(90)


def test_a_cap_in_dollars_with_an_unknown_price_refuses_instead_of_guessing() -> None:
    with pytest.raises(BudgetSpent, match="price is unknown"):
        Budget([Cap("day", "usd", 5)]).room(10)


def test_a_free_model_never_passes_a_cap_in_dollars() -> None:
    assert (Budget([Cap("day", "usd", 5)], Price(0, 0)).room(10) or 0) > 1_000_000


def test_an_unknown_cost_makes_the_sum_unknown() -> None:
    budget = Budget()
    budget.spend(Usage(output_tokens=1, cost_usd=0.5))
    budget.spend(Usage(output_tokens=1, cost_usd=None))
    assert budget.used.cost_usd is None
    assert budget.used.output_tokens == 2


@given(
    limit=st.integers(100, 10_000),
    inputs=st.lists(st.integers(1, 500), min_size=1, max_size=30),
    unit=st.sampled_from(["tokens", "usd"]),
)
def test_a_cap_is_never_passed_by_a_model_that_keeps_to_its_room(limit: int, inputs: list[int], unit: Unit) -> None:
    price = Price(0.001, 0.002)
    cap = Cap("turn", unit, limit if unit == "tokens" else limit / 1000)
    budget = Budget([cap], price)
    for size in inputs:
        try:
            room = budget.room(size)
        except BudgetSpent:
            break
        assert room is not None
        budget.spend(Usage(input_tokens=size, output_tokens=room, cost_usd=size * price.input + room * price.output))
    assert cap.used <= cap.limit + 1e-9
