"""The events that the terminal publishes."""

from collections.abc import Mapping
from typing import Any

import msgspec

from hermes.schema.catalogue import CATALOGUE
from hermes.surfaces.tui.tui_events import TuiEventRelay


def relayed(*events: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    told: list[tuple[str, dict[str, Any]]] = []

    def publish(topic: str, payload: Mapping[str, Any]) -> None:
        told.append((topic, dict(payload)))

    relay = TuiEventRelay(publish, "s")
    for event in events:
        relay.on_event({"session_id": "s", "ts": 10.0, **event})
    return told


TURN = (
    {"type": "agent.reasoning.delta", "text": "hm"},
    {"type": "agent.message.delta", "text": "Let "},
    {"type": "agent.message.delta", "text": "me."},
    {"type": "agent.tool.generating", "call_id": "c", "name": "terminal"},
    {"type": "agent.message.assistant", "text": "Let me.", "reasoning": "hm"},
    {
        "type": "agent.tool.started",
        "call_id": "c",
        "name": "terminal",
        "arguments": '{"command": "make"}',
    },
    {"type": "agent.tool.progress", "call_id": "c", "text": "one\ntwo\n"},
    {
        "type": "agent.tool.finished",
        "call_id": "c",
        "name": "terminal",
        "ts": 12.5,
        "ok": False,
    },
    {"type": "agent.turn.ended", "reason": "failed", "detail": "gave up"},
)


def test_a_turn_under_the_names_of_the_contract() -> None:
    told = relayed(*TURN)
    assert [topic for topic, _ in told] == [
        "tui.reasoning.delta",
        "tui.message.start",
        "tui.message.delta",
        "tui.message.delta",
        "tui.tool.generating",
        "tui.reasoning.available",
        "tui.message.complete",
        "tui.tool.start",
        "tui.tool.progress",
        "tui.tool.complete",
        "tui.error",
    ]
    assert all(payload["session_id"] == "s" for _, payload in told)
    tools = {topic: payload for topic, payload in told if topic.startswith("tui.tool.")}
    assert tools["tui.tool.start"]["preview"] == "terminal make"
    assert tools["tui.tool.progress"]["preview"] == "two"
    done = tools["tui.tool.complete"]
    assert (done["name"], done["preview"], done["ok"], done["seconds"]) == (
        "terminal",
        "terminal make",
        False,
        2.5,
    )


def test_everything_fits_the_catalogue() -> None:
    for topic, payload in relayed(*TURN):
        fields = {
            name: value for name, value in payload.items() if name != "session_id"
        }
        assert msgspec.convert(fields, CATALOGUE[topic], strict=True)
        assert not CATALOGUE[topic].durable


def test_other_sessions_are_not_told_of() -> None:
    assert (
        relayed({"type": "agent.message.delta", "text": "x", "session_id": "t"}) == []
    )
