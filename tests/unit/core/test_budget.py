"""Caps stop before they are passed."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.budget import (
    BudgetClaimed,
    BudgetSpent,
    Cap,
    Metered,
    Price,
    TurnBudget,
    Unit,
    estimate_tokens,
    parse_amount,
    request_tokens,
)
from hermes.schema.messages import (
    AssistantMessage,
    Image,
    Message,
    ToolCall,
    ToolFinished,
    Usage,
    UserMessage,
)
from hermes.schema.model import (
    ModelEvent,
    ModelRequest,
    ReplyFinished,
    Retrying,
    TextDelta,
)
from hermes.schema.tool_spec import ToolSpec


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
def test_amounts_are_read_as_people_write_them(
    text: str, amount: tuple[Unit, float]
) -> None:
    assert parse_amount(text) == amount


@pytest.mark.parametrize("text", ["", "lots", "$", "-5", "$5 tokens", "1e9", "5 euros"])
def test_anything_else_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="is not an amount"):
        parse_amount(text)


def test_without_caps_there_is_no_limit() -> None:
    assert TurnBudget().room(1_000_000) is None


def test_a_call_that_could_pass_a_cap_is_not_made() -> None:
    budget = TurnBudget([Cap("turn", "tokens", 1000)])
    budget.spend(Usage(input_tokens=600, output_tokens=300))
    with pytest.raises(
        BudgetSpent, match="needs about 106 tokens; 100 of 1,000 are left"
    ):
        budget.room(90)


def test_a_cap_in_dollars_with_an_unknown_price_refuses_instead_of_guessing() -> None:
    with pytest.raises(BudgetSpent, match="price is unknown"):
        TurnBudget([Cap("day", "usd", 5)]).room(10)


def test_a_free_model_never_passes_a_cap_in_dollars() -> None:
    assert (TurnBudget([Cap("day", "usd", 5)], Price(0, 0)).room(10) or 0) > 1_000_000


def test_an_unknown_cost_makes_the_sum_unknown() -> None:
    budget = TurnBudget()
    budget.spend(Usage(output_tokens=1, cost_usd=0.5))
    budget.spend(Usage(output_tokens=1, cost_usd=None))
    assert budget.used.cost_usd is None
    assert budget.used.output_tokens == 2


@given(
    limit=st.integers(100, 10_000),
    inputs=st.lists(st.integers(1, 500), min_size=1, max_size=30),
    unit=st.sampled_from(["tokens", "usd"]),
)
def test_a_cap_is_never_passed_by_a_model_that_keeps_to_its_room(
    limit: int, inputs: list[int], unit: Unit
) -> None:
    price = Price(0.001, 0.002)
    cap = Cap("turn", unit, limit if unit == "tokens" else limit / 1000)
    budget = TurnBudget([cap], price)
    for size in inputs:
        try:
            room = budget.room(size)
        except BudgetSpent:
            break
        assert room is not None
        budget.spend(
            Usage(
                input_tokens=size,
                output_tokens=room,
                cost_usd=size * price.input + room * price.output,
            )
        )
    assert cap.used <= cap.limit + 1e-9


def test_what_is_used_is_looked_up_before_each_call() -> None:
    elsewhere = [100.0]
    budget = TurnBudget(
        [Cap("day", "tokens", 1000)], refresh=lambda cap: (elsewhere[0], 0.0)
    )
    assert budget.room(10) == 890
    elsewhere[0] = 990
    with pytest.raises(BudgetSpent, match="10 of 1,000 are left"):
        budget.room(10)


def test_what_this_turn_spent_counts_before_the_log_has_it() -> None:
    budget = TurnBudget([Cap("day", "tokens", 1000)], refresh=lambda cap: (100.0, 0.0))
    budget.room(10)
    budget.spend(Usage(input_tokens=500))
    assert budget.room(10) == 390


def test_an_input_that_is_too_large_by_itself_is_said_with_its_size() -> None:
    with pytest.raises(
        BudgetSpent, match=r"needs about 9,016 tokens; 8,000 of 8,000 are left"
    ):
        TurnBudget([Cap("turn", "tokens", 8000)]).room(9000)


def test_an_input_that_costs_too_much_is_refused_also_when_the_output_is_free() -> None:
    with pytest.raises(
        BudgetSpent, match=r"needs about \$10.0000; \$5.0000 of \$5 are left"
    ):
        TurnBudget([Cap("day", "usd", 5)], Price(0.01, 0)).room(1000)


def test_a_count_without_a_cost_is_priced_towards_a_cap_in_dollars() -> None:
    cap = Cap("turn", "usd", 5)
    TurnBudget([cap], Price(0.001, 0.002)).spend(
        Usage(input_tokens=1000, output_tokens=500)
    )
    assert cap.used == pytest.approx(2)


def _request(*messages: Message, tools: tuple[ToolSpec, ...] = ()) -> ModelRequest:
    return ModelRequest(system=(), messages=messages, tools=tools)


def test_letters_signs_and_half_characters_are_estimated() -> None:
    assert [
        estimate_tokens(text) for text in ("", "a" * 300, "\u597d" * 100, "\ud800")
    ] == [0, 100, 100, 1]


def test_tools_arguments_and_pictures_count_as_input() -> None:
    tool = ToolSpec(name="t", description="d" * 300, parameters={"x": "y" * 3000})
    call = ToolCall(id="c", name="t", arguments="z" * 3000)
    picture = Image(source="/x.png", media_type="image/png")
    assert request_tokens(_request(tools=(tool,))) > 1100
    assert request_tokens(_request(AssistantMessage(tool_calls=(call,)))) > 1000
    assert (
        request_tokens(_request(UserMessage(text="", images=(picture, picture))))
        == 3000
    )
    assert (
        request_tokens(_request(ToolFinished(call_id="c", name="t", images=(picture,))))
        == 1500
    )


def test_what_a_provider_counted_replaces_the_estimate() -> None:
    counted = AssistantMessage(
        text="x" * 999, usage=Usage(input_tokens=7, output_tokens=3)
    )
    assert (
        request_tokens(
            _request(UserMessage(text="x" * 999), counted, UserMessage(text="abc"))
        )
        == 11
    )


class Streams:
    """Implements the `Model` port with given events."""

    provider = name = "test"

    def __init__(self, *events: ModelEvent) -> None:
        self._events = events
        self.closed = False

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        try:
            for event in self._events:
                yield event
        finally:
            self.closed = True


_RETRY = Retrying("server", "500", 2, 0.1, "p", "m")


@pytest.mark.parametrize(
    ("events", "guessed"),
    [
        ([ReplyFinished(AssistantMessage(text="a" * 30))], [(100, 10)]),
        ([ReplyFinished(AssistantMessage())], [(100, 1)]),
        (
            [
                TextDelta("a" * 30),
                ReplyFinished(
                    AssistantMessage(text="a" * 30, usage=Usage(output_tokens=9))
                ),
            ],
            [],
        ),
        (
            [
                TextDelta("a" * 30),
                _RETRY,
                ReplyFinished(AssistantMessage(usage=Usage(output_tokens=9))),
            ],
            [(100, 10)],
        ),
        ([TextDelta("a" * 30)], [(100, 10)]),
        ([], []),
    ],
)
async def test_a_call_that_was_not_counted_is_estimated(
    events: list[ModelEvent], guessed: list[tuple[int, int]]
) -> None:
    heard: list[Usage] = []
    model = Metered(Streams(*events), heard.append)
    request = _request(UserMessage(text="x" * 300))
    assert [event async for event in model.stream(request)] == events
    assert [(usage.input_tokens, usage.output_tokens) for usage in heard] == guessed


async def test_a_call_that_is_given_up_is_closed_and_estimated() -> None:
    heard: list[Usage] = []
    inner = Streams(TextDelta("a" * 30), TextDelta("b"))
    async with aclosing(Metered(inner, heard.append).stream(_request())) as stream:
        await anext(stream)
    assert inner.closed
    assert [usage.output_tokens for usage in heard] == [10]


async def test_children_side_by_side_do_not_pass_the_caps_of_their_turn() -> None:
    parent = TurnBudget([Cap("turn", "tokens", 1000)])
    one, two = parent.child(None, None), parent.child(None, None)
    first = await one.reserve(100)
    assert first == 900
    with pytest.raises(BudgetSpent):
        await two.reserve(100)
    one.spend(Usage(input_tokens=100, output_tokens=50))
    assert await two.reserve(100) == 750
    two.release()
    assert await parent.reserve(100) == 750
    assert (one.used.output_tokens, two.used.output_tokens) == (50, 0)


async def test_children_side_by_side_share_what_is_left_of_their_turn() -> None:
    parent = TurnBudget([Cap("turn", "tokens", 40_000)])
    one, two = parent.child(None, None), parent.child(None, None)
    first, second = await one.reserve(1_000), await two.reserve(1_000)
    assert first
    assert second
    assert first + second + 2_000 <= 40_000


class SharedClaims:
    """Budgets of turns that run side by side under one cap, as processes with one store have them."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._tokens: dict[int, int] = {}

    def budget(self, name: int) -> TurnBudget:
        async def claim(usage: Usage) -> None:
            await asyncio.sleep(0)  # the others look before this one has claimed
            self._tokens[name] = usage.input_tokens + usage.output_tokens
            await asyncio.sleep(0)  # and claim before this one looks again

        def refresh(_: Cap) -> tuple[float, float]:
            return 0.0, sum(self._tokens.values()) - self._tokens.get(name, 0)

        cap = Cap("day", "tokens", self._limit)
        return TurnBudget([cap], refresh=refresh, claim=claim)

    async def reserve(self, name: int, input_tokens: int) -> int:
        """What a call of this size uses at most; 0 if it was refused."""
        try:
            room = await self.budget(name).reserve(input_tokens)
        except BudgetClaimed:
            return 0
        assert room
        return input_tokens + room


@pytest.mark.parametrize("calls", [2, 3, 4])
async def test_calls_that_begin_at_the_same_moment_share_what_is_left(
    calls: int,
) -> None:
    claims = SharedClaims(60_000)
    used = await asyncio.gather(*(claims.reserve(name, 4_000) for name in range(calls)))
    assert all(used)
    assert sum(used) <= 60_000


async def test_calls_that_do_not_fit_together_never_all_refuse_each_other() -> None:
    claims = SharedClaims(60_000)
    used = await asyncio.gather(*(claims.reserve(name, 25_000) for name in range(5)))
    assert 1 <= sum(map(bool, used)) <= 2
    assert sum(used) <= 60_000
