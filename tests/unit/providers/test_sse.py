"""Server-sent events out of bytes."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.providers.sse import BrokenEvents, EventParser, ServerEvent


def parse(*chunks: bytes) -> list[ServerEvent]:
    parser = EventParser()
    return [event for chunk in chunks for event in parser.feed(chunk)]


def test_an_event_has_a_name_and_data() -> None:
    assert parse(b"event: ping\ndata: {}\n\n") == [ServerEvent("ping", b"{}")]


def test_an_id_holds_until_the_next_one() -> None:
    found = parse(b"id: 7\ndata: a\n\ndata: b\n\nid:8\ndata: c\n\n")
    assert [event.id for event in found] == ["7", "7", "8"]


def test_data_on_several_lines_is_joined_by_newlines() -> None:
    assert parse(b"data: a\ndata:b\ndata\ndata:  c\n\n") == [
        ServerEvent("", b"a\nb\n\n c")
    ]


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_every_line_ending_of_the_standard_is_understood(newline: bytes) -> None:
    text = b"event: a\ndata: 1\n\ndata: 2\n\n".replace(b"\n", newline)
    assert parse(text) == [ServerEvent("a", b"1"), ServerEvent("", b"2")]


def test_a_carriage_return_and_its_newline_may_come_apart() -> None:
    assert parse(b"data: 1\r", b"\n\r", b"\ndata: 2\r\n\r\n") == [
        ServerEvent("", b"1"),
        ServerEvent("", b"2"),
    ]


def test_comments_ids_and_retry_times_are_not_data() -> None:
    assert parse(b": keep-alive\n\nid: 7\nretry: 10\ndata: x\n\n:\n\n") == [
        ServerEvent("", b"x", "7")
    ]


def test_a_byte_order_mark_at_the_start_is_skipped() -> None:
    assert parse(b"\xef\xbb", b"\xbfdata: x\n\n") == [ServerEvent("", b"x")]


def test_a_name_without_data_is_no_event_and_does_not_stick() -> None:
    assert parse(b"event: lost\n\ndata: x\n\n") == [ServerEvent("", b"x")]


def test_what_was_cut_at_the_end_is_no_event() -> None:
    assert parse(b"data: whole\n\ndata: half\n") == [ServerEvent("", b"whole")]


@pytest.mark.parametrize("chunk", [b"data: " + b"x" * 40, b"data: xxxxxxxx\n" * 4])
def test_a_line_or_an_event_without_end_is_refused(chunk: bytes) -> None:
    parser = EventParser(limit=20)
    with pytest.raises(BrokenEvents):
        list(parser.feed(chunk))


def test_what_came_before_a_broken_line_is_read() -> None:
    events = EventParser().feed(b"data: 1\n\nhalf a line\n\n")
    assert next(events) == ServerEvent("", b"1")
    with pytest.raises(BrokenEvents, match="half a line"):
        next(events)


def test_a_line_that_belongs_to_no_event_is_not_skipped() -> None:
    with pytest.raises(BrokenEvents, match="half a line"):
        parse(b"data: 1\n\nhalf a line\n\n")


def test_an_error_line_is_an_event_called_error() -> None:
    assert parse(b'error: {"code":500}\n\n') == [ServerEvent("error", b'{"code":500}')]


_LINES = st.lists(
    st.sampled_from(
        [
            b"data: a",
            b"data:",
            b"data",
            b"event: e",
            b": c",
            b"",
            b"data: \xc3\xa9",
            b"id: 1",
            b"retry",
        ]
    )
)
_ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@given(_LINES, _ENDS, st.lists(st.integers(0, 200)), st.booleans())
def test_any_chunking_gives_the_same_events(
    lines: list[bytes], end: bytes, cuts: list[int], marked: bool
) -> None:
    text = (b"\xef\xbb\xbf" if marked else b"") + b"".join(line + end for line in lines)
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    chunks = [text[start:stop] for start, stop in pairwise(places)]
    assert (
        parse(*chunks)
        == parse(text)
        == parse(*(text[at : at + 1] for at in range(len(text))))
    )
