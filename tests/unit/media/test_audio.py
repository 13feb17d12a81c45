"""Where long recordings are cut."""

from array import array

from hypothesis import given
from hypothesis import strategies as st

from hermes.media.audio import Audio, cut_at_pauses, join_audio, samples_of, wav_of


@given(st.lists(st.integers(-9, 9), max_size=300), st.integers(1, 50))
def test_no_sample_is_lost_and_no_piece_is_too_long(
    values: list[int], most: int
) -> None:
    pieces = list(cut_at_pauses(array("h", values), 100, most / 100))
    assert [sample for piece in pieces for sample in piece] == values
    assert all(len(piece) <= most for piece in pieces)


def test_a_cut_is_made_in_the_pause() -> None:
    loud, pause = [5000] * 700, [0] * 60
    first, second = cut_at_pauses(array("h", loud + pause + loud), 1000, 1.0)
    assert 700 < len(first) < 760
    assert len(first) + len(second) == 1460


def test_wav_files_are_joined_into_one() -> None:
    one = Audio(wav_of(array("h", [1, 2])), "wav")
    two = Audio(wav_of(array("h", [3])), "wav")
    assert list(samples_of(join_audio([one, two]).data)[0]) == [1, 2, 3]
