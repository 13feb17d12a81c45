"""What is known about models: window, prices, abilities. The facts are in models.json; the user's own come first."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from hermes.schema.messages import Usage
from hermes.settings.models import CustomModel


class Prices(msgspec.Struct, frozen=True):
    """Dollars per million tokens. A cache price that is not given is the input price."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


class ModelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One model, or all whose name begins so."""

    family: str = ""
    window: int = 32_768
    max_output: int = 8_192
    prices: Prices | None = None
    tools: bool = True
    images: bool = False
    reasoning: bool = False
    thinking: Literal["", "budget", "adaptive"] = (
        ""  # how Anthropic models are asked to think
    )
    fixed_sampling: bool = False  # temperature is rejected


UNKNOWN = ModelFacts()


@cache
def all_models() -> Mapping[str, ModelFacts]:
    """Every name and prefix in the data file."""
    return msgspec.json.decode(
        Path(__file__).with_name("models.json").read_bytes(), type=dict[str, ModelFacts]
    )


def facts_of(model: str, custom: Mapping[str, CustomModel] | None = None) -> ModelFacts:
    """What is known about `model`: the longest known name it begins with, then the user's own facts over it."""
    facts = _longest(model)
    mine = (custom or {}).get(model)
    if mine is None:
        return facts
    given: dict[str, object] = {
        name: value
        for name in ("window", "max_output", "tools", "images", "reasoning")
        if (value := getattr(mine, name)) is not None
    }
    if mine.input_price is not None and mine.output_price is not None:
        given["prices"] = Prices(
            mine.input_price,
            mine.output_price,
            mine.cache_read_price,
            mine.cache_write_price,
        )
    return msgspec.structs.replace(facts, **given)


def _longest(model: str) -> ModelFacts:
    name = model.lower()
    known = all_models()
    # openrouter and others put a maker before the name, ollama a tag behind it
    for candidate in (name, name.rpartition("/")[2]):
        best = max(
            (prefix for prefix in known if candidate.startswith(prefix)),
            key=len,
            default="",
        )
        if best:
            return known[best]
    return UNKNOWN


def cost(usage: Usage, prices: Prices | None) -> float | None:
    """What `usage` cost in dollars; None when the price is not known."""
    if prices is None:
        return None
    read_price = prices.input if prices.cache_read is None else prices.cache_read
    write_price = prices.input if prices.cache_write is None else prices.cache_write
    fresh = max(
        0, usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens
    )
    total = fresh * prices.input + usage.output_tokens * prices.output
    total += (
        usage.cache_read_tokens * read_price + usage.cache_write_tokens * write_price
    )
    return total / 1_000_000


def with_cost(usage: Usage, facts: ModelFacts) -> Usage:
    """`usage` with its cost, unless the provider itself said what it cost."""
    if usage.cost_usd is not None:
        return usage
    return msgspec.structs.replace(usage, cost_usd=cost(usage, facts.prices))
