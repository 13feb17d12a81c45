"""The window on what a terminal wrote."""

from hypothesis import given
from hypothesis import strategies as st

from hermes.pty.scrollback import Scrollback

_pieces = st.lists(st.binary(max_size=12), max_size=30)


@given(_pieces, st.integers(1, 40), st.integers(1, 20))
def test_what_is_kept_is_the_end_of_what_was_written(
    pieces: list[bytes], limit: int, most: int
) -> None:
    kept = Scrollback(limit)
    for piece in pieces:
        kept.add(piece)
    everything = b"".join(pieces)
    assert kept.end == len(everything)
    assert kept.end - kept.start <= limit
    for position in range(kept.start, kept.end + 1):
        assert kept.after(position, most) == everything[position : position + most]


@given(_pieces, st.integers(1, 40))
def test_a_newcomer_begins_at_the_beginning_or_behind_a_line_end(
    pieces: list[bytes], limit: int
) -> None:
    kept = Scrollback(limit)
    for piece in pieces:
        kept.add(piece)
    start = kept.fresh_start()
    everything = b"".join(pieces)
    assert kept.start <= start <= kept.end
    assert start in {0, kept.end} or everything[start - 1 : start] == b"\n"


def test_a_piece_larger_than_the_window_leaves_its_end() -> None:
    kept = Scrollback(4)
    kept.add(b"abcdefgh")
    assert (kept.start, kept.end, kept.after(4, 99)) == (4, 8, b"efgh")
