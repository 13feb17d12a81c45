"""Numbers as people read them."""

import pytest

from hermes.text.catalogue import Catalogue
from hermes.text.formats import (
    ago,
    count,
    duration,
    short_duration,
    short_number,
    time_left,
)
from hermes.text.translation import in_language


class Capitals(Catalogue):
    """A language in which every sentence is in capitals."""

    # pyrefly: ignore[missing-override-decorator]
    def sentence(self, context: str, text: str) -> str:
        return text.upper().replace("COUNT", "count")


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 rows"), (1, "1 row"), (2_000, "2,000 rows")]
)
def test_one_is_singular(number: int, words: str) -> None:
    assert count(number, "row") == words


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (999, "999"), (12_345, "12k"), (999_900, "1M"), (1_048_576, "1M"), (1_500_000, "1.5M")],
)  # fmt: skip
def test_a_long_number_is_shortened(number: int, text: str) -> None:
    assert short_number(number) == text


@pytest.mark.parametrize(
    ("passed", "words"),
    [(0, "JUST NOW"), (90, "1 MIN AGO"), (7_300, "2 H AGO"), (300_000, "3 D AGO")],
)
def test_how_long_ago_is_told_in_the_language_of_the_reader(
    passed: float, words: str
) -> None:
    with in_language(Capitals("en")):
        assert ago(1_000_000.0 - passed, 1_000_000.0) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-1, "0 ms"),
        (0.0123, "12 ms"),
        (3.44, "3.4 s"),
        (59.9, "59.9 s"),
        (125, "2 min 5 s"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "0 S"), (90, "2 MIN"), (7_200, "2 H"), (260_000, "3 D")],
)
def test_a_duration_is_told_in_the_language_of_the_reader(
    seconds: float, words: str
) -> None:
    with in_language(Capitals("en")):
        assert short_duration(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "1 s"), (150, "2 min"), (4_800, "1 h 20 min")]
)
def test_time_left(seconds: float, words: str) -> None:
    assert time_left(seconds) == words
