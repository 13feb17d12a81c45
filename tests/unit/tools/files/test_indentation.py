"""Indentation that differs in one way is translated; anything else is not guessed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.tools.files.indentation import reindent


@pytest.mark.parametrize(
    ("written", "actual", "line", "becomes"),
    [
        (["a", "  b"], ["    a", "      b"], "    c", "        c"),
        (["a", "    b"], ["a", "\tb"], "        c", "\t\tc"),
        (["\ta", "\t\tb"], ["a", "\tb"], "\tc", "c"),
        (["    a"], ["\ta"], "        b", "\t\tb"),
        (["  a", "    b"], ["    a", "        b"], "      c", "            c"),
        (["    a", "      b"], ["  a", "    b"], "  c", "c"),
        (["a"], ["  a"], "", ""),
    ],
)
def test_a_line_is_put_where_its_neighbours_are(
    written: list[str], actual: list[str], line: str, becomes: str
) -> None:
    indent = reindent(written, actual)
    assert indent is not None
    assert indent.apply(line) == becomes


@pytest.mark.parametrize(
    ("written", "actual"),
    [
        (["a", "b"], ["a", "  b"]),
        (["a", "  b"], ["  a", "b"]),
        (["a"], ["b"]),
        (["a", "  b", "    c"], ["a", "  b", "   c"]),
        ([""], [""]),
    ],
)
def test_what_differs_in_more_than_one_way_is_not_guessed(
    written: list[str], actual: list[str]
) -> None:
    assert reindent(written, actual) is None


DEPTHS = st.lists(st.integers(0, 4), min_size=1, max_size=6)


@given(
    DEPTHS,
    st.sampled_from(["  ", "    ", "\t"]),
    st.sampled_from(["  ", "    ", "\t"]),
    st.integers(0, 3),
)
def test_lines_that_are_known_come_out_as_they_are(
    depths: list[int], one: str, two: str, more: int
) -> None:
    written = [one * depth + "x" for depth in depths]
    actual = [two * (depth + more) + "x" for depth in depths]
    indent = reindent(written, actual)
    if indent is not None:
        assert indent.text(written) == actual
    elif len(set(depths)) == 1:
        raise AssertionError((written, actual))  # one depth can always be translated
