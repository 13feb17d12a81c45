"""Chooses the model for auxiliary tasks when nobody named one: the cheapest of the same provider that can do it.

Only the user's own provider is considered, so that a conversation goes nowhere else by itself.
"""

import math

import msgspec

from hermes.providers.catalogue import ModelFacts
from hermes.providers.provider_table import GENERIC, family_of
from hermes.providers.routing import ModelRoute, route_facts

_INPUT_PER_OUTPUT_TOKEN = 8  # tokens: work on the side reads much and writes little


class Need(msgspec.Struct, frozen=True):
    """What a task needs of a model."""

    window: int = 0
    images: bool = False

    def fits(self, facts: ModelFacts) -> bool:
        """Whether a model can do it."""
        return facts.window >= self.window and (facts.images or not self.images)


def cheapest(main: ModelRoute, need: Need) -> ModelRoute | None:
    """Returns the provider's cheapest known model that fits; None if that is the main one, or there is none."""
    if main.embedded:
        return None
    # the provider itself, not somebody else who speaks like it
    is_own_service = (
        main.quirks is not GENERIC
        and family_of(main.base_url).family == main.quirks.family
    )
    names = (*main.custom, *(main.quirks.small_models if is_own_service else ()))
    routes = [
        msgspec.structs.replace(main, model=name)
        for name in names
        if name != main.model
    ]
    best = min(
        (route for route in routes if need.fits(route_facts(route))),
        key=_price,
        default=None,
    )
    if best is None or not need.fits(route_facts(main)):
        return best
    usual = _price(main)
    if math.isinf(usual) and not is_own_service:
        return None  # the price is unknown: perhaps it costs nothing
    return best if _price(best) < usual else None


def _price(route: ModelRoute) -> float:
    """Returns an approximate price, for comparison; infinite if it is unknown."""
    prices = route_facts(route).prices
    return (
        prices.input * _INPUT_PER_OUTPUT_TOKEN + prices.output if prices else math.inf
    )
