"""Wrapping of styled text."""

import pytest

from hermes.surfaces.terminal.styled_text import Row, Run, flow, plain


@pytest.mark.parametrize(
    ("runs", "rows"),
    [
        ([("ab cd ef", "")], [(("ab cd", ""),), (("ef", ""),)]),
        ([("ab ", ""), ("cd", "1"), (" e ", "")], [(("ab ", ""), ("cd", "1")), (("e", ""),)]),
        ([("a", ""), ("", "1"), ("b", "2"), ("cdef g", "2")], [(("a", ""), ("bcde", "2")), (("f g", "2"),)]),
        ([("one  two", "")], [(("one", ""),), (("two", ""),)]),
        ([], [()]),
    ],
)  # fmt: skip
def test_text_is_broken_between_words_and_keeps_its_styles(
    runs: list[Run], rows: list[Row]
) -> None:
    assert list(flow(runs, 5)) == rows


def test_text_in_ascii_is_broken_as_other_text_is() -> None:
    words = "some of these words are styled and one-is-longer-than-a-row "
    runs = [(word + " ", "1" if "s" in word else "") for word in words.split()]
    for columns in range(1, 30):
        rows = [plain(row) for row in flow(runs, columns)]
        others = [plain(row) for row in flow([*runs, ("é", "")], columns)]
        assert others[: len(rows) - 1] == rows[:-1]
