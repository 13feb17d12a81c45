"""Odd characters in a stream: what only the transport broke is repaired, and nothing turns one call into another."""

import pytest
from tests.unit.providers.streams import CODECS, FORMATS, endpoint, read

from hermes.core.arguments import BadArguments, parse_arguments
from hermes.providers.adapter import ErrorFrame, StreamBroken
from hermes.providers.sse import BrokenEvents
from hermes.schema.messages import AssistantMessage
from hermes.schema.model import TextDelta
from hermes.testing.formats import Format, render, render_whole
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

pytestmark = pytest.mark.parametrize("wire", FORMATS)

GRIN = "\N{GRINNING FACE}"


def replayed(
    wire: Format, reply: ScriptedResponse, **bytes_of: bytes
) -> AssistantMessage:
    """The message of a stream in which each word of the reply is replaced by the bytes given for it."""
    body = b"".join(render(wire, reply, "gpt-5", 1))
    for word, meant in bytes_of.items():
        body = body.replace(word.encode(), meant)
    events, message = read(wire, body)
    shown = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert message.text.removeprefix(shown) in {"", "\ufffd"}
    return message


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (rb"\ud83d", rb"\ude00"),
        (b"\xf0\x9f", b"\x98\x80"),
        (b"\xf0", b"\x9f\x98\x80"),
        (
            b"\xed\xa0\xbd",
            b"\xed\xb8\x80",
        ),  # halves of a pair as if they were characters
    ],
)
def test_a_character_cut_in_two_by_a_frame_is_put_together(
    wire: Format, first: bytes, second: bytes
) -> None:
    frames = [
        # events that repeat the whole text have it right
        frame.replace(b"FIRSTPARSECONDPA", GRIN.encode())
        .replace(b"FIRSTPAR", first)
        .replace(b"SECONDPA", second)
        for frame in render(
            wire, ScriptedResponse(text="FIRSTPARSECONDPA", chunk=8), "gpt-5", 1
        )
    ]
    events, message = read(wire, b"".join(frames))
    assert message.text == GRIN
    assert [
        event.text for event in events if isinstance(event, TextDelta) and event.text
    ] == [GRIN]


@pytest.mark.parametrize("odd", [b"\xff", rb"\ud83d", rb"\ude00", b"\xed\xa0\xbd"])
def test_what_is_no_character_is_shown_as_one_that_stands_for_it(
    wire: Format, odd: bytes
) -> None:
    message = replayed(
        wire, ScriptedResponse(text="well ODDBALL, fine", chunk=100), ODDBALL=odd
    )
    assert message.text.replace("\ufffd\ufffd\ufffd", "\ufffd") == "well \ufffd, fine"


def test_half_a_character_at_the_end_is_shown_as_missing(wire: Format) -> None:
    assert (
        replayed(
            wire, ScriptedResponse(text="bye ODDBALL", chunk=100), ODDBALL=rb"\ud83d"
        ).text
        == "bye \ufffd"
    )


@pytest.mark.parametrize("odd", [b"\xff", rb"\ud83d", b"\xe2\x82"])
@pytest.mark.parametrize("arguments", ['{"path": "a ODDBALL b"}', '{"path": "ODDBALL'])
def test_a_call_with_a_damaged_character_can_not_be_run(
    wire: Format, odd: bytes, arguments: str
) -> None:
    (call,) = replayed(
        wire,
        ScriptedResponse(calls=(ServedCall("f", arguments),), chunk=100),
        ODDBALL=odd,
    ).tool_calls
    with pytest.raises(BadArguments, match="damaged"):
        parse_arguments(call.arguments)


@pytest.mark.parametrize("odd", [b"\xff", b"\xc3", b"\x80"])
def test_no_flipped_byte_gives_a_different_call(wire: Format, odd: bytes) -> None:
    reply = ScriptedResponse(
        text="hi", calls=(ServedCall("read_file", '{"n": 12, "path": "a"}'),), chunk=5
    )
    whole = b"".join(render(wire, reply, "gpt-5", 1))
    for place in range(len(whole)):
        try:
            calls = read(wire, whole[:place] + odd + whole[place + 1 :])[1].tool_calls
        except (StreamBroken, ErrorFrame, BrokenEvents):
            continue
        for call in calls:
            try:
                arguments = parse_arguments(call.arguments)
            except BadArguments:
                continue
            assert (call.name, arguments) == ("read_file", {"n": 12, "path": "a"})
        assert len(calls) == 1


def test_a_whole_reply_is_read_with_the_same_care(wire: Format) -> None:
    def message(odd: bytes) -> AssistantMessage:
        reply = ScriptedResponse(
            text="well ODDBALL, fine", calls=(ServedCall("f", '{"text":"ODDCALL"}'),)
        )
        body = (
            render_whole(wire, reply, "gpt-5", 1)
            .replace(b"ODDBALL", odd)
            .replace(b"ODDCALL", odd)
        )
        reader = CODECS[wire].reader(endpoint())
        reader.whole(body)
        return reader.message()

    assert message(GRIN.encode()).text == f"well {GRIN}, fine"
    damaged = message(b"\xff")
    assert damaged.text == "well \ufffd, fine"
    with pytest.raises(BadArguments, match="damaged"):
        parse_arguments(damaged.tool_calls[0].arguments)


def test_arguments_nested_without_end_reach_the_one_who_judges_them(
    wire: Format,
) -> None:
    deep = '{"path":' + "[" * 20_000 + "]" * 20_000 + "}"
    (call,) = replayed(
        wire, ScriptedResponse(calls=(ServedCall("f", deep),), chunk=100_000)
    ).tool_calls
    assert call.arguments == deep
    with pytest.raises(BadArguments, match="nested more than 100 levels"):
        parse_arguments(call.arguments)


def test_a_frame_nested_without_end_is_malformed(wire: Format) -> None:
    with pytest.raises(StreamBroken, match="nested too deeply"):
        read(
            wire,
            b'data: {"type":"x","extra":' + b"[" * 20_000 + b"]" * 20_000 + b"}\n\n",
        )
