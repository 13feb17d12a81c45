"""The end of a conversation, shown again."""

import pytest
from tests.unit.surfaces.tui.test_session_view import FakeScreen

from hermes.surfaces.tui.replay import ReplayScreen


def played(replies: int, *, echoes: bool = False) -> ReplayScreen:
    screen = ReplayScreen(FakeScreen(echoes=echoes))
    for number in range(replies):
        screen.line(f"> question {number}\n")
        screen.write(f"**answer** {number}\n\nand a `second` paragraph")
    screen.end_reply()
    return screen


@pytest.mark.parametrize("echoes", [False, True])
def test_the_last_lines_are_the_end_of_all_lines(echoes: bool) -> None:
    screen = played(8, echoes=echoes)
    everything, is_cut = screen.last_lines(1_000)
    assert not is_cut
    assert everything[:2] == ["> question 0", ""]
    assert len(everything) == 8 * 5
    for most in range(1, len(everything)):
        assert screen.last_lines(most) == (everything[-most:], True)
    assert screen.last_lines(len(everything)) == (everything, False)
