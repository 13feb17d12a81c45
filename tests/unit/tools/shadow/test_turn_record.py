"""The lines of a turn's record, as they are on disk in every home."""

import msgspec
import pytest

from hermes.tools.shadow.path_state import ABSENT
from hermes.tools.shadow.turn_record import (
    Ended,
    Line,
    Touched,
    TurnHeader,
    Unkept,
    Whole,
)


@pytest.mark.parametrize(
    ("line", "tag"),
    [
        (TurnHeader("s", "t", b"/w", 1.0), "Begun"),
        (Touched(b"/w/a", ABSENT), "Touched"),
        (Unkept(b"/w/a", "it is too large"), "Unkept"),
        (Whole(()), "Whole"),
        (Ended(2.0, ()), "Ended"),
    ],
)
def test_a_line_keeps_the_tag_it_has_on_disk(line: Line, tag: str) -> None:
    raw = msgspec.json.encode(line)
    assert msgspec.json.decode(raw)["type"] == tag
    assert msgspec.json.decode(raw, type=Line) == line
