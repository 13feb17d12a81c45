"""What an error shows of a file: the place that was most likely meant."""

from hermes.tools.files.nearest_text import nearest

FILE = [
    "import os",
    "",
    "def first():",
    "    return 1",
    "",
    "def second():",
    "    return 2",
    "",
]


def test_the_place_with_most_of_the_lines_is_shown() -> None:
    assert nearest(FILE, ["def second():", "    return 3"]) == (
        "\nThe nearest text in the file is:\n6: def second():\n7:     return 2\n"
    )


def test_a_line_that_is_alike_is_enough() -> None:
    assert "3: def first():" in nearest(FILE, ["def frist():"])
    assert "3: def first():" in nearest(FILE, ["first()", "return"])


def test_nothing_near_says_nothing() -> None:
    assert nearest(FILE, ["zzzzzzzzzzz"]) == ""
    assert nearest([], ["a"]) == ""
    assert nearest(FILE, [""]) == ""
    assert nearest([""], ["   "]) == ""


def test_long_places_are_cut() -> None:
    lines = [f"line {number} " + "x" * 500 for number in range(100)]
    shown = nearest(lines, ["line 1 y", *lines[1:90]])
    assert shown.count("\n") == 10
    assert len(shown) < 2000
