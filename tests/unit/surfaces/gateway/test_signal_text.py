"""Markdown as plain text with ranges of styles."""

from hermes.surfaces.gateway.adapters.text_formats import StyledRange, styled_ranges


def test_ranges_count_utf16_units_and_may_be_nested() -> None:
    text, ranges = styled_ranges("🙂 **bold _both_** `a<b`")
    assert text == "🙂 bold both a<b"
    assert set(ranges) == {
        StyledRange(3, 9, "b"),
        StyledRange(8, 4, "i"),
        StyledRange(13, 3, "code"),
    }


def test_a_block_is_one_range_and_a_quote_keeps_its_mark() -> None:
    text, ranges = styled_ranges("> said\n\n```py\nx = 1\n```")
    assert text == "> said\n\nx = 1"
    assert {(one.start, one.length) for one in ranges} == {(8, 5)}
