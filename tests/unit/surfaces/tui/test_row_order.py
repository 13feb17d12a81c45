"""Events of a session reach the screen in the order of the log, each once."""

from typing import Any

from hermes.surfaces.tui.row_order import InOrder


def row(seq: int, session: str = "s") -> dict[str, Any]:
    return {"type": "agent.message.user", "session_id": session, "seq": seq}


def ordered(head: int, *log: int) -> InOrder:
    return InOrder("s", head, lambda after: [row(seq) for seq in log if seq > after])


def taken(order: InOrder, *events: dict[str, Any]) -> list[Any]:
    return [shown.get("seq") for event in events for shown in order.take(event)]


def test_rows_that_another_process_wrote_come_first() -> None:
    assert taken(ordered(2, 1, 2, 3, 4, 5), row(5), row(6)) == [3, 4, 5, 6]


def test_a_row_that_comes_twice_or_too_late_is_shown_once() -> None:
    assert taken(ordered(2, 3, 4), row(4), row(3), row(4)) == [3, 4]


def test_what_is_in_no_log_or_of_another_session_goes_through() -> None:
    delta = {"type": "agent.message.delta", "session_id": "s"}
    assert taken(ordered(2, 3, 4, 9), delta, row(9, "child")) == [None, 9]


def test_what_was_missed_can_be_asked_for() -> None:
    order = ordered(2, 3, 4)
    assert [event["seq"] for event in order.missed()] == [3, 4]
    assert taken(order, row(4)) == []
