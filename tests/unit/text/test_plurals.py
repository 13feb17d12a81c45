"""Numbers with their noun."""

import pytest

from hermes.text.plurals import count


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 rows"), (1, "1 row"), (2_000, "2,000 rows")]
)
def test_one_is_singular(number: int, words: str) -> None:
    assert count(number, "row") == words
