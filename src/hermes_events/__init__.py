"""The public name of Hermes' event bus, for plugins and scripts.

from hermes_events import publish, subscribe, unsubscribe

Topics are dotted. In a pattern `*` stands for one segment and `**` for any number of them. What you receive is a dict
with your payload's names plus `type`, `ts` and `src`.
"""

from hermes.events.bus import default_bus

_bus = default_bus()

publish = _bus.publish
subscribe = _bus.subscribe
unsubscribe = _bus.unsubscribe
stream = _bus.stream
stats = _bus.stats


def _subscriber_count() -> int:
    """How many subscriptions are live, for tests of plugins."""
    return len(_bus.stats().subscriptions)


def _reset_for_tests() -> None:
    """End every subscription of this process, for tests of plugins."""
    _bus.end_all()


__all__ = ["publish", "stats", "stream", "subscribe", "unsubscribe"]
