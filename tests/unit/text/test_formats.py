"""Numbers as people read them."""

import pytest

from hermes.text.formats import count, short_number


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
