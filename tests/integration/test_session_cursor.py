"""A reader's cursor returns the rows of a session in the order of the log, each once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.app import App, build
from hermes.app.feed import SessionCursor
from hermes.events import Bus
from hermes.schema.events import SessionCreated, SessionTitled
from hermes.settings import Home, Settings


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    with build(Settings(), Home(tmp_path), bus=Bus()) as made:
        made.begin(SessionCreated(), "s")
        for number in range(2, 6):
            made.record("s", SessionTitled(title=f"title {number}"))
        yield made


def row(seq: int, session: str = "s") -> dict[str, Any]:
    return {"type": "session.titled", "session_id": session, "seq": seq}


def taken(cursor: SessionCursor, *events: dict[str, Any]) -> list[Any]:
    return [shown.get("seq") for event in events for shown in cursor.in_order(event)]


def test_rows_that_were_not_published_come_first(app: App) -> None:
    assert taken(SessionCursor(app, "s", seq=2), row(5), row(6)) == [3, 4, 5, 6]


def test_a_row_that_comes_twice_or_too_late_is_returned_once(app: App) -> None:
    assert taken(SessionCursor(app, "s", seq=2), row(4), row(3), row(4)) == [3, 4]


def test_an_event_without_a_row_or_of_another_session_goes_through(app: App) -> None:
    delta = {"type": "agent.message.delta", "session_id": "s"}
    assert taken(SessionCursor(app, "s", seq=2), delta, row(9, "child")) == [None, 9]


def test_a_log_that_cannot_be_read_does_not_hide_the_event(app: App) -> None:
    cursor = SessionCursor(app, "gone", seq=2)
    assert taken(cursor, row(9, "gone")) == [9]
