"""JSON from outside: one error, whatever is sent."""

import msgspec
import pytest

from hermes.surfaces.web.request_json import InvalidRequest, read_json, read_query


class Body(msgspec.Struct):
    text: str = ""
    number: int = 0
    more: list[dict[str, int]] = []


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'{"text": "\xff"}', "UTF-8"),
        (b"\xff", "malformed"),
        (b"[" * 100_000, "array"),
        (b'{"number": 99999999999999999999}', "64 bits"),
        (b'{"more": [{"a": -9223372036854775809}]}', "64 bits"),
        (b'{"text": 1}', "Expected `str`"),
    ],
)
def test_what_cannot_be_read_says_why(content: bytes, why: str) -> None:
    with pytest.raises(InvalidRequest, match=why):
        read_json(content, Body)


def test_nesting_without_end_is_unreadable() -> None:
    with pytest.raises(InvalidRequest, match="nested too deeply"):
        read_json(b"[" * 100_000, object)


def test_the_rest_is_read() -> None:
    assert read_json(
        '{"text": "é", "number": 9223372036854775807}'.encode(), Body
    ) == Body("é", 2**63 - 1)
    assert read_query({"number": "7"}, Body).number == 7
    with pytest.raises(InvalidRequest, match="64 bits"):
        read_query({"number": "9" * 25}, Body)
