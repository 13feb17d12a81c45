"""JSON as people write it is read, and what is no object is refused with a reason."""

import pytest

from hermes.settings.json5_read import parse_json5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": [1, 2]}', {"a": [1, 2]}),
        ('{"a": 1, // one\n "b": "http://x//y", /* two */ }', {"a": 1, "b": "http://x//y"}),
        ("{a: 'it, }', b: [1, 2,], c: true,}", {"a": "it, }", "b": [1, 2], "c": True}),
        ("{\n\ta: { b: 'http://x' },\n}", {"a": {"b": "http://x"}}),
    ],
)  # fmt: skip
def test_objects_are_read(text: str, expected: object) -> None:
    assert parse_json5(text) == expected


@pytest.mark.parametrize("text", ["", "[1]", "{ broken", "7", "[" * 5000, "{" * 5000])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json5(text)
