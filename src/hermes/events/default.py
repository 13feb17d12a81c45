"""The default bus of this process, behind `hermes_events`. Constructors are given their bus; only
facades use this one.
"""

from hermes.events.bus import Bus

_bus = Bus()


def default_bus() -> Bus:
    """Returns the bus that plugins of this process publish to and subscribe on."""
    return _bus
