"""How long a turn is left to workers."""

from pathlib import Path

from hermes.app.app import build
from hermes.app.turn_placement import LEAVE_S, MAX_LEAVE_S, TurnPlacement
from hermes.events import Bus
from hermes.settings import Home, Settings


def test_a_turn_is_left_to_workers_as_long_as_they_begin_others(tmp_path: Path) -> None:
    with build(Settings(), Home(tmp_path), bus=Bus()) as app:
        placement = TurnPlacement(app, lambda _: False)
        assert not placement.is_due_here(100.0, 100.0 + LEAVE_S / 2)
        assert placement.is_due_here(100.0, 100.0 + LEAVE_S)
        placement.note_begun(104.0)
        assert not placement.is_due_here(100.0, 100.0 + LEAVE_S)
        assert placement.is_due_here(100.0, 104.0 + LEAVE_S)


def test_a_turn_is_not_left_for_ever(tmp_path: Path) -> None:
    with build(Settings(), Home(tmp_path), bus=Bus()) as app:
        placement = TurnPlacement(app, lambda _: False)
        now = 100.0 + MAX_LEAVE_S
        placement.note_begun(now)
        assert placement.is_due_here(100.0, now)
