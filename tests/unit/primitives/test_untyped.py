"""Untyped values of others: what has another type than expected counts as missing."""

import pytest

from hermes.primitives.untyped import (
    list_in,
    list_of,
    number_in_text,
    number_of,
    object_in,
    object_of,
    objects_in,
    objects_of,
    real_of,
    text_in,
    text_of,
    texts_of,
)

DOCUMENT = {"a": {"b": 1}, "list": [{"c": 2}, "text", 3], "text": "words", "none": None}


def test_what_is_there_is_returned() -> None:
    assert object_in(DOCUMENT, "a") == {"b": 1}
    assert list_in(DOCUMENT, "list") == [{"c": 2}, "text", 3]
    assert objects_in(DOCUMENT, "list") == [{"c": 2}]
    assert texts_of(DOCUMENT["list"]) == ["text"]
    assert text_in(DOCUMENT, "text") == "words"
    assert number_of(7) == 7
    assert (real_of(7), real_of("7")) == (7.0, 0.0)


@pytest.mark.parametrize("value", [None, 3.5, b"bytes", object()])
def test_anything_else_counts_as_missing(value: object) -> None:
    assert (object_of(value), list_of(value), objects_of(value)) == ({}, [], [])
    assert (text_of(value), texts_of(value), number_of(value)) == ("", [], 0)
    assert (object_in(value, "a"), text_in(value, "a")) == ({}, "")


def test_a_name_that_is_not_there_counts_as_missing() -> None:
    assert object_in(DOCUMENT, "x") == {}
    assert object_in(DOCUMENT, "none") == {}
    assert list_in(DOCUMENT, "text") == []
    assert objects_in(DOCUMENT, "a") == []


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("42", 42),
        ("\u0664\u0662", 42),
        (str(2**63 - 1), 2**63 - 1),
        (str(2**63), None),
        ("9" * 5_000, None),
        ("\u00b2", None),
        ("-1", None),
        ("1.5", None),
        ("", None),
    ],
)
def test_a_number_in_a_text_has_only_digits_and_64_bits(
    text: str, number: int | None
) -> None:
    assert number_in_text(text) == number
