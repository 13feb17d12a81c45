import hermes_events
from hermes.events import Envelope, default_bus


def test_the_facade_is_the_default_bus_of_the_process() -> None:
    events: list[Envelope] = []
    handle = hermes_events.subscribe("test.default.*", events.append)
    try:
        default_bus().publish("test.default.x", {"n": 1})
        hermes_events.publish("test.default.y", {"n": 2})
        assert [event["n"] for event in events] == [1, 2]
        assert "test.default.*" in [
            one.pattern for one in hermes_events.stats().subscriptions
        ]
    finally:
        assert hermes_events.unsubscribe(handle)


async def test_the_facade_streams() -> None:
    async with hermes_events.stream("test.default.stream") as events:
        hermes_events.publish("test.default.stream", {"n": 1})
        assert (await anext(events))["n"] == 1
