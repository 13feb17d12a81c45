"""Which files a completion offers, in which order."""

from hermes.surfaces.tui.file_list import best

NAMES = [
    "README.md",
    "src/",
    "src/app.py",
    "src/application/main.py",
    "docs/app.md",
    "tests/test_app.py",
]


def test_the_beginning_of_a_path_comes_first_then_of_a_name_then_anything_that_holds_it() -> (
    None
):
    assert best(NAMES, "src", 3) == ["src/", "src/app.py", "src/application/main.py"]
    assert best(NAMES, "app", 9) == [
        "src/app.py",
        "docs/app.md",
        "tests/test_app.py",
        "src/application/main.py",
    ]


def test_letters_in_order_are_enough_and_case_does_not_count() -> None:
    assert best(NAMES, "rdm", 9) == ["README.md"]
    assert best(NAMES, "zzz", 9) == []


def test_without_a_word_short_paths_come_first() -> None:
    assert best(NAMES, "", 2) == ["README.md", "src/"]
