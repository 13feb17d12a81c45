"""The event bus: topics, patterns, envelopes, delivery. It knows no event type."""

from hermes.events.bus import Bus, BusStats, default_bus
from hermes.events.envelope import Envelope, thaw
from hermes.events.stream import Policy, Stream
from hermes.events.subscription import Callback, Subscription, SubscriptionStats

__all__ = [
    "Bus",
    "BusStats",
    "Callback",
    "Envelope",
    "Policy",
    "Stream",
    "Subscription",
    "SubscriptionStats",
    "default_bus",
    "thaw",
]
