"""What waits to be sent: in which order it goes, what goes together, and what is counted."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.bridge.outbox import Outbox
from hermes.events import Bus

_PASSING, _KEPT = "agent.tool.progress", "agent.tool.started"
_ROOM = 192 * 1024
_LIMIT = 1024 * 1024  # bytes of a message that a dashboard takes


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Outbox]:
    one = Outbox(tmp_path)
    yield one
    one.spool.close()


def _message(outbox: Outbox) -> list[dict[str, Any]]:
    """The frames of the next message, in the order in which a dashboard sees them."""
    text = b"[" + b",".join(outbox.batch(_ROOM)) + b"]"
    assert len(text) < _LIMIT
    return json.loads(text)


def _all(outbox: Outbox) -> list[dict[str, Any]]:
    frames: list[dict[str, Any]] = []
    while outbox.has_news:
        frames += _message(outbox)
    return frames


def _numbers(frames: list[dict[str, Any]]) -> list[int]:
    return [
        frame["envelope"]["n"] for frame in frames if "n" in frame.get("envelope", ())
    ]


def test_everything_goes_in_the_order_of_its_birth(outbox: Outbox) -> None:
    kinds = [
        _KEPT if number % 300 in {0, 1, 290} else _PASSING for number in range(1000)
    ]
    for number, kind in enumerate(kinds):
        outbox.put({"type": kind, "n": number})
    frames = _all(outbox)
    assert _numbers(frames) == list(range(1000))
    assert [frame["topic"] for frame in frames if "topic" in frame] == kinds
    assert (outbox.heard, outbox.sent, outbox.dropped) == (
        kinds.count(_PASSING),
        kinds.count(_PASSING),
        0,
    )
    assert all(frame["_bus_relay"] is True for frame in frames if "topic" in frame)


def test_what_has_no_number_is_counted_from_the_number_before_it(
    outbox: Outbox,
) -> None:
    for number in range(700):
        outbox.put({"type": _PASSING, "n": number, "text": "x" * 1000})
    expected = 1
    while outbox.has_news:
        first, *others = _message(outbox)
        assert (first["publisher"], first["epoch"]) == (
            f"{outbox.publisher}.transient",
            outbox.epoch,
        )
        assert first["seq"] == expected
        expected += len(others)
    assert expected == 701


def test_events_that_are_too_large_together_go_one_by_one(outbox: Outbox) -> None:
    for number in range(20):
        outbox.put({"type": _PASSING, "n": number, "text": "x" * 300_000})
    outbox.put({"type": _KEPT, "n": 20})
    outbox.put({"type": _PASSING, "n": 21})
    frames = _message(outbox)
    assert 0 < len(_numbers(frames)) < 20
    outbox.rewind(len(_numbers(frames)))
    assert _numbers(frames + _all(outbox)) == list(range(22))
    assert (outbox.sent, outbox.dropped, outbox.cut) == (21, 0, 0)


def test_large_events_stay_behind_what_is_sent_again(outbox: Outbox) -> None:
    outbox.put({"type": _KEPT, "n": 0})
    for number in range(1, 6):
        outbox.put({"type": _PASSING, "n": number, "text": "x" * 300_000})
    assert _numbers(_message(outbox)) == [0, 1]
    outbox.rewind(1)  # of the first one it is not known whether it has arrived
    assert _numbers(_all(outbox)) == [0, 2, 3, 4, 5]


def test_what_is_left_of_them_at_the_end_is_counted(outbox: Outbox) -> None:
    for number in range(5):
        outbox.put({"type": _PASSING, "n": number, "text": "x" * 300_000})
    sent = len(_numbers(_message(outbox)))
    outbox.forfeit()
    assert (outbox.dropped, outbox.has_news) == (5 - sent, False)


@pytest.mark.parametrize("topic", [_PASSING, _KEPT])
def test_what_json_can_not_hold_goes_as_a_string_and_is_counted(
    outbox: Outbox, topic: str
) -> None:
    bus = Bus()
    bus.subscribe("**", outbox.put)
    values = ["\ud800", float("nan"), {"deep": [{1}]}, object, "whole"]
    for number in range(10):
        bus.publish(
            topic,
            {"n": number, "value": values[number] if number < len(values) else "whole"},
        )
    frames = _all(outbox)
    assert _numbers(frames) == list(range(10))
    sent = [
        frame["envelope"]["value"] for frame in frames if frame.get("topic") == topic
    ]
    assert sent[:5] == [
        "\ufffd",
        "nan",
        {"deep": ["frozenset({1})"]},
        "<class 'object'>",
        "whole",
    ]
    assert (outbox.dropped, outbox.encoder.replaced) == (0, 4)


def test_private_fields_are_left_out_of_every_kind(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, hide=True)
    for kind in ("agent.message.delta", _KEPT):
        outbox.put({"type": kind, "n": 1, "text": "private", "arguments": "private"})
    frames = _all(outbox)
    shown = [sorted(frame["envelope"]) for frame in frames if "topic" in frame]
    assert shown == [["arguments", "n", "type"], ["n", "text", "type"]]
    outbox.spool.close()


def test_of_a_row_of_a_shared_log_only_the_position_is_sent(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, shared_log=True)
    position = {"session_id": "s", "epoch": 5, "seq": 7}
    outbox.put({"type": _KEPT, "ts": 1.0, "name": "terminal", **position})
    outbox.put({"type": _KEPT, "n": 1})
    outbox.put({"type": "gateway.startup", "n": 2, **position})
    outbox.put({"type": _PASSING, "n": 3, "session_id": "s"})
    row, *whole = [frame for frame in _all(outbox) if "topic" in frame]
    outbox.spool.close()
    assert (row["topic"], row["row"], row["envelope"]) == (_KEPT, True, position)
    assert [frame["envelope"]["n"] for frame in whole] == [1, 2, 3]
    assert not any("row" in frame for frame in whole)
