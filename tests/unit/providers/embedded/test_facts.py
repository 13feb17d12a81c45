"""Facts that code knows: sums, days, and what can be counted."""

import datetime as dt

import pytest

from hermes.providers.embedded.facts import (
    arithmetic,
    asks_for_numbers,
    file_note,
    length_notes,
    request_notes,
)

NOW = dt.datetime(2026, 11, 16, 21, 40, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("request_text", "result"),
    [
        ("what is 348 + 277?", "625"),
        ("23*47", "1081"),
        ("How much is 46 times 58?", "2668"),
        ("divide 1001 by 7", "143"),
        ("what's 18% of 250?", "45"),
        ("15 percent of 60", "9"),
        ("the square root of 169", "13"),
        ("(2 + 3) * 4", "20"),
        ("1,200 / 7", "171.429"),
        ("2^10", "1024"),
        ("Split a bill of 126 dollars between 7 people.", "18"),
        ("share 90 sweets among 6 children", "15"),
        ("A coat costs 80 euros and is 15% off. What do I pay?", "68"),
        ("how many minutes are in three and a half hours?", "210"),
        ("How many days are there in 6 weeks?", "42"),
        ("how many seconds has an hour?", "3600"),
        ("5 km in miles", "3.10686"),
        ("convert 2 pounds to grams", "907.185"),
    ],
)
def test_sums(request_text: str, result: str) -> None:
    (note,) = arithmetic(request_text)
    assert note.endswith(f"= {result}")


@pytest.mark.parametrize(
    "text",
    [
        "on 2026-11-16",
        "11/16/2026",
        "call 555-123-4567 now",
        "python 3.11",
        "1 / 0",
        "9**999999",
        "a 3-bedroom flat",
        "how many days are in a month?",
        "how many grams are in 3 hours?",
        "split the 12 chapters into 3 files",
        "I need 20 euros and 50% more",
    ],
)
def test_what_is_no_sum(text: str) -> None:
    assert arithmetic(text) == []


def test_a_text_that_is_to_become_shorter_gets_a_limit() -> None:
    (note,) = length_notes("make it shorter", "word " * 30)
    assert "at most 15" in note
    assert length_notes("make it longer", "word " * 30) == []
    assert length_notes("shorter, please", "Hello!") == []


def test_days_and_the_time() -> None:
    assert request_notes("what time is it?", NOW) == ["the time is 21:40"]
    (note,) = request_notes("what day is tomorrow?", NOW)
    assert "tomorrow Tuesday, 17 November 2026" in note
    assert request_notes("hello", NOW) == []


def test_a_table_is_counted_and_summed() -> None:
    table = "what,amount\nrent,800\nfood,120\n"
    note = file_note("x.csv", table, "what is the total?")
    assert note.startswith("x.csv has 2 entries")
    assert "amount: sum 920, average 460, largest 800 (rent), smallest 120" in note
    assert file_note("x.csv", table, "how many lines?") == "x.csv has 3 lines"
    assert (
        file_note("x.csv", "", "how many?")
        == "x.csv has 0 entries (rows without the header)"
    )
    assert (
        file_note("a.txt", "a b\nc\n", "count the words")
        == "a.txt has 2 lines, 3 words"
    )


def test_which_requests_ask_for_numbers() -> None:
    assert asks_for_numbers("wie viele Zeilen?")
    assert not asks_for_numbers("what does it say?")


@pytest.mark.parametrize(
    "text",
    [
        "what is (((9^64)^64)^64)^64",
        "what is (-8)^0.5",
        "(1.5*10^60)*(1.5*10^60)*(1.5*10^60)*(1.5*10^60)*(1.5*10^60)*(1.5*10^60)",
        f"{'9' * 190}% of {'9' * 190}",
        f"square root of {'9' * 380}",
    ],
    ids=lambda text: text[:20],
)
def test_a_sum_without_a_usable_value_is_left_to_the_model(text: str) -> None:
    assert arithmetic(text) == []
