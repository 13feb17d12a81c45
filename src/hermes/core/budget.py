"""Hard caps on tokens and money. A call is not made when it could pass a cap, and its reply is cut to what is left."""

import re
from typing import Literal, TypeAlias

import msgspec

from hermes.errors import HermesError
from hermes.schema.messages import Usage

Unit: TypeAlias = Literal["usd", "tokens"]

_AMOUNT = r"(?a)(\$)?\s*(\d+(?:\.\d+)?)\s*([kKmM])?\s*(usd|dollars?|tokens?)?"
_LEAST_OUTPUT = 16  # tokens; a smaller reply is not worth asking for


class BudgetSpent(HermesError):
    """The next call could pass a cap."""


class Price(msgspec.Struct, frozen=True):
    """Dollars per token."""

    input: float
    output: float


class Cap(msgspec.Struct):
    """A limit in one scope (turn, session, day), and what is used of it."""

    scope: str
    unit: Unit
    limit: float
    used: float = 0.0

    def __str__(self) -> str:
        if self.unit == "usd":
            return f"${self.used:.4f} of ${self.limit:g} per {self.scope}"
        return f"{self.used:,.0f} of {self.limit:,.0f} tokens per {self.scope}"


def parse_amount(text: str) -> tuple[Unit, float]:
    """`$2.50`, `2.5 usd`, `200k`, `50000 tokens`. Raises ValueError for anything else."""
    found = re.fullmatch(_AMOUNT, text.strip())
    if not found or (found[1] and (found[4] or "usd").startswith("token")):
        raise ValueError(f"{text!r} is not an amount: write $2.50 or 200k tokens")
    value = float(found[2]) * {"k": 1e3, "m": 1e6}.get((found[3] or "").lower(), 1)
    dollars = found[1] or (found[4] and not found[4].startswith("token"))
    return ("usd", value) if dollars else ("tokens", value)


class Budget:
    """The caps of one turn, shared with the children it starts."""

    def __init__(self, caps: list[Cap] | None = None, price: Price | None = None) -> None:
        self._caps = caps or []
        self._price = price
        self.used = Usage(cost_usd=0.0)

    def room(self, input_tokens: int) -> int | None:
        """How many tokens the next reply may have after an input of about this size; None without a cap."""
        rooms = [self._room_under(cap, input_tokens) for cap in self._caps]
        return min(rooms) if rooms else None

    def spend(self, usage: Usage | None) -> None:
        """Counts what a call took."""
        if usage is None:
            return
        self.used = _sum(self.used, usage)
        for cap in self._caps:
            tokens = usage.input_tokens + usage.output_tokens
            cap.used += tokens if cap.unit == "tokens" else (usage.cost_usd or 0.0)

    def _room_under(self, cap: Cap, input_tokens: int) -> int:
        left = cap.limit - cap.used
        if cap.unit == "tokens":
            room = left - input_tokens
        elif self._price is None:
            hint = "Give the model's prices in custom_providers, or set the cap in tokens."
            raise BudgetSpent(f"a cap in dollars ({cap}) can't be kept: the model's price is unknown", hint=hint)
        elif self._price.output <= 0:
            return 2**31
        else:
            room = (left - input_tokens * self._price.input) / self._price.output
        if room < _LEAST_OUTPUT:
            hint = f"Raise budget.per_{cap.scope} to go on."
            raise BudgetSpent(f"stopped before passing the cap: {cap} used", hint=hint)
        return int(room)


def estimate_tokens(characters: int) -> int:
    """A cautious guess before a provider has counted."""
    return characters // 3


def _sum(one: Usage, two: Usage) -> Usage:
    known = one.cost_usd is not None and two.cost_usd is not None
    return Usage(
        input_tokens=one.input_tokens + two.input_tokens,
        output_tokens=one.output_tokens + two.output_tokens,
        cache_read_tokens=one.cache_read_tokens + two.cache_read_tokens,
        cache_write_tokens=one.cache_write_tokens + two.cache_write_tokens,
        reasoning_tokens=one.reasoning_tokens + two.reasoning_tokens,
        cost_usd=(one.cost_usd or 0.0) + (two.cost_usd or 0.0) if known else None,
    )
